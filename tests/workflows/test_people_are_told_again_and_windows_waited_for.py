"""Reminders and windows, through the whole plane."""

from __future__ import annotations

import json
from typing import Any

from daytwo.domain.policy import Reminders
from daytwo.domain.vocabulary import DecisionKind, State
from daytwo.domain.windows import Window
from daytwo.lab.definition import CLUSTER
from daytwo.temporal import Repairs
from tests.workflows.plane import Plane
from tests.workflows.rules import other_rules

OFTEN = Reminders(critical_seconds=1, next_group_seconds=2, critical_again_seconds=1)
NEVER_NOW = Window(name="one-minute", days=("thu",), begins="03:07", ends="03:08")


def reminders(plane: Plane, node: str) -> list[dict[str, Any]]:
    file = plane.settings.state_dir / "notices.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    return [n for n in map(json.loads, lines) if n["subject"].startswith("reminder") and node in n["subject"]]


async def test_what_nobody_answers_is_told_again_and_again_until_it_is_held(plane: Plane) -> None:
    async with other_rules(plane, reminders=OFTEN):
        node = await plane.broken("xid-79")
        await plane.until(lambda: len(reminders(plane, node)) >= 3, "three reminders")
        await plane.decide(node, DecisionKind.HOLD)
        await plane.in_state(node, State.HELD)
    assert [notice["to"] for notice in reminders(plane, node)[:3]] == [["operator"], ["lead"], ["operator", "lead"]]


async def test_an_approved_act_waits_for_its_window(plane: Plane) -> None:
    async with other_rules(plane, windows=(NEVER_NOW,)):
        node = await plane.broken("xid-119")
        await plane.approved(node)
        await plane.in_state(node, State.WAITING)
        await plane.until(lambda: "window one-minute" in plane.repair(node).waiting_for, "it says so")
        assert "DRAIN" in plane.scheduler_states(node)
    await Repairs(plane.client, plane.settings.task_queue).look_again(CLUSTER, node)
    await plane.in_state(node, State.SUCCEEDED, seconds=60)
