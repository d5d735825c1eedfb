"""The commands that become one of daytwo's processes: they replace this program, which never carries their imports."""

from __future__ import annotations

from typing import Final

import click

from daytwo.cli.becoming import become

PASS_ON: Final = {"ignore_unknown_options": True, "allow_extra_args": True}


AGENT_OPTIONS: Final = """\
Each option is also a variable: DAYTWO_AGENT_NODE and so on.

\b
  --gateway URL             Where the gateway is. Required.
  --token-file FILE         This node's token. Required.
  --node NAME               As its cluster knows it. Default: the host name.
  --ca-file FILE            What vouches for the gateway. Default: the system's.
  --state-dir DIR           What must survive a restart.
  --kernel-log SOURCE       auto (default: kmsg, else journal), kmsg, journal,
                            journal:FOLDER, or file:PATH.
  --expect-gpus N           Default: learnt from the first reading.
  --pulse-seconds N         Longest time between two pulses. Default: 60.
  --gpu-poll-seconds N      Time between two readings of the GPUs. Default: 60.
  --gpu-deadline-seconds N  How long one reading may take. Default: 20.
  --accept-user-records     For tests: believe records that a process wrote.
  --version"""


def _command(name: str, module: str, text: str) -> click.Command:
    @click.command(name, context_settings=PASS_ON, help=f"{text}\n\nOptions are passed on to `python -m {module}`.")
    @click.argument("options", nargs=-1, type=click.UNPROCESSED)
    def command(options: tuple[str, ...]) -> None:
        become(module, *options)

    return command


worker = _command("worker", "workers.control", "Run the control worker: workflows and activities.")
controller = _command("controller", "workers.controller", "Run the controller: watch loops and reconciler.")
gateway = _command("gateway", "workers.gateway", "Run the gateway that nodes speak to.")
service = _command("service", "workers.service", "Run the service for people on its Unix socket.")
agent = _command("agent", "daytwo.agent.main", f"Run the agent of this node.\n\n{AGENT_OPTIONS}")
