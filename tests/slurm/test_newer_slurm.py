"""Slurm 23.02 and later print other JSON, by other programs. The samples were recorded from a 24.11.

One node of it was drained by us, and one job of two nodes ran.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from daytwo.domain.definition import SlurmAccess
from daytwo.domain.seams import Ownership
from daytwo.schedulers import slurm_text
from daytwo.schedulers.slurm import node_facts, workload
from daytwo.schedulers.slurm_cli import SlurmCli
from tests.slurm.conftest import CLUSTER

SAMPLES = Path(__file__).parent / "samples"
NODES = (SAMPLES / "slurm-24.11-nodes.json").read_text()
JOBS = (SAMPLES / "slurm-24.11-jobs.json").read_text()
NOW = datetime(2026, 11, 30, 15, 5, 26, tzinfo=UTC)


def test_a_drained_node_is_read() -> None:
    (node,) = slurm_text.read_nodes(NODES)
    line = "ReservationName=daytwo-r-20261130-142100-x7k2q Nodes=n1 Flags=MAINT"
    facts = node_facts(node, slurm_text.read_reservations(line), frozenset({"root"}), NOW)
    assert (facts.states, facts.gpus, facts.ownership) == (("IDLE", "DRAIN"), 8, Ownership.OURS)
    assert facts.boot_time == datetime.fromtimestamp(1796048420, UTC)


def test_a_running_task_of_an_array_is_read() -> None:
    (job,) = slurm_text.read_jobs(JOBS)
    seen = workload(job, "daytwo-requeue", job.start_time + timedelta(seconds=61) if job.start_time else NOW)
    assert (seen.id, seen.nodes, seen.gpus) == ("1_7", ("n2", "n3"), 4)
    assert (seen.elapsed_seconds, seen.time_limit_seconds, seen.state) == (61, 5400, "RUNNING")
    assert seen.opted_into_requeue


@pytest.mark.parametrize(
    ("version", "found"), [("slurm-wlm 22.05.8", "old"), ("slurm 23.02.7", "n1"), ("slurm 25.05.1", "n1")]
)
async def test_nodes_are_asked_of_the_program_that_prints_them_as_json(
    tmp_path: Path, version: str, found: str
) -> None:
    (tmp_path / "new.json").write_text(NODES)
    (tmp_path / "old.json").write_text(NODES.replace('"name": "n1"', '"name": "old"'))
    scripts = {
        "scontrol": f'[ "$1" = --version ] && echo "{version}" || cat {tmp_path}/new.json',
        "sinfo": f"cat {tmp_path}/old.json",
    }
    for name, body in scripts.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    nodes = await SlurmCli(SlurmAccess(bin=str(tmp_path)), CLUSTER).nodes()
    assert [node.name for node in nodes] == [found]
