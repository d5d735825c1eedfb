"""All activities of a worker, bound to one world."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from activities.assess import AssessActivities
from activities.authorise import AuthoriseActivities
from activities.hardware import HardwareActivities
from activities.node_requests import VerifyActivities
from activities.records import RecordActivities
from activities.scheduler import SchedulerActivities
from activities.world import World


def activities_of(world: World) -> list[Callable[..., Any]]:
    """Every activity method, ready to be registered."""
    record, scheduler = RecordActivities(world), SchedulerActivities(world)
    authorise = AuthoriseActivities(world)
    return [
        record.claim_repair,
        record.record_event,
        record.announce,
        record.close,
        AssessActivities(world).assess,
        authorise.authorise,
        authorise.write_claim,
        scheduler.quarantine,
        scheduler.take_right,
        scheduler.drain,
        scheduler.lift,
        scheduler.rejoin,
        HardwareActivities(world).act,
        VerifyActivities(world).verify,
    ]
