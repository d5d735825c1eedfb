"""Errors of applications end after an hour of quiet; nothing else does, and a node that is not heard is not quiet."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlmodel import col, update

from daytwo.controller.leases import acquire
from daytwo.controller.quiet import end_what_is_quiet
from daytwo.domain.definition import ClusterDefinition
from daytwo.domain.policy import FaultRule, Policy
from daytwo.domain.vocabulary import Clears
from daytwo.intake import declare
from daytwo.store.tables import NodeRow
from tests.intake.conftest import NOW

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


def quiet(intake: Any, at: datetime, *, heard_at: datetime | None = None, log: str = "ok") -> list[tuple[str, Any]]:
    """The findings after a look at that time."""
    with intake.store.write() as session:
        heard = {"last_heard_at": heard_at or at, "checks": {"kernel-log": log}}
        session.exec(update(NodeRow).where(col(NodeRow.name) == intake.node).values(heard))
    lease = acquire(intake.store, "test", holder="me", seconds=10.0, now=at)
    assert lease is not None
    end_what_is_quiet(intake.store, lease, at)
    return [(row.status, row.cleared_by) for row in intake.findings()]


@pytest.mark.parametrize("fault", ["xid-13", "xid-31", "xid-43", "xid-45"])
def test_an_error_of_an_application_ends_after_an_hour_of_quiet(intake: Any, fault: str) -> None:
    intake.send(intake.observation(1, fault=fault))
    assert quiet(intake, NOW + HOUR - SECOND) == [("firing", None)]
    due = intake.row().due
    assert quiet(intake, NOW + HOUR) == [("cleared", "quiet")]
    assert intake.row().due == due + 1


def test_each_line_begins_the_hour_anew(intake: Any) -> None:
    intake.send(intake.observation(1, fault="xid-13"))
    intake.send(intake.observation(2, fault="xid-13"), now=NOW + HOUR / 2)
    assert quiet(intake, NOW + HOUR) == [("firing", None)]


@pytest.mark.parametrize("fault", ["xid-79", "xid-63", "slurm-drained"])
def test_what_quiet_does_not_clear_goes_on_firing(intake: Any, fault: str) -> None:
    intake.send(intake.observation(1, fault=fault))
    assert quiet(intake, NOW + 100 * HOUR) == [("firing", None)]


@pytest.mark.parametrize(
    "how",
    [{"heard_at": NOW + HOUR - timedelta(minutes=10)}, {"log": "unknown"}, {"log": "firing"}],
    ids=["silent", "log not read", "lines were missed within the hour"],
)
def test_a_node_whose_log_was_not_read_all_through_is_not_quiet(intake: Any, how: dict[str, Any]) -> None:
    intake.send(intake.observation(1, fault="xid-13"))
    assert quiet(intake, NOW + HOUR, **how) == [("firing", None)]


def test_it_fires_again_when_it_comes_again(intake: Any) -> None:
    intake.send(intake.observation(1, fault="xid-13"))
    quiet(intake, NOW + HOUR)
    intake.send(intake.observation(2, fault="xid-13"), now=NOW + 2 * HOUR)
    assert [(row.status, row.count) for row in intake.findings()] == [("firing", 1)]


def test_the_sites_rule_says_what_quiet_ends(intake: Any, definition: ClusterDefinition) -> None:
    policy = Policy(faults={"xid-13": FaultRule(clears=Clears.PERSON), "xid-63": FaultRule(clears=Clears.QUIET_FOR)})
    declare(intake.store, definition.model_copy(update={"policy": policy}), now=NOW)
    intake.send(intake.observation(1, fault="xid-13"), intake.observation(2, fault="xid-63"))
    assert quiet(intake, NOW + HOUR) == [("firing", None), ("cleared", "quiet")]
