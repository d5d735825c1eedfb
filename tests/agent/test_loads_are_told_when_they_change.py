"""What a GPU is like under load: only after ten minutes of it, and told again only when it has changed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.agent.fakes import UUIDS, Node

BUSY = {"temperature": 61, "utilisation": 98, "power_limit": 700}


@pytest.fixture
def node() -> Node:
    node = Node()
    node.gpus.edit(0, **BUSY)
    node.gpus.edit(1, **BUSY | {"utilisation": 0})
    return node


def loads(node: Node) -> dict[str, Any]:
    """What the newest pulse in full says."""
    newest = [pulse["inventory"] for pulse in node.gateway.pulses if pulse["inventory"]][-1]
    return {gpu["uuid"]: gpu["load"] for gpu in newest["gpus"] if "load" in gpu}


def in_full(node: Node) -> int:
    return sum(pulse["inventory"] is not None for pulse in node.gateway.pulses)


def test_a_gpu_is_told_of_after_ten_minutes_under_load_and_an_idle_one_is_not(node: Node) -> None:
    node.run(500)
    before = loads(node)
    node.run(240)
    assert (before, loads(node)) == ({}, {UUIDS[0]: {"temperature": 61, "held_down": False, "power_limit": 700}})


def test_a_steady_load_sends_nothing_new(node: Node) -> None:
    node.run(800)
    before = in_full(node)
    for degrees in (60, 63, 58, 64):
        node.gpus.edit(0, temperature=degrees)
        node.run(600)
    assert in_full(node) == before


def test_a_gpu_that_gets_hotter_is_told_anew(node: Node) -> None:
    node.run(800)
    node.gpus.edit(0, temperature=75)
    node.run(700)
    assert loads(node)[UUIDS[0]]["temperature"] > 66


def test_clocks_that_are_held_down_for_ten_minutes_are_told(node: Node) -> None:
    node.gpus.edit(0, reasons=0x40)
    node.run(800)
    assert loads(node)[UUIDS[0]]["held_down"] is True


@pytest.mark.parametrize("changed", [{"utilisation": 10}, {"temperature": None}, {"ok": False, "error": "x"}])
def test_a_reading_without_load_begins_anew(node: Node, changed: dict[str, Any]) -> None:
    node.run(800)
    node.gpus.edit(0, **changed)
    node.run(70)
    node.gpus.edit(0, **BUSY | {"ok": True, "error": None})
    node.run(400)
    assert loads(node) == {}


def test_a_load_that_is_not_read_any_more_is_not_told(node: Node) -> None:
    node.run(800)
    node.gpus.answers = False
    node.run(300)
    assert loads(node) == {}
