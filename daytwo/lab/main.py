"""`python -m daytwo.lab`: one process with the simulated fleet, its socket and its agents. `daytwo lab up` starts it.

Prints one line when it serves; SIGTERM or SIGINT stop it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import click

from daytwo.domain.errors import BadInput, DaytwoError
from daytwo.lab.agents import Agents
from daytwo.lab.definition import node_names
from daytwo.lab.fleet import Fleet
from daytwo.lab.server import Lab, now
from daytwo.lab.serving import serving

TICK_SECONDS: Final = 0.05
"""How often the fleet moves when nobody asks: what a kernel prints reaches its agent within this."""


def build(*, nodes: int, gpus: int, seed: int, speed: float) -> Lab:
    """Return a lab with a fleet in full swing."""
    return Lab(Fleet(node_names(nodes), wall=now, gpus=gpus, seed=seed), speed=speed)


async def run(lab: Lab, socket: Path, agents: Agents | None = None) -> None:
    """Serve `lab` on `socket`, and run its agents, until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with serving(lab, socket):
        click.echo(f"lab ready: {len(lab.fleet.nodes)} nodes on {socket}, {lab.speed:g} times as fast as the clock")
        async with moving(lab, agents):
            await stop.wait()


@asynccontextmanager
async def moving(lab: Lab, agents: Agents | None) -> AsyncIterator[None]:
    """Let the fleet move, and its agents live, while the block lasts."""
    tasks = [asyncio.create_task(_tick(lab, agents))]
    if agents is not None:
        tasks.append(asyncio.create_task(agents.run()))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _tick(lab: Lab, agents: Agents | None) -> None:
    while True:
        lab.advance()
        if agents is not None:
            agents.notice()
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


def make_agents(lab: Lab, gateway: str | None, tokens: Path | None) -> Agents | None:
    """Return the agents of `lab`, or `None` without a gateway. Raises `BadInput` for what lacks or cannot be read."""
    if gateway is None:
        return None
    if tokens is None:
        raise BadInput("--tokens: found none; agents need a JSON file from node names to tokens, or --no-agents")
    return Agents(lab.fleet, gateway, read_tokens(tokens))


@click.command("daytwo lab")
@click.option("--socket", type=click.Path(path_type=Path), required=True, help="Unix socket to listen on.")
@click.option("--nodes", default=16, show_default=True, type=click.IntRange(1, 2000))
@click.option("--gpus", default=8, show_default=True, type=click.IntRange(1, 16), help="GPUs of each node.")
@click.option(
    "--speed", default=60.0, show_default=True, type=click.FloatRange(min=0.1), help="Simulated seconds a second."
)
@click.option("--seed", default=1, show_default=True, help="The same seed gives the same machines and jobs.")
@click.option("--gateway", metavar="URL", help="Where the agents of the nodes report.")
@click.option("--tokens", type=click.Path(path_type=Path), help="JSON file: node name to token.")
@click.option("--no-agents", is_flag=True, help="Run no agents, even with a gateway.")
def main(*, socket: Path, gateway: str | None, tokens: Path | None, no_agents: bool, **fleet: Any) -> None:
    """Run a simulated fleet until it is stopped."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        lab = build(**fleet)
        asyncio.run(run(lab, socket, make_agents(lab, None if no_agents else gateway, tokens)))
    except DaytwoError as error:
        click.echo(f"lab: {error}", err=True)
        sys.exit(error.exit_code)
