"""The lab over its socket: commands of people, the log of acts, outages, and the sender child as it really writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daytwo.domain.errors import BadInput, NotFound, Unreachable
from daytwo.domain.seams import ActKind, Request
from daytwo.lab import remote
from daytwo.lab.client import LabClient
from daytwo.lab.server import Lab, Outage, OutageOrder
from daytwo.sending import Sender, Sent

from .conftest import World


@pytest.fixture
def client(lab: Lab, socket: str) -> LabClient:
    return LabClient(socket)


async def ask(method: Callable[..., dict[str, Any]], *arguments: Any, **options: Any) -> dict[str, Any]:
    """Call the client, which blocks, beside the lab's own loop."""
    return await asyncio.to_thread(method, *arguments, **options)


async def send(socket: str, *, deadline_seconds: float = 5.0, **body: str) -> Sent:
    """Write as the ledger does: through a child that dies at the deadline."""
    async with Sender(Request(socket=socket, path="/acts", body=dict(body)), deadline_seconds) as child:
        return await child.go()


async def test_a_node_that_a_person_breaks_shows_its_fault(client: LabClient) -> None:
    status = await ask(client.break_node, "node-07", "xid-79", cured_by="never")
    assert [node["name"] for node in status["nodes"] if node["faults"] == ["xid-79"]] == ["node-07"]


async def test_a_node_that_a_person_heals_has_none(client: LabClient) -> None:
    await ask(client.break_node, "node-07", "xid-79")
    status = await ask(client.heal_node, "node-07")
    assert not any(node["faults"] for node in status["nodes"])


@pytest.mark.parametrize(
    ("node", "fault", "options", "error", "named"),
    [
        ("node-99", "xid-79", {}, NotFound, "node-99"),
        ("node-07", "xid-7", {}, BadInput, "allowed is xid-13"),
        ("node-07", "xid-79", {"gpu": 9}, BadInput, "gpu: found 9; allowed is 0 to 7"),
        ("node-07", "xid-79", {"gpu": -1}, BadInput, "gpu: found -1"),
        ("node-07", "xid-79", {"cured_by": "prayer"}, BadInput, "cured_by: found 'prayer'"),
        ("node-07", "xid-79", {"colour": "red"}, BadInput, "colour: found 'red'"),
    ],
)
async def test_a_wrong_order_names_its_field(
    client: LabClient, node: str, fault: str, options: dict[str, Any], error: type[Exception], named: str
) -> None:
    with pytest.raises(error, match=named):
        await ask(client.break_node, node, fault, **options)


async def test_a_lab_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="daytwo lab up"):
        LabClient(str(tmp_path / "none.sock")).status()


async def test_every_act_is_logged_with_its_time(lab: Lab, socket: str) -> None:
    lab.skip(100)
    await send(socket, kind="drain", node="node-16", reason="daytwo r-1: x", repair_id="r-1")
    (entry,) = lab.acts.log
    assert (entry.order.kind, entry.order.repair_id, entry.result, entry.second) == (ActKind.DRAIN, "r-1", "done", 100)


async def test_an_act_whose_answer_is_lost_has_happened(lab: Lab, socket: str) -> None:
    lab.outage = OutageOrder(mode=Outage.LOSE_ANSWER, path="/acts")
    sent = await send(socket, deadline_seconds=0.5, kind="drain", node="node-16", reason="daytwo r-1: x")
    assert not sent.ok
    assert lab.fleet.node("node-16").drain is not None


async def test_an_act_that_hangs_before_it_began_has_not_happened(lab: Lab, socket: str) -> None:
    lab.outage = OutageOrder(mode=Outage.HANG, path="/acts")
    sent = await send(socket, deadline_seconds=0.5, kind="drain", node="node-16", reason="daytwo r-1: x")
    assert (sent.ok, lab.acts.log) == (False, [])


async def test_a_refused_act_is_not_a_success(lab: Lab, socket: str) -> None:
    sent = await send(socket, kind="undrain", node="node-99")
    assert not sent.ok


async def test_an_outage_of_the_scheduler_leaves_the_machines_alone(lab: Lab, socket: str) -> None:
    lab.outage = OutageOrder(mode=Outage.REFUSE, path="/nodes")
    with pytest.raises(Unreachable):
        await remote.rows(socket, "/nodes", key="nodes")
    assert len(await remote.rows(socket, "/machines/node-01", key="machines")) == 1


async def test_people_can_always_look_and_command(lab: Lab, client: LabClient) -> None:
    lab.outage = OutageOrder(mode=Outage.GARBAGE)
    assert (await ask(client.status))["outage"] == "garbage"


def test_time_runs_as_fast_as_the_lab_is_told() -> None:
    seconds = [0.0]
    served = Lab(World().fleet, speed=60, clock=lambda: seconds[0])
    seconds[0] = 10.0
    assert served.advance().timeline.now == 600
