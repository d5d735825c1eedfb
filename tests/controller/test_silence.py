"""Who is silent, and when it is not the node."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlmodel import col, select, update

from daytwo.controller.leases import Lease, acquire
from daytwo.controller.loops import Clock
from daytwo.controller.silence import Silence, SilenceWatch, Uptime, silent_nodes
from daytwo.domain.definition import ClusterDefinition, NodeGroup
from daytwo.domain.vocabulary import ClusterKind
from daytwo.intake import declare
from daytwo.store.engine import Store
from daytwo.store.tables import FindingRow, NodeRow
from tests.builders import node_facts

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
AFTER = timedelta(seconds=180)
UP = Uptime(NOW - timedelta(days=1), NOW)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def fleet(size: int, **silent: float) -> dict[str, datetime]:
    return {f"n{number}": ago(20) for number in range(size)} | {name: ago(at) for name, at in silent.items()}


def judged(heard: dict[str, datetime], known: set[str] | None = None, **fields: Any) -> Silence:
    values: dict[str, Any] = {"uptime": UP, "quiet_for": timedelta(seconds=20), "after": AFTER}
    return silent_nodes(heard, frozenset(known or ()), **values | fields)


@pytest.mark.parametrize(
    ("silent", "nodes", "gateway"),
    [
        ({}, set(), False),
        ({"n1": 180}, set(), False),
        ({"n1": 181}, {"n1"}, False),
        ({"n1": 9999, "n2": 9999}, {"n1", "n2"}, False),
        ({"n1": 200, "n2": 210, "n3": 220}, set(), True),
    ],
)
def test_a_few_are_nodes_and_many_are_the_gateway(silent: dict[str, float], nodes: set[str], gateway: bool) -> None:
    assert judged(fleet(100, **silent)) == Silence(frozenset(nodes), gateway)


@pytest.mark.parametrize(("size", "gateway"), [(149, True), (150, False), (151, False)])
def test_three_are_many_only_above_their_share(size: int, gateway: bool) -> None:
    assert judged(fleet(size, n1=200, n2=200, n3=200)).gateway is gateway


def test_nodes_found_silent_one_by_one_make_no_crowd() -> None:
    heard = fleet(100, n1=9000, n2=8000, n3=7000, n4=200)
    assert judged(heard, {"n1", "n2", "n3"}) == Silence(frozenset({"n1", "n2", "n3", "n4"}), False)


def test_silence_is_counted_from_when_the_gateway_came_up() -> None:
    heard = fleet(10, n1=9000)
    assert judged(heard, uptime=Uptime(ago(179), NOW)).nodes == frozenset()
    assert judged(heard, uptime=Uptime(ago(181), NOW)).nodes == {"n1"}


@pytest.mark.parametrize(("quiet", "gateway"), [(100, False), (181, True)])
def test_when_nobody_is_heard_it_is_not_the_nodes(quiet: float, gateway: bool) -> None:
    heard = {f"n{number}": ago(quiet) for number in range(2)}
    verdict = judged(heard, uptime=Uptime(None, NOW), quiet_for=timedelta(seconds=quiet))
    assert verdict == Silence(frozenset(), gateway)


@pytest.mark.parametrize(
    ("before", "newest", "since"),
    [
        (Uptime(ago(900), ago(10)), ago(5), ago(900)),
        (Uptime(ago(900), ago(10)), ago(95), None),
        (Uptime(ago(900), ago(10)), None, None),
        (Uptime(None, ago(10)), ago(5), ago(5)),
        (Uptime(ago(900), ago(300)), ago(5), ago(5)),
    ],
)
def test_a_gap_begins_the_uptime_anew(before: Uptime, newest: datetime | None, since: datetime | None) -> None:
    assert before.advance(newest, NOW, AFTER / 2) == Uptime(since, NOW)


class Fleet:
    """A declared cluster whose nodes are heard by hand, and the loop's clock."""

    def __init__(self, store: Store) -> None:
        group = NodeGroup(nodes=("n[0-9]",))
        declare(store, ClusterDefinition(name="east", kind=ClusterKind.SIMULATED, groups=(group,)), now=NOW)
        self.store, self.now = store, NOW
        self.watch = SilenceWatch(store, self._lease(), clock=Clock(now=lambda: self.now))

    def _lease(self) -> Lease:
        lease = acquire(self.store, "silence", "me", now=NOW, seconds=15)
        assert lease is not None
        return lease

    async def live(self, seconds: float, *, without: tuple[str, ...] = ()) -> None:
        """Let time pass, looking each 30 s; every node but these is heard."""
        for _ in range(int(seconds / 30)):
            self.now += timedelta(seconds=30)
            with self.store.write() as session:
                heard = update(NodeRow).where(col(NodeRow.name).not_in(without)).values(last_heard_at=self.now)
                session.exec(heard)
            await self.watch.step()

    def firing(self) -> list[tuple[str, str]]:
        with self.store.read() as session:
            query = select(FindingRow).where(FindingRow.status == "firing").order_by(col(FindingRow.node))
            return [(row.node, row.entity) for row in session.exec(query)]


EVERYBODY = tuple(f"n{number}" for number in range(10))


@pytest.fixture
def living(store: Store) -> Fleet:
    return Fleet(store)


async def test_a_silent_agent_is_a_finding_on_its_node(living: Fleet) -> None:
    await living.live(60)
    await living.live(180, without=("n3",))
    assert living.firing() == []
    await living.live(60, without=("n3",))
    assert living.firing() == [("n3", "node")]


async def test_many_silent_agents_are_one_finding_until_they_are_back(living: Fleet) -> None:
    await living.live(60)
    await living.live(240, without=("n1", "n2", "n3", "n4"))
    assert living.firing() == [("", "gateway")]
    await living.live(30)
    assert living.firing() == []


async def test_a_gateway_that_was_away_makes_no_node_silent(living: Fleet) -> None:
    await living.live(60)
    await living.live(900, without=EVERYBODY)
    assert living.firing() == [("", "gateway")]
    await living.live(60, without=EVERYBODY[1:])
    assert living.firing() == []


async def test_a_node_that_was_never_heard_is_not_silent(living: Fleet) -> None:
    await living.live(600, without=("n9",))
    assert living.firing() == []


async def test_a_node_that_is_no_longer_declared_may_be_silent(living: Fleet) -> None:
    await living.live(60)
    groups = (NodeGroup(nodes=("n[0-8]",)),)
    declare(living.store, ClusterDefinition(name="east", kind=ClusterKind.SIMULATED, groups=groups), now=NOW)
    await living.live(600, without=("n9",))
    assert living.firing() == []


def says(living: Fleet, node: str, *states: str, **fields: Any) -> None:
    """What the scheduler says of a node from now on."""
    with living.store.write() as session:
        facts = node_facts(*states, node=node, **fields).model_dump(mode="json")
        session.exec(update(NodeRow).where(col(NodeRow.name) == node).values(facts=facts))


@pytest.mark.parametrize("word", ["POWERING_DOWN", "POWERED_DOWN", "POWERING_UP"])
async def test_a_node_that_is_switched_off_to_save_power_is_not_silent(living: Fleet, word: str) -> None:
    await living.live(60)
    says(living, "n3", "IDLE", word)
    await living.live(600, without=("n3",))
    assert living.firing() == []


async def test_a_silence_ends_when_the_node_turns_out_to_be_switched_off(living: Fleet) -> None:
    await living.live(60)
    await living.live(240, without=("n3",))
    says(living, "n3", "IDLE", "POWERED_DOWN")
    await living.live(30, without=("n3",))
    assert living.firing() == []


async def test_a_node_that_was_switched_on_has_until_its_limit_to_be_heard(living: Fleet) -> None:
    await living.live(60)
    says(living, "n3", "IDLE", "POWERED_DOWN")
    await living.live(600, without=("n3",))
    says(living, "n3", "IDLE", boot_time=living.now)
    await living.live(180, without=("n3",))
    assert living.firing() == []
    await living.live(60, without=("n3",))
    assert living.firing() == [("n3", "node")]


async def test_a_boot_time_in_the_future_hides_no_silence(living: Fleet) -> None:
    await living.live(60)
    says(living, "n3", "IDLE", boot_time=NOW + timedelta(hours=1), at=NOW)
    await living.live(300, without=("n3",))
    assert living.firing() == [("n3", "node")]
