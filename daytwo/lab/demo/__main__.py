"""The command behind `make demo`."""

from __future__ import annotations

import signal
import sys
import time
from contextlib import closing
from types import FrameType

import click

from daytwo.domain.errors import DaytwoError
from daytwo.lab.demo import plane, screen, story, worlds
from daytwo.lab.demo.slurm_world import SlurmWorld

SPEED = 60.0
SIMULATED_NODES = 16


@click.command()
@click.option(
    "--slurm", is_flag=True, help="On a real Slurm, started for the purpose; needs root and Debian's packages."
)
@click.option(
    "--auto", is_flag=True, help="Approve after a moment, and end with exit code 0 only if the node returned."
)
def main(slurm: bool, auto: bool) -> None:
    """Break a GPU node, ask, repair it, and see it return."""
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        _play(SlurmWorld() if slurm else worlds.SimulatedWorld(SIMULATED_NODES, SPEED), auto=auto)
    except (KeyboardInterrupt, click.Abort):
        click.echo("\nstopped", err=True)
        sys.exit(130)
    except story.NotReturned as error:
        click.echo(f"\n{error}", err=True)
        sys.exit(error.exit_code)
    except DaytwoError as error:
        click.echo(f"\nThe demo failed: {error}\nLogs: {worlds.state_dir()}/log", err=True)
        sys.exit(error.exit_code)


def _play(world: worlds.World, *, auto: bool) -> None:
    screen.step(f"Starting daytwo for {world.about}")
    began = time.monotonic()
    with plane.up(worlds.state_dir(), *world.up_options) as running, closing(world):
        screen.line(f"everything answers after {time.monotonic() - began:.1f} s")
        screen.line(f"Temporal UI {running.where['temporal_ui']}   logs {running.where['log_dir']}")
        world.open(running)
        story.tell(world, running, auto=auto)
        screen.step("Stopping everything")


def _interrupted(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
