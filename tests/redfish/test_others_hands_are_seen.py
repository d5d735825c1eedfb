"""Before power is touched: is it the machine, is it ours, and is somebody at work in it?"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from daytwo.domain.errors import NotYet, Refused
from daytwo.domain.seams import ActKind, HttpsRequest, NotOurs, Ownership, Preparation
from tests.redfish.bmc import CHASSIS, ROOT, SERIAL, SYSTEM, TASKS, UUID, Answer, Bmc, link
from tests.redfish.conftest import Desk, an_act

ANOTHER = "11111111-2222-3333-4444-555555555555"
SWAPPED = "44454c4c-4200-1035-8052-b4c04f564433"


async def prepared(desk: Desk, **baseline: Any) -> Preparation:
    driver = desk.driver()
    return await driver.prepare(await driver.baseline(an_act(**baseline)))


@pytest.mark.parametrize(
    ("said", "there"),
    [
        ({"system_uuid": UUID.upper(), "serial": "other"}, {}),
        ({"system_uuid": SWAPPED}, {}),
        ({"serial": SERIAL}, {}),
        ({"system_uuid": UUID, "serial": SERIAL}, {"UUID": "00000000-0000-0000-0000-000000000000"}),
    ],
    ids=["uuid", "uuid in the order of SMBIOS", "serial alone", "serial, for a BMC without a UUID"],
)
async def test_the_machine_is_known_by_its_uuid_or_else_its_serial(
    desk: Desk, said: dict[str, str], there: dict[str, str]
) -> None:
    desk.bmc.system.update(there)
    assert isinstance(await prepared(desk, identity=said), HttpsRequest)


@pytest.mark.parametrize(
    ("said", "there"),
    [
        ({"system_uuid": ANOTHER, "serial": "X1"}, {}),
        ({"system_uuid": ANOTHER, "serial": SERIAL}, {}),
        ({"serial": "Default string"}, {"SerialNumber": "Default string", "UUID": None}),
        ({"system_uuid": "00000000-0000-0000-0000-000000000000"}, {"UUID": "00000000-0000-0000-0000-000000000000"}),
        ({}, {}),
    ],
    ids=["another", "another sled of one serial", "a serial that all have", "a UUID that all have", "nothing said"],
)
async def test_a_machine_that_is_not_proven_to_be_the_node_is_never_reset(
    desk: Desk, said: dict[str, str], there: dict[str, Any]
) -> None:
    desk.bmc.system.update(there)
    with pytest.raises(Refused, match=r"not there|never said"):
        await prepared(desk, identity=said)


async def test_what_an_agent_said_more_than_30_days_ago_proves_nothing(desk: Desk) -> None:
    with pytest.raises(Refused, match="31 days ago"):
        await prepared(desk, identity_at=(datetime.now(UTC) - timedelta(days=31)).isoformat())


async def test_the_machine_is_found_among_the_systems_of_its_bmc(desk: Desk) -> None:
    board = {"Id": "HGX", "Name": "Baseboard", "UUID": ANOTHER, "SerialNumber": "B1", "PowerState": "On"}
    desk.bmc.documents[f"{ROOT}Systems/0"] = board
    desk.bmc.documents[f"{ROOT}Systems"]["Members"].insert(0, link(f"{ROOT}Systems/0"))
    found = await prepared(desk)
    assert isinstance(found, HttpsRequest)
    assert f"{SYSTEM}/" in found.url


async def test_a_machine_that_was_swapped_after_the_baseline_is_not_reset(desk: Desk) -> None:
    act = await desk.driver().baseline(an_act())
    desk.bmc.system["UUID"] = ANOTHER
    with pytest.raises(Refused, match="not there"):
        await desk.driver().prepare(act)


def locator_on(bmc: Bmc) -> None:
    bmc.system["LocationIndicatorActive"] = True


def locator_of_the_rack_on(bmc: Bmc) -> None:
    bmc.documents[CHASSIS]["LocationIndicatorActive"] = True


def old_locator_on(bmc: Bmc) -> None:
    del bmc.system["LocationIndicatorActive"]
    bmc.system["IndicatorLED"] = "Lit"


def switched_off(bmc: Bmc) -> None:
    bmc.system["PowerState"] = "Off"


def power_unknown(bmc: Bmc) -> None:
    del bmc.system["PowerState"]


def too_many_tasks(bmc: Bmc) -> None:
    bmc.documents[TASKS]["Members"] = [link(f"{TASKS}/{number}") for number in range(101)]


def tasks_unreadable(bmc: Bmc) -> None:
    bmc.documents[TASKS] = {"Members": "none"}


def tasks_refused(bmc: Bmc) -> None:
    bmc.answer_oddly(f"GET {TASKS}", Answer(500), Answer(500))


@pytest.mark.parametrize(
    ("turn", "sentence"),
    [
        (locator_on, "locator of /redfish/v1/Systems/1 is on"),
        (locator_of_the_rack_on, "locator of /redfish/v1/Chassis/1 is on"),
        (old_locator_on, "locator of"),
        (switched_off, "switched off or Off, not by daytwo"),
        (power_unknown, "switched off or None"),
        (Bmc.run_task, "task 7 (Firmware update) is Running"),
        (lambda bmc: bmc.run_task("Pending"), "is Pending"),
        (lambda bmc: bmc.run_task("Odd"), "is Odd"),
        (too_many_tasks, "101 tasks"),
        (tasks_unreadable, "cannot be read"),
        (tasks_refused, "cannot be read"),
    ],
)
async def test_where_somebody_may_have_hands_inside_nothing_is_done(
    desk: Desk, turn: Callable[[Bmc], None], sentence: str
) -> None:
    turn(desk.bmc)
    found = await prepared(desk)
    assert isinstance(found, NotOurs)
    assert sentence in found.found


@pytest.mark.parametrize("ended", ["Completed", "Exception", "Cancelled"])
async def test_a_task_that_has_ended_is_in_nobodys_way(desk: Desk, ended: str) -> None:
    desk.bmc.run_task(ended)
    assert isinstance(await prepared(desk), HttpsRequest)


async def test_an_indicator_that_is_always_lit_can_be_declared(desk: Desk) -> None:
    old_locator_on(desk.bmc)
    assert isinstance(await prepared(desk.with_access(lit_is_located=False)), HttpsRequest)


@pytest.mark.parametrize(
    ("marks", "sentence"),
    [
        ({"ownership": Ownership.FOREIGN}, "not drained by"),
        ({"ownership": Ownership.HALF_DONE}, "not drained by"),
        ({"repair_id": "r-20261130-040000-bbbbb"}, "not drained by"),
        ({"busy": True}, "still runs work"),
    ],
)
async def test_a_node_that_the_scheduler_does_not_leave_to_us_is_left_alone(
    desk: Desk, marks: dict[str, Any], sentence: str
) -> None:
    for name, value in marks.items():
        setattr(desk.marks, name, value)
    found = await prepared(desk)
    assert isinstance(found, NotOurs)
    assert sentence in found.found


@pytest.mark.parametrize("kind", [ActKind.REBOOT, ActKind.POWER_CYCLE])
async def test_a_boot_that_moves_is_not_cut_short(desk: Desk, kind: ActKind) -> None:
    act = await desk.driver().baseline(an_act(kind))
    moves = {"LastState": "MemoryInitializationStarted", "LastStateTime": datetime.now(UTC).isoformat()}
    desk.bmc.system["BootProgress"] = moves
    for asked in (desk.driver().prepare, desk.driver().baseline):
        with pytest.raises(NotYet, match="MemoryInitializationStarted"):
            await asked(act)


async def test_a_boot_that_hangs_is_what_a_power_cycle_is_for(desk: Desk) -> None:
    long_ago = (datetime.now(UTC) - timedelta(minutes=11)).isoformat()
    desk.bmc.system["BootProgress"] = {"LastState": "OSBootStarted", "LastStateTime": long_ago}
    assert isinstance(await prepared(desk), HttpsRequest)


async def test_a_node_without_a_bmc_is_refused_by_name(desk: Desk) -> None:
    with pytest.raises(Refused, match="gpu-099: no entry of `bmcs`"):
        await desk.driver().baseline(an_act(node="gpu-099"))
