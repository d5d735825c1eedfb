"""What has come of it all, counted where it happened: at the BMCs, in the kernels, in the scheduler, in the store."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlmodel import Session, col, select

from daytwo.domain.vocabulary import DecisionStatus, FindingStatus
from daytwo.store.tables import DecisionRow, FindingRow, IntentRow, ObservationRow, RepairEventRow, RepairRow
from tests.chaos.lives import Life
from tests.chaos.plane import ChaosPlane
from tests.chaos.strikes import PROMPT, Strike
from tests.chaos.victims import Part

Line = tuple[str, str, int]


class Moved(NamedTuple):
    """One event of a repair."""

    at: float
    repair: str


@dataclass
class Counts:
    """The end of a run. Every number of `wrong` must be 0."""

    resets_at_bmcs: int = 0
    resets_by_front: int = 0
    resets_intended: int = 0
    kernel_lines: int = 0
    lines_lost: int = 0
    lines_doubled: int = 0
    lines_invented: int = 0
    requeues: int = 0
    requeues_doubled: int = 0
    still_firing: int = 0
    marks: int = 0
    open_repairs: int = 0
    unresolved_intents: int = 0
    pending_decisions: int = 0
    audit: str = ""
    audit_verified: bool = False
    moved: list[Moved] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    """What still fires and what is still open, to be looked at."""
    ended_by_themselves: dict[str, int] = field(default_factory=dict)
    """How often processes of ours ended although nobody killed them: one that starts without Temporal does."""

    def wrong(self) -> dict[str, int]:
        """What must be 0, by name."""
        return {
            "resets at the BMCs beyond or short of intents": abs(self.resets_at_bmcs - self.resets_intended),
            "resets that two logs count differently": abs(self.resets_at_bmcs - self.resets_by_front),
            "findings lost": self.lines_lost,
            "findings doubled": self.lines_doubled,
            "findings that no kernel has printed": self.lines_invented,
            "findings still firing": self.still_firing,
            "requeues doubled": self.requeues_doubled,
            "marks left in the scheduler": self.marks,
            "repairs still open": self.open_repairs,
            "intents unresolved": self.unresolved_intents,
            "decisions still pending": self.pending_decisions,
            "audit not verified": int(not self.audit_verified),
        }


def count(plane: ChaosPlane) -> Counts:
    """Count everything, once all lives have ended."""
    counts = Counts(resets_at_bmcs=plane.resets(), resets_by_front=plane.resets_before_emulator())
    printed = [(node, boot, number) for node, boot, number in plane.ask_world("GET", "/xids")]
    with plane.store.read() as session:
        _count_findings(counts, session, printed)
        _count_rows(counts, session)
    _count_scheduler(counts, plane)
    parts = {name: part for name, part in plane.victims.items() if isinstance(part, Part)}
    counts.ended_by_themselves = {name: part.ended_by_itself for name, part in parts.items() if part.ended_by_itself}
    verified = subprocess.run(
        [sys.executable, "-m", "daytwo.cli.main", "audit", "verify"],
        env={**os.environ, "DAYTWO_SERVICE_SOCKET": str(plane.settings.service_socket)},
        capture_output=True,
        text=True,
        check=False,
    )
    counts.audit, counts.audit_verified = (verified.stdout + verified.stderr).strip(), verified.returncode == 0
    return counts


def _count_findings(counts: Counts, session: Session, printed: Sequence[Line]) -> None:
    kernel = col(ObservationRow.kernel_sequence).is_not(None)
    wanted = select(ObservationRow.node, ObservationRow.boot_id, ObservationRow.kernel_sequence, ObservationRow.count)
    seen: Counter[Line] = Counter()
    for node, boot, number, times in session.exec(wanted.where(kernel)):
        seen[node, boot or "", number or 0] += times
    counts.kernel_lines = len(printed)
    counts.lines_lost = len(set(printed) - set(seen))
    counts.lines_invented = len(set(seen) - set(printed))
    counts.lines_doubled = sum(times - 1 for times in seen.values())


def _count_rows(counts: Counts, session: Session) -> None:
    firing = session.exec(select(FindingRow).where(FindingRow.status == FindingStatus.FIRING)).all()
    still_open = session.exec(select(RepairRow).where(col(RepairRow.open_key).is_not(None))).all()
    counts.still_firing, counts.open_repairs = len(firing), len(still_open)
    counts.left += [
        f"still open: {row.id} {row.node} {row.state}, opened {row.opened_at}: {row.attention}" for row in still_open
    ]
    counts.left += [
        f"still firing: {row.node} {row.fault}, boot {row.boot_id}, first {row.first_seen}, last {row.last_seen}, "
        f"received {row.last_received}, judged up to {row.judged_up_to}, observation {row.last_observation}"
        for row in firing
    ]
    intents = session.exec(select(IntentRow.kind, IntentRow.state, IntentRow.open_node)).all()
    counts.resets_intended = sum(kind == "power-cycle" and state == "proven" for kind, state, _ in intents)
    counts.unresolved_intents = sum(unresolved is not None for _, _, unresolved in intents)
    pending = select(DecisionRow.id).where(DecisionRow.status == DecisionStatus.PENDING)
    counts.pending_decisions = len(session.exec(pending).all())
    events = session.exec(select(RepairEventRow.at, RepairEventRow.repair_id)).all()
    counts.moved = sorted(Moved(at.timestamp(), repair) for at, repair in events)


def _count_scheduler(counts: Counts, plane: ChaosPlane) -> None:
    rows = plane.ask_world("GET", "/nodes")["nodes"]
    counts.marks = sum(len(row["reservations"]) + ("DRAIN" in row["states"]) for row in rows)
    orders = [entry["order"] for entry in plane.ask_world("GET", "/acts/log") if entry["result"] == "done"]
    requeues = Counter((order["repair_id"], order["target"]) for order in orders if order["kind"] == "requeue")
    counts.requeues = len(requeues)
    counts.requeues_doubled = sum(times - 1 for times in requeues.values())


def next_event(strike: Strike, moved: Sequence[Moved], *, of_any: bool) -> float | None:
    """Seconds from the process being back until the struck repair, or any, moved; `None` if that tells nothing."""
    if not of_any and strike.cell.state not in PROMPT:
        return None
    after = (each.at for each in moved if each.at > strike.back and (of_any or each.repair == strike.repair))
    meanwhile = any(strike.at < each.at <= strike.back and each.repair == strike.repair for each in moved)
    if meanwhile and not of_any:
        return 0.0
    found = next(after, None)
    return None if found is None else found - strike.back


def struck(life: Life, strike: Strike) -> bool:
    """Whether a life was under way when somebody was struck."""
    return life.began <= strike.at and (life.ended is None or life.ended >= strike.at)


def as_clock(at: float) -> str:
    """A time for people."""
    return time.strftime("%H:%M:%S", time.localtime(at))
