"""The commands that become one of daytwo's processes: they replace this program, which never carries their imports."""

from __future__ import annotations

import os
import sys
from typing import Final

import click

PASS_ON: Final = {"ignore_unknown_options": True, "allow_extra_args": True}


def _command(name: str, module: str, text: str) -> click.Command:
    @click.command(name, context_settings=PASS_ON, help=f"{text}\n\nOptions are passed on to `python -m {module}`.")
    @click.argument("options", nargs=-1, type=click.UNPROCESSED)
    def become(options: tuple[str, ...]) -> None:
        os.execv(sys.executable, [sys.executable, "-m", module, *options])  # noqa: S606  # this Python, our module

    return become


worker = _command("worker", "workers.control", "Run the control worker: workflows and activities.")
controller = _command("controller", "workers.controller", "Run the controller: watch loops and reconciler.")
gateway = _command("gateway", "workers.gateway", "Run the gateway that nodes and webhooks speak to.")
service = _command("service", "workers.service", "Run the service for people on its Unix socket.")
agent = _command("agent", "daytwo.agent.main", "Run the agent of this node.")
