"""A change of a finding on its way out: checks and kernel records make it, folding merges it, the spool numbers it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal

from daytwo.agent.seams import Detail
from daytwo.wire import MAX_EVIDENCE_CHARS, MAX_EVIDENCE_LINES, Record

Status = Literal["firing", "cleared"]

MAX_COUNT: Final = 1_000_000
"""The gateway refuses a larger count."""


@dataclass(frozen=True, slots=True)
class Change:
    """`daytwo.wire.Record` without its number. `count` is how many occurrences this one change stands for."""

    fault: str
    entity: str
    status: Status
    first_seen: float
    last_seen: float
    source: str
    boot_id: str
    count: int = 1
    kernel_sequence: int | None = None
    evidence: tuple[str, ...] = ()
    detail: Detail = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        """What folds together."""
        return self.fault, self.entity

    def then(self, later: Change) -> Change:
        """Fold a later change of the same fault and entity in: its state, both counts, the latest evidence."""
        return replace(
            later,
            count=self.count + later.count,
            first_seen=min(self.first_seen, later.first_seen),
            evidence=latest((*self.evidence, *later.evidence)),
        )

    def numbered(self, sequence: int) -> Record:
        """Return the record to send."""
        return Record(
            sequence=sequence,
            fault=self.fault,
            entity=self.entity,
            status=self.status,
            count=min(self.count, MAX_COUNT),
            first_seen=self.first_seen,
            last_seen=self.last_seen,
            source=self.source,
            boot_id=self.boot_id,
            kernel_sequence=self.kernel_sequence,
            evidence=list(latest(self.evidence)),
            detail=self.detail,
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON, for the spool."""
        return asdict(self)


def from_json(entry: dict[str, Any]) -> Change:
    """Return the change that `Change.to_json` wrote. Raises `TypeError` if it is not one."""
    return Change(**{**entry, "evidence": tuple(entry["evidence"])})


def latest(evidence: Iterable[str]) -> tuple[str, ...]:
    """Return the last distinct lines, as many and as long as the gateway takes."""
    distinct = dict.fromkeys(line[:MAX_EVIDENCE_CHARS] for line in evidence)
    return tuple(distinct)[-MAX_EVIDENCE_LINES:]
