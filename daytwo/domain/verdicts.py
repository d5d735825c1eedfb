"""What triage may answer of one node: quiet, watch, withhold, propose. The reconciler and `assess` act on it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from daytwo.domain.proposal import Advice
from daytwo.domain.vocabulary import Frozen


class Quiet(Frozen):
    """Nothing fires."""

    kind: Literal["quiet"] = "quiet"
    why: str
    rules: tuple[str, ...] = ()
    look_again_at: datetime | None = None


class Watch(Frozen):
    """Something fires that asks nobody, or has not fired for long enough."""

    kind: Literal["watch"] = "watch"
    why: str
    rules: tuple[str, ...] = ()
    look_again_at: datetime | None = None


class Withhold(Frozen):
    """Somebody would be asked, but not now, or not about this node alone. The findings wait as firing.

    `domain` is set for a common cause. `contain`: keep new work off all the same.
    """

    kind: Literal["withhold"] = "withhold"
    cause: Literal["held", "planned", "retired", "snoozed", "noted", "common-cause"]
    why: str
    rules: tuple[str, ...] = ()
    look_again_at: datetime | None = None
    contain: bool = False
    domain: str | None = None
    faults: tuple[str, ...] = ()


class Propose(Frozen):
    """Ask: open a repair, or tell the open one. `contain`: keep new work off before anybody answers."""

    kind: Literal["propose"] = "propose"
    why: str
    rules: tuple[str, ...] = ()
    look_again_at: datetime | None = None
    contain: bool = False
    advice: Advice


Verdict = Annotated[Quiet | Watch | Withhold | Propose, Field(discriminator="kind")]
