"""An activity that must be tried again says so in a failure that Temporal can carry, with its own delay."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from temporalio.api.failure.v1 import Failure
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.scheduler import SchedulerActivities
from activities.world import World
from daytwo.adapters import Adapters
from daytwo.domain.exchange import RepairRef, StepInput
from daytwo.domain.vocabulary import Action
from daytwo.intake import declare
from daytwo.intents import Ledger
from daytwo.lab.definition import lab_definition
from daytwo.notify.log import LogNotifier
from daytwo.store.engine import Store

REF = RepairRef(repair_id="r-1", cluster="sim", node="node-01")


@pytest.fixture
def scheduler(store: Store, tmp_path: Path) -> SchedulerActivities:
    """The activities of a cluster whose scheduler does not answer."""
    declare(store, lab_definition(str(tmp_path / "nobody.sock"), nodes=1), now=datetime.now(UTC))
    adapters = Adapters(store)
    return SchedulerActivities(World(store, adapters, Ledger(store, adapters), LogNotifier(tmp_path / "notices.jsonl")))


@pytest.mark.parametrize("step", ["quarantine", "rejoin"])
async def test_a_scheduler_that_does_not_answer_is_a_failure_to_try_again(
    scheduler: SchedulerActivities, step: str
) -> None:
    arg = StepInput(ref=REF, stage=f"{step}-1", action=Action.REBOOT, since=datetime.now(UTC))
    with pytest.raises(ApplicationError) as raised:
        await ActivityEnvironment().run(getattr(scheduler, step), arg)
    told = Failure()
    await pydantic_data_converter.encode_failure(raised.value, told)
    assert (told.application_failure_info.non_retryable, "lab" in told.message) == (False, True)
