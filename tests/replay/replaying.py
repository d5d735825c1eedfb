"""Replays the recorded histories as the control worker would. `python -m tests.replay.replaying` replays them all.

This module imports neither catalogue nor policy: it also runs where there are none.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Final

from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer

from workers.sandbox import workflow_runner
from workflows.node_repair import NodeRepair

HISTORIES: Final = Path(__file__).parents[1] / "histories"
RECORDED: Final = sorted(path.stem for path in HISTORIES.glob("*.json"))


def history(name: str) -> WorkflowHistory:
    """A recorded history."""
    found = WorkflowHistory.from_json("?", (HISTORIES / f"{name}.json").read_text())
    return WorkflowHistory(found.events[0].workflow_execution_started_event_attributes.workflow_id, found.events)


async def replay(recorded: WorkflowHistory, workflow: type = NodeRepair) -> Exception | None:
    """Replay one history with a workflow; returns what went wrong."""
    replayer = Replayer(workflows=[workflow], workflow_runner=workflow_runner(), data_converter=pydantic_data_converter)
    return (await replayer.replay_workflow(recorded, raise_on_replay_failure=False)).replay_failure


async def main() -> int:
    """Replay all histories; print how many did and which did not."""
    failed = [name for name in RECORDED if await replay(history(name)) is not None]
    sys.stdout.write(f"replayed {len(RECORDED) - len(failed)}, failed {failed}\n")
    return len(failed)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
