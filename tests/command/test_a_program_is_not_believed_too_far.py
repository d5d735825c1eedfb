"""A program that hangs, lies, shouts or fails: never success, never late, and its words are kept without secrets."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
from pydantic import ValidationError

from daytwo import sender
from daytwo.domain.definition import ClusterDefinition, NodeGroup
from daytwo.domain.definition import CommandHardware as Definition
from daytwo.domain.errors import NotYet, Refused, UnknownAnswer
from daytwo.domain.seams import Act, AlreadyDone, NotOurs, Outcome, Program
from daytwo.domain.vocabulary import ClusterKind
from daytwo.sending import LATE, Sender
from tests.command.conftest import PASSWORD, UUID, Machine
from tests.contracts.hardware import run

IDENTITY = f'"identity": {{"system_uuid": "{UUID}"}}'


def known(act: Act) -> Act:
    """The act as it is after its baseline was taken."""
    return act.model_copy(update={"baseline": {**act.baseline, "command": {}, "at": act.baseline["identity_at"]}})


def answers(text: str) -> str:
    return f"print({text!r})"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("pass", "cannot be read: the whole: Invalid JSON"),
        (answers("done"), "cannot be read: the whole: Invalid JSON"),
        (answers('{"outcome": "done"} {"outcome": "done"}'), "Invalid JSON"),
        (answers("[]"), "cannot be read"),
        (answers('{"outcome": "success"}'), "cannot be read: outcome: Input should be"),
        (answers('{"outcome": "done", "ok": true}'), "cannot be read: ok: Extra inputs are not permitted"),
        (answers('{"outcome": true}'), "cannot be read: outcome"),
        (answers(f'{{"proof": "fine", {IDENTITY}}}'), "outcome: missing"),
        (answers('{"outcome": "done"}'), "the program tells of no identity"),
        ("print('x' * 200_000)", "its answer is too long"),
        ("sys.exit('no such machine')", "failed at 'look': exit status 1: no such machine"),
        ('print(\'{"outcome": "done"}\'); sys.exit(2)', 'exit status 2: {"outcome": "done"}'),
        ("os.kill(os.getpid(), 11)", "exit status -11"),
        ("sys.exit(3)", "the program refuses"),
    ],
)
async def test_what_cannot_be_read_is_unclear_and_never_done(machine: Machine, line: str, found: str) -> None:
    look = await machine.saying(line).hardware.look(known(machine.act))
    assert (look.outcome, found in look.proof) == (Outcome.UNCLEAR, True), look.proof


async def test_a_program_that_is_not_there_is_unclear(machine: Machine) -> None:
    machine.program = ("/nowhere/power",)
    look = await machine.hardware.look(known(machine.act))
    assert (look.outcome, "cannot be started: No such file" in look.proof) == (Outcome.UNCLEAR, True)


@pytest.mark.parametrize(
    ("line", "error"),
    [("sys.exit(3)", Refused), ("sys.exit(4)", NotYet), ("sys.exit(5)", UnknownAnswer), ("pass", UnknownAnswer)],
)
async def test_the_status_says_what_to_do_before_anything_was_sent(
    machine: Machine, line: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        await machine.saying(line).hardware.baseline(machine.act)


@pytest.mark.parametrize(
    ("outcome", "what"), [("done", AlreadyDone), ("not-done", Program), ("pending", NotYet), ("unclear", NotYet)]
)
async def test_what_it_says_right_before_the_order_decides(machine: Machine, outcome: str, what: type) -> None:
    machine.saying(answers(f'{{"outcome": "{outcome}", {IDENTITY}}}'))
    try:
        prepared: object = await machine.hardware.prepare(known(machine.act))
    except NotYet as error:
        prepared = error
    assert isinstance(prepared, what)


async def test_a_program_that_says_not_done_of_a_machine_that_booted_is_unclear(machine: Machine) -> None:
    machine.agent_says("boot-2")
    look = await machine.saying(answers(f'{{"outcome": "not-done", {IDENTITY}}}')).hardware.look(known(machine.act))
    assert (look.outcome, look.proof) == (
        Outcome.UNCLEAR,
        "the program says not done: ; boot boot-1 became boot-2",
    )


async def test_a_question_that_hangs_is_asked_again(machine: Machine) -> None:
    machine.options = {"question_seconds": 1.0}
    began = time.monotonic()
    with pytest.raises(NotYet, match="did not answer 'look' in time and was killed"):
        await machine.saying("time.sleep(60)").hardware.look(known(machine.act))
    assert time.monotonic() - began < 5.0


LATE_CHILD = "subprocess.Popen(['sh', '-c', 'sleep 2; touch {}'])"


async def test_the_deadline_kills_all_that_the_program_started(machine: Machine, tmp_path: Path) -> None:
    machine.saying(LATE_CHILD.format(tmp_path / "late"), "time.sleep(60)")
    async with Sender(a_program(machine), 1.0) as child:
        sent = await child.go()
    await asyncio.sleep(2.0)
    assert (sent.error, (tmp_path / "late").exists()) == (LATE, False)


@pytest.mark.parametrize("stopped", [0.0, 0.7], ids=["before-it-starts", "while-it-runs"])
def test_a_sender_that_is_stopped_past_the_deadline_lets_nothing_happen_late(
    machine: Machine, tmp_path: Path, stopped: float
) -> None:
    machine.program = ("/bin/sh", "-c", f"sleep 2; touch {tmp_path}/late")
    order = {"deadline": time.monotonic() + 1.5, "send": a_program(machine).model_dump(mode="json")}
    with subprocess.Popen([sys.executable, "-I", "-S", sender.__file__], stdin=PIPE, stdout=PIPE, stderr=PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(json.dumps(order).encode() + b"\n")
        child.stdin.flush()
        child.stdout.readline()
        if not stopped:
            child.send_signal(signal.SIGSTOP)
        child.stdin.write(b"go\n")
        child.stdin.flush()
        time.sleep(stopped)
        child.send_signal(signal.SIGSTOP)
        time.sleep(2.5)
        child.send_signal(signal.SIGCONT)
    assert not (tmp_path / "late").exists()


async def test_what_a_program_leaves_running_is_killed_with_it(machine: Machine, tmp_path: Path) -> None:
    quiet = LATE_CHILD.format(tmp_path / "late").replace(
        "])", "], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)"
    )
    machine.saying(quiet, answers("{}"))
    async with Sender(a_program(machine), 10.0) as child:
        sent = await child.go()
    await asyncio.sleep(2.2)
    assert (sent.ok, (tmp_path / "late").exists()) == (True, False)


def a_program(machine: Machine, **secrets: Any) -> Program:
    return Program(argv=machine.program, input={"question": "act"}, secrets=secrets, seconds=10.0)


async def test_what_it_complains_of_is_kept_without_secrets(machine: Machine) -> None:
    machine.saying("sys.exit('login with ' + asked['secrets']['password'] + ' failed')")
    async with Sender(a_program(machine, password=PASSWORD), 10.0) as child:
        sent = await child.go()
    assert (sent.ok, sent.error) == (False, "exit status 1: login with *** failed")


async def test_it_is_told_everything_on_its_input_and_nothing_by_its_environment(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAYTWO_STORE_URL", "postgresql://daytwo:hush@db/daytwo")
    machine.saying(
        f"json.dump([asked, dict(os.environ), os.getcwd()], open({str(tmp_path / 'told')!r}, 'w'))", "sys.exit(4)"
    )
    with pytest.raises(NotYet):
        await machine.hardware.baseline(machine.act)
    told = (tmp_path / "told").read_text()
    assert all(
        word in told for word in ('"question": "baseline"', '"act": "power-cycle"', UUID, PASSWORD, '"version": 1')
    )
    assert "hush" not in told


async def test_a_secret_that_cannot_be_read_is_named_and_nothing_is_asked(machine: Machine) -> None:
    os.remove(machine.folder / "password")
    with pytest.raises(Refused, match=r"hardware: password file:.*/password cannot be read"):
        await machine.hardware.baseline(machine.act)


async def test_a_foreign_node_is_not_even_asked_about(machine: Machine, tmp_path: Path) -> None:
    machine.saying(f"open({str(tmp_path / 'asked')!r}, 'w')")
    await machine.another_marks_the_node()
    assert isinstance(await machine.hardware.prepare(known(machine.act)), NotOurs)
    assert not (tmp_path / "asked").exists()


async def test_a_refusal_of_the_order_is_told(machine: Machine) -> None:
    machine.saying("print('a technician is at the rack'); sys.exit(3)")
    with pytest.raises(AssertionError, match="exit status 3: a technician is at the rack"):
        await run(a_program(machine))


BASE: dict[str, Any] = {"driver": "command", "program": ("/usr/local/bin/power",)}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"program": ()}, "program"),
        ({"program": ("power",)}, "found 'power', allowed: a program by its absolute path"),
        ({"acts": ("remove",)}, "acts"),
        ({"act_seconds": 21}, "act_seconds"),
        ({"secrets": {"password": "hunter2"}}, "found something that is no reference"),
        ({"driver": "ipmi"}, "driver"),
    ],
)
def test_a_definition_that_breaks_a_rule_is_refused_by_name(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said) as caught:
        Definition.model_validate(BASE | fields)
    assert "hunter2" not in str(caught.value.errors(include_input=False))


def test_only_a_program_that_can_reboot_is_asked_to() -> None:
    cluster = {"name": "east", "kind": ClusterKind.SLURM, "groups": (NodeGroup(nodes=("n1",)),), "reboot_by": "command"}
    with pytest.raises(ValidationError, match="allowed: scheduler or bmc, or `hardware` with `reboot` among its acts"):
        ClusterDefinition.model_validate({**cluster, "hardware": BASE})
