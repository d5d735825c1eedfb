"""What every hardware driver promises, as tests: subclass `HardwareContract` beside a fixture `hardware_world`."""

from __future__ import annotations

from typing import Protocol

from daytwo.domain.errors import NotYet, Refused
from daytwo.domain.seams import Act, AlreadyDone, Hardware, Look, NotOurs, Outcome, Preparation, Send
from daytwo.sending import Sender


class HardwareWorld(Protocol):
    """A machine that is on, idle and drained by the repair of `act`, and the hands around it."""

    hardware: Hardware
    act: Act

    def orders(self) -> int:
        """How many boots or power cycles the machine was given."""

    async def come_up(self) -> None:
        """Let the machine finish its boot."""

    async def another_marks_the_node(self) -> None:
        """The node is no longer ours."""

    async def becomes_busy(self) -> None:
        """Work runs on the node again."""

    async def is_another_machine(self) -> None:
        """The board behind the address was exchanged."""


async def prepare(world: HardwareWorld) -> tuple[Act, Preparation]:
    act = await world.hardware.baseline(world.act)
    return act, await world.hardware.prepare(act)


async def send(world: HardwareWorld) -> Act:
    """Carry the act out as the ledger does, through the sender child."""
    act, prepared = await prepare(world)
    assert not isinstance(prepared, AlreadyDone | NotOurs), prepared
    await run(prepared)
    return act


async def run(prepared: Send) -> None:
    async with Sender(prepared, 10.0) as child:
        sent = await child.go()
    assert sent.ok, sent.error


async def outcome(world: HardwareWorld, act: Act) -> Look:
    try:
        return await world.hardware.look(act)
    except NotYet as error:
        return Look(outcome=Outcome.PENDING, proof=str(error))


class HardwareContract:
    """Reading changes nothing; one act is one order; nothing is proven that was not seen."""

    async def test_what_it_says_it_can_do_holds_the_act(self, hardware_world: HardwareWorld) -> None:
        assert hardware_world.act.kind in hardware_world.hardware.capabilities()

    async def test_a_baseline_keeps_what_the_act_already_carries(self, hardware_world: HardwareWorld) -> None:
        act = await hardware_world.hardware.baseline(hardware_world.act)
        assert act.baseline.items() > hardware_world.act.baseline.items()
        assert act.model_copy(update={"baseline": {}}) == hardware_world.act.model_copy(update={"baseline": {}})

    async def test_looking_and_preparing_order_nothing(self, hardware_world: HardwareWorld) -> None:
        act, _ = await prepare(hardware_world)
        await outcome(hardware_world, act)
        assert hardware_world.orders() == 0

    async def test_what_was_never_sent_is_not_done(self, hardware_world: HardwareWorld) -> None:
        act, _ = await prepare(hardware_world)
        assert (await outcome(hardware_world, act)).outcome is not Outcome.DONE

    async def test_an_act_that_was_sent_is_proven_once_the_machine_is_up(self, hardware_world: HardwareWorld) -> None:
        act = await send(hardware_world)
        await hardware_world.come_up()
        look = await outcome(hardware_world, act)
        assert (look.outcome, hardware_world.orders()) == (Outcome.DONE, 1)
        assert look.proof
        assert look.proof_type

    async def test_an_act_that_has_happened_is_not_ordered_again(self, hardware_world: HardwareWorld) -> None:
        act = await send(hardware_world)
        await hardware_world.come_up()
        assert isinstance(await hardware_world.hardware.prepare(act), AlreadyDone)

    async def test_a_node_with_anothers_mark_is_left_alone(self, hardware_world: HardwareWorld) -> None:
        act = await hardware_world.hardware.baseline(hardware_world.act)
        await hardware_world.another_marks_the_node()
        assert isinstance(await hardware_world.hardware.prepare(act), NotOurs)

    async def test_a_node_that_runs_work_is_left_alone(self, hardware_world: HardwareWorld) -> None:
        act = await hardware_world.hardware.baseline(hardware_world.act)
        await hardware_world.becomes_busy()
        assert isinstance(await hardware_world.hardware.prepare(act), NotOurs)

    async def test_another_machine_is_never_acted_on(self, hardware_world: HardwareWorld) -> None:
        act = await hardware_world.hardware.baseline(hardware_world.act)
        await hardware_world.is_another_machine()
        try:
            prepared: object = await hardware_world.hardware.prepare(act)
        except Refused as refused:
            prepared = refused
        assert isinstance(prepared, NotOurs | Refused)
