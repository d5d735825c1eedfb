"""`/v1/status` says what is away, since when and why, from rows alone; it answers in time while the store hangs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from sqlmodel import Session

from daytwo.domain.errors import Unreachable
from daytwo.service import reads
from daytwo.service.answering import StatusReader
from daytwo.store.engine import Store
from daytwo.store.tables import ClusterRow, IncidentRow, IntentRow, LeaseRow, PartRow
from tests.rows import a_finding_row, a_node, a_repair, hear_all, keep

LOOPS = ("reconcile", "watch-schedulers", "watch-silence", "watch-temporal")


def ago(seconds: float) -> datetime:
    return datetime.now(UTC) - timedelta(seconds=seconds)


def a_part(part: str, **fields: Any) -> PartRow:
    values = {"seen_by": "controller", "since": ago(300), "tried_at": ago(5)}
    return PartRow(**values | {"part": part} | fields)


def away(part: str, **fields: Any) -> PartRow:
    return a_part(part, **{"away": True, "error": "connection refused", "last_good": ago(310)} | fields)


@pytest.fixture
def watched(fleet: Store) -> Store:
    """A plane whose loops run and whose agents are heard."""
    soon = datetime.now(UTC) + timedelta(hours=1)
    keep(fleet, *(LeaseRow(name=name, holder="here:1", expires_at=soon, stepped_at=ago(2)) for name in LOOPS))
    hear_all(fleet)
    return fleet


def parts(client: httpx.Client) -> dict[str, dict[str, Any]]:
    return {part["part"]: part for part in client.get("/v1/status").json()["parts"]}


def states(client: httpx.Client) -> dict[str, str]:
    return {name: part["state"] for name, part in parts(client).items()}


def test_what_nobody_has_talked_to_was_never_seen(watched: Store, client: httpx.Client) -> None:
    never = dict.fromkeys(("temporal", "worker", "notifier", "scheduler/east"), "never-seen")
    assert states(client) == {"store": "ok", "controller": "ok", "gateway": "ok", **never}


def test_a_part_that_is_away_is_named_with_since_when_and_why(watched: Store, client: httpx.Client) -> None:
    keep(watched, away("scheduler/east"), a_part("temporal"))
    found = client.get("/v1/status").json()
    east = parts(client)["scheduler/east"]
    assert (found["away"], found["healthy"], east["why"]) == (["scheduler/east"], False, "connection refused")
    assert 299 < (datetime.now(UTC) - datetime.fromisoformat(east["since"])).total_seconds() < 310


def test_a_part_that_one_process_finds_away_is_away(watched: Store, client: httpx.Client) -> None:
    keep(watched, a_part("notifier"), away("notifier", seen_by="worker"))
    assert states(client)["notifier"] == "away"


def test_a_part_that_another_has_found_to_answer_since_answers(watched: Store, client: httpx.Client) -> None:
    keep(watched, a_part("scheduler/east", since=ago(4)), away("scheduler/east", seen_by="worker", tried_at=ago(60)))
    assert states(client)["scheduler/east"] == "ok"


def test_workers_are_not_known_of_while_temporal_is_away(watched: Store, client: httpx.Client) -> None:
    keep(watched, away("temporal"), a_part("worker"))
    assert states(client)["worker"] == "unknown"


@pytest.mark.parametrize("part", ["temporal", "worker", "scheduler/east"])
@pytest.mark.parametrize("loop", [{"stepped_at": ago(3600)}, {"expires_at": ago(60)}], ids=["stuck", "dead"])
def test_what_nobody_watches_is_unknown(
    watched: Store, client: httpx.Client, part: str, loop: dict[str, datetime]
) -> None:
    keep(watched, a_part(part))
    with watched.write() as session:
        for name in LOOPS:
            session.get_one(LeaseRow, name).sqlmodel_update(loop)
    assert (states(client)[part], client.get("/v1/status").json()["away"]) == ("unknown", ["controller"])


def test_what_was_not_tried_for_long_may_be_back(watched: Store, client: httpx.Client) -> None:
    keep(watched, away("notifier", tried_at=ago(7200)))
    assert states(client)["notifier"] == "unknown"


def test_agents_that_are_not_heard_are_the_gateway_s(watched: Store, client: httpx.Client) -> None:
    with watched.write() as session:
        session.get_one(type(a_node()), ("east", "gpu-07")).last_heard_at = ago(600)
    assert parts(client)["gateway"]["why"] == "no agent is heard through it"


def states_after(store: Store, seconds: float) -> dict[str, str]:
    """What is told so long after the plane was started."""
    with store.read() as session:
        found = reads.status(session, datetime.now(UTC), started=ago(seconds))
    assert not found.healthy
    return {part.part: part.state for part in found.parts}


@pytest.mark.parametrize(("seconds", "state"), [(4.0, "starting"), (40.0, "away")])
def test_a_worker_that_has_just_been_started_is_not_away(watched: Store, seconds: float, state: str) -> None:
    keep(watched, away("worker", since=ago(5), tried_at=ago(2), last_good=None))
    assert states_after(watched, seconds)["worker"] == state


def test_a_worker_that_was_away_before_the_service_was_started_still_is(watched: Store) -> None:
    keep(watched, away("worker", since=ago(300), tried_at=ago(1)))
    assert states_after(watched, 4.0)["worker"] == "away"


@pytest.mark.parametrize(
    ("seconds", "controller", "gateway"),
    [(4.0, "starting", "starting"), (40.0, "away", "starting"), (300.0, "away", "away")],
)
def test_a_plane_that_is_started_again_has_time_to_be_heard(
    fleet: Store, seconds: float, controller: str, gateway: str
) -> None:
    keep(fleet, *(LeaseRow(name=name, holder="before:1", expires_at=ago(3600)) for name in LOOPS))
    found = states_after(fleet, seconds)
    assert (found["controller"], found["gateway"]) == (controller, gateway)


@pytest.mark.parametrize(("kind", "state"), [("slurm", "away"), ("simulated", "starting")])
def test_what_we_did_not_start_is_away_at_once(watched: Store, kind: str, state: str) -> None:
    with watched.write() as session:
        session.get_one(ClusterRow, "east").kind = kind
    keep(watched, away("scheduler/east", since=ago(2), tried_at=ago(2)))
    assert states_after(watched, 4.0)["scheduler/east"] == state


def test_agents_that_are_silent_are_counted(watched: Store, client: httpx.Client) -> None:
    keep(watched, a_finding_row("agent-silent"), a_finding_row("agent-silent", node=""))
    assert client.get("/v1/status").json()["silent_agents"] == 1


def test_repairs_that_wait_for_people_are_told_apart_from_those_that_wait_for_parts(
    watched: Store, client: httpx.Client
) -> None:
    stuck = a_repair("r-1", node="gpu-08", open_key="east/gpu-08", state="needs-help", attention="not drained")
    keep(watched, stuck)
    keep(watched, a_repair("r-2", node="gpu-09", open_key="east/gpu-09", state="draining", waiting_for="no answer"))
    found = client.get("/v1/status").json()
    assert [(each["state"], each["why"]) for each in found["waiting"]] == [("draining", "no answer")]
    assert [each["state"] for each in found["waiting_for_people"]] == ["needs-help", "proposed"]
    assert found["waiting_for_people"][0]["why"] == "not drained"


def test_incidents_and_acts_under_way_are_told(watched: Store, client: httpx.Client) -> None:
    times: dict[str, Any] = {"first_at": ago(60), "last_at": ago(50), "opened_at": ago(50)}
    keep(watched, IncidentRow(id="i-1", cluster="east", fault_class="board", open_key="east/board", nodes=40, **times))
    row = IntentRow(
        id="a",
        repair_id="r-1",
        cluster="east",
        node="gpu-07",
        open_node="east/gpu-07",
        driver="scheduler:east",
        kind="drain",
        target="gpu-07",
        created_at=ago(9),
        updated_at=ago(9),
    )
    keep(watched, row)
    found = client.get("/v1/status").json()
    assert ([each["nodes"] for each in found["incidents"]], found["acts"]["by_state"]) == ([40], {"intended": 1})


class Broken:
    """A store that answers late, or that it cannot be reached."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds, self.asked = seconds, 0

    @contextmanager
    def read(self) -> Iterator[Session]:
        self.asked += 1
        time.sleep(self.seconds)
        raise Unreachable("store x does not answer: refused")
        yield


async def test_a_store_that_cannot_be_reached_is_the_answer() -> None:
    reader, store = StatusReader(lambda: datetime.now(UTC)), Broken()
    first, second = [await reader.read(store) for _ in range(2)]
    assert (first.away, first.firing, first.parts[0].why) == (("store",), None, "store x does not answer: refused")
    assert second.parts[0].since == first.parts[0].since


async def test_a_store_that_hangs_holds_one_thread_and_nobody_for_long() -> None:
    reader, store = StatusReader(lambda: datetime.now(UTC), patience_seconds=0.05), Broken(0.5)
    began = time.monotonic()
    found = await asyncio.gather(*(reader.read(store) for _ in range(20)))
    assert time.monotonic() - began < 0.4
    assert ({each.away for each in found}, store.asked) == ({("store",)}, 1)
