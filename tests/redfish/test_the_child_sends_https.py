"""The sender child over TLS: the same deadline, the same certificates, no redirect."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest
from pydantic import SecretStr

from daytwo.domain.seams import HttpsRequest
from daytwo.sending import Sender, Sent
from tests.redfish.bmc import RESET, Answer, Bmc


def a_reset(bmc: Bmc, ca_file: str | None, *, verify: bool = True) -> HttpsRequest:
    bmc.sessions["t-1"] = "1"
    return HttpsRequest(
        url=bmc.address + RESET,
        body={"ResetType": "ForceRestart"},
        secret_headers={"X-Auth-Token": SecretStr("t-1")},
        ca_file=ca_file,
        verify=verify,
    )


async def sent(request: HttpsRequest, seconds: float = 10) -> Sent:
    async with Sender(request, seconds) as child:
        return await child.go()


@pytest.mark.parametrize("verify", [True, False])
async def test_a_request_goes_to_whom_its_certificate_vouches_for(bmc: Bmc, certificate: Path, verify: bool) -> None:
    assert (await sent(a_reset(bmc, str(certificate) if verify else None, verify=verify))).ok
    assert [each["ResetType"] for each in bmc.resets] == ["ForceRestart"]


async def test_nothing_is_sent_to_one_that_nobody_vouches_for(bmc: Bmc) -> None:
    done = await sent(a_reset(bmc, None))
    assert (done.ok, bmc.log) == (False, [])
    assert "CERTIFICATE_VERIFY_FAILED" in done.error


async def test_the_deadline_ends_a_request_that_hangs(bmc: Bmc, certificate: Path) -> None:
    bmc.answer_oddly(f"POST {RESET}", Answer(seconds=30))
    started = time.monotonic()
    done = await sent(a_reset(bmc, str(certificate)), 1.0)
    assert done.error == "the deadline came before the answer"
    assert time.monotonic() - started < 10


async def test_a_child_that_is_stopped_past_the_deadline_sends_nothing(bmc: Bmc, certificate: Path) -> None:
    async with Sender(a_reset(bmc, str(certificate)), 0.5) as child:
        assert child._child is not None
        os.kill(child._child.pid, signal.SIGSTOP)
        going = asyncio.create_task(child.go())
        await asyncio.sleep(0.7)
        os.kill(child._child.pid, signal.SIGCONT)
        done = await going
    assert (done.error, bmc.log) == ("the deadline came before the answer", [])


async def test_no_redirect_is_followed(bmc: Bmc, certificate: Path) -> None:
    bmc.answer_oddly(f"POST {RESET}", Answer(307, headers={"Location": f"{bmc.address}{RESET}"}))
    done = await sent(a_reset(bmc, str(certificate)))
    assert (done.error.startswith("exit status 1: HTTP 307"), bmc.resets) == (True, [])
