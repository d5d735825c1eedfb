"""The tables that a run prints, as text or as Markdown for docs/reliability.md."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tests.chaos.counting import Counts, as_clock, next_event, struck
from tests.chaos.lives import Life
from tests.chaos.strikes import STATES, Strike

DASH: Final = "-"


@dataclass
class Result:
    """Everything of one run."""

    seed: int
    seconds: float
    nodes: int
    store: str
    strikes: list[Strike]
    lives: list[Life]
    counts: Counts

    def wrong(self) -> dict[str, int]:
        """What must be 0, by name, with the lives' own problems."""
        return {
            "repairs lost or ended otherwise": sum(bool(life.problem) for life in self.lives),
            "acts doubled": sum(life.doubled for life in self.lives),
            "marks without an open repair": sum(life.marks for life in self.lives),
            **self.counts.wrong(),
        }

    @property
    def is_sound(self) -> bool:
        """Nothing lost, doubled, left or unverified."""
        return not any(self.wrong().values())


Table = list[list[str]]


def kills(result: Result) -> Table:
    """Kills by process, mode and state."""
    rows = [["process", "mode", *STATES, "all"]]
    for process, mode in _rows(result):
        mine = [s.cell.state for s in result.strikes if s.cell[:2] == (process, mode)]
        rows.append([process, mode, *(str(mine.count(state) or DASH) for state in STATES), str(len(mine))])
    return rows


def outcomes(result: Result) -> Table:
    """What became of the repairs that were open at each kill, and how soon things went on."""
    names = ("repairs struck", "ended as they would", "lost", "acts doubled", "marks left")
    rows = [["process", "mode", "kills", *names, "next event, s", "struck repair moved on, s"]]
    for process, mode in _rows(result):
        mine = [s for s in result.strikes if s.cell[:2] == (process, mode)]
        rows.append([process, mode, str(len(mine)), *_of(mine, result.lives), *_recovery(mine, result.counts)])
    return rows


def _of(strikes: Sequence[Strike], lives: Sequence[Life]) -> list[str]:
    hit = [life for strike in strikes for life in lives if struck(life, strike)]
    lost, doubled = sum(bool(life.problem) for life in hit), sum(life.doubled for life in hit)
    numbers = (len(hit), len(hit) - lost, lost, doubled, sum(life.marks for life in hit))
    return [str(number) for number in numbers]


def _recovery(strikes: Sequence[Strike], counts: Counts) -> list[str]:
    return [_spread([next_event(s, counts.moved, of_any=of_any) for s in strikes]) for of_any in (True, False)]


def _spread(found: Sequence[float | None]) -> str:
    seconds = [each for each in found if each is not None]
    return f"{statistics.median(seconds):.1f} / {max(seconds):.1f}" if seconds else DASH


def _rows(result: Result) -> list[tuple[str, str]]:
    return sorted({(strike.cell.process, strike.cell.mode) for strike in result.strikes})


def totals(result: Result) -> list[str]:
    """The sums, one a line."""
    counts, lives = result.counts, result.lives
    return [
        f"{len(result.strikes)} kills in {result.seconds / 60:.1f} min, {result.nodes} nodes, {result.store}, "
        f"seed {result.seed}",
        f"{len(lives)} faults, {sum(len(life.repairs) for life in lives)} repairs; "
        f"{sum(not life.problem for life in lives)} nodes returned as they would have",
        f"{counts.resets_at_bmcs} resets at the BMCs (emulator's log), {counts.resets_by_front} (log before it), "
        f"{counts.resets_intended} proven intents",
        f"{counts.kernel_lines} lines of drivers, {counts.lines_lost} lost, {counts.lines_doubled} doubled",
        f"{counts.requeues} jobs requeued, {counts.requeues_doubled} twice; {counts.marks} marks left in the scheduler",
        "ended by themselves and started again: "
        + (", ".join(f"{name} {times}" for name, times in counts.ended_by_themselves.items()) or "nobody"),
        counts.audit,
    ]


def problems(result: Result) -> list[str]:
    """Everything that is not 0, and each life that went astray with the kills that hit it."""
    found = [f"WRONG: {name}: {number}" for name, number in result.wrong().items() if number]
    found += result.counts.left
    for life in result.lives:
        if life.problem or life.doubled or life.marks:
            found.append(f"{as_clock(life.began)} {life.node} {life.plan} {life.repairs}: {life.problem}")
            found += [_hit(life, strike) for strike in result.strikes if struck(life, strike)]
    return found


def _hit(life: Life, strike: Strike) -> str:
    seen = strike.open.get(life.node)
    state = seen.state if seen else "not yet open"
    return f"    {as_clock(strike.at)} {strike.cell.mode} {strike.cell.process}, it was {state}"


def as_text(result: Result) -> str:
    """For a terminal."""
    parts = ["\n".join(_columns(table)) for table in (kills(result), outcomes(result))]
    verdict = "0 lost, 0 doubled, 0 left" if result.is_sound else "NOT SOUND"
    return "\n\n".join([*parts, "\n".join([*totals(result), *problems(result), verdict])])


def as_markdown(result: Result) -> str:
    """For docs/reliability.md."""
    lines = [f"- {line}" for line in totals(result) if line]
    parts = ["\n".join(_pipes(table)) for table in (kills(result), outcomes(result))]
    return "\n\n".join([*parts, "\n".join([*lines, *(f"- {line}" for line in problems(result))])])


def _columns(table: Table) -> list[str]:
    widths = [max(len(row[n]) for row in table) for n in range(len(table[0]))]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in table]


def _pipes(table: Table) -> list[str]:
    head, *rows = [f"| {' | '.join(row)} |" for row in table]
    return [head, "|" + "---|" * len(table[0]), *rows]
