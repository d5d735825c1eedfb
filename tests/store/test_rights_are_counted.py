"""The right to take one more node out: per pool and domain, over nodes that are out for any reason."""

from __future__ import annotations

from typing import Any

import pytest

from daytwo import budgets
from daytwo.domain.exchange import RepairRef
from daytwo.domain.policy import Budget
from daytwo.store.engine import Store
from tests.builders import NOW
from tests.rows import a_node, a_repair, keep

POOL = 100


def facts(*states: str, responding: bool = True, planned: str = "") -> dict[str, Any]:
    return {"facts": {"states": states, "responding": responding, "planned": planned}, "facts_at": NOW}


def name(number: int) -> str:
    return f"gpu-{number:03}"


def a_pool(store: Store, *, domains: dict[int, list[str]] | None = None, **others: dict[str, Any]) -> None:
    """A hundred nodes that work; `others` says what is different of `n<number>`."""
    usual = facts("IDLE")
    for number in range(POOL):
        beside = (domains or {}).get(number, [])
        keep(store, a_node(name(number), domains=beside, **usual | others.get(f"n{number}", {})))


def a_holder(store: Store, number: int) -> None:
    """A node whose repair has taken its right."""
    held = {"node": name(number), "open_key": f"east/{name(number)}", "right_taken_at": NOW}
    keep(store, a_repair(f"r-{number}", **held))


def asks(store: Store, number: int, budget: Budget) -> str:
    """What a repair of this node is told when it asks for the right."""
    keep(store, a_repair(f"r-{number}", node=name(number), open_key=f"east/{name(number)}"))
    ref = RepairRef(repair_id=f"r-{number}", cluster="east", node=name(number))
    return store.change(lambda session: budgets.take_right(session, ref, budget, NOW))


def test_two_of_a_hundred_are_repaired_at_once_and_the_third_waits(store: Store) -> None:
    a_pool(store)
    assert [asks(store, 1, Budget()), asks(store, 2, Budget())] == ["", ""]
    assert asks(store, 3, Budget()).startswith("2 nodes are out (gpu-001, gpu-002); the budget of pool")


@pytest.mark.parametrize(
    "out",
    [
        facts("IDLE", "DRAIN"),
        facts("IDLE", "MAINTENANCE", planned="root has reserved it for maintenance: window"),
        facts("DOWN"),
        facts("ALLOCATED", responding=False),
        {"facts": None, "facts_at": NOW},
    ],
    ids=["drained", "in maintenance", "down", "silent", "unreadable"],
)
def test_a_node_that_is_out_for_any_reason_counts(store: Store, out: dict[str, Any]) -> None:
    a_pool(store, n7=out)
    assert "gpu-007" in asks(store, 1, Budget(acting_nodes=1))


def test_the_node_itself_does_not_count(store: Store) -> None:
    a_pool(store, n1=facts("IDLE", "DRAIN"))
    assert asks(store, 1, Budget(acting_nodes=1)) == ""


def test_one_node_of_a_rack_at_a_time(store: Store) -> None:
    a_pool(store, domains={1: ["r21"], 2: ["r21", "r22"], 3: ["r22"]})
    a_holder(store, 2)
    assert [asks(store, number, Budget(acting_share=1)) for number in (1, 3, 4)] == [
        "gpu-002 is being repaired; the budget of r21 allows 1 at a time",
        "gpu-002 is being repaired; the budget of r22 allows 1 at a time",
        "",
    ]


@pytest.mark.parametrize(
    ("controllers", "out", "granted"),
    [(1, 0, True), (2, 0, True), (2, 1, False), (3, 0, True), (3, 1, False), (5, 1, True), (5, 2, False)],
)
def test_of_nodes_that_others_depend_on_a_majority_stays(
    store: Store, controllers: int, out: int, granted: bool
) -> None:
    a_pool(store)
    for number in range(controllers):
        state = facts("DOWN") if number > controllers - 1 - out else facts("IDLE")
        keep(store, a_node(f"ctl-{number}", role="controller", pool="control", **state))
    keep(store, a_repair("r-ctl", node="ctl-0", open_key="east/ctl-0"))
    ref = RepairRef(repair_id="r-ctl", cluster="east", node="ctl-0")
    budget = Budget(acting_share=1, acting_nodes=POOL)
    refused = store.change(lambda session: budgets.take_right(session, ref, budget, NOW))
    assert (refused == "", "this one is needed" in refused) == (granted, not granted)


def test_a_right_that_is_held_is_not_taken_twice(store: Store) -> None:
    a_pool(store)
    a_holder(store, 1)
    ref = RepairRef(repair_id="r-1", cluster="east", node=name(1))
    again = store.change(lambda session: budgets.take_right(session, ref, Budget(acting_nodes=1), NOW))
    assert (again, asks(store, 2, Budget(acting_nodes=1)) != "") == ("", True)
