"""Reads what people type into the Temporal UI. It never raises: what cannot be read becomes a claim that says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.converter import PayloadConverter

with workflow.unsafe.imports_passed_through():
    from daytwo.domain.exchange import Claim
    from daytwo.domain.message import clean
    from workflows import names

EXPECTED = '{"repair": "r-…", "revision": 1, "who": "you", "reason": "why"}'


def read_claim(key: str, name: str, arguments: Sequence[RawValue], converter: PayloadConverter) -> Claim:
    """Turn one signal into a claim; `problem` tells why it cannot be followed."""
    if name not in names.CLAIMABLE:
        allowed = ", ".join(names.CLAIMABLE)
        return Claim(key=key, name=name[:40], problem=f"signal {name[:40]!r} is not known; allowed: {allowed}")
    if not arguments:
        return Claim(key=key, name=name, problem=f"signal {name!r} came without input; it takes {EXPECTED}")
    try:
        found: Any = converter.from_payload(arguments[0].payload)
    except Exception:
        return Claim(key=key, name=name, problem=f"signal {name!r}: its input is not JSON; it takes {EXPECTED}")
    if not isinstance(found, dict):
        return Claim(key=key, name=name, problem=f"signal {name!r}: its input is not an object; it takes {EXPECTED}")
    return _from_dict(key, name, found)


def _from_dict(key: str, name: str, found: dict[str, Any]) -> Claim:
    repair, revision = found.get("repair"), found.get("revision")
    # A NUL among it, and PostgreSQL would refuse the row for ever.
    said = {"who": clean(str(found.get("who", "")), 80), "reason": clean(str(found.get("reason", "")), 500)}
    if not isinstance(repair, str) or not isinstance(revision, int) or isinstance(revision, bool):
        problem = f"signal {name!r} names no repair and revision; it takes {EXPECTED}"
        return Claim(key=key, name=name, problem=problem, **said)
    return Claim(key=key, name=name, repair_id=clean(repair, 80), revision=revision, **said)
