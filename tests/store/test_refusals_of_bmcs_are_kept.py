"""Which BMCs refused our login outlives every process, on every database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from daytwo.domain.errors import NotYet, Refused
from daytwo.hardware.redfish_memory import PAUSE, Memory
from daytwo.store.engine import Store

NOW = datetime(2026, 11, 30, 3, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=9)


def at(store: Store, hours: float = 0, *, declared_at: datetime = LONG_AGO, cluster: str = "east") -> Memory:
    """The memory of a process that looks so many hours later."""
    return Memory(store, cluster, declared_at, clock=lambda: NOW + timedelta(hours=hours))


def test_a_refusal_is_a_pause(store: Store) -> None:
    at(store).refused("https://a")
    with pytest.raises(NotYet, match=r"try 1 of 3 a day; next in 1[01] min"):
        at(store, 0.33).check("https://a")
    at(store, PAUSE.total_seconds() / 3600).check("https://a")


def test_the_third_refusal_of_a_day_is_the_last(store: Store) -> None:
    for hours in (0, 1, 2):
        at(store, hours).refused("https://a")
    with pytest.raises(Refused, match="refused the login 3 times in a day"):
        at(store, 23).check("https://a")
    at(store, 25).check("https://a")


def test_three_bmcs_that_refuse_stop_all_power_acts_of_the_cluster(store: Store) -> None:
    for name in ("a", "b", "c"):
        at(store).refused(f"https://{name}")
    with pytest.raises(NotYet, match="3 BMCs refuse the login: was the password changed"):
        at(store, 1).check("https://d")
    at(store, 1, cluster="west").check("https://d")


def test_a_definition_that_is_applied_again_starts_anew(store: Store) -> None:
    for name in ("a", "a", "a", "b", "c"):
        at(store).refused(f"https://{name}")
    at(store, 1, declared_at=NOW + timedelta(minutes=1)).check("https://a")


def test_a_bmc_that_lets_us_in_is_forgiven_alone(store: Store) -> None:
    for name in ("a", "b"):
        at(store).refused(f"https://{name}")
    at(store).accepted("https://a")
    at(store).check("https://a")
    with pytest.raises(NotYet):
        at(store).check("https://b")
