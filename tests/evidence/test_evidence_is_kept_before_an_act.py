"""Evidence on the control plane: asked for, awaited for a bounded time, kept with its hash, and never a hindrance."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlmodel import select

from activities import evidence as activity
from activities.world import World
from daytwo import evidence, node_requests
from daytwo.domain.errors import NotYet
from daytwo.domain.exchange import RepairRef
from daytwo.domain.policy import Evidence, Policy
from daytwo.intents import Ledger
from daytwo.notify.log import LogNotifier
from daytwo.store.engine import Store
from daytwo.store.tables import EvidenceRow, NodeRequestRow, NodeRow
from tests.builders import NOW
from tests.rows import REPAIR, a_cluster, a_node, a_repair, keep

REF = RepairRef(repair_id=REPAIR, cluster="east", node="gpu-07")
ARCHIVE = b"\x1f\x8b an archive, as far as anybody here looks"
BOOT = "boot-1"


def result(archive: bytes = ARCHIVE, **fields: Any) -> dict[str, Any]:
    parts = [
        {"name": "kernel.log", "bytes": 7, "truncated": False, "error": ""},
        {"name": "nvidia-smi.txt", "bytes": 0, "truncated": False, "error": "nvidia-smi is not installed"},
    ]
    said = {"archive": base64.b64encode(archive).decode(), "sha256": hashlib.sha256(archive).hexdigest()}
    return {**said, "size": len(archive), "parts": parts} | fields


class Plane:
    """A repair that is about to act, an agent that answers when it is told to, and the time."""

    def __init__(self, store: Store, folder: Path) -> None:
        keep(store, a_cluster(), a_node(boot_id=BOOT), a_repair())
        self.store, self.now, self.policy = store, NOW, Policy()
        ledger = Ledger(store, {})
        self.world = World(store, SimpleNamespace(), ledger, LogNotifier(folder / "n"), lambda: self.now)

    async def secure(self, stage: str = "0") -> bool:
        """True once the act may go on."""
        try:
            await activity.secure(self.world, REF, stage, self.policy)
        except NotYet:
            return False
        return True

    def agent(self, state: str, said: dict[str, Any] | None = None) -> None:
        """The agent takes what it is asked, and answers so."""
        with self.store.write() as session:
            node = session.get_one(NodeRow, ("east", "gpu-07"))
            for asked in node_requests.offer(session, node, now=self.now):
                answer: Any = {"id": asked["id"], "state": state, "boot_id": BOOT, "result": said or {}}
                answer["error"] = "kind: found 'collect-evidence', allowed: probe-gpus" if state == "failed" else ""
                node_requests.answer(session, node, [answer], now=self.now)

    def rows(self) -> list[EvidenceRow]:
        with self.store.read() as session:
            return evidence.of_repair(session, REPAIR)


@pytest.fixture
def plane(store: Store, tmp_path: Path) -> Plane:
    return Plane(store, tmp_path)


async def test_an_act_waits_until_its_evidence_is_there(plane: Plane) -> None:
    before = await plane.secure()
    plane.agent("done", result())
    assert (before, await plane.secure()) == (False, True)


async def test_the_archive_is_kept_with_its_hash_and_not_in_the_mailbox(plane: Plane) -> None:
    await plane.secure()
    plane.agent("done", result())
    (row,) = plane.rows()
    assert (row.data, row.sha256, row.size) == (ARCHIVE, hashlib.sha256(ARCHIVE).hexdigest(), len(ARCHIVE))
    assert (row.expires_at - row.at, row.parts[1]["error"]) == (timedelta(days=90), "nvidia-smi is not installed")
    with plane.store.read() as session:
        assert "archive" not in session.exec(select(NodeRequestRow)).one().result


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({}, "has 0 bytes"),
        (result(archive=b""), "has 0 bytes"),
        (result(archive=bytes(evidence.LARGEST_ARCHIVE + 1)), "allowed are 1 to 196608"),
        (result() | {"sha256": "0" * 64}, "is not the one whose hash it names"),
        (result() | {"archive": "***"}, "holds no archive"),
        (result() | {"archive": 7}, "holds no archive"),
    ],
)
async def test_an_answer_that_is_no_archive_is_in_the_record_and_hinders_nothing(
    plane: Plane, said: dict[str, Any], error: str
) -> None:
    await plane.secure()
    plane.agent("done", said)
    assert await plane.secure()
    assert [(row.data, error in row.error) for row in plane.rows()] == [(None, True)]


@pytest.mark.parametrize(
    "parts", [None, "x", [None, 7], [{}] * 100, [{"name": "n" * 500, "bytes": "many", "error": 5}]]
)
async def test_whatever_the_node_says_of_the_parts_is_bounded(plane: Plane, parts: Any) -> None:
    await plane.secure()
    plane.agent("done", result() | {"parts": parts})
    (row,) = plane.rows()
    assert row.size
    assert len(row.parts) <= evidence.MOST_PARTS
    assert all(len(part["name"]) <= 64 and isinstance(part["bytes"], int) for part in row.parts)


@pytest.mark.parametrize(
    ("happens", "why"),
    [
        (lambda plane: plane.pass_by(31), "not accepted in time"),
        (lambda plane: (plane.agent("accepted"), plane.pass_by(31)), "not answered in time"),
        (lambda plane: plane.agent("failed"), "kind: found 'collect-evidence'"),
    ],
    ids=["unreachable", "hangs", "older-agent"],
)
async def test_without_an_answer_the_act_goes_on_and_the_record_says_why(
    plane: Plane, happens: Callable[[Any], None], why: str
) -> None:
    first = await plane.secure()
    happens(Moving(plane))
    assert (first, await plane.secure(), [why in row.error for row in plane.rows()]) == (False, True, [True])


class Moving:
    """The plane with a clock that is moved on."""

    def __init__(self, plane: Plane) -> None:
        self.plane, self.agent = plane, plane.agent

    def pass_by(self, seconds: float) -> None:
        self.plane.now += timedelta(seconds=seconds)


@pytest.mark.parametrize("heard", [None, NOW - timedelta(hours=1)])
async def test_a_silent_agent_is_not_waited_for(plane: Plane, heard: datetime | None) -> None:
    with plane.store.write() as session:
        session.get_one(NodeRow, ("east", "gpu-07")).last_heard_at = heard
    assert await plane.secure()
    assert [row.error for row in plane.rows()] == ["its agent is silent"]


async def test_a_site_may_collect_nothing(plane: Plane) -> None:
    plane.policy = Policy(evidence=Evidence(wait_seconds=0))
    await activity.ask_early(plane.world, REF, plane.policy)
    assert (await plane.secure(), plane.rows()) == (True, [])


@pytest.mark.parametrize(("minutes", "again"), [(14, False), (16, True)])
async def test_what_was_collected_with_the_proposal_is_fresh_for_a_quarter_of_an_hour(
    plane: Plane, minutes: float, again: bool
) -> None:
    await activity.ask_early(plane.world, REF, plane.policy)
    plane.agent("done", result())
    plane.now += timedelta(minutes=minutes)
    with plane.store.write() as session:
        session.get_one(NodeRow, ("east", "gpu-07")).last_heard_at = plane.now
    assert await plane.secure() is not again


async def test_each_step_of_a_ladder_has_its_own(plane: Plane) -> None:
    for stage in ("0", "1"):
        await plane.secure(stage)
        plane.agent("done", result())
        plane.now += timedelta(minutes=20)
        with plane.store.write() as session:
            session.get_one(NodeRow, ("east", "gpu-07")).last_heard_at = plane.now
    assert [row.id for row in plane.rows()] == [f"{REPAIR}/{stage}/collect-evidence" for stage in ("0", "1")]


async def test_an_answer_that_comes_twice_or_late_changes_nothing(plane: Plane) -> None:
    await plane.secure()
    plane.now += timedelta(seconds=31)
    await plane.secure()
    plane.agent("done", result())
    assert [row.error for row in plane.rows()] == ["not accepted in time"]
