"""A look at a proposal that stands forgets nobody whose jobs it was shown with, though they have ended since."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from activities.assess import AssessActivities
from activities.world import World
from daytwo import repairs
from daytwo.adapters import Adapters
from daytwo.domain.exchange import AssessInput, Assessment, RepairRef
from daytwo.domain.proposal import Proposal
from daytwo.domain.vocabulary import FindingStatus, State
from daytwo.intake import Observation, declare, observe
from daytwo.intents import Ledger
from daytwo.lab.definition import CLUSTER, lab_definition
from daytwo.lab.server import Lab
from daytwo.notify.log import LogNotifier
from daytwo.store.engine import Store
from daytwo.store.tables import NodeRow
from tests.builders import a_job

NODE = "node-01"
NOW = datetime.now(UTC)
REF = RepairRef(repair_id="r-20261130-030000-abcde", cluster=CLUSTER, node=NODE)


async def look(world: World, proposal: Proposal | None) -> Assessment:
    asked = AssessInput(ref=REF, state=State.PROPOSED, revision=1, rung=0, disturbed=False, proposal=proposal)
    return await AssessActivities(world).assess(asked)


async def test_an_owner_whose_job_has_ended_stays_asked_about(
    store: Store, lab: Lab, socket: str, tmp_path: Path
) -> None:
    declare(store, lab_definition(socket, nodes=16, speed=1), now=NOW)
    with store.write() as session:
        node = session.get_one(NodeRow, (CLUSTER, NODE))
        repairs.open_row(session, REF.repair_id, node, why="test", opened_by="policy", policy_revision=1, now=NOW)
    observe(store, [Observation(CLUSTER, NODE, "xid-79", "GPU-1", FindingStatus.FIRING, NOW, NOW, "test")], now=NOW)
    adapters = Adapters(store)
    world = World(store, adapters, Ledger(store, adapters), LogNotifier(tmp_path / "n.jsonl"), lambda: NOW)
    now = (await look(world, None)).proposal
    assert now is not None
    read = now.model_copy(update={"workloads": (*now.workloads, a_job(user="bob"))})
    seen = await look(world, read)
    assert (seen.outcome, seen.proposal and "bob/nlp" in seen.proposal.owners) == ("stands", True)
