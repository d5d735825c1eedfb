"""A planted password is looked for wherever something is said: errors, logs, `ps`, environment, store, models."""

from __future__ import annotations

import contextlib
import logging
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from daytwo.domain.definition import BmcAccess
from daytwo.domain.errors import Refused
from daytwo.domain.load_definition import DefinitionError, load_definitions
from daytwo.domain.seams import HttpsRequest
from daytwo.sending import Sender
from tests.redfish.bmc import PASSWORD, RESET, ROOT, SESSIONS, Answer
from tests.redfish.conftest import Desk, an_act

ECHO = {"error": {"message": f"{PASSWORD} is wrong", "@Message.ExtendedInfo": [{"Message": PASSWORD}]}}


def everybody() -> str:
    """What `ps axe` would show: arguments and environment of every process."""
    shown = b""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            shown += (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
    return shown.decode(errors="replace")


def files_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob("daytwo.db*"))


@pytest.fixture
def everything_logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.DEBUG):
        yield caplog


@pytest.mark.parametrize(
    ("what", "answer"),
    [
        (f"POST {SESSIONS}", Answer(401, ECHO)),
        (f"POST {SESSIONS}", Answer(400, ECHO)),
        (f"POST {SESSIONS}", Answer(500, ECHO)),
        (f"POST {SESSIONS}", Answer(201, {"Token": PASSWORD})),
        (f"GET {ROOT}Systems", Answer(500, ECHO)),
        (f"GET {ROOT}Systems", Answer(400, ECHO)),
        (f"GET {ROOT}Systems", Answer(200, {"Members": PASSWORD})),
    ],
)
async def test_a_bmc_that_repeats_our_password_is_not_quoted(
    desk: Desk, everything_logged: pytest.LogCaptureFixture, what: str, answer: Answer
) -> None:
    desk.bmc.answer_oddly(what, *[answer] * 3)
    with pytest.raises(Exception, match="https://") as caught:
        await desk.driver().baseline(an_act())
    told = "".join(traceback.format_exception(caught.value)) + everything_logged.text
    assert PASSWORD not in told


@pytest.mark.parametrize("sessions", [True, False])
async def test_what_is_sent_is_shown_to_the_child_alone(desk: Desk, sessions: bool) -> None:
    if not sessions:
        desk.bmc.without_sessions()
    driver = desk.driver()
    prepared = await driver.prepare(await driver.baseline(an_act()))
    assert isinstance(prepared, HttpsRequest)
    (secret,) = (value.get_secret_value() for value in prepared.secret_headers.values())
    assert secret not in f"{prepared!r} {prepared} {prepared.model_dump_json()} {prepared.model_dump()}"
    async with Sender(prepared, 5) as child:
        listed = everybody()
        sent = await child.go()
    assert "daytwo/sender.py" in listed
    assert (secret in listed, secret in sent.error, sent.ok) == (False, False, True)


async def test_what_the_child_tells_of_an_answer_holds_no_secret(desk: Desk) -> None:
    driver = desk.driver()
    prepared = await driver.prepare(await driver.baseline(an_act()))
    assert isinstance(prepared, HttpsRequest)
    token = prepared.secret_headers["X-Auth-Token"].get_secret_value()
    desk.bmc.answer_oddly(f"POST {RESET}", Answer(400, {"error": {"message": f"{token} may not"}}))
    sent = await desk.carry(prepared)
    assert (token in sent.error, "*** may not" in sent.error) == (False, True)


async def test_neither_act_nor_store_holds_a_secret(desk: Desk, tmp_path: Path) -> None:
    act = await desk.driver().baseline(an_act())
    desk.bmc.password = "rotated"
    with pytest.raises(Exception, match="refused the login"):
        await desk.driver().baseline(an_act())
    stored = files_of(tmp_path)
    assert b"bmc_refusals" in stored
    assert PASSWORD not in f"{act.model_dump_json()} {stored!r} {desk.access!r}"


@pytest.mark.parametrize("reference", ["file:/nowhere/password", "env:DAYTWO_NO_SUCH_VARIABLE"])
async def test_a_password_that_cannot_be_read_is_named_by_its_reference(desk: Desk, reference: str) -> None:
    with pytest.raises(Refused, match=reference):
        await desk.with_access(password=reference).driver().baseline(an_act())
    assert desk.bmc.log == []


async def test_a_password_may_stand_in_the_environment(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYTWO_TEST_BMC", PASSWORD)
    await desk.with_access(password="env:DAYTWO_TEST_BMC").driver().baseline(an_act())
    assert desk.bmc.log.count(f"POST {SESSIONS}") == 1


def test_a_password_in_a_definition_is_refused_and_not_quoted() -> None:
    text = f"""
name: east
kind: slurm
groups: [{{nodes: [gpu-001]}}]
bmcs: [{{nodes: [gpu-001], address: "https://{{node}}-bmc", user: daytwo, password: {PASSWORD}}}]
"""
    with pytest.raises(DefinitionError, match="allowed: file:/path or env:NAME") as caught:
        load_definitions(text, "east.yaml")
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize("address", ["http://bmc", "https://daytwo:secret@bmc", "https://bmc/redfish", "bmc"])
def test_an_address_is_https_and_a_host(address: str) -> None:
    with pytest.raises(ValueError, match="address"):
        BmcAccess(nodes=("gpu-001",), address=address, user="daytwo", password="env:BMC")
