"""While a scheduler, a BMC or the plane is away repairs wait, say for what, and keep their time; but not for ever."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import select
from temporalio.exceptions import ApplicationError

from activities.hardware import HardwareActivities
from activities.node_requests import VerifyActivities
from activities.patience import Patience
from activities.scheduler import SchedulerActivities
from activities.world import World
from daytwo.adapters import Adapters
from daytwo.domain.errors import Failed, NotYet
from daytwo.domain.exchange import RepairRef, StepInput
from daytwo.domain.vocabulary import Action, ClusterKind
from daytwo.intents import Ledger
from daytwo.notify.log import LogNotifier
from daytwo.outages import Outages
from daytwo.store.engine import Store
from daytwo.store.tables import FreezeRow, OutageRow, PartRow, RepairRow
from tests.rows import REPAIR, a_definition, a_node, a_repair, keep
from tests.rows import a_cluster as cluster_row

START = datetime(2026, 11, 30, 12, tzinfo=UTC)
REF = RepairRef(repair_id=REPAIR, cluster="east", node="gpu-07")
STEP = StepInput(ref=REF, stage="s-1", action=Action.REBOOT, since=START)
LIMITS = {"quarantine": 300, "drain": 1800, "act": 2400, "verify": 1800, "rejoin": 600, "lift": 600}


class Days:
    """A world whose only scheduler cannot be reached, and whose time moves when it is told to."""

    def __init__(self, store: Store, folder: Path) -> None:
        definition = a_definition(kind=ClusterKind.SIMULATED, simulated_socket=str(folder / "gone.sock"))
        keep(store, cluster_row(definition=definition.model_dump(mode="json")), a_node(), a_repair(state="draining"))
        self.store, self.now = store, START
        adapters = Adapters(store, Outages(store, "worker", now=self.clock))
        ledger = Ledger(store, adapters, clock=self.clock)
        self.world = World(store, adapters, ledger, LogNotifier(folder / "notices.jsonl"), self.clock)
        scheduler = SchedulerActivities(self.world)
        self.steps: dict[str, Any] = {
            "quarantine": scheduler.quarantine,
            "drain": scheduler.drain,
            "act": HardwareActivities(self.world).act,
            "verify": VerifyActivities(self.world).verify,
            "rejoin": scheduler.rejoin,
            "lift": scheduler.lift,
        }

    def clock(self) -> datetime:
        return self.now

    async def tries(self, step: str, seconds: float, *, every: float = 50.0) -> str:
        """Try a step for so long, or until it fails; what the last try said, after its kind."""
        end, said = self.now + timedelta(seconds=seconds), ""
        while self.now < end and not said.startswith("Failed"):
            self.now += timedelta(seconds=every)
            with pytest.raises(ApplicationError) as caught:
                await self.steps[step](STEP)
            said = f"{caught.value.type} {caught.value}"
        return said

    def waits_for(self) -> str:
        with self.store.read() as session:
            return session.exec(select(RepairRow.waiting_for)).one()


@pytest.fixture
def days(store: Store, tmp_path: Path) -> Days:
    return Days(store, tmp_path)


@pytest.mark.parametrize(("step", "limit"), LIMITS.items())
async def test_a_step_outlasts_a_scheduler_that_is_away_for_longer_than_its_limit(
    days: Days, step: str, limit: float
) -> None:
    said = await days.tries(step, limit * 1.3)
    assert said.startswith("Unreachable")
    assert re.search("scheduler/east away since 12:0.:.0Z: this time does not count", days.waits_for())


@pytest.mark.parametrize(("step", "limit"), LIMITS.items())
async def test_no_step_waits_without_end(days: Days, step: str, limit: float) -> None:
    await days.tries(step, 100)
    said = await days.tries(step, limit + 2 * 86400, every=7200)
    assert said.startswith("Failed")


@pytest.mark.parametrize("step", [step for step in LIMITS if step != "lift"])
async def test_time_from_before_the_outage_counts(days: Days, step: str) -> None:
    days.now += timedelta(seconds=LIMITS[step])
    assert (await days.tries(step, 100)).startswith("Failed")


def an_outage(part: str, began: float, ended: float) -> OutageRow:
    times = [START + timedelta(seconds=seconds) for seconds in (began, ended)]
    return OutageRow(part=part, seen_by="controller", began=times[0], ended=times[1])


@pytest.mark.parametrize(
    ("row", "counted"),
    [
        (an_outage("temporal", 0, 900), 100),
        (an_outage("worker", 100, 1000), 100),
        (an_outage("loop/reconcile", -500, 900), 100),
        (an_outage("bmc/east/gpu-07", 100, 200), 900),
        (an_outage("bmc/east/gpu-08", 100, 200), 1000),
        (an_outage("scheduler/west", 100, 200), 1000),
        (an_outage("notifier", 0, 900), 1000),
        (FreezeRow(scope="*", reason="x", actor="a", at=START, thawed_at=START + timedelta(seconds=900)), 100),
        (FreezeRow(scope="east/gpu-07", reason="x", actor="a", at=START + timedelta(seconds=100)), 100),
        (FreezeRow(scope="west", reason="x", actor="a", at=START), 1000),
    ],
)
async def test_what_a_repair_could_not_do_does_not_count(days: Days, row: Any, counted: float) -> None:
    keep(days.store, type(row)(**row.model_dump()))
    days.now += timedelta(seconds=1000)
    assert (await Patience(days.world).used(REF, START)).seconds == counted


async def test_a_node_whose_bmc_stays_silent_needs_somebody(days: Days) -> None:
    days.now += timedelta(hours=2)
    keep(days.store, PartRow(part="bmc/east/gpu-07", seen_by="worker", away=True, since=START, tried_at=days.now))
    with pytest.raises(Failed, match="its BMC has not answered since 2026-11-30 12:00:00Z"):
        await Patience(days.world).after(NotYet("busy"), STEP, "reboot is not proven", 2400)
