"""What a node may say: strict twins of `daytwo.wire`. A node runs other people's jobs, so everything has a bound.

What names something (fault, entity, ids) is refused if it is malformed; free text (evidence, errors) is made harmless
instead, because a record that is refused for ever would keep its agent from ever saying anything else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, FiniteFloat

from daytwo.intake.facts import FROM_FACTS
from daytwo.wire import MAX_EVIDENCE_CHARS, MAX_EVIDENCE_LINES, MAX_RECORDS

MAX_DEPTH: Final = 8
"""Levels of lists and objects inside a result."""
MAX_INTEGER: Final = 2**63 - 1
MAX_ANSWERS: Final = 50
NOT_A_NODES: Final = frozenset({*FROM_FACTS, "agent-silent", "rack-outlier", "rack-outliers"})
"""Faults that only the control plane can see."""

_UNPRINTABLE: Final = dict.fromkeys((*range(0x09), *range(0x0B, 0x20), 0x7F), "\ufffd")


def _harmless(text: object) -> object:
    return text.translate(_UNPRINTABLE) if isinstance(text, str) else text


def _short(lines: object) -> object:
    if not isinstance(lines, list):
        return lines
    return [line[:MAX_EVIDENCE_CHARS] if isinstance(line, str) else line for line in lines[-MAX_EVIDENCE_LINES:]]


def _from_a_node(fault: str) -> str:
    if fault in NOT_A_NODES:
        raise ValueError(f"{fault!r} is not for a node to say")
    return fault


def _bounded(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Return the value with harmless texts. Raises `ValueError` for what the store could not keep."""
    if isinstance(value, dict | list) and depth == 0:
        raise ValueError(f"more than {MAX_DEPTH} levels deep")
    if isinstance(value, dict):
        return {_harmless(name): _bounded(each, depth - 1) for name, each in value.items()}
    if isinstance(value, list):
        return [_bounded(each, depth - 1) for each in value]
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise ValueError(f"an integer beyond {MAX_INTEGER}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number that is not finite")
    return _harmless(value)


Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")]
Fault = Annotated[str, Field(max_length=64, pattern=r"^[a-z0-9][a-z0-9-]*$"), AfterValidator(_from_a_node)]
Text = Annotated[str, BeforeValidator(_harmless), Field(max_length=MAX_EVIDENCE_CHARS)]
Number = Annotated[int, Field(ge=0, le=MAX_INTEGER)]
Small = Annotated[int, Field(ge=0, le=2**31 - 1)]
Time = Annotated[FiniteFloat, Field(ge=0, le=253402300799)]
"""Unix seconds up to the year 9999: a node's clock may be wrong, and that is no reason not to hear it."""
Scalar = Annotated[str, Field(max_length=2000)] | bool | int | float | None
Detail = Annotated[dict[Annotated[str, Field(max_length=64)], Scalar], Field(max_length=32), AfterValidator(_bounded)]


class Said(BaseModel):
    """Part of a node's message: no field too many, no value converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Record(Said):
    """One change of one finding."""

    sequence: Annotated[int, Field(ge=1, le=2**31 - 1)]
    fault: Fault
    entity: Name
    status: Literal["firing", "cleared"]
    count: Annotated[int, Field(ge=1, le=10**6)]
    first_seen: Time
    last_seen: Time
    source: Name
    boot_id: Name
    kernel_sequence: Number | None
    evidence: Annotated[list[Text], BeforeValidator(_short)]
    detail: Detail


class Findings(Said):
    """The body of `POST /v1/nodes/{node}/findings`."""

    stream: Small
    boot_id: Name
    clock: Time
    records: Annotated[list[Record], Field(max_length=MAX_RECORDS)]


class Load(Said):
    """What a GPU is like under load: °C, whether the hardware holds its clocks down, W."""

    temperature: Annotated[int, Field(ge=-50, le=200)]
    held_down: bool | None
    power_limit: Annotated[int, Field(ge=0, le=10_000)] | None


class Gpu(Said):
    """One GPU of the inventory."""

    index: Small
    uuid: Text | None
    serial: Text | None
    pci: Text | None
    name: Text | None
    load: Load | None = None


class Inventory(Said):
    """What the node has."""

    gpus: Annotated[list[Gpu], Field(max_length=256)]
    driver: Text | None


class Identity(Said):
    """What the machine calls itself (DMI)."""

    system_uuid: Text | None = None
    serial: Text | None = None
    product: Text | None = None


class Answer(Said):
    """What became of a request."""

    id: Name
    state: Literal["accepted", "done", "failed"]
    boot_id: Name
    result: Annotated[dict[str, Any], AfterValidator(_bounded)] = Field(default_factory=dict)
    error: Text = ""


class Pulse(Said):
    """The body of `POST /v1/nodes/{node}/pulse`."""

    stream: Small
    sequence: Small
    boot_id: Name
    clock: Time
    version: Annotated[Text, Field(max_length=64)]
    started_at: Time
    identity: Identity
    kernel_log: Text | None = None
    digest: Name
    checks: (
        Annotated[dict[Name, Literal["ok", "firing", "unknown", "unsupported", "off"]], Field(max_length=256)] | None
    )
    inventory: Inventory | None
    answers: Annotated[list[Answer], Field(max_length=MAX_ANSWERS)]


def where(location: Sequence[int | str]) -> str:
    """Return the place of a field as people write it: `records[3].fault`."""
    words = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return "".join(words).lstrip(".")
