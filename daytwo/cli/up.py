"""`daytwo up`: runs everything on this machine. `workers.up` does it, a process of its own; here are its options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from daytwo.cli.becoming import become
from daytwo.cli.options import Number, Whole

_OPTIONS = (
    click.option(
        "--lab",
        type=Whole(1, 2000),
        metavar="NODES",
        help="Also run a simulated cluster of so many nodes.",
    ),
    click.option(
        "--speed",
        type=Number(min=1),
        default=1.0,
        show_default=True,
        help="How many times faster than real the simulated nodes live.",
    ),
    click.option(
        "--temporal-port", type=Whole(1, 65535), default=7233, show_default=True, help="Port of the Temporal server."
    ),
    click.option("--ui-port", type=Whole(1, 65535), default=8233, show_default=True, help="Port of the Temporal UI."),
    click.option("--any-port", is_flag=True, help="Take another free port where one is in use, instead of failing."),
)


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of `daytwo up`; `workers.up` has the same ones."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command("up")
@options
def up(**given: Any) -> None:
    """Run the whole control plane on this machine until Ctrl-C.

    Temporal's development server with its UI, store, worker, controller, gateway and service; with --lab also a
    simulated fleet. State and logs are in DAYTWO_STATE_DIR.
    """
    become("workers.up", *_as_words(given))


def _as_words(given: dict[str, Any]) -> list[str]:
    words: list[str] = []
    for name, value in given.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        elif value not in (None, False):
            words += [option, str(value)]
    return words
