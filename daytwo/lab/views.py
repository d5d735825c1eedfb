"""The simulated fleet as its scheduler, its BMCs and a person see it: plain dictionaries for `daytwo.lab.server`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from daytwo.lab.fleet import Fleet
from daytwo.lab.world import ON_A_NODE, SCHEDULER_USER, Job, Node

PARTITION = "main"


def scheduler_node(fleet: Fleet, node: Node) -> dict[str, Any]:
    """What the scheduler says of a node, in Slurm's words."""
    reason, by, at = _reason(node)
    return {
        "name": node.name,
        "states": states(fleet, node),
        "reason": reason,
        "reason_by": by,
        "reason_at": at,
        "boot_time": node.boot_time.isoformat() if node.up else None,
        "gpus": node.gpus_registered,
        "gpus_configured": len(node.gpus),
        "reservations": [held.name for held in fleet.reservations_of(node)],
        "partitions": [PARTITION],
    }


def states(fleet: Fleet, node: Node) -> list[str]:
    """Return Slurm's base state and its flags."""
    flags = {
        "DRAIN": node.drain is not None,
        "INVALID_REG": node.up and node.gpus_registered < len(node.gpus),
        "REBOOT_REQUESTED": node.reboot_requested,
        "REBOOT_ISSUED": node.reboot_issued,
        "NOT_RESPONDING": not node.up,
        "MAINTENANCE": bool(fleet.reservations_of(node)),
        "RESERVED": bool(fleet.reservations_of(node)),
        "COMPLETING": any(job.state == "COMPLETING" for job in fleet.queue.on(node.name)),
    }
    return [_base(fleet, node), *(flag for flag, holds in flags.items() if holds)]


def scheduler_job(fleet: Fleet, job: Job) -> dict[str, Any]:
    """What the scheduler says of a job. It cannot see that a job hangs."""
    elapsed = fleet.queue.elapsed(job)
    return {
        "id": job.id,
        "name": job.name,
        "user": job.user,
        "account": job.account,
        "partition": PARTITION,
        "state": job.state,
        "nodes": list(job.nodes),
        "gpus": job.gpus_per_node * job.width,
        "elapsed_seconds": None if elapsed is None else int(elapsed),
        "time_limit_seconds": int(job.time_limit),
        "requeue": job.may_requeue,
        "comment": job.comment,
        "restarts": job.restarts,
    }


def jobs_on(fleet: Fleet, nodes: Iterable[str]) -> list[Job]:
    """Return the jobs that hold a part of any of `nodes`."""
    wanted = set(nodes)
    return [job for job in fleet.queue.jobs.values() if job.state in ON_A_NODE and wanted & set(job.nodes)]


def machine(node: Node) -> dict[str, Any]:
    """What the BMC says of a machine."""
    return {
        "name": node.name,
        "system_uuid": node.system_uuid,
        "serial": node.serial,
        "power": "off" if node.power == "off" else "on",
        "resets": node.resets,
        "os_running": node.up,
    }


def status(fleet: Fleet) -> dict[str, Any]:
    """The whole fleet for a person: what is broken, and what each node does."""
    return {
        "second": round(fleet.timeline.now, 1),
        "at": fleet.wall().isoformat(),
        "nodes": [_status_of(fleet, node) for node in fleet.nodes.values()],
        "pending_jobs": sum(job.state == "PENDING" for job in fleet.queue.jobs.values()),
    }


def _status_of(fleet: Fleet, node: Node) -> dict[str, Any]:
    return {
        "name": node.name,
        "power": node.power,
        "states": states(fleet, node),
        "reason": _reason(node)[0],
        "faults": [fault.how.fault for fault in node.faults],
        "jobs": [job.id for job in fleet.queue.on(node.name)],
        "boot_id": node.boot_id,
        "gpus": [gpu.uuid for gpu in node.gpus if not gpu.absent],
    }


def _base(fleet: Fleet, node: Node) -> str:
    if node.down or node.reboot_issued:
        return "DOWN"
    taken = sum(job.gpus_per_node for job in fleet.queue.on(node.name))
    if taken == 0:
        return "IDLE"
    return "ALLOCATED" if taken >= node.gpus_registered else "MIXED"


def _reason(node: Node) -> tuple[str, str, str | None]:
    suffix = " : reboot issued" if node.reboot_issued else ""
    suffix = " : reboot issued : reboot timed out" if node.down_reason == "reboot timed out" else suffix
    if node.drain is not None:
        return node.drain.reason + suffix, node.drain.by, node.drain.at.isoformat()
    return (node.down_reason, SCHEDULER_USER, None) if node.down else ("", "", None)
