"""A fault whose reading comes and goes: told once, and firing until it has been calm. Pure; intake and triage use it.

Three auto-resolutions in a day are no cure but a fault of their own (operations rule 8): each would end a proposal and
the next firing would ask again. So from then on the finding goes on as firing, until so few of its ends lie within the
window that it no longer flaps and its last reading was a good one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from daytwo.domain.policy import Flapping
from daytwo.domain.vocabulary import Fault, FaultClass

OF_PEOPLE: Final = frozenset({FaultClass.SCHEDULER, FaultClass.AGENT})
"""What a scheduler, a person or a network says may come and go without a fault of the machine."""


def may_flap(fault: Fault) -> bool:
    """True for what the machine itself shows."""
    return fault.fault_class not in OF_PEOPLE


def with_turn(turns: Sequence[datetime], at: datetime, rule: Flapping) -> tuple[datetime, ...]:
    """Return the ends of a fault's reading that still count, with one more at `at`: as many as are needed."""
    since = at - timedelta(seconds=rule.window_seconds)
    return (*(turn for turn in turns if turn > since), at)[-rule.turns :]


def flaps(turns: Sequence[datetime], now: datetime, rule: Flapping) -> bool:
    """Say whether a fault with these ends flaps now."""
    since = now - timedelta(seconds=rule.window_seconds)
    return sum(turn > since for turn in turns) >= rule.turns


def told(turns: Sequence[datetime], rule: Flapping) -> str:
    """Say it in words, with its times."""
    hours = rule.window_seconds / 3600
    times = ", ".join(f"{turn:%d %b %H:%M}" for turn in turns)
    return f"it came and went {len(turns)} times in {hours:g} h ({times} UTC): flapping, firing until it is calm"
