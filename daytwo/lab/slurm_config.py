"""The configuration files of the one-machine Slurm that `daytwo.lab.slurm_lab` starts. Pure: text in, text out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True)
class LabSettings:
    """What one lab is like. Times are seconds."""

    nodes: tuple[str, ...]
    gpus: int = 8
    return_to_service: int = 1
    """1: a node that rebooted unasked stays down. 2: any node that registers returns. Sites run both."""
    slurmd_timeout: int = 10
    resume_timeout: int = 60
    boot_seconds: float = 1.0
    extra: str = ""
    """More lines for slurm.conf."""
    files: Mapping[str, str] = field(default_factory=dict)
    """More files beside slurm.conf, by name."""


@dataclass(frozen=True, slots=True)
class LabPlace:
    """Where one lab lives: its folder, this machine's name, and free ports."""

    root: Path
    host: str
    controller_port: int
    node_ports: Mapping[str, int]


SLURM_CONF: Final = """\
ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={root}/run/munge.sock
SlurmctldPort={controller_port}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool/%n
SlurmctldPidFile={root}/run/slurmctld.pid
SlurmdPidFile={root}/run/slurmd.%n.pid
SlurmctldLogFile={root}/log/slurmctld.log
SlurmdLogFile={root}/log/slurmd.%n.log
SlurmctldDebug=verbose
SlurmdDebug=verbose
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerNode=1000
GresTypes=gpu
MpiDefault=none
ReturnToService={return_to_service}
SlurmdTimeout={slurmd_timeout}
SlurmctldTimeout=30
MessageTimeout=4
TCPTimeout=2
UnkillableStepTimeout=20
KillWait=3
MinJobAge=60
InactiveLimit=0
SchedulerParameters=sched_interval=1,bf_interval=1
SlurmdParameters=config_overrides
RebootProgram={root}/bin/reboot
ResumeTimeout={resume_timeout}
Prolog={root}/bin/prolog
{extra}
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""

# The machine has fewer cores than the nodes claim; `config_overrides` above lets them.
NODE_LINE: Final = (
    "NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=16 Sockets=2 CoresPerSocket=8 "
    "ThreadsPerCore=1 RealMemory=64000 Gres=gpu:h100:{gpus} State=UNKNOWN"
)


def slurm_conf(settings: LabSettings, place: LabPlace) -> str:
    """Return slurm.conf."""
    lines = [
        NODE_LINE.format(node=node, host=place.host, port=place.node_ports[node], gpus=settings.gpus)
        for node in settings.nodes
    ]
    return SLURM_CONF.format(
        host=place.host,
        root=place.root,
        controller_port=place.controller_port,
        return_to_service=settings.return_to_service,
        slurmd_timeout=settings.slurmd_timeout,
        resume_timeout=settings.resume_timeout,
        extra=settings.extra,
        nodes="\n".join(lines),
    )


def gres_conf(root: Path, gpus: Mapping[str, int]) -> str:
    """Return gres.conf; `gpus` is how many device files each node has. None at all: the node has no line."""
    return "".join(
        f"NodeName={node} Name=gpu Type=h100 File={root}/dev/nvidia[0-{count - 1}]\n"
        for node, count in gpus.items()
        if count
    )


def cgroup_conf() -> str:
    """Return cgroup.conf: nothing is confined, so that the lab runs on any machine."""
    return "ConstrainCores=no\nConstrainDevices=no\nConstrainRAMSpace=no\n"


def hook(body: Sequence[str]) -> str:
    """Return a shell script of these lines."""
    return "\n".join(("#!/bin/sh", *body, ""))
