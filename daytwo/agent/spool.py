"""What the agent must not forget: records until they are acknowledged, its place in the kernel log, what it remembers.

`core` and `exchange` change it in memory during a step; `commit` at the end of the step writes that down in one append,
with one fsync if a record is among it. So a crash loses a whole step or nothing, and the place in the kernel log never
runs ahead of the records that came from it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final, cast

from daytwo.agent.changes import Change
from daytwo.agent.seams import Journal
from daytwo.wire import Record

MAX_RECORDS: Final = 5_000
MAX_BYTES: Final = 8 * 1024 * 1024
REWRITE_AFTER: Final = 1_000
SET_ASIDE: Final = 20


class Spool:
    """Numbered records of one stream, oldest first, and remembered values. Bounded; what is dropped is counted."""

    def __init__(self, journal: Journal, *, max_records: int = MAX_RECORDS, max_bytes: int = MAX_BYTES) -> None:
        self._journal = journal
        self._max_records, self._max_bytes = max_records, max_bytes
        self._records: dict[int, Record] = {}
        self._sizes: dict[int, int] = {}
        self._bytes = 0
        self._memory: dict[str, Any] = {}
        self._staged: list[dict[str, Any]] = []
        self._durable = False
        self._broken = False
        self._written = 0
        self.stream = 0
        self.last_sequence = 0
        self.dropped = 0
        self.error = ""
        for entry in journal.load():
            # What a damaged line says by chance must not keep the agent from starting.
            with suppress(TypeError, ValueError, OverflowError):
                self._apply(entry)
        self._keep_within_bounds()

    def __len__(self) -> int:
        return len(self._records)

    def add(self, changes: Iterable[Change]) -> None:
        """Number changes and keep them until they are acknowledged."""
        for change in changes:
            self._stage({"r": change.numbered(self.last_sequence + 1)})
            self._durable = True
        self._keep_within_bounds()

    def batch(self, max_records: int, max_bytes: int) -> list[Record]:
        """Return the oldest records that fit, at least one if there is any."""
        chosen: list[Record] = []
        size = 0
        for sequence, record in self._records.items():
            size += self._sizes[sequence]
            if len(chosen) == max_records or (chosen and size > max_bytes):
                break
            chosen.append(record)
        return chosen

    def acknowledge(self, up_to: int) -> None:
        """Forget the records up to this number."""
        self._stage({"ack": up_to})

    def discard(self, sequences: Iterable[int]) -> None:
        """Forget these records without having delivered them; they are counted in `dropped`."""
        self._stage({"drop": list(sequences)})

    def set_aside(self, record: Record) -> None:
        """Keep a record that is refused out of the stream, where a person can read it; it counts as dropped."""
        self.remember("set_aside", [*self.recall("set_aside", []), record][-SET_ASIDE:])
        self.discard([record["sequence"]])

    def use_stream(self, stream: int) -> None:
        """Go on under the number that the gateway gave."""
        self._stage({"stream": stream})

    def restart_stream(self) -> None:
        """The gateway knows a newer stream than ours: number what is left from 1 and ask for a stream."""
        self._stage({"restart": True})

    def remember(self, name: str, value: Any) -> None:
        """Keep a JSON value under a name; one that is the same costs nothing. Never change it in place afterwards."""
        if self._memory.get(name) != value:
            self._stage({"k": name, "v": value})

    def recall(self, name: str, default: Any = None) -> Any:
        """Return what was remembered."""
        return self._memory.get(name, default)

    def commit(self) -> None:
        """Write down what has changed. What the disk refuses stays in memory and is tried again; `error` says why."""
        if not self._staged and not self._broken:
            return
        try:
            self._write()
        except OSError as error:
            self.error, self._broken = f"cannot write the spool: {error}", True
        else:
            self.error, self._broken = "", False
        self._staged, self._durable = [], False

    def _write(self) -> None:
        self._written += len(self._staged)
        if self._broken or self._written > REWRITE_AFTER + len(self._records):
            self._journal.rewrite(self._everything())
            self._written = 0
        else:
            self._journal.append(self._staged, durable=self._durable)

    def _everything(self) -> list[dict[str, Any]]:
        head = {"stream": self.stream, "last": self.last_sequence, "dropped": self.dropped}
        remembered = [{"k": name, "v": value} for name, value in self._memory.items()]
        return [head, *remembered, *({"r": record} for record in self._records.values())]

    def _stage(self, entry: dict[str, Any]) -> None:
        self._apply(entry)
        self._staged.append(entry)

    def _apply(self, entry: dict[str, Any]) -> None:
        match entry:
            case {"r": {"sequence": int(sequence), "fault": str(), "entity": str()} as record}:
                self._keep(sequence, cast(Record, record))
            case {"k": str(name), "v": value}:
                self._memory[name] = value
            case {"ack": int(up_to)}:
                self._forget(sequence for sequence in list(self._records) if sequence <= up_to)
            case {"drop": list(sequences)}:
                self.dropped += self._forget(sequences)
            case {"restart": True}:
                self._renumber()
            case {"stream": int(stream)}:
                self.last_sequence = max(self.last_sequence, int(entry.get("last", 0)))
                self.dropped = int(entry.get("dropped", self.dropped))
                self.stream = stream

    def _keep(self, sequence: int, record: Record) -> None:
        self._records[sequence] = record
        self._sizes[sequence] = len(json.dumps(record))
        self._bytes += self._sizes[sequence]
        self.last_sequence = max(self.last_sequence, sequence)

    def _forget(self, sequences: Iterable[int]) -> int:
        gone = [sequence for sequence in sequences if self._records.pop(sequence, None)]
        self._bytes -= sum(self._sizes.pop(sequence) for sequence in gone)
        return len(gone)

    def _renumber(self) -> None:
        records = list(self._records.values())
        self._records.clear()
        self._sizes.clear()
        self.stream = self.last_sequence = self._bytes = 0
        for number, record in enumerate(records, start=1):
            self._keep(number, cast(Record, {**record, "sequence": number}))

    def _keep_within_bounds(self) -> None:
        if len(self._records) <= self._max_records and self._bytes <= self._max_bytes:
            return
        # A tenth more than needed, so that a storm does not come here for each record.
        records, size = len(self._records) - self._max_records * 9 // 10, self._bytes - self._max_bytes * 9 // 10
        victims = []
        for sequence in self._least_valuable_first():
            if records <= 0 and size <= 0:
                break
            victims.append(sequence)
            records, size = records - 1, size - self._sizes[sequence]
        self.discard(victims)

    def _least_valuable_first(self) -> list[int]:
        """Records that a later one of the same fault and entity overtakes, then the others; oldest first."""
        left = Counter((record["fault"], record["entity"]) for record in self._records.values())
        overtaken: list[int] = []
        latest: list[int] = []
        for sequence, record in self._records.items():
            key = record["fault"], record["entity"]
            left[key] -= 1
            (overtaken if left[key] else latest).append(sequence)
        return overtaken + latest
