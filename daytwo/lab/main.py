"""`python -m daytwo.lab`: one process with the simulated fleet, its socket and its agents. `daytwo lab up` starts it.

Prints one line when it serves; SIGTERM or SIGINT stop it.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Final

import click

from daytwo.domain.errors import BadInput, DaytwoError
from daytwo.lab.definition import node_names
from daytwo.lab.fleet import Fleet
from daytwo.lab.server import Lab, now
from daytwo.lab.serving import serving

TICK_SECONDS: Final = 0.05
"""How often the fleet moves when nobody asks: what a kernel prints reaches its agent within this."""


def build(*, nodes: int, gpus: int, seed: int, speed: float) -> Lab:
    """Return a lab with a fleet in full swing."""
    return Lab(Fleet(node_names(nodes), wall=now, gpus=gpus, seed=seed), speed=speed)


async def run(lab: Lab, socket: Path) -> None:
    """Serve `lab` on `socket` until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with serving(lab, socket):
        click.echo(f"lab ready: {len(lab.fleet.nodes)} nodes on {socket}, {lab.speed:g} times as fast as the clock")
        ticking = asyncio.create_task(_tick(lab))
        await stop.wait()
        ticking.cancel()


async def _tick(lab: Lab) -> None:
    while True:
        lab.advance()
        await asyncio.sleep(TICK_SECONDS)


def read_tokens(path: Path) -> dict[str, str]:
    """Return the node tokens in a JSON object. Raises `BadInput` naming the file and what was found."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: {error}; allowed is a JSON object from node names to tokens") from error
    if not isinstance(found, dict) or not all(isinstance(token, str) for token in found.values()):
        raise BadInput(f"{path}: found {type(found).__name__}; allowed is a JSON object from node names to tokens")
    return found


@click.command("daytwo lab")
@click.option("--socket", type=click.Path(path_type=Path), required=True, help="Unix socket to listen on.")
@click.option("--nodes", default=16, show_default=True, type=click.IntRange(1, 512))
@click.option("--gpus", default=8, show_default=True, type=click.IntRange(1, 16), help="GPUs of each node.")
@click.option(
    "--speed", default=60.0, show_default=True, type=click.FloatRange(min=0.1), help="Simulated seconds a second."
)
@click.option("--seed", default=1, show_default=True, help="The same seed gives the same fleet.")
def main(socket: Path, nodes: int, gpus: int, speed: float, seed: int) -> None:
    """Run a simulated fleet until it is stopped."""
    try:
        asyncio.run(run(build(nodes=nodes, gpus=gpus, seed=seed, speed=speed), socket))
    except DaytwoError as error:
        click.echo(f"lab: {error}", err=True)
        sys.exit(error.exit_code)
