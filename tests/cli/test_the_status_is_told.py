"""`daytwo status`: what is away comes first, and is an exit code of its own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from daytwo.cli.status import as_text
from daytwo.service.reads import status, store_away
from daytwo.store.engine import Store
from daytwo.store.tables import FreezeRow, LeaseRow, PartRow
from tests.builders import NOW
from tests.cli.conftest import Cli
from tests.rows import a_node, hear_all, keep


@pytest.fixture
def away(fleet: Store, cli: Cli) -> Cli:
    hear_all(fleet)
    now = datetime.now(UTC)
    since = now - timedelta(minutes=5)
    keep(
        fleet,
        PartRow(part="notifier", seen_by="worker", away=True, since=since, error="disk \x1b[2J full", tried_at=now),
    )
    return cli


def test_what_is_away_is_named_with_since_when_and_why(away: Cli) -> None:
    shown = away("status")
    assert shown.code == 10
    line = next(line for line in shown.out.splitlines() if line.startswith("  ") and "notifier" in line)
    assert "AWAY since" in line
    assert "(5m): disk" in line
    assert "\x1b" not in line


@pytest.mark.parametrize(("form", "says"), [("json", '"notifier"'), ("yaml", "- notifier"), ("name", "unhealthy")])
def test_it_is_printed_in_every_form(away: Cli, form: str, says: str) -> None:
    shown = away("status", "-o", form)
    assert (shown.code, says in shown.out) == (10, True)


def test_yaml_and_json_say_the_same(away: Cli) -> None:
    found = yaml.safe_load(away("status", "-o", "yaml").out)
    assert found["away"] == ["notifier"]


def test_when_the_silence_of_an_agent_counts_is_told(away: Cli) -> None:
    assert "agents:    0 silent (unheard for 3m, as the policy says)" in away("status").out


def test_who_waits_is_told_with_for_how_long(away: Cli) -> None:
    assert "needs you: r-20261130-142100-x7k2q east/gpu-07 proposed for" in away("status").out


def lease(**fields: Any) -> LeaseRow:
    ends = datetime.now(UTC) + timedelta(hours=1)
    return LeaseRow(**{"name": "reconcile", "holder": "here", "expires_at": ends} | fields)


@pytest.mark.parametrize(
    ("rows", "plane"),
    [
        ([], "plane: no controller has ever run"),
        ([lambda: lease(expires_at=NOW)], "plane: controller away"),
        ([lease], "plane: nothing is known of temporal, worker, scheduler/east"),
        ([lease, lambda: lease(name="watch-temporal"), lambda: lease(name="watch-schedulers")], "plane: well"),
    ],
)
def test_the_first_line_is_about_the_plane(fleet: Store, cli: Cli, rows: list[Any], plane: str) -> None:
    keep(fleet, *(make() for make in rows))
    hear_all(fleet)
    assert cli("status").out.splitlines()[0] == plane


def test_a_plane_that_was_just_started_is_neither_well_nor_away(fleet: Store) -> None:
    keep(fleet, lease(expires_at=NOW))
    hear_all(fleet)
    now = datetime.now(UTC)
    with fleet.read() as session:
        found = status(session, now, started=now)
    assert as_text(found.model_dump(mode="json")).splitlines()[0] == "plane: controller starting"


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([], "fleet: all 1 nodes healthy, 1 asks you"),
        (
            [lambda: a_node("gpu-08", state="paused"), lambda: a_node("gpu-09", state="pending")],
            "fleet: 2 of 3 nodes not healthy (1 paused, 1 pending), 1 asks you",
        ),
        (
            [lambda: FreezeRow(scope="*", reason="x", actor="a", at=NOW)],
            "fleet: all 1 nodes healthy, 1 asks you, acts are frozen",
        ),
    ],
)
def test_the_second_line_is_about_the_fleet(fleet: Store, cli: Cli, rows: list[Any], line: str) -> None:
    keep(fleet, *(make() for make in rows))
    hear_all(fleet)
    assert cli("status").out.splitlines()[1] == line


def test_without_a_store_only_that_is_told() -> None:
    now = datetime.now(UTC)
    text = as_text(store_away(now, "refused", now).model_dump(mode="json"))
    assert "AWAY since" in text
    assert ("nodes:" in text, "fleet:" in text) == (False, False)
