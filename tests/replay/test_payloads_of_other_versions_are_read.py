"""What stands in histories was written by other versions: it may say more than we know, or less."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel
from temporalio.api.common.v1 import Payload
from temporalio.client import WorkflowHistory

from activities import signatures as do
from daytwo.domain.exchange import Run
from tests.replay.replaying import RECORDED, history, replay

RESULTS = {signature.name: signature.result for signature in do.ALL}


@pytest.mark.parametrize("name", RECORDED)
async def test_fields_of_a_later_version_are_passed_over(name: str) -> None:
    assert await replay(rewritten(history(name), with_more)) is None


@pytest.mark.parametrize("name", RECORDED)
async def test_fields_that_an_earlier_version_did_not_know_have_their_defaults(name: str) -> None:
    assert await replay(rewritten(history(name), with_less)) is None


def test_what_is_added_and_left_out_is_really_so() -> None:
    more, less = (input_of(rewritten(history("succeeded"), how)) for how in (with_more, with_less))
    assert ("of_a_later_version" in more, sorted(less)) == (True, ["cluster", "node", "repair_id"])


def input_of(recorded: WorkflowHistory) -> dict[str, Any]:
    began = recorded.events[0].workflow_execution_started_event_attributes
    found: dict[str, Any] = json.loads(began.input.payloads[0].data)
    return found


def rewritten(recorded: WorkflowHistory, how: Callable[[Any], Any]) -> WorkflowHistory:
    """The same history, with what replay reads of it put in other words: the run and every activity's result."""
    events = copy.deepcopy(list(recorded.events))
    asked = {event.event_id: event.activity_task_scheduled_event_attributes.activity_type.name for event in events}
    _rewrite(events[0].workflow_execution_started_event_attributes.input.payloads[0], Run, how)
    for event in events:
        done = event.activity_task_completed_event_attributes
        for payload in done.result.payloads:
            _rewrite(payload, RESULTS[asked[done.scheduled_event_id]], how)
        here = event.marker_recorded_event_attributes.details
        for payload in here["result"].payloads if "result" in here else ():
            _rewrite(payload, RESULTS[json.loads(here["data"].payloads[0].data)["activity_type"]], how)
    return WorkflowHistory(recorded.workflow_id, events)


def _rewrite(payload: Payload, kind: type[BaseModel], how: Callable[[Any], Any]) -> None:
    payload.data = json.dumps(how(kind.model_validate_json(payload.data)), default=str).encode()


def with_less(value: BaseModel) -> Any:
    """Without every field that stands at its default."""
    return value.model_dump(mode="json", exclude_defaults=True)


def with_more(value: Any) -> Any:
    """With a field that nobody knows, in every model there is in it."""
    if isinstance(value, BaseModel):
        return {"of_a_later_version": {"a": [1]}} | {name: with_more(item) for name, item in value}
    if isinstance(value, list | tuple):
        return [with_more(item) for item in value]
    return value
