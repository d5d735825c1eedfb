"""Windows: when an act may begin, in somebody's own time, over midnight and summer time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from daytwo.domain.policy import Policy
from daytwo.domain.vocabulary import Action, FaultClass
from daytwo.domain.windows import Window

NIGHTS = {"name": "nights", "begins": "22:00", "ends": "06:00"}


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def opens(now: str, action: Action = Action.REBOOT, **window: Any) -> str | None:
    """When a reboot for a fault of a board may begin; `None` is now."""
    policy = Policy(windows=(Window(**NIGHTS | window),))
    shut = policy.closed(action, FaultClass.BOARD, at(now))
    return f"{shut.opens_at:%a %H:%M}" if shut else None


# 2026-11-30 is a Monday.
@pytest.mark.parametrize(
    ("now", "window", "expected"),
    [
        ("2026-11-30T21:59", {}, "Mon 22:00"),
        ("2026-11-30T22:00", {}, None),
        ("2026-12-01T05:59", {}, None),
        ("2026-12-01T06:00", {}, "Tue 22:00"),
        ("2026-11-30T12:00", {"days": ["sat"]}, "Sat 22:00"),
        ("2026-12-06T03:00", {"days": ["sat"]}, None),
        ("2026-12-05T03:00", {"days": ["sat"]}, "Sat 22:00"),
        ("2026-11-30T23:00", {"days": ["mon"], "ends": "22:30"}, "Mon 22:00"),
        ("2026-11-30T21:00", {"timezone": "Europe/Berlin"}, None),
        ("2026-07-01T20:00", {"timezone": "Europe/Berlin"}, None),
        ("2026-07-01T19:59", {"timezone": "Europe/Berlin"}, "Wed 20:00"),
        ("2026-11-30T12:00", {"begins": "00:00", "ends": "00:00"}, None),
    ],
)
def test_an_act_begins_when_its_window_is_open(now: str, window: dict[str, Any], expected: str | None) -> None:
    assert opens(now, **window) == expected


@pytest.mark.parametrize(
    ("action", "window", "waits"),
    [
        (Action.REBOOT, {"actions": ["reboot"]}, True),
        (Action.POWER_CYCLE, {"actions": ["reboot"]}, False),
        (Action.REBOOT, {"classes": ["board"]}, True),
        (Action.REBOOT, {"classes": ["link"]}, False),
        (Action.INSPECT, {}, False),
        (Action.TELL_OWNER, {}, False),
    ],
)
def test_only_the_acts_that_a_window_is_for_wait(action: Action, window: dict[str, Any], waits: bool) -> None:
    assert (opens("2026-11-30T12:00", action, **window) is not None) is waits


def test_of_several_windows_the_next_one_counts_and_is_named() -> None:
    late = Window(name="late", begins="23:00", ends="23:30")
    shut = Policy(windows=(late, Window(**NIGHTS))).closed(Action.REBOOT, None, at("2026-11-30T12:00"))
    assert shut is not None
    assert shut.says == "waits for the window nights, which opens 2026-11-30 22:00Z"


def test_without_windows_an_act_begins_at_any_time() -> None:
    assert Policy().closed(Action.REBOOT, None, at("2026-11-30T12:00")) is None
