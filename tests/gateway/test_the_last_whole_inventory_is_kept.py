"""During a fault an inventory may lack the GPU that is lost: what the node had when it was whole stays known."""

from __future__ import annotations

from typing import Any

import pytest

from daytwo.domain.machines import before_of, known_gpus
from tests.gateway.conftest import Agent, Records
from tests.rows import a_repair, keep

WHOLE = ("GPU-1", "GPU-2")


def with_gpus(*uuids: str) -> dict[str, Any]:
    gpus = [
        {"index": place, "uuid": uuid, "serial": None, "pci": None, "name": "H200"} for place, uuid in enumerate(uuids)
    ]
    return {"gpus": gpus, "driver": "595"}


@pytest.fixture(autouse=True)
def undeclared(records: Records) -> None:
    declare_gpus(records, None)


def known(records: Records) -> tuple[str, ...]:
    return known_gpus(records.node().inventory)


@pytest.mark.parametrize(
    ("said", "counts"),
    [
        ([WHOLE, ("GPU-1",)], WHOLE),
        ([WHOLE, (), ("GPU-1",)], WHOLE),
        ([WHOLE, ("GPU-1",), WHOLE], WHOLE),
        ([WHOLE, (*WHOLE, "GPU-3")], (*WHOLE, "GPU-3")),
        ([WHOLE, ("GPU-1", "GPU-9")], ("GPU-1", "GPU-9")),
        ([(), ("GPU-1",)], ("GPU-1",)),
    ],
)
def test_a_gpu_that_is_missing_stays_known_and_one_that_was_swapped_does_not(
    agent: Agent, records: Records, said: list[tuple[str, ...]], counts: tuple[str, ...]
) -> None:
    for uuids in said:
        agent.pulse(inventory=with_gpus(*uuids))
    assert known(records) == counts


def swapped_during_a_repair(agent: Agent, records: Records) -> None:
    agent.pulse(inventory=with_gpus(*WHOLE))
    keep(records.store, a_repair("r-20261130-120000-aaaaa", node="gpu-01", open_key="east/gpu-01"))
    agent.pulse(inventory=with_gpus("GPU-1", "GPU-9"))


def test_while_a_repair_is_open_another_gpu_is_no_replacement(agent: Agent, records: Records) -> None:
    swapped_during_a_repair(agent, records)
    assert known(records) == WHOLE


@pytest.mark.parametrize(("fault", "counts"), [("xid-79", ()), ("gpu-off-bus", ()), ("thermal-throttle", WHOLE)])
def test_a_node_that_is_first_heard_of_when_a_gpu_is_lost_was_never_seen_whole(
    agent: Agent, records: Records, fault: str, counts: tuple[str, ...]
) -> None:
    agent.findings(agent.record(fault=fault))
    agent.pulse(inventory=with_gpus(*WHOLE))
    assert known(records) == counts


def declare_gpus(records: Records, count: int | None) -> None:
    with records.store.write() as session:
        node = records.node()
        node.expected_gpus = count
        session.merge(node)


@pytest.mark.parametrize(("count", "counts"), [(1, ("GPU-1",)), (2, WHOLE)])
def test_as_many_as_are_declared_are_whole(agent: Agent, records: Records, count: int, counts: tuple[str, ...]) -> None:
    agent.pulse(inventory=with_gpus(*WHOLE))
    declare_gpus(records, count)
    agent.pulse(inventory=with_gpus("GPU-1"))
    assert known(records) == counts


def test_a_first_inventory_with_fewer_than_declared_is_not_whole(agent: Agent, records: Records) -> None:
    declare_gpus(records, 2)
    agent.pulse(inventory=with_gpus("GPU-1"))
    assert known(records) == ()
    agent.pulse(inventory=with_gpus(*WHOLE))
    assert known(records) == WHOLE


def test_what_somebody_swapped_between_two_repairs_is_what_the_next_one_asks_back(
    agent: Agent, records: Records
) -> None:
    swapped_during_a_repair(agent, records)
    inventory = records.node().inventory
    assert before_of(inventory, {}, None).gpus == ("GPU-1", "GPU-9")
