"""GPUs are compared with their rack: one asks, three are told to facilities once, and silence says nothing."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlmodel import col, select

from daytwo.controller.leases import acquire
from daytwo.controller.racks import look_at_racks
from daytwo.domain.definition import ClusterDefinition, NodeGroup
from daytwo.domain.policy import Policy
from daytwo.domain.triage import triage
from daytwo.domain.verdicts import Propose
from daytwo.domain.vocabulary import Action, ClusterKind
from daytwo.faults.catalogue import catalogue
from daytwo.intake import declare
from daytwo.store.engine import Store
from daytwo.store.situations import load_situation
from daytwo.store.tables import FindingRow, NodeRow
from tests.builders import NOW

HOT = ("n3", "rack-outlier", "GPU-n3")
NODES = tuple(f"n{number}" for number in range(10))


class Told:
    """A channel that keeps what it was given, or is away."""

    def __init__(self) -> None:
        self.subjects: list[str] = []
        self.away = False

    async def tell(self, subject: str, text: str, *, urgent: bool, to: tuple[str, ...] = ()) -> None:
        if self.away:
            raise ConnectionError("away")
        self.subjects.append(subject)


class Rack:
    """Ten nodes of one rack with a GPU each, all under load, as their agents said."""

    def __init__(self, store: Store) -> None:
        self.store, self.told, self.now = store, Told(), NOW
        self.declare()
        lease = acquire(store, "racks", "me", now=NOW, seconds=10**6)
        assert lease is not None
        self.lease = lease
        self.set(*NODES)

    def declare(self, domains: tuple[str, ...] = ("rack-7",), **fields: Any) -> None:
        groups = (
            NodeGroup(nodes=("n3",), domains=domains, **fields),
            NodeGroup(nodes=("n[0-2,4-9]",), domains=domains),
        )
        self.definition = ClusterDefinition(name="east", kind=ClusterKind.SIMULATED, groups=groups)
        declare(self.store, self.definition, now=NOW)

    def set(self, *names: str, heard: datetime | None = None, gpu: str = "", **load: Any) -> None:
        values = {"temperature": 60, "held_down": False, "power_limit": 700} | load
        with self.store.write() as session:
            for name in names:
                row = session.get_one(NodeRow, ("east", name))
                described = {"index": 0, "uuid": gpu or f"GPU-{name}", "name": "H100", "load": values}
                row.inventory, row.last_heard_at = {"gpus": [described]}, heard or self.now

    async def look(self, seconds: float = 60) -> None:
        self.now += timedelta(seconds=seconds)
        await look_at_racks(self.store, self.told, self.lease, self.now)

    def firing(self) -> list[tuple[str, str, str]]:
        with self.store.read() as session:
            query = select(FindingRow).where(FindingRow.status == "firing").order_by(col(FindingRow.node))
            return [(row.node, row.fault, row.entity) for row in session.exec(query)]


@pytest.fixture
def rack(store: Store) -> Rack:
    return Rack(store)


async def test_a_gpu_that_differs_from_its_rack_is_a_finding_that_asks_to_inspect_it(rack: Rack) -> None:
    rack.set("n3", temperature=80)
    await rack.look()
    with rack.store.read() as session:
        node, definition = session.get_one(NodeRow, ("east", "n3")), rack.definition
        known: dict[str, Any] = {"policy_revision": 1, "facts": None, "workloads": None, "now": rack.now}
        verdict = triage(load_situation(session, node, definition, **known), Policy(), catalogue(), rack.now)
    assert isinstance(verdict, Propose)
    assert (rack.firing(), verdict.advice.action, verdict.contain) == ([HOT], Action.INSPECT, False)


async def test_it_ends_when_the_gpu_is_like_its_rack_again(rack: Rack) -> None:
    rack.set("n3", temperature=80)
    await rack.look()
    rack.set("n3", temperature=61)
    await rack.look()
    assert rack.firing() == []


async def test_a_gpu_that_idles_now_is_not_taken_for_a_cool_one(rack: Rack) -> None:
    rack.set("n3", temperature=80)
    await rack.look()
    with rack.store.write() as session:
        row = session.get_one(NodeRow, ("east", "n3"))
        row.inventory = {"gpus": [{"index": 0, "uuid": "GPU-n3", "name": "H100", "load": None}]}
    await rack.look()
    assert rack.firing() == [HOT]


async def test_what_a_node_said_before_it_fell_silent_is_compared_with_nothing(rack: Rack) -> None:
    rack.set("n3", temperature=80, heard=NOW - timedelta(minutes=3))
    await rack.look()
    assert rack.firing() == []


async def test_a_board_that_was_taken_out_asks_no_more(rack: Rack) -> None:
    rack.set("n3", temperature=80)
    await rack.look()
    rack.set("n3", gpu="GPU-new", temperature=60)
    await rack.look()
    assert rack.firing() == []


async def test_a_cap_that_the_definition_declares_is_expected(rack: Rack) -> None:
    rack.set("n3", power_limit=500)
    await rack.look()
    before = rack.firing()
    rack.declare(power_cap_watts=500)
    await rack.look()
    assert (before, rack.firing()) == ([HOT], [])


async def test_three_nodes_of_a_rack_are_told_to_facilities_once_and_nobody_is_asked_about_them(rack: Rack) -> None:
    rack.set("n3", temperature=80)
    await rack.look()
    rack.set("n3", "n4", "n5", temperature=80)
    await rack.look()
    await rack.look()
    assert rack.firing() == [("", "rack-outliers", "rack-7")]
    assert rack.told.subjects == ["RACK east/rack-7: 3 nodes differ under load"]


async def test_facilities_that_could_not_be_told_are_told_later(rack: Rack) -> None:
    rack.set("n3", "n4", "n5", temperature=80)
    rack.told.away = True
    with pytest.raises(ConnectionError):
        await rack.look()
    rack.told.away = False
    await rack.look()
    assert (len(rack.told.subjects), rack.firing()) == (1, [("", "rack-outliers", "rack-7")])


async def test_a_rack_that_has_cooled_or_is_no_more_ends_its_finding(rack: Rack) -> None:
    rack.set("n3", "n4", "n5", temperature=80)
    await rack.look()
    rack.declare(domains=())
    await rack.look()
    assert rack.firing() == []


async def test_a_gpu_like_the_others_of_one_of_its_domains_does_not_differ(rack: Rack) -> None:
    rack.declare(domains=("rack-7", "feed-a"))
    with rack.store.write() as session:
        for name in ("n4", "n5", "n6", "n7", "n8", "n9"):
            session.get_one(NodeRow, ("east", name)).domains = ["rack-7"]
    rack.set("n0", "n1", "n2", "n3", temperature=80)
    await rack.look()
    assert ("n3", "rack-outlier", "GPU-n3") not in rack.firing()
