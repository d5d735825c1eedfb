"""`make chaos`: kills and stops every process in every state of a repair, and counts what was lost or done twice.

`python -m tests.chaos --kills 500` goes through the matrix; `--seed N` instead walks at random, and says its seed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import signal
import sys
import tempfile
from pathlib import Path

import click

from tests import postgres as pg
from tests.chaos import report
from tests.chaos.running import ALL, Order, run


@click.command("chaos")
@click.option("--kills", default=520, show_default=True, type=click.IntRange(1), help="How many, stops counted too.")
@click.option("--seed", type=int, help="Strike anybody at any moment, by this seed. Without it: the matrix, in turn.")
@click.option("--random", "walk", is_flag=True, help="The same with a seed of its own, which is printed.")
@click.option("--only", default="", metavar="NAMES", help=f"Comma-separated, of: {', '.join(ALL)}.")
@click.option("--nodes", default=16, show_default=True, type=click.IntRange(4, 64), help="Repairs in flight, at most.")
@click.option("--sqlite", is_flag=True, help="The embedded store instead of a PostgreSQL.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Write the tables into this file too.")
@click.option("--keep", is_flag=True, help="Keep the folder of state and logs.")
def main(
    *, kills: int, seed: int | None, walk: bool, only: str, nodes: int, sqlite: bool, markdown: Path | None, keep: bool
) -> None:
    """Kill and stop every process in every state of a repair; exit code 1 if anything was lost, doubled or left."""
    logging.disable(logging.WARNING)
    if reason := "" if sqlite else pg.missing():
        click.echo(f"NOT RUN: postgres, postgres-backend: {reason}")
    names = tuple(filter(None, only.split(",")))
    if unknown := set(names) - set(ALL):
        raise click.BadParameter(f"found {min(unknown)!r}, allowed: {', '.join(ALL)}", param_hint="--only")
    at_random = walk or seed is not None
    chosen = secrets.randbelow(10**6) if seed is None else seed
    order = Order(kills, chosen, at_random=at_random, only=names, nodes=nodes, postgres=not (sqlite or reason))
    click.echo(f"{kills} kills, {'random walk, ' if at_random else ''}seed {chosen}")
    with _folder(keep=keep) as folder:
        result = asyncio.run(_until_told(folder, order))
    click.echo(report.as_text(result))
    if markdown:
        markdown.write_text(report.as_markdown(result) + "\n")
    sys.exit(0 if result.is_sound else 1)


async def _until_told(folder: Path, order: Order) -> report.Result:
    """Run, and on SIGTERM end as on Ctrl-C: with nothing left behind."""
    running = asyncio.ensure_future(run(folder, order, click.echo))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
    return await running


def _folder(*, keep: bool) -> contextlib.AbstractContextManager[Path]:
    if not keep:
        return _Temporary()
    folder = Path(tempfile.mkdtemp(prefix="daytwo-chaos-"))
    click.echo(f"state and logs: {folder}")
    return contextlib.nullcontext(folder)


class _Temporary(tempfile.TemporaryDirectory):
    def __init__(self) -> None:
        super().__init__(prefix="daytwo-chaos-", ignore_cleanup_errors=True)

    def __enter__(self) -> Path:
        return Path(super().__enter__())


if __name__ == "__main__":
    main()
