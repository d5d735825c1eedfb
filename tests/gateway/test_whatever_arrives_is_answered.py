"""A hostile node: any message gets 200 or a reason, never a crash, and the store can keep what was taken."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from daytwo.gateway.app import Gateway
from daytwo.gateway.limits import Buckets, Rate
from daytwo.gateway.models import Findings, Pulse

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

TEXT = st.text(max_size=20) | st.sampled_from(["\x00", "GPU-1", "firing", "\ud800", "𝕏"])
NUMBERS = st.integers() | st.floats() | st.sampled_from([2**31, 2**63, 10**400, -1])
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
RECORD_FIELDS = ("sequence", "fault", "entity", "count", "first_seen", "last_seen", "boot_id", "evidence", "detail")
PULSE_FIELDS = ("boot_id", "clock", "version", "identity", "digest", "checks", "inventory", "answers")


@pytest.fixture
def patient(gateway: Gateway, agent: Any) -> Any:
    """An agent that may speak as fast as it likes."""
    gateway.requests = gateway.records = Buckets(Rate(burst=1e9, per_second=1e9))
    return agent


@QUICK
@given(field=st.sampled_from(RECORD_FIELDS), value=JSON)
def test_a_record_with_anything_in_it(patient: Any, field: str, value: Any) -> None:
    body = {"stream": 0, "boot_id": "b", "clock": 1.0, "records": [patient.record() | {field: value}]}
    assert patient.post("findings", content=json.dumps(body)).status_code in (200, 422)


@QUICK
@given(field=st.sampled_from(PULSE_FIELDS), value=JSON)
def test_a_pulse_with_anything_in_it(patient: Any, field: str, value: Any) -> None:
    assert patient.post("pulse", content=json.dumps(patient.pulse_body() | {field: value})).status_code in (200, 422)


@QUICK
@given(result=st.dictionaries(TEXT, JSON, max_size=4))
def test_a_result_with_anything_in_it_can_be_kept(agent: Any, result: dict[str, Any]) -> None:
    answer = {"id": "q", "state": "done", "boot_id": "b", "result": result}
    body = json.dumps(agent.pulse_body() | {"answers": [answer]})
    try:
        said = Pulse.model_validate_json(body)
    except ValidationError:
        return
    kept = json.dumps(said.answers[0].result, allow_nan=False)
    assert "\\u0000" not in kept


@QUICK
@given(body=st.binary(max_size=200))
def test_bytes_are_a_message_or_malformed(body: bytes) -> None:
    with suppress(ValidationError):
        Findings.model_validate_json(body)
