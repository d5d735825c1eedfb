"""The Slurm scheduler keeps the contract of schedulers, on a real slurmctld."""

from __future__ import annotations

from tests.contracts.scheduler import SchedulerContract


class TestSlurmScheduler(SchedulerContract):
    """Every promise, on a node of the shared lab."""
