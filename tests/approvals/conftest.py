"""The activities that judge, over a real store with one cluster, one node and one open repair."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from activities.authorise import AuthoriseActivities
from activities.world import World
from daytwo.adapters import Adapters
from daytwo.domain.exchange import AuthoriseInput, RepairRef, Verdict
from daytwo.domain.policy import Person
from daytwo.domain.seams import Request
from daytwo.domain.vocabulary import Action, Mark, State
from daytwo.intents import Ledger
from daytwo.lab.fleet import Fleet
from daytwo.lab.server import Lab, lab_app, now
from daytwo.lab.serving import listen, serving_app
from daytwo.notify.log import LogNotifier
from daytwo.schedulers.simulated import SimulatedScheduler
from daytwo.store.engine import Store
from daytwo.store.tables import DecisionRow, RepairRow
from tests.builders import NOW
from tests.contracts.scheduler import run as write
from tests.rows import LEA, REPAIR, a_cluster, a_definition, a_node, a_policy, a_repair, keep

LEO = Person(name="Leo", roles=("lead",), identities=("cli:leo", "slack:U7"))
REF = RepairRef(repair_id=REPAIR, cluster="east", node="gpu-07")


@dataclass
class Court:
    """Judges decisions on the open repair at a time that the test moves."""

    store: Store
    world: World
    time: list[datetime] = field(default_factory=lambda: [NOW])

    def later(self, seconds: float) -> None:
        """Let time pass."""
        self.time[0] += timedelta(seconds=seconds)

    def written(self, actor: str, kind: str = "approve", **fields: Any) -> str:
        """A decision on revision 2."""
        ident = f"d-{actor}-{self.time[0]:%H%M%S}-{fields.get('action', '')}"
        known: dict[str, Any] = {"id": ident, "request_id": ident, "repair_id": REPAIR, "revision": 2, "kind": kind}
        keep(
            self.store,
            DecisionRow(**known | {"actor": actor, "channel": "cli", "verified": True, "at": self.time[0]} | fields),
        )
        return ident

    async def judge(self, ident: str, state: State = State.APPROVED) -> Verdict:
        """What `authorise` says of it; in `approved` it is the approval that led there."""
        return await AuthoriseActivities(self.world).authorise(
            AuthoriseInput(
                ref=REF,
                decision_id=ident,
                state=state,
                revision=2,
                disturbed=False,
                interrupted=False,
                deciding=ident if state is State.APPROVED else None,
                proposed_action=Action.REBOOT,
            )
        )

    async def approved(self, actor: str, **fields: Any) -> Verdict:
        """Write an approval and judge it."""
        return await self.judge(self.written(actor, **fields))

    def row(self, ident: str) -> DecisionRow:
        """A decision as it stands."""
        with self.store.read() as session:
            return session.get_one(DecisionRow, ident)

    def repair(self) -> RepairRow:
        """The repair as it stands."""
        with self.store.read() as session:
            return session.get_one(RepairRow, REPAIR)


@pytest.fixture(scope="session")
async def scheduler() -> AsyncIterator[str]:
    """The socket of a simulated scheduler that has the node, quarantined by the repair."""
    # The kernel allows 107 bytes for the name of a socket, which a test's own folder may exceed.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "lab.sock")
        lab = Lab(Fleet((REF.node,), wall=now, seed=7), speed=60.0, clock=lambda: 0.0)
        async with serving_app(lab_app(lab), listen(path)):
            await quarantine(SimulatedScheduler(str(path), REF.cluster))
            yield str(path)


async def quarantine(scheduler: SimulatedScheduler) -> None:
    """Write the repair's marks, which whoever takes the right has by then."""
    for act in scheduler.quarantine_acts(REF.cluster, REF.node, Mark(repair_id=REPAIR, text="test")):
        request = await scheduler.prepare(act)
        assert isinstance(request, Request), request
        await write(request)


def a_court(
    store: Store, folder: Path, *, repair: dict[str, Any] | None = None, scheduler: str = "", **policy: Any
) -> Court:
    """A court whose cluster has this policy."""
    rules = policy.get("policy") or a_policy(people=(LEA, LEO), **policy)
    definition = a_definition(policy=rules)
    definition = definition.model_copy(update={"simulated_socket": scheduler or str(folder / "lab.sock")})
    keep(store, a_cluster(definition=definition.model_dump(mode="json")), a_node(), a_repair(**repair or {}))
    adapters, time = Adapters(store), [NOW]
    notifier = LogNotifier(folder / "notices.jsonl")
    return Court(store, World(store, adapters, Ledger(store, adapters), notifier, now=lambda: time[0]), time)


@pytest.fixture
def court(store: Store, tmp_path: Path) -> Court:
    return a_court(store, tmp_path, two_person=(Action.REBOOT, Action.REMOVE))
