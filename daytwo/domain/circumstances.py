"""One node, one policy, one moment: what all questions of triage about ripe cases have in common."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from daytwo.domain.policy import Policy
from daytwo.domain.situation import Situation
from daytwo.faults.catalogue import Catalogue


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a case is judged in."""

    situation: Situation
    policy: Policy
    now: datetime
    catalogue: Catalogue
