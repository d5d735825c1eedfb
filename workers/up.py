"""`daytwo up`: the whole control plane on one machine, each part a supervised process.

`daytwo.cli.up` replaces itself with this module. Parts start when what they need answers, and stop in reverse order.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click

from daytwo import settings as settings_module
from daytwo.cli.failure import from_error, from_usage
from daytwo.cli.up import options
from daytwo.domain.errors import BadInput, DaytwoError
from daytwo.one_at_a_time import only_one
from daytwo.process import harden
from daytwo.settings import Settings
from daytwo.store.engine import Store
from workers import probes
from workers.lab_part import PULSE_SECONDS, LabPart
from workers.ports import Ports
from workers.supervise import Child, Probe, Supervisor
from workers.temporal_server import NAMESPACE, TemporalServer

LONGEST_SOCKET_PATH: Final = 107
"""Bytes; the kernel's limit for the address of a Unix socket."""

ABOUT: Final = "up.json"
"""The file in the state folder that says where everything is, while everything runs."""


WORKER_STOP_SECONDS: Final = 22.0
"""The worker lets the tries end that are under way, for up to 20 s."""

KEPT_FROM: Final = {
    "temporal": ("DAYTWO_", "TEMPORAL_"),
    "gateway": ("TEMPORAL_",),
    "service": ("DAYTWO_GATEWAY_TLS_",),
    "worker": ("DAYTWO_GATEWAY_TLS_",),
    "controller": ("DAYTWO_GATEWAY_TLS_",),
    "lab": ("TEMPORAL_", "DAYTWO_STORE_URL", "DAYTWO_GATEWAY_TLS_"),
}
"""What each part of `up` is not told, by the beginning of the variable's name."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything `up` decided before it starts anything."""

    settings: Settings
    temporal: TemporalServer
    lab: LabPart | None = None

    def environment(self, *kept_from: str) -> dict[str, str]:
        """What a part gets: where the others are, and of our own environment all that does not begin with `kept_from`.

        A part is not told what it does not use: another's password is not in its memory, and not its to lose.
        """
        told = {name: value for name, value in (os.environ | self._where()).items() if not name.startswith(kept_from)}
        return told | {"PYTHONUNBUFFERED": "1"}

    def _where(self) -> dict[str, str]:
        return {
            "DAYTWO_STATE_DIR": str(self.settings.state_dir),
            "DAYTWO_STORE_URL": self.settings.store_url,
            "DAYTWO_SERVICE_SOCKET": str(self.settings.service_socket),
            "DAYTWO_GATEWAY_URL": self.settings.gateway_url,
            "DAYTWO_TASK_QUEUE": self.settings.task_queue,
            "TEMPORAL_ADDRESS": self.temporal.address,
            "TEMPORAL_NAMESPACE": NAMESPACE,
            **({"DAYTWO_PULSE_SECONDS": str(PULSE_SECONDS)} if self.lab else {}),
        }

    def part(self, name: str, *command: str, ready: Probe, port: int | None = None) -> Child:
        """A part of the installation: a Python module that finds the others through its environment."""
        environment = self.environment(*KEPT_FROM.get(name, ()))
        return Child(name, (sys.executable, "-m", *command), environment, ready, port=port)


def plan(
    settings: Settings, ports: Ports, *, temporal_port: int, ui_port: int, any_port: bool, lab: int | None, speed: float
) -> Plan:
    """Decide folders and ports. Raises `BadInput` or `Refused` before anything has started."""
    if len(os.fsencode(settings.service_socket)) > LONGEST_SOCKET_PATH:
        raise BadInput(
            f"DAYTWO_SERVICE_SOCKET: found {str(settings.service_socket)!r}; "
            f"allowed are at most {LONGEST_SOCKET_PATH} bytes, which is the kernel's limit"
        )
    settings_module.check_tls(settings)
    temporal = TemporalServer(
        settings.state_dir / "temporal.db",
        ports.choose(temporal_port, what="Temporal", any_free=any_port),
        ports.choose(ui_port, what="the Temporal UI", any_free=any_port),
    )
    gateway = urlsplit(settings.gateway_url)
    port = ports.choose(gateway.port or 80, what="the gateway", any_free=any_port)
    url = gateway._replace(netloc=f"{gateway.hostname}:{port}").geturl()
    part = LabPart(settings.state_dir, lab, speed) if lab else None
    return Plan(replace(settings, gateway_url=url), temporal, part)


async def run(chosen: Plan) -> None:
    """Start everything, say where it is, and keep it alive until SIGTERM or SIGINT. Raises `Failed` if it cannot."""
    supervisor = Supervisor(chosen.settings.state_dir / "log", _say)
    asked_to_stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, asked_to_stop.set)
    starting = asyncio.create_task(_start(chosen, supervisor))
    stopping = asyncio.create_task(asked_to_stop.wait())
    try:
        await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            _announce(chosen, supervisor)
            await stopping
    finally:
        starting.cancel()
        _say("stopping")
        await supervisor.stop()


async def _start(chosen: Plan, supervisor: Supervisor) -> None:
    temporal = Child(
        "temporal",
        chosen.temporal.command(),
        chosen.environment(*KEPT_FROM["temporal"]),
        chosen.temporal.is_ready,
        port=chosen.temporal.port,
    )
    await supervisor.start(temporal)
    await chosen.temporal.keep_histories()
    await supervisor.start(
        chosen.part("service", "workers.service", ready=probes.http_over_socket(chosen.settings.service_socket)),
        replace(
            chosen.part("worker", "workers.control", ready=probes.polls(chosen.temporal, chosen.settings.task_queue)),
            stop_seconds=WORKER_STOP_SECONDS,
        ),
        chosen.part(
            "gateway",
            "workers.gateway",
            ready=probes.http(f"{chosen.settings.gateway_url}/readyz"),
            port=urlsplit(chosen.settings.gateway_url).port,
        ),
        chosen.part("controller", "workers.controller", ready=probes.leads(chosen.settings.service_socket)),
    )
    if chosen.lab:
        await chosen.lab.declare(chosen.settings.service_socket)
        lab = chosen.part(
            "lab", *chosen.lab.command(chosen.settings.gateway_url), ready=probes.socket_exists(chosen.lab.socket)
        )
        await supervisor.start(lab)


def _announce(chosen: Plan, supervisor: Supervisor) -> None:
    settings = chosen.settings
    where = {
        "temporal": f"{chosen.temporal.address}  UI {chosen.temporal.ui_url}",
        "service": f"{settings.service_socket}",
        "gateway": settings.gateway_url,
        "worker": f"task queue {settings.task_queue}",
    }
    about = {
        "temporal_ui": chosen.temporal.ui_url,
        "temporal_address": chosen.temporal.address,
        "temporal_namespace": NAMESPACE,
        "gateway_url": settings.gateway_url,
        "service_socket": str(settings.service_socket),
        **({"lab_socket": str(chosen.lab.socket)} if chosen.lab else {}),
        "log_dir": str(settings.state_dir / "log"),
    }
    _write_whole(settings.state_dir / ABOUT, json.dumps(about, indent=2) + "\n")
    for name, pid in supervisor.status().items():
        _say(f"{name:<11} {pid or '-':<8} {where.get(name, '')}")
    _say(f"logs        {settings.state_dir / 'log'}")
    _say("ready; Ctrl-C stops everything")
    _tell_systemd("READY=1")


def _write_whole(path: Path, text: str) -> None:
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


def _check_version(settings: Settings) -> None:
    """Say it here, once, instead of by every part in turn. Raises `TooNew`."""
    store = Store(settings.store_url)
    try:
        store.check_version()
    finally:
        store.close()


def _tell_systemd(what: str) -> None:
    # The protocol of Type=notify: one datagram to the socket that systemd names; `@` stands for an abstract address.
    address = os.environ.get("NOTIFY_SOCKET")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.sendto(what.encode(), address.replace("@", "\0", 1) if address.startswith("@") else address)


def _say(line: str) -> None:
    click.echo(line, err=True)


@click.command("daytwo up")
@options
def command(**given: Any) -> None:
    """Run the whole control plane on this machine until Ctrl-C."""
    settings = settings_module.load()
    settings.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = settings.state_dir / ABOUT
    with only_one(settings.state_dir), Ports() as ports:
        about.unlink(missing_ok=True)
        _check_version(settings)
        try:
            asyncio.run(run(plan(settings, ports, **given)))
        finally:
            about.unlink(missing_ok=True)


def main() -> None:
    """Run the command; errors that people can act on are one message and their exit code."""
    harden()
    try:
        with suppress(KeyboardInterrupt):
            command.main(standalone_mode=False)
    except click.UsageError as error:
        from_usage(error).show()
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except DaytwoError as error:
        from_error(error).show()
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
