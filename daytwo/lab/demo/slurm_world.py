"""The demo on a real Slurm: slurmctld and four slurmd on this machine, real agents, and a GPU library that is simulated."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from daytwo.domain.errors import Failed, Refused
from daytwo.lab.demo.children import Background
from daytwo.lab.demo.plane import Plane, until
from daytwo.lab.slurm_lab import missing

CLUSTER: Final = "slurm-lab"
NODES: Final = 4
GPUS: Final = 8
START_SECONDS: Final = 60.0
KMSG: Final = Path("/dev/kmsg")


class SlurmWorld:
    """Four nodes of a real Slurm. Only the node that breaks reads the machine's kernel log: they all share one."""

    def __init__(self) -> None:
        reason = missing()
        if reason:
            raise Refused(reason)
        self.cluster = CLUSTER
        self.nodes = NODES
        self.about = f"a real Slurm of {NODES} nodes on this machine, each with {GPUS} simulated GPUs"
        self.up_options: tuple[str, ...] = ()

    def close(self) -> None:
        """End agents and Slurm."""
