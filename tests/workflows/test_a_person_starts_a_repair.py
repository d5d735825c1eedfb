"""A repair that a person starts, through the whole plane."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from daytwo.domain.vocabulary import Action, Moment, State
from daytwo.service.asking import RepairRequest, ask
from tests.workflows.plane import OPERATOR, Plane


async def test_a_healthy_node_is_rebooted_for_who_asked_once_it_is_approved(plane: Plane) -> None:
    node = await plane.busy()  # with a job that may be requeued: another one would be waited for
    request = RepairRequest(node=node, action=Action.REBOOT, reason="new firmware")
    opened = await asyncio.to_thread(ask, plane.store, OPERATOR, request, datetime.now(UTC))
    proposed = await plane.proposed(node)
    assert (proposed.id, proposed.action, proposed.opened_by) == (opened.id, "reboot", "cli:oli")
    await plane.approved(node, moment=Moment.NOW)  # proposed is: when its jobs have ended
    await plane.in_state(node, State.SUCCEEDED, seconds=60)
    assert plane.acts(node, "reboot") == 1
