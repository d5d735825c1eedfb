"""The common path on a BMC with sessions: identity, reset, proof."""

from __future__ import annotations

import pytest

from daytwo.domain.errors import Refused
from daytwo.domain.seams import ActKind, AlreadyDone, HttpsRequest, Outcome
from tests.redfish.bmc import CHASSIS, RESET, ROOT, SYSTEM, TASKS, Answer, link
from tests.redfish.conftest import Desk, an_act, reset, send


async def test_a_power_cycle_is_ordered_and_proven_by_the_reset_time(desk: Desk) -> None:
    look = await reset(desk, ActKind.POWER_CYCLE)
    assert desk.bmc.resets == [{"path": RESET, "ResetType": "PowerCycle"}]
    assert (look.outcome, look.proof_type) == (Outcome.DONE, "bmc")


@pytest.mark.parametrize(
    ("kind", "allowed", "ordered"),
    [
        (ActKind.REBOOT, ["ForceRestart", "GracefulRestart"], "GracefulRestart"),
        (ActKind.POWER_CYCLE, ["ForceRestart", "PowerCycle"], "PowerCycle"),
        (ActKind.POWER_CYCLE, ["On", "GracefulRestart", "ForceRestart"], "ForceRestart"),
    ],
)
async def test_only_what_the_bmc_allows_is_ordered(desk: Desk, kind: ActKind, allowed: list[str], ordered: str) -> None:
    desk.bmc.allow(*allowed)
    await reset(desk, kind)
    assert [each["ResetType"] for each in desk.bmc.resets] == [ordered]


@pytest.mark.parametrize(
    ("kind", "allowed"), [(ActKind.REBOOT, ["ForceRestart"]), (ActKind.POWER_CYCLE, ["On", "GracefulRestart"])]
)
async def test_a_step_that_the_bmc_does_not_allow_is_not_replaced_by_a_harder_one(
    desk: Desk, kind: ActKind, allowed: list[str]
) -> None:
    desk.bmc.allow(*allowed)
    with pytest.raises(Refused, match=f"allows .*{allowed[0]}"):
        await reset(desk, kind)


async def test_a_bmc_that_does_not_say_what_it_allows_is_not_tried(desk: Desk) -> None:
    desk.bmc.allow()
    with pytest.raises(Refused, match="does not say"):
        await reset(desk, ActKind.POWER_CYCLE)


def only_the_chassis_has_a_reset(desk: Desk, *systems: str) -> None:
    del desk.bmc.system["Actions"]
    action = {"target": f"{CHASSIS}/Actions/Chassis.Reset", "ResetType@Redfish.AllowableValues": ["PowerCycle"]}
    desk.bmc.documents[CHASSIS] |= {
        "Actions": {"#Chassis.Reset": action},
        "Links": {"ComputerSystems": [link(system) for system in systems]},
    }


async def test_a_chassis_is_reset_if_it_holds_one_system(desk: Desk) -> None:
    only_the_chassis_has_a_reset(desk, SYSTEM)
    await reset(desk, ActKind.POWER_CYCLE)
    assert [each["path"] for each in desk.bmc.resets] == [f"{CHASSIS}/Actions/Chassis.Reset"]


async def test_a_chassis_that_holds_two_systems_is_never_reset(desk: Desk) -> None:
    only_the_chassis_has_a_reset(desk, SYSTEM, f"{ROOT}Systems/2")
    with pytest.raises(Refused, match="holds 2 systems"):
        await reset(desk, ActKind.POWER_CYCLE)


async def test_a_reset_since_the_baseline_is_not_done_again(desk: Desk) -> None:
    act = await desk.driver().baseline(an_act())
    desk.bmc.boot()
    assert isinstance(await desk.driver().prepare(act), AlreadyDone)


async def test_an_order_taken_as_a_task_is_under_way_until_the_task_ends(desk: Desk) -> None:
    desk.bmc.works = False
    desk.bmc.answer_oddly(f"POST {RESET}", Answer(202, {}, {"Location": f"{TASKS}/7"}))
    act = await send(desk)
    desk.bmc.run_task()
    assert (await desk.driver().look(act)).outcome is Outcome.PENDING
    desk.bmc.run_task("Completed")
    desk.bmc.boot()
    assert (await desk.driver().look(act)).outcome is Outcome.DONE


async def test_a_bmc_whose_etags_change_with_each_answer_does_not_mind_us(desk: Desk) -> None:
    # It answers 412 to anything that carries If-Match.
    assert (await reset(desk, ActKind.POWER_CYCLE)).outcome is Outcome.DONE


@pytest.mark.parametrize("status", [412, 500, 503])
async def test_an_order_that_is_refused_did_not_happen(desk: Desk, status: int) -> None:
    desk.bmc.answer_oddly(f"POST {RESET}", Answer(status, {"error": {"message": "no"}}))
    driver = desk.driver()
    act = await driver.baseline(an_act())
    prepared = await driver.prepare(act)
    assert isinstance(prepared, HttpsRequest)
    assert (await desk.carry(prepared)).error.startswith(f"exit status 1: HTTP {status}")
    assert (await driver.look(act)).outcome is Outcome.NOT_DONE
