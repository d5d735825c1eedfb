"""The installation in one answer, and what it is made of. `reads.status` and `reads.parts` make them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from daytwo.domain.vocabulary import Frozen
from daytwo.service.models.plane import FreezeView


class LoopView(Frozen):
    """A loop of the controller; `alive` while its lease runs. `stepped_at`: when it ended a step, to some seconds."""

    name: str
    holder: str
    epoch: int
    expires_at: datetime
    alive: bool
    stepped_at: datetime | None = None


class PartView(Frozen):
    """A part of the plane, or what it talks to: `store`, `temporal`, `worker`, `controller`, `notifier`,
    `gateway`, `scheduler/<cluster>`, `bmc/<cluster>` and, where one is away, `bmc/<cluster>/<node>`.

    `away` since `since`, which `why` explains; `unknown` where nobody has asked it lately; `starting` since the plane
    did, and too short to be called away. `last_good` is when it last answered, as far as that was written down;
    `tried_at` when it was last found away.
    """

    part: str
    state: Literal["ok", "away", "unknown", "never-seen", "starting"]
    since: datetime | None = None
    why: str = ""
    last_good: datetime | None = None
    tried_at: datetime | None = None


class IncidentView(Frozen):
    """Many nodes that have one class of fault for one cause. `domains` are the nodes by domain."""

    id: str
    cluster: str
    fault_class: str
    nodes: int
    domains: dict[str, int]
    first_at: datetime
    last_at: datetime


class WaitingView(Frozen):
    """An open repair that waits: for people (`proposed`, `held`, `needs-help`), or for what `why` says."""

    id: str
    cluster: str
    node: str
    state: str
    since: datetime
    why: str


class ActsView(Frozen):
    """Writes to schedulers and hardware that are not resolved, by state; `oldest_at` is when one last moved."""

    by_state: dict[str, int]
    oldest_at: datetime | None = None


class Status(Frozen):
    """The installation in one answer. `healthy`: every node is, every loop lives, nothing is frozen or away.

    `away` names the parts that are. While the store is, the rest is empty or `None`: not known. `silent_after_seconds`
    has every limit that a cluster sets for its agents.
    """

    at: datetime
    healthy: bool
    nodes: dict[str, int]
    repairs: dict[str, int]
    firing: int | None
    decisions_pending: int | None
    freezes: tuple[FreezeView, ...]
    loops: tuple[LoopView, ...]
    away: tuple[str, ...] = ()
    parts: tuple[PartView, ...] = ()
    silent_agents: int | None = None
    silent_after_seconds: tuple[float, ...] = ()
    incidents: tuple[IncidentView, ...] = ()
    waiting_for_people: tuple[WaitingView, ...] = ()
    waiting: tuple[WaitingView, ...] = ()
    acts: ActsView | None = None
