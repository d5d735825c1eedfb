"""Repairs that wait for their right do not keep each other from it, and nodes that are gone keep nobody from it."""

from __future__ import annotations

from typing import Any

import pytest

from daytwo import budgets
from daytwo.domain.definition import NodeGroup
from daytwo.domain.exchange import RepairRef
from daytwo.domain.policy import Budget
from daytwo.intake import declare, observe_facts
from daytwo.store.engine import Store
from daytwo.store.tables import NodeRow
from tests.builders import NOW, node_facts
from tests.rows import a_definition, a_node, a_repair, keep

DRAINED = {"facts": {"states": ("IDLE", "DRAIN"), "responding": True}, "facts_at": NOW}
IDLE = {"facts": {"states": ("IDLE",), "responding": True}, "facts_at": NOW}


def waits(store: Store, name: str, **fields: Any) -> None:
    """A node whose repair was approved, has our marks and waits for its right."""
    keep(store, a_node(name, **DRAINED | fields))
    keep(store, a_repair(f"r-{name}", node=name, open_key=f"east/{name}", state="waiting"))


def asks(store: Store, name: str, budget: Budget | None = None) -> str:
    ref = RepairRef(repair_id=f"r-{name}", cluster="east", node=name)
    return store.change(lambda session: budgets.take_right(session, ref, budget or Budget(), NOW))


def test_of_two_approved_repairs_in_a_small_pool_one_goes_first(store: Store) -> None:
    waits(store, "gpu-01")
    waits(store, "gpu-02")
    assert (asks(store, "gpu-02") != "", asks(store, "gpu-01")) == (True, "")
    assert asks(store, "gpu-02") != ""


def test_fifty_approved_repairs_go_as_many_at_a_time_as_the_budget_has(store: Store) -> None:
    keep(store, *(a_node(f"gpu-{number:03}", **IDLE) for number in range(100, 200)))
    for number in range(50):
        waits(store, f"gpu-{number:03}")
    granted = [name for name in (f"gpu-{number:03}" for number in range(50)) if not asks(store, name)]
    assert granted == ["gpu-000", "gpu-001", "gpu-002"]


def test_two_pools_that_share_a_rack_have_one_node_of_it_repaired_at_a_time(store: Store) -> None:
    waits(store, "gpu-01", pool="train", domains=["r07"])
    waits(store, "gpu-02", pool="infer", domains=["r07"])
    assert asks(store, "gpu-01") == ""
    assert asks(store, "gpu-02") == "gpu-01 is being repaired; the budget of r07 allows 1 at a time"


def test_a_node_that_left_the_cluster_is_not_out(store: Store) -> None:
    both = a_definition(groups=(NodeGroup(nodes=("gpu-01", "gpu-02")),))
    declare(store, both, now=NOW)
    observe_facts(store, "east", [node_facts(node="gpu-01"), node_facts(node="gpu-02")], now=NOW)
    declare(store, a_definition(groups=(NodeGroup(nodes=("gpu-01",)),)), now=NOW)
    observe_facts(store, "east", [node_facts(node="gpu-01")], now=NOW)
    keep(store, a_repair("r-gpu-01", node="gpu-01", open_key="east/gpu-01", state="waiting"))
    assert asks(store, "gpu-01") == ""


def test_a_node_that_left_one_cluster_may_be_declared_in_another(store: Store) -> None:
    declare(store, a_definition(groups=(NodeGroup(nodes=("gpu-01", "gpu-02")),)), now=NOW)
    declare(store, a_definition(groups=(NodeGroup(nodes=("gpu-01",)),)), now=NOW)
    declare(store, a_definition("west", groups=(NodeGroup(nodes=("gpu-02",)),)), now=NOW)
    with store.read() as session:
        assert session.get(NodeRow, ("west", "gpu-02")) is not None


def gone(store: Store, name: str, **fields: Any) -> None:
    """A node that carries the marks of a repair that is over."""
    marked = {"states": ("IDLE", "DRAIN"), "responding": True, "mark_repair_id": f"r-0-{name}"}
    keep(store, a_node(name, facts=marked, facts_at=NOW))
    keep(store, a_repair(f"r-0-{name}", node=name, open_key=None, closed_at=NOW, **fields))


@pytest.mark.parametrize(("state", "granted"), [("removed", True), ("handed-over", False)])
def test_a_removed_node_is_not_out_for_it_does_not_come_back(store: Store, state: str, granted: bool) -> None:
    gone(store, "gpu-01", state=state)
    waits(store, "gpu-02")
    assert (asks(store, "gpu-02") == "") is granted


def test_a_removed_node_is_no_part_of_its_pool(store: Store) -> None:
    keep(store, *(a_node(f"gpu-{number:03}", **IDLE) for number in range(100)))
    gone(store, "gpu-200", state="removed")
    assert store.change(lambda session: len(budgets.peers_in(session, "east", "default"))) == 100


def test_a_removed_node_that_a_repair_works_on_again_counts(store: Store) -> None:
    keep(store, a_repair("r-0", node="gpu-01", open_key=None, closed_at=NOW, state="removed"))
    waits(store, "gpu-01")
    assert store.change(lambda session: len(budgets.peers_in(session, "east", "default"))) == 1
