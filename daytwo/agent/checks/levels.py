"""Conditions that hold or do not hold, per fault and entity. The checks set them; a change goes out when one flips.

What fires is remembered in the spool. It is reported anew after a boot, because a repair judges what was seen since,
and it is cleared only if the catalogue says that a reading clears it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from daytwo.agent.changes import Change
from daytwo.agent.seams import Clock, Detail
from daytwo.agent.spool import Spool
from daytwo.faults.catalogue import catalogue
from daytwo.faults.model import Clears

Key = tuple[str, str]

BLIPS: Final = frozenset({"thermal-throttle", "ecc-corrected-rate", "memory-unreadable"})
"""Faults whose readings come and go: the catalogue's debounce is awaited here. For the others triage waits."""


class Levels:
    """The conditions of one node. `report` takes each change."""

    def __init__(self, *, boot_id: str, spool: Spool, clock: Clock, report: Callable[[Change], None]) -> None:
        self._boot_id, self._spool, self._clock, self._report = boot_id, spool, clock, report
        self._firing: dict[Key, str] = {(fault, entity): boot for fault, entity, boot in spool.recall("firing", [])}
        self._marked: dict[Key, float] = {}
        self._turning: dict[Key, tuple[float, float]] = {}

    def set(self, fault: str, entity: str, holds: bool, *, source: str, evidence: str, detail: Detail) -> None:
        """Say what was just read. With a debounce the reading must stand for that long before it counts."""
        key = fault, entity
        if self.is_firing(fault, entity) if holds else key not in self._firing:
            self._turning.pop(key, None)
            return
        since = self._since(key)
        if since is None:
            return
        change = Change(
            fault=fault,
            entity=entity,
            status="firing" if holds else "cleared",
            first_seen=since,
            last_seen=self._clock.now(),
            source=source,
            boot_id=self._boot_id,
            evidence=(evidence,),
            detail=detail,
        )
        self._turn(change)

    def again(self, fault: str, entity: str, times: int, *, source: str, evidence: str, detail: Detail) -> None:
        """Say that what fires already has happened so many times more."""
        now = self._clock.now()
        change = Change(fault, entity, "firing", now, now, source, self._boot_id, times, None, (evidence,), detail)
        self._report(change)

    def is_firing(self, fault: str, entity: str) -> bool:
        """True if it was reported in this boot and not cleared since."""
        return self._firing.get((fault, entity)) == self._boot_id

    def mark_firing(self, fault: str, entity: str) -> None:
        """Note that somebody else reported it (the kernel log), so that a reading can clear it."""
        self._firing[fault, entity] = self._boot_id
        self._marked[fault, entity] = self._clock.uptime()
        self._remember()

    def marked_before(self, fault: str, entity: str, uptime: float) -> bool:
        """True unless `mark_firing` came after `uptime`: a reading that began then says nothing about it."""
        return self._marked.get((fault, entity), uptime) <= uptime

    def mark_cleared(self, fault: str, entity: str) -> None:
        """Note that somebody else reported its end."""
        if self._firing.pop((fault, entity), None):
            self._remember()

    def any_firing(self, *faults: str) -> bool:
        """True if one of these faults fires on any entity."""
        return any(self.is_firing(fault, entity) for fault, entity in self._firing if fault in faults)

    def adopt(self, firing: Iterable[Key]) -> None:
        """Take this for what was reported: the next readings report what is otherwise."""
        self._firing = dict.fromkeys(firing, self._boot_id)
        self._marked.clear()
        self._turning.clear()
        self._remember()

    def release(self, entities: Iterable[str]) -> None:
        """These entities are gone for good (a board was swapped): end what their readings would have ended."""
        now, gone = self._clock.now(), set(entities)
        for fault, entity in [key for key in self._firing if key[1] in gone]:
            evidence = ("this GPU is no longer part of the node",)
            self._turn(Change(fault, entity, "cleared", now, now, "agent", self._boot_id, evidence=evidence))

    def _since(self, key: Key) -> float | None:
        """Return when the new reading began (wall clock) once it has stood long enough, else `None`."""
        began, at = self._turning.setdefault(key, (self._clock.uptime(), self._clock.now()))
        if self._clock.uptime() - began < _debounce(key[0]):
            return None
        del self._turning[key]
        return at

    def _turn(self, change: Change) -> None:
        if change.status == "firing":
            self._firing[change.key] = self._boot_id
        else:
            del self._firing[change.key]
        self._remember()
        if change.status == "firing" or catalogue().get(change.fault).clears is Clears.READING:
            self._report(change)

    def _remember(self) -> None:
        self._spool.remember("firing", [[fault, entity, boot] for (fault, entity), boot in self._firing.items()])


def _debounce(fault: str) -> float:
    return catalogue().get(fault).debounce_seconds if fault in BLIPS else 0.0
