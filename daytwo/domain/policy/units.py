"""Numbers as a policy has them: times are seconds, parts of a pool are shares of one."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Limit = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, le=1)]
