"""The example of docs/hardware-command.md keeps what every hardware driver promises, and goes through the ledger."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from daytwo import repairs
from daytwo.domain.errors import NotYet, Refused
from daytwo.domain.seams import Look, NotOurs, Outcome
from daytwo.intents import Ledger
from daytwo.store.engine import Store
from daytwo.store.tables import IntentRow, NodeRow
from tests.command.conftest import EXAMPLE, NODE, PASSWORD, REPAIR, Machine
from tests.contracts.hardware import HardwareContract, send


class TestTheExampleProgram(HardwareContract):
    """ipmi-power.py before a fake ipmitool."""


async def test_a_machine_that_is_still_off_is_pending(machine: Machine) -> None:
    machine.is_now(after="off")
    act = await send(machine)
    assert (await machine.hardware.look(act)).outcome is Outcome.PENDING


async def test_a_bmc_that_logs_nothing_leaves_it_to_the_agent(machine: Machine) -> None:
    machine.is_now(logs=False)
    act = await send(machine)
    before = await machine.hardware.look(act)
    machine.agent_says("boot-2")
    after = await machine.hardware.look(act)
    assert (before.outcome, after.outcome, after.proof_type) == (Outcome.UNCLEAR, Outcome.DONE, "agent-boot-id")


async def test_a_machine_that_is_switched_off_is_left_to_its_people(machine: Machine) -> None:
    act = await machine.hardware.baseline(machine.act)
    machine.is_now(power="off")
    assert await machine.hardware.prepare(act) == NotOurs(
        found=f"{NODE}: the program refuses: the machine is switched off, not by daytwo"
    )


async def test_a_bmc_that_does_not_answer_is_asked_again(machine: Machine) -> None:
    machine.is_now(down=True)
    with pytest.raises(NotYet, match=r"wants to be asked again: gpu-001-bmc: Error: Unable to establish"):
        await machine.hardware.baseline(machine.act)


async def test_the_wrong_machine_is_refused_at_once(machine: Machine) -> None:
    await machine.is_another_machine()
    with pytest.raises(Refused, match="the program tells of system_uuid 99999999"):
        await machine.hardware.baseline(machine.act)


async def test_the_ledger_carries_it_out_once_and_keeps_no_secret(machine: Machine, store: Store) -> None:
    look = await carried_out(machine, store)
    with store.read() as session:
        row = session.get_one(IntentRow, "key")
    assert (look.outcome, row.state, machine.orders()) == (Outcome.DONE, "proven", 1)
    assert PASSWORD not in f"{row.act}{row.proof}{row.error}"


async def carried_out(machine: Machine, store: Store) -> Look:
    """As the activity does it: again until it is proven."""
    now = datetime.now(UTC)
    with store.write() as session:
        node = NodeRow(cluster="east", name=NODE, state_since=now)
        session.add(node)
        repairs.open_row(session, REPAIR, node, why="test", opened_by="policy", policy_revision=1, now=now)
    ledger, act = Ledger(store, {"program": machine.hardware}), await machine.hardware.baseline(machine.act)
    while True:
        try:
            return await ledger.carry_out("key", "program", act)
        except NotYet:
            await asyncio.sleep(0.05)


def test_the_page_shows_the_example_as_it_is() -> None:
    page = (EXAMPLE.parents[1] / "hardware-command.md").read_text()
    assert f"```python\n{EXAMPLE.read_text()}```" in page
    assert Path(EXAMPLE).stat().st_mode & 0o111
