"""`daytwo lab`: a person's hand in the simulated fleet. Talks to the lab's own socket, not to the service."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from daytwo.cli import options, output
from daytwo.cli.becoming import become
from daytwo.cli.failure import from_error
from daytwo.cli.lazy import Group
from daytwo.cli.output import Column, Item
from daytwo.cli.processes import PASS_ON

if TYPE_CHECKING:
    from daytwo.lab.client import LabClient

socket_option = click.option(
    "--lab-socket",
    type=click.Path(path_type=Path),
    envvar="DAYTWO_LAB_SOCKET",
    help="Unix socket of the lab. Default: lab.sock in the state folder.",
)

COLUMNS = (
    Column("NODE", lambda n: n["name"]),
    Column("POWER", lambda n: n["power"]),
    Column("SCHEDULER", lambda n: n["states"]),
    Column("GPUS", lambda n: len(n["gpus"])),
    Column("FAULTS", lambda n: n["faults"]),
    Column("JOBS", lambda n: n["jobs"]),
    Column("REASON", lambda n: n["reason"]),
)


@click.group(cls=Group)
def lab() -> None:
    """The simulated fleet: start it, break nodes, heal them."""


@lab.command("up", context_settings=PASS_ON)
@socket_option
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def up(lab_socket: Path | None, options: tuple[str, ...]) -> None:
    """Run a simulated fleet until Ctrl-C.

    \b
    OPTIONS:
      --nodes N       How many nodes. Default: 16.
      --gpus N        GPUs of each node. Default: 8.
      --speed N       Simulated seconds a second. Default: 60.
      --seed N        The same seed gives the same machines and jobs.
      --gateway URL   Where the agents of the nodes report.
      --tokens FILE   JSON: node name to token.
      --no-agents     Run no agents, even with a gateway.

    `daytwo up --lab NODES` runs one together with the control plane.
    """
    where = str(lab_socket or default_socket())
    Path(where).parent.mkdir(parents=True, exist_ok=True)
    become("daytwo.lab", "--socket", where, *options)


@lab.command("break")
@click.argument("node")
@click.argument("fault")
@click.option("--gpu", type=options.Whole(0), help="Index of the GPU. Default: the lab's choice.")
@click.option("--cured-by", type=click.Choice(["reboot", "power-cycle", "never"]), help="What cures it.")
@click.option("--job-dies", is_flag=True, help="Kill the node's jobs at once.")
@click.option("--never-comes-back", is_flag=True, help="The node does not return from its next boot.")
@click.option("--comes-back-without-gpu", is_flag=True, help="The GPU is missing after the next boot.")
@click.option(
    "--returns-after",
    type=options.Duration(bare=True),
    metavar="TIME",
    help="Relapse so long after the cure, in simulated time: 30m, or 1800.",
)
@click.option("--reason", metavar="TEXT", help="For slurm-drained and person-drain: the reason.")
@click.option("--by", metavar="USER", help="For slurm-drained and person-drain: who.")
@socket_option
@options.output
def break_(node: str, fault: str, *, lab_socket: Path | None, form: str, **how: Any) -> None:
    """Break NODE with FAULT: an id of the catalogue, or person-drain. Another one's error lists them all.

    The agents live in real time, and so does what they wait for: thermal-throttle is found after 10 minutes, and only
    recorded; an agent counts as silent after 3 minutes.

    \b
      daytwo lab break node-07 xid-79
    """
    node = _own(node)
    given = {name: value for name, value in how.items() if value not in (None, False)}
    _show(_asked(lambda: _client(lab_socket).break_node(node, fault, **given)), form, only=node)


@lab.command("heal")
@click.argument("node")
@socket_option
@options.output
def heal(node: str, lab_socket: Path | None, form: str) -> None:
    """End every fault of NODE, as if somebody had repaired it by hand."""
    node = _own(node)
    _show(_asked(lambda: _client(lab_socket).heal_node(node)), form, only=node)


@lab.command("status")
@socket_option
@options.output
def status(lab_socket: Path | None, form: str) -> None:
    """Show what is broken, and what each node does."""
    _show(_client(lab_socket).status(), form)


def default_socket() -> Path:
    """Where the lab of this installation listens."""
    from daytwo import settings

    return settings.load().state_dir / "lab.sock"


def _own(node: str) -> str:
    """The lab's own name of a node that may be written as everywhere else, `cluster/node`."""
    from daytwo.lab.definition import CLUSTER

    return node.removeprefix(f"{CLUSTER}/")


def _asked(ask: Callable[[], Item]) -> Item:
    from daytwo.domain.errors import NotFound

    try:
        return ask()
    except NotFound as error:
        raise from_error(error, "daytwo lab status") from error


def _client(socket: Path | None) -> LabClient:
    from daytwo.lab.client import LabClient

    return LabClient(str(socket or default_socket()))


def _show(status: Item, form: str, only: str | None = None) -> None:
    nodes = [node for node in status["nodes"] if only in (None, node["name"])]
    output.show_list({"items": nodes}, form, COLUMNS, lambda node: str(node["name"]))
