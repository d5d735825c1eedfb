"""The last look before an act: an open repair or incident stands behind it, or it lifts what is left of one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from daytwo import repairs
from daytwo.domain.errors import NotYet
from daytwo.domain.ids import containment_id
from daytwo.domain.seams import Act, ActKind, Command, Look, Outcome, Preparation
from daytwo.domain.vocabulary import Mark, State
from daytwo.intents import Ledger
from daytwo.store.engine import Store
from daytwo.store.tables import FreezeRow, IncidentRow, NodeRow

NOW = datetime(2026, 11, 30, 3, tzinfo=UTC)
REPAIR, INCIDENT = "r-20261130-030000-aaaaa", "i-20261130-030000-bbbbb"
OURS = containment_id(INCIDENT, "n1")
LIFTS = {ActKind.UNDRAIN, ActKind.UNRESERVE}
CONTAINS = {ActKind.DRAIN, ActKind.RESERVE}


@dataclass
class Counting:
    """A target on which every act works at once; `sent` are those that were let through."""

    settle_seconds: float = 5.0
    sent: set[ActKind] = field(default_factory=set)

    async def prepare(self, act: Act) -> Preparation:
        return Command(argv=("true",))

    async def look(self, act: Act) -> Look:
        self.sent.add(act.kind)
        return Look(outcome=Outcome.DONE, proof="seen")


def keep(store: Store, *, incident_open: bool = True, repair: State | None = None, frozen: bool = False) -> None:
    """An incident, and a repair that ended in a state, or is open."""
    with store.write() as session:
        node = NodeRow(cluster="east", name="n1", state_since=NOW)
        key = "east/board" if incident_open else None
        times: dict[str, Any] = {"first_at": NOW, "last_at": NOW, "opened_at": NOW}
        session.add(node)
        session.add(IncidentRow(id=INCIDENT, cluster="east", fault_class="board", open_key=key, **times))
        row = repairs.open_row(session, REPAIR, node, why="t", opened_by="policy", policy_revision=1, now=NOW)
        if repair is not None:
            row.state, row.open_key, row.closed_at = repair, None, NOW
        if frozen:
            session.add(FreezeRow(scope="*", reason="stop", actor="cli:ann", at=NOW))


async def let_through(
    store: Store, owner: str, kinds: Iterable[ActKind] = (ActKind.DRAIN, *LIFTS), *, cluster: str = "east"
) -> set[ActKind]:
    """The kinds of act that are sent in the name of `owner`; each that is tried costs a process."""
    target = Counting()
    ledger = Ledger(store, {"counting": target})
    for kind in kinds:
        act = Act(kind=kind, cluster=cluster, node="n1", target="n1", mark=Mark(repair_id=owner, text="t"))
        try:
            await ledger.carry_out(f"{owner}/{kind}", "counting", act)
        except NotYet:
            ledger.give_up(owner, "test")
    return target.sent


async def test_an_open_incident_keeps_work_off_and_lets_it_on_and_nothing_else(store: Store) -> None:
    keep(store)
    assert await let_through(store, OURS, ActKind) == CONTAINS | LIFTS


async def test_an_incident_that_is_over_only_lifts(store: Store) -> None:
    keep(store, incident_open=False)
    assert await let_through(store, OURS) == LIFTS


async def test_a_freeze_stops_an_incident_from_containing(store: Store) -> None:
    keep(store, frozen=True)
    assert await let_through(store, OURS) == LIFTS


@pytest.mark.parametrize(
    ("owner", "cluster"),
    [
        (INCIDENT, "east"),
        (containment_id(INCIDENT, "n2"), "east"),
        (containment_id("i-20261130-030000-ccccc", "n1"), "east"),
        (OURS, "west"),
        ("r-20261130-030000-zzzzz", "east"),
    ],
)
async def test_nothing_is_sent_in_a_name_that_does_not_fit(store: Store, owner: str, cluster: str) -> None:
    keep(store)
    assert await let_through(store, owner, cluster=cluster) == set()


@pytest.mark.parametrize("ended", [State.SUCCEEDED, State.DISMISSED, State.AUTO_RESOLVED])
async def test_the_marks_of_a_repair_that_has_ended_may_only_be_lifted(store: Store, ended: State) -> None:
    keep(store, repair=ended)
    assert await let_through(store, REPAIR) == LIFTS


@pytest.mark.parametrize("ended", [State.REMOVED, State.HANDED_OVER])
async def test_the_marks_of_a_retired_node_stay(store: Store, ended: State) -> None:
    keep(store, repair=ended)
    assert await let_through(store, REPAIR) == set()
