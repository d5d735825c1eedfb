"""The tests before a return compare a node with what it was before its fault, not with what it says of itself now."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.assess import AssessActivities
from activities.node_requests import VerifyActivities
from activities.world import World
from daytwo import node_requests as mailbox
from daytwo import repairs
from daytwo.adapters import Adapters
from daytwo.domain.exchange import AssessInput, CloseInput, RecordInput, RepairRef, StepInput, Verified
from daytwo.domain.machines import Before, known_gpus
from daytwo.domain.proposal import Proposal
from daytwo.domain.repair_states import Event
from daytwo.domain.vocabulary import Action, FindingStatus, State
from daytwo.intake import Observation, declare, observe
from daytwo.intents import Ledger
from daytwo.lab.definition import CLUSTER, lab_definition
from daytwo.lab.server import Lab
from daytwo.notify.log import LogNotifier
from daytwo.store.engine import Store
from daytwo.store.tables import DecisionRow, NodeRow
from tests.builders import a_proposal

NODE = "node-01"
NOW = datetime.now(UTC)
REF = RepairRef(repair_id="r-20261130-030000-abcde", cluster=CLUSTER, node=NODE)
IT = {"system_uuid": "4c4c4544-0042-3510-8051-b4c04f4a3132", "serial": "S1"}
OTHER = {"system_uuid": "4c4c4544-0042-3510-8051-b4c04f4a3199", "serial": "S2"}
BEFORE = Before(gpus=("GPU-1", "GPU-2"), **IT)
WANTED = ("gpu-count", "gpu-uuids", "same-machine")


class Node:
    """One node under repair: what its agent says, and what the tests make of it."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store, self.now, self.round = store, NOW, 0
        adapters = Adapters(store)
        world = World(store, adapters, Ledger(store, adapters), LogNotifier(folder / "n.jsonl"), lambda: self.now)
        self.verifying, self.assessing = VerifyActivities(world), AssessActivities(world)

    def says(self, *uuids: str, identity: dict[str, str] | None = None, known: tuple[str, ...] | None = None) -> None:
        """A pulse: inventory and identity."""
        with self.store.write() as session:
            row = session.get_one(NodeRow, (CLUSTER, NODE))
            row.boot_id, row.last_heard_at, row.expected_gpus = "b2", self.now, None
            row.inventory = {"gpus": [{"uuid": uuid} for uuid in uuids]} | ({"known_gpus": known} if known else {})
            if identity:
                row.identity, row.identity_at = identity, self.now

    async def tested(self, *uuids: str, before: Before | None = BEFORE, boot_id: str = "b2", **said: Any) -> Verified:
        """Ask, answer with these GPUs, and judge."""
        self.round, self.now = self.round + 1, self.now + timedelta(seconds=700)
        proposal = a_proposal(verify=WANTED, before=before, boot_id="b2")
        step = StepInput(ref=REF, stage=f"verify-{self.round}", action=Action.VERIFY, proposal=proposal, since=NOW)
        with pytest.raises(ApplicationError, match="waiting for its agent"):
            await self.verifying.verify(step)
        self.now += timedelta(seconds=1)
        self.says(*uuids, **said)
        self._answer(step, uuids, boot_id)
        return await self.verifying.verify(step)

    def _answer(self, step: StepInput, uuids: tuple[str, ...], boot_id: str) -> None:
        gpus = [{"index": place, "uuid": uuid, "ok": True} for place, uuid in enumerate(uuids)]
        answer: Any = {"id": f"{REF.repair_id}/{step.stage}/probe-gpus/0", "state": "done", "boot_id": boot_id}
        with self.store.write() as session:
            row = session.get_one(NodeRow, (CLUSTER, NODE))
            row.boot_id = boot_id
            mailbox.offer(session, row, now=self.now)
            assert mailbox.answer(session, row, [answer | {"result": {"gpus": gpus}}], now=self.now) == []
            row.boot_id = "b2"

    def decides(self, kind: str, **fields: Any) -> None:
        """Somebody's decision, accepted."""
        self.now += timedelta(seconds=1)
        values = {
            "id": f"d-{kind}",
            "request_id": f"d-{kind}",
            "repair_id": REF.repair_id,
            "revision": 1,
            "at": self.now,
        }
        values |= {"actor": "cli:lea", "channel": "cli", "verified": True, "status": "accepted"}
        with self.store.write() as session:
            session.add(DecisionRow(kind=kind, **values | fields))

    async def proposed(self, standing: Proposal | None = None) -> Proposal:
        """Look again, with this proposal standing."""
        self.now += timedelta(seconds=10)
        asked = AssessInput(
            ref=REF,
            state=State.PROPOSED,
            revision=standing.revision if standing else 0,
            rung=0,
            disturbed=standing is not None,
            proposal=standing,
        )
        seen = await self.assessing.assess(asked)
        assert seen.proposal is not None, seen
        return seen.proposal

    def breaks(self) -> None:
        at, firing = self.now, FindingStatus.FIRING
        observe(self.store, [Observation(CLUSTER, NODE, "xid-79", "GPU-2", firing, at, at, "kernel-log")], now=at)


@pytest.fixture
def node(store: Store, lab: Lab, socket: str, tmp_path: Path) -> Node:
    declare(store, lab_definition(socket, nodes=16, speed=1), now=NOW)
    with store.write() as session:
        row = session.get_one(NodeRow, (CLUSTER, NODE))
        repairs.open_row(session, REF.repair_id, row, why="test", opened_by="policy", policy_revision=1, now=NOW)
    return Node(store, tmp_path)


async def test_a_node_that_is_what_it_was_passes(node: Node) -> None:
    judged = await node.tested("GPU-1", "GPU-2", identity=IT)
    assert (judged.passed, judged.summary) == (True, "3 of 3 tests for xid-79 passed")


async def test_a_gpu_that_the_latest_pulse_no_longer_tells_of_is_missed(node: Node) -> None:
    judged = await node.tested("GPU-1", identity=IT)
    assert judged.still_faulty == ("gpu-count", "gpu-uuids")
    assert "1 of 2 GPUs answer" in judged.summary


async def test_another_machine_with_the_nodes_token_needs_help_and_both_are_named(node: Node) -> None:
    judged = await node.tested("GPU-1", "GPU-2", identity=OTHER)
    assert (judged.passed, judged.still_faulty) == (False, ())
    assert all(word in judged.summary for word in (*IT.values(), *OTHER.values(), "daytwo nodes token"))


async def test_a_machine_that_does_not_say_who_it_is_with_its_answer_is_unknown(node: Node) -> None:
    node.says(identity=IT)
    judged = await node.tested("GPU-1", "GPU-2")
    assert not judged.passed
    assert "did not say which machine it is" in judged.summary


async def test_an_answer_of_another_boot_than_the_one_that_is_heard_is_no_proof(node: Node) -> None:
    judged = await node.tested("GPU-1", "GPU-2", identity=IT, boot_id="b3")
    assert not judged.passed
    assert "two machines may answer, in boots b3 and b2" in judged.summary


async def test_a_swapped_gpu_returns_once_somebody_has_read_of_it_and_asked_for_the_node(node: Node) -> None:
    refused = await node.tested("GPU-1", "GPU-9", identity=IT)
    assert "missing: GPU-2; in their place: GPU-9" in refused.summary
    node.decides("return-after-tests")
    assert (await node.tested("GPU-1", "GPU-9", identity=IT)).passed
    assert (await node.tested("GPU-1", "GPU-9", identity=IT)).passed


@pytest.mark.parametrize(
    "fields", [{"kind": "retry"}, {"verified": False}, {"status": "refused"}, {"repair_id": "r-1"}]
)
async def test_no_other_word_lets_a_swapped_gpu_pass(node: Node, fields: dict[str, Any]) -> None:
    await node.tested("GPU-1", "GPU-9", identity=IT)
    node.decides(**{"kind": "return-after-tests"} | fields)
    assert not (await node.tested("GPU-1", "GPU-9", identity=IT)).passed


async def test_who_asked_for_the_node_before_the_tests_has_accepted_nothing(node: Node) -> None:
    node.decides("return-after-tests")
    await node.tested("GPU-1", "GPU-9", identity=IT)
    assert not (await node.tested("GPU-1", "GPU-9", identity=IT)).passed


async def test_a_proposal_without_what_was_before_is_held_against_the_last_whole_inventory(node: Node) -> None:
    judged = await node.tested("GPU-1", before=None, known=("GPU-1", "GPU-2"), identity=IT)
    assert judged.still_faulty == ("gpu-count", "gpu-uuids")


async def test_what_the_node_was_before_its_fault_is_frozen_in_the_first_proposal(node: Node) -> None:
    node.says("GPU-1", identity=IT, known=("GPU-1", "GPU-2"))
    node.breaks()
    first = await node.proposed()
    node.says("GPU-1", "GPU-9", identity=OTHER, known=("GPU-1", "GPU-2"))
    assert first.before == BEFORE
    assert (await node.proposed(first.model_copy(update={"action": Action.VERIFY}))).before == BEFORE


@pytest.mark.parametrize(
    ("uuids", "known"), [(("GPU-1", "GPU-9"), ("GPU-1", "GPU-9")), (("GPU-1",), ("GPU-1", "GPU-2"))]
)
def test_what_a_repair_has_tested_is_the_whole_node_from_then_on(
    node: Node, uuids: tuple[str, ...], known: tuple[str, ...]
) -> None:
    node.says(*uuids, known=("GPU-1", "GPU-2"))
    ended = RecordInput(
        ref=REF,
        number=1,
        event=Event.REJOINED,
        from_state=State.REJOINING,
        to_state=State.SUCCEEDED,
        at=NOW,
        revision=1,
        rung=0,
    )
    with node.store.write() as session:
        repairs.close(session, CloseInput(event=ended, judged_up_to=1))
    with node.store.read() as session:
        assert known_gpus(session.get_one(NodeRow, (CLUSTER, NODE)).inventory) == known
