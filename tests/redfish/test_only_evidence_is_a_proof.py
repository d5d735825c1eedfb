"""What a look may conclude: done on a reset that was seen, not done on positive evidence, else unclear."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from daytwo.domain.seams import Act, ActKind, Outcome
from daytwo.hardware.redfish_memory import Heard
from daytwo.hardware.redfish_rules import judge
from daytwo.hardware.redfish_system import State
from tests.redfish.conftest import Desk, an_act, send

NOW = datetime(2026, 11, 30, 3, 20, tzinfo=UTC)
BEFORE, AFTER = NOW - timedelta(hours=2), NOW - timedelta(minutes=2)
NOTHING = Heard(None, None)
OLD_BOOT, NEW_BOOT = Heard("boot-1", NOW - timedelta(seconds=5)), Heard("boot-2", NOW)
WENT_SILENT = Heard("boot-1", NOW - timedelta(minutes=3))
WAS_HEARD = Heard("boot-1", NOW - timedelta(minutes=1))
D, P, N, U = Outcome.DONE, Outcome.PENDING, Outcome.NOT_DONE, Outcome.UNCLEAR


def the_act(kind: ActKind, *, minutes_ago: float, told: bool) -> Act:
    at = BEFORE.isoformat() if told else None
    known = {"last_reset": at, "boot_at": at, "power": "On"}
    return an_act(kind, bmc=known, at=(NOW - timedelta(minutes=minutes_ago)).isoformat())


def is_on(**fields: Any) -> State:
    values = {"power": "On", "last_reset": BEFORE, "boot": "OSRunning", "boot_at": BEFORE}
    return State(path="/redfish/v1/Systems/1", **values | fields)


SILENT = is_on(last_reset=None, boot=None, boot_at=None)
CYCLE, REBOOT = ActKind.POWER_CYCLE, ActKind.REBOOT


@pytest.mark.parametrize(
    ("state", "heard", "seen_off", "outcome"),
    [
        (is_on(last_reset=AFTER, boot_at=AFTER), NOTHING, False, D),
        (is_on(last_reset=AFTER, boot="OSBootStarted"), NOTHING, False, D),
        (is_on(last_reset=AFTER, boot="MemoryInitializationStarted"), NOTHING, False, P),
        (is_on(last_reset=AFTER, power="Off"), NOTHING, False, P),
        (is_on(boot_at=AFTER), NOTHING, False, D),
        (is_on(), NOTHING, False, N),
        (is_on(), NEW_BOOT, False, D),
        (is_on(power="PoweringOn"), NOTHING, False, P),
        (is_on(last_reset=BEFORE + timedelta(seconds=1)), NOTHING, False, N),
        (is_on(last_reset=datetime(1970, 1, 1, tzinfo=UTC)), NOTHING, False, U),
    ],
)
def test_a_bmc_that_tells_its_resets_decides(state: State, heard: Heard, seen_off: bool, outcome: Outcome) -> None:
    act = the_act(CYCLE, minutes_ago=2, told=True)
    assert judge(act, state, at_work="", seen_off=seen_off, heard=heard, now=NOW).outcome is outcome


@pytest.mark.parametrize(
    ("heard", "seen_off", "outcome"),
    [
        (NOTHING, True, D),
        (NEW_BOOT, False, D),
        (OLD_BOOT, False, N),
        (WAS_HEARD, False, P),
        (WENT_SILENT, False, U),
        (NOTHING, False, U),
    ],
)
def test_a_bmc_that_tells_nothing_needs_another_witness(heard: Heard, seen_off: bool, outcome: Outcome) -> None:
    act = the_act(CYCLE, minutes_ago=2, told=False)
    assert judge(act, SILENT, at_work="", seen_off=seen_off, heard=heard, now=NOW).outcome is outcome


@pytest.mark.parametrize(("minutes_ago", "outcome"), [(9, P), (11, N)])
def test_a_graceful_restart_is_given_time_to_be_obeyed(minutes_ago: float, outcome: Outcome) -> None:
    act = the_act(REBOOT, minutes_ago=minutes_ago, told=True)
    assert judge(act, is_on(), at_work="", seen_off=False, heard=NOTHING, now=NOW).outcome is outcome


def test_a_task_at_work_is_waited_for() -> None:
    act = the_act(CYCLE, minutes_ago=2, told=True)
    look = judge(act, is_on(), at_work="task 7 is Running", seen_off=False, heard=OLD_BOOT, now=NOW)
    assert (look.outcome, "task 7" in look.proof) == (P, True)


def test_the_proof_says_whose_word_it_is() -> None:
    act = the_act(CYCLE, minutes_ago=2, told=False)
    by_agent = judge(act, SILENT, at_work="", seen_off=False, heard=NEW_BOOT, now=NOW)
    by_bmc = judge(act, SILENT, at_work="", seen_off=True, heard=NOTHING, now=NOW)
    assert (by_agent.proof_type, by_bmc.proof_type) == ("agent-boot-id", "bmc")


async def test_power_that_was_seen_off_is_remembered_until_it_is_on(desk: Desk) -> None:
    del desk.bmc.system["LastResetTime"], desk.bmc.system["BootProgress"]
    desk.bmc.works = False
    act, driver = await send(desk), desk.driver()
    desk.bmc.system["PowerState"] = "Off"
    off = await driver.look(act)
    desk.bmc.system["PowerState"] = "On"
    assert (off.outcome, (await driver.look(act)).outcome) == (P, D)


async def test_the_agent_speaks_for_a_bmc_that_tells_nothing(desk: Desk) -> None:
    del desk.bmc.system["LastResetTime"], desk.bmc.system["BootProgress"]
    desk.bmc.works = False
    act = await send(desk)
    assert (await desk.driver().look(act)).outcome is U
    desk.agent_says("boot-2")
    assert (await desk.driver().look(act)).outcome is D
