"""A BMC that hangs, is busy, answers nonsense or points elsewhere: unknown, never "off" and never "done"."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from daytwo.domain.errors import NotYet, Refused, UnknownAnswer, Unreachable
from tests.redfish.bmc import ROOT, SYSTEM, TASKS, Answer, Bmc, link, serving
from tests.redfish.conftest import Desk, an_act


async def test_a_bmc_that_hangs_is_unreachable_within_the_time_given(desk: Desk) -> None:
    desk.bmc.answer_oddly(f"GET {SYSTEM}", Answer(seconds=30))
    desk.options["read_seconds"] = 0.3
    started = time.monotonic()
    with pytest.raises(Unreachable, match="did not answer in time"):
        await desk.driver().baseline(an_act())
    assert time.monotonic() - started < 5


async def test_a_conversation_that_takes_too_long_is_left_and_not_doubled(desk: Desk) -> None:
    desk.bmc.answer_oddly(f"GET {SYSTEM}", Answer(seconds=30))
    desk.options |= {"read_seconds": 1.0, "talk_seconds": 0.3}
    driver = desk.driver()
    with pytest.raises(Unreachable, match=r"did not answer in 0 s"):
        await driver.baseline(an_act())
    with pytest.raises(NotYet, match="has not answered the question before"):
        await driver.baseline(an_act())


async def test_a_busy_bmc_is_asked_again_when_it_says(desk: Desk) -> None:
    desk.bmc.answer_oddly(f"GET {SYSTEM}", Answer(503, headers={"Retry-After": "17"}))
    with pytest.raises(NotYet, match="is busy") as waited:
        await desk.driver().baseline(an_act())
    assert waited.value.delay_seconds == 17


async def test_a_busy_task_service_is_waited_for_and_not_taken_for_idle(desk: Desk) -> None:
    act = await desk.driver().baseline(an_act())
    desk.bmc.answer_oddly(f"GET {TASKS}", Answer(503))
    with pytest.raises(NotYet, match="is busy"):
        await desk.driver().prepare(act)


@pytest.mark.parametrize(
    "nonsense",
    [
        Answer(200, b"<html>welcome</html>"),
        Answer(200, []),
        Answer(200, {}),
        Answer(200, {"Members": None}),
        Answer(200, {"Members": [{"@odata.id": 7}]}),
        Answer(404),
        Answer(418, b"\xff\xfe"),
    ],
)
async def test_nonsense_is_unknown(desk: Desk, nonsense: Answer) -> None:
    desk.bmc.answer_oddly(f"GET {ROOT}Systems", *[nonsense] * 4)
    with pytest.raises((UnknownAnswer, Refused)):
        await desk.driver().baseline(an_act())


async def test_an_endless_answer_is_not_read_to_its_end(desk: Desk) -> None:
    desk.bmc.answer_oddly(f"GET {SYSTEM}", Answer(200, b" " * (5 * 1024 * 1024)))
    with pytest.raises(Unreachable, match="answers endlessly"):
        await desk.driver().baseline(an_act())


@pytest.fixture
def thief(certificate: Path) -> Iterator[Bmc]:
    """Another server that would like our token."""
    with serving(Bmc(), certificate) as other:
        yield other


async def test_no_link_of_a_bmc_leads_to_another_host(desk: Desk, thief: Bmc) -> None:
    desk.bmc.documents[f"{ROOT}Systems"]["Members"] = [link(f"{thief.address}{SYSTEM}")]
    with pytest.raises(Unreachable, match="points to another address"):
        await desk.driver().baseline(an_act())
    assert thief.log == []


async def test_no_redirect_of_a_bmc_is_followed(desk: Desk, thief: Bmc) -> None:
    desk.bmc.answer_oddly(f"GET {SYSTEM}", Answer(307, headers={"Location": f"{thief.address}{SYSTEM}"}))
    with pytest.raises(Unreachable, match="redirects"):
        await desk.driver().baseline(an_act())
    assert thief.log == []


async def test_no_reset_is_sent_to_another_host(desk: Desk, thief: Bmc) -> None:
    desk.bmc.system["Actions"]["#ComputerSystem.Reset"]["target"] = f"{thief.address}/reset"
    act = await desk.driver().baseline(an_act())
    with pytest.raises(UnknownAnswer, match="points to"):
        await desk.driver().prepare(act)


async def test_a_certificate_that_nobody_vouches_for_is_refused_before_the_password(desk: Desk) -> None:
    other = desk.with_access(ca="/etc/ssl/certs/ca-certificates.crt")
    with pytest.raises((Unreachable, Refused), match=r"vouched for|ca: found"):
        await other.driver().baseline(an_act())
    assert desk.bmc.log == []


async def test_a_bmc_that_is_away_is_unreachable(desk: Desk) -> None:
    with pytest.raises(Unreachable, match="refuses connections"):
        await desk.with_access(address="https://127.0.0.1:9").driver().baseline(an_act())
