"""What people type into the Temporal UI is read without a server: whatever it holds, it can be written down."""

from __future__ import annotations

import json

from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.contrib.pydantic import pydantic_data_converter

from workflows.claims import read_claim


def test_characters_that_a_store_refuses_are_left_out_of_a_claim() -> None:
    said = {"repair": "r-1\0", "revision": 1, "who": "ro\0ot\x1b[2J", "reason": "no\0w"}
    raw = RawValue(Payload(metadata={"encoding": b"json/plain"}, data=json.dumps(said).encode()))
    claim = read_claim("key", "approve", [raw], pydantic_data_converter.payload_converter)
    assert (claim.repair_id, claim.who, claim.reason) == ("r-1", "root", "now")
