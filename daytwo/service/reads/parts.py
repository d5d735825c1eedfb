"""The parts of the plane and what it talks to, as those found them that talk to them. Called by `reads.status`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from sqlmodel import Session, col, func, select

from daytwo import outages
from daytwo.domain.vocabulary import ClusterKind
from daytwo.service.models.status import LoopView, PartView
from daytwo.store.tables import ClusterRow, NodeRow, PartRow

CONTROLLER: Final = "controller"
MOST_BMCS: Final = 20
WATCHED_BY: Final = {
    outages.TEMPORAL: "watch-temporal",
    outages.WORKER: "watch-temporal",
    "scheduler": "watch-schedulers",
}
"""The loop of the controller that always talks to a part. While it does not run, nobody knows of the part."""
QUIET: Final = timedelta(minutes=3)
"""With no agent heard for three pulses it is the gateway, or the way to it."""
OLD: Final = timedelta(hours=1)
"""What was away when it was last tried, this long ago, may be back."""


NONE: Final = timedelta(0)
STARTS: Final = timedelta(seconds=30)
STARTS_WITHIN: Final = {
    outages.WORKER: STARTS,
    CONTROLLER: STARTS,
    outages.GATEWAY: QUIET,  # agents come back one by one
}
"""How long the parts of the plane itself may take to be heard of after it was started; a lab is one of them."""


def parts_of(session: Session, loops: Sequence[LoopView], now: datetime, started: datetime) -> tuple[PartView, ...]:
    """Every part, in the order in which people look: the plane's own first."""
    rows: dict[str, list[PartRow]] = {}
    for row in session.exec(select(PartRow).order_by(col(PartRow.part))):
        rows.setdefault(row.part, []).append(row)
    alive = {loop.name for loop in loops if loop.alive}

    def part(name: str) -> PartView:
        watched_by = WATCHED_BY.get(name.partition("/")[0])
        return _part(name, rows.get(name, []), watched_by if watched_by not in alive else None, now)

    temporal, worker = part(outages.TEMPORAL), part(outages.WORKER)
    if temporal.state == "away" and worker.state == "ok":
        worker = PartView(
            part=outages.WORKER, state="unknown", why="Temporal is away, which knows", since=temporal.since
        )
    found = [PartView(part=outages.STORE, state="ok"), temporal, worker, _controller(loops)]
    found += [_gateway(session, now), part(outages.NOTIFIER)]
    patience = dict(STARTS_WITHIN)
    for cluster in session.exec(select(ClusterRow).order_by(col(ClusterRow.name))):
        found.append(part(outages.scheduler_of(cluster.name)))
        if cluster.kind == ClusterKind.SIMULATED:
            patience[found[-1].part] = STARTS
        if cluster.definition.get("bmcs"):
            prefix = outages.bmc_of(cluster.name, "")
            found += _bmcs(cluster.name, [part(name) for name in rows if name.startswith(prefix)])
    running = now - started
    return tuple(_or_starting(part, started) if running < patience.get(part.part, NONE) else part for part in found)


def _or_starting(part: PartView, started: datetime) -> PartView:
    """A part that has had no time to be heard since the plane was started is neither well nor away."""
    if part.state != "away":
        return part
    before = started - STARTS  # the parts are started together, and the service need not be the first that stands
    if part.tried_at is not None and part.tried_at >= started and part.since is not None and part.since < before:
        return part  # it was away already, and somebody has looked since
    return part.model_copy(update={"state": "starting", "since": started})


def _part(name: str, rows: Sequence[PartRow], unwatched_by: str | None, now: datetime) -> PartView:
    """One part from what each kind of process says of it: away where one of them finds it so."""
    if unwatched_by is not None:
        why = f"nobody looks: the controller's loop {unwatched_by} does not run"
        return PartView(part=name, state="unknown", why=why, last_good=_latest(row.last_good for row in rows))
    answered = _latest(row.since for row in rows if not row.away)
    # Who found it away may have had no reason to try again since another has found it answer.
    away = [row for row in rows if row.away and (answered is None or row.tried_at >= answered)]
    if not rows:
        return PartView(part=name, state="never-seen")
    if not away:
        return PartView(part=name, state="ok", since=max(row.since for row in rows))
    worst = min(away, key=lambda row: row.since)
    tried_at = max(row.tried_at for row in away)
    return PartView(
        part=name,
        state="away" if now - tried_at < OLD else "unknown",
        since=worst.since,
        why=worst.error,
        last_good=_latest(row.last_good for row in rows),
        tried_at=tried_at,
    )


def _latest(times: Iterable[datetime | None]) -> datetime | None:
    return max((at for at in times if at is not None), default=None)


def _bmcs(cluster: str, each: Sequence[PartView]) -> list[PartView]:
    """One line for all that answer, and one for each that does not."""
    bad = [part for part in each if part.state != "ok"]
    name = outages.bmc_of(cluster, "").rstrip("/")
    if not bad:
        return [PartView(part=name, state="ok" if each else "never-seen")]
    away = [part for part in bad if part.state == "away"]
    since = min((part.since for part in bad if part.since), default=None)
    why = f"{len(bad)} of {len(each)} that were asked did not answer last"
    return [PartView(part=name, state="away" if away else "unknown", since=since, why=why), *bad[:MOST_BMCS]]


def _controller(loops: Sequence[LoopView]) -> PartView:
    """Away while one of its loops is not run by anybody, or does not go on."""
    if not loops:
        return PartView(part=CONTROLLER, state="never-seen")
    stopped = [loop for loop in loops if not loop.alive]
    if not stopped:
        return PartView(part=CONTROLLER, state="ok")
    since = min(loop.stepped_at or loop.expires_at for loop in stopped)
    names = ", ".join(loop.name for loop in stopped)
    return PartView(part=CONTROLLER, state="away", since=since, why=f"nobody runs {names}", last_good=since)


def _gateway(session: Session, now: datetime) -> PartView:
    """It is not asked either: while agents are heard it is there."""
    heard = session.exec(select(func.max(NodeRow.last_heard_at))).one()
    if heard is None:
        return PartView(part=outages.GATEWAY, state="never-seen")
    if now - heard < QUIET:
        return PartView(part=outages.GATEWAY, state="ok", last_good=heard)
    return PartView(
        part=outages.GATEWAY, state="away", since=heard, why="no agent is heard through it", last_good=heard
    )
