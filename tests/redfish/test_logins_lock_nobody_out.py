"""Sessions where there are any, one at a time, ended; and no password again that was just refused."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from daytwo.domain.errors import NotYet, Refused
from daytwo.domain.seams import HttpsRequest, Outcome
from daytwo.hardware.redfish_memory import PAUSE
from tests.redfish.bmc import PASSWORD, ROOT, SESSIONS, SYSTEM, Answer, Bmc, serving
from tests.redfish.conftest import Desk, an_act

LOGIN = f"POST {SESSIONS}"
SYSTEMS = f"GET {ROOT}Systems"


def logins(desk: Desk) -> int:
    return desk.bmc.log.count(LOGIN)


async def test_a_whole_act_is_one_session_that_is_ended(desk: Desk) -> None:
    driver = desk.driver()
    act = await driver.baseline(an_act())
    before = logins(desk)
    prepared = await driver.prepare(act)
    assert isinstance(prepared, HttpsRequest)
    await desk.carry(prepared)
    assert (await driver.look(act)).outcome is Outcome.DONE
    assert (before, logins(desk), desk.bmc.sessions) == (1, 2, {})


async def test_a_session_stays_open_while_an_act_is_looked_at(desk: Desk) -> None:
    driver = desk.driver()
    act = await driver.baseline(an_act())
    desk.bmc.boot("OSBootStarted", power="Off")
    for _ in range(3):
        assert (await driver.look(act)).outcome is Outcome.PENDING
    assert (logins(desk), len(desk.bmc.sessions)) == (2, 1)


async def test_a_session_that_nobody_came_back_for_is_ended(desk: Desk) -> None:
    desk.options["left_open_seconds"] = 0.0
    driver = desk.driver(desk.access.model_copy(update={"nodes": ("gpu-002",)}))
    await driver.prepare(await driver.baseline(an_act()))
    stopped = set(desk.bmc.sessions)
    await driver.baseline(an_act(node="gpu-002"))
    assert stopped
    assert desk.bmc.sessions == {}


async def test_a_password_that_is_gone_troubles_no_other_bmc(desk: Desk, certificate: Path, tmp_path: Path) -> None:
    desk.options["left_open_seconds"] = 0.0
    with serving(Bmc(), certificate) as other:
        (tmp_path / "another").write_text(PASSWORD)
        theirs = {"nodes": ("gpu-002",), "address": other.address, "password": f"file:{tmp_path}/another"}
        driver = desk.driver(desk.access.model_copy(update=theirs))
        await driver.prepare(await driver.baseline(an_act(node="gpu-002")))
        (tmp_path / "another").unlink()
        assert (await driver.baseline(an_act())).baseline["bmc"]["power"] == "On"


async def test_a_session_that_has_ended_is_opened_again(desk: Desk) -> None:
    driver = desk.driver()
    act = await driver.baseline(an_act())
    await driver.prepare(act)
    desk.bmc.sessions.clear()
    assert (await driver.look(act)).outcome is Outcome.NOT_DONE
    assert logins(desk) == 3


@pytest.mark.parametrize("what", [SYSTEMS, f"GET {SYSTEM}"])
async def test_a_good_token_that_is_refused_once_is_tried_again_without_a_login(desk: Desk, what: str) -> None:
    desk.bmc.answer_oddly(what, Answer(401))
    await desk.driver().baseline(an_act())
    assert logins(desk) == 1


async def test_a_token_that_is_refused_for_good_counts_as_a_refusal(desk: Desk) -> None:
    desk.bmc.answer_oddly(SYSTEMS, *[Answer(401)] * 9)
    with pytest.raises(NotYet, match="refused the login"):
        await desk.driver().baseline(an_act())
    assert logins(desk) == 1


async def test_a_wrong_password_is_sent_once_and_then_not_for_half_an_hour(desk: Desk) -> None:
    desk.bmc.password = "rotated"
    for _ in range(3):
        with pytest.raises(NotYet, match="refused the login"):
            await desk.driver().baseline(an_act())
    assert logins(desk) == 1
    desk.clock.ahead += PAUSE
    with pytest.raises(NotYet, match="refused the login"):
        await desk.driver().baseline(an_act())
    assert logins(desk) == 2


async def test_no_password_is_tried_more_than_three_times_a_day(desk: Desk) -> None:
    desk.bmc.password = "rotated"
    for _ in range(3):
        with pytest.raises(NotYet):
            await desk.driver().baseline(an_act())
        desk.clock.ahead += PAUSE
    with pytest.raises(Refused, match="3 times in a day"):
        await desk.driver().baseline(an_act())
    assert logins(desk) == 3


async def test_the_bmc_that_lets_us_in_has_refused_nothing(desk: Desk) -> None:
    desk.bmc.answer_oddly(LOGIN, Answer(401))
    with pytest.raises(NotYet):
        await desk.driver().baseline(an_act())
    desk.clock.ahead += PAUSE
    await desk.driver().baseline(an_act())
    desk.memory().check(desk.bmc.address)


async def test_where_a_bmc_has_no_sessions_basic_authentication_is_used_and_refused_once(desk: Desk) -> None:
    desk.bmc.without_sessions()
    await desk.driver().baseline(an_act())
    desk.bmc.password, desk.bmc.log = "rotated", []
    with pytest.raises(NotYet, match="refused the login"):
        await desk.driver().baseline(an_act())
    assert (desk.bmc.log.count(SYSTEMS), logins(desk)) == (1, 0)


async def test_a_bmc_with_sessions_is_never_sent_basic_authentication(desk: Desk) -> None:
    desk.bmc.answer_oddly(LOGIN, Answer(500), Answer(500))
    with pytest.raises(Exception, match="HTTP 500"):
        await desk.driver().baseline(an_act())
    assert SYSTEMS not in desk.bmc.log


async def test_a_bmc_is_asked_one_thing_at_a_time(desk: Desk) -> None:
    desk.bmc.answer_oddly(f"GET {ROOT}", Answer(200, desk.bmc.documents[ROOT], seconds=0.5))
    driver = desk.driver()
    first = asyncio.create_task(driver.baseline(an_act()))
    await asyncio.sleep(0.1)
    with pytest.raises(NotYet, match="has not answered the question before"):
        await driver.baseline(an_act())
    await first
