"""Repairs that other versions began are gone on with: every recorded history replays with the workflow as it is now."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from activities import signatures as do
from daytwo.domain.repair_states import RULES, TERMINAL
from scripts.record_histories import FILES
from tests.replay.replaying import HISTORIES, RECORDED, history, replay


@pytest.mark.parametrize("name", RECORDED)
async def test_a_recorded_history_replays(name: str) -> None:
    assert await replay(history(name)) is None


def test_every_scenario_has_its_history_and_no_history_is_left_over() -> None:
    assert set(RECORDED) == FILES


def test_the_histories_lead_through_every_state() -> None:
    assert {state for name in RECORDED for state in states_in(name)} == {*RULES, *TERMINAL}


@pytest.mark.parametrize("name", RECORDED)
def test_a_history_tells_nothing_of_the_machine_it_was_recorded_on(name: str) -> None:
    told = list(texts(json.loads((HISTORIES / f"{name}.json").read_text())))
    assert [text for text in told if re.search(r"/(home|root|tmp|work|usr|opt|var)/|\d@", text)] == []


def states_in(name: str) -> Iterator[str]:
    """The states that a history has written down, as its activities were asked to."""
    for event in history(name).events:
        asked = event.activity_task_scheduled_event_attributes
        if asked.activity_type.name == do.RECORD.name:
            yield json.loads(asked.input.payloads[0].data)["to_state"]
        if asked.activity_type.name == do.CLOSE.name:
            yield json.loads(asked.input.payloads[0].data)["event"]["to_state"]


def texts(value: Any, key: str = "") -> Iterator[str]:
    """Every text in a history, payloads decoded."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from texts(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item, key)
    elif isinstance(value, str):
        yield base64.b64decode(value).decode(errors="replace") if key == "data" else value
