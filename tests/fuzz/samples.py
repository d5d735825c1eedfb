"""Good input that the fuzzer starts from: kernel lines, messages, what Slurm and a BMC answer, a definition."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.redfish.bmc import CHASSIS, ROOT, SYSTEM, TASKS, Bmc

SLURM = Path(__file__).parents[1] / "slurm/samples"
NODES: dict[str, Any] = json.loads((SLURM / "slurm-24.11-nodes.json").read_text())
JOBS: dict[str, Any] = json.loads((SLURM / "slurm-24.11-jobs.json").read_text())

XID = "NVRM: Xid (PCI:0000:1a:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
KERNEL_LINES = tuple(
    line.encode()
    for line in (
        XID,
        f"4,1227,437812449932,-;{XID}\n SUBSYSTEM=pci\n DEVICE=+pci:0000:1a:00.0",
        f"<3>[ 130.456250] [ T1946] {XID}",
        f"Aug 19 21:36:23 host kernel: [12345.678901] {XID}",
        f"<4>1 2026-08-15T14:32:10+00:00 host kernel - - - {XID}",
        f"kern  :warn  : 2025-01-21T04:41:44,283302+00:00 {XID}",
        json.dumps({"MESSAGE": XID, "_TRANSPORT": "kernel", "PRIORITY": "3", "SYSLOG_FACILITY": "0"}),
        json.dumps({"MESSAGE": list(XID.encode()), "_SOURCE_MONOTONIC_TIMESTAMP": "437812449932"}),
        f"message repeated 2 times: [ {XID}]",
        "NVRM: Xid (PCI:0000:1a:00 GPU-I:05 GPU-CI:00): 94, pid=17, name=ray::WorkerDict, Contained: 0x1 RST: No",
        "NVRM: Xid (PCI:0000:1a:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
        "NVRM: Xid (PCI:0000:1a:00): 45, pid=1, name=python3, Ch 00000008 caused by previous Xid 79",
        "NVRM: The NVIDIA GPU 0000:18:00.0\nNVRM: (PCI ID: 10de:2901) installed in this system has\n"
        "NVRM: fallen off the bus and is not responding to commands.",
        "NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.",
        "NVRM: GPU at PCI:0000:91:00: GPU-00000000-0000-0000-0000-000000000001",
    )
)

RECORD: dict[str, Any] = {
    "sequence": 1,
    "fault": "xid-79",
    "entity": "GPU-1",
    "status": "firing",
    "count": 1,
    "first_seen": 1764512345.1,
    "last_seen": 1764512345.1,
    "source": "kernel-log",
    "boot_id": "boot-1",
    "kernel_sequence": 7,
    "evidence": [XID],
    "detail": {"xid": 79, "process": "python3", "ok": False, "ratio": 0.5, "nothing": None},
}
FINDINGS: dict[str, Any] = {"stream": 1, "boot_id": "boot-1", "clock": 1764512345.1, "records": [RECORD]}
PULSE: dict[str, Any] = {
    "stream": 3,
    "sequence": 17,
    "boot_id": "boot-1",
    "clock": 1764512345.1,
    "version": "0.1.0",
    "started_at": 1764512000.0,
    "identity": {"system_uuid": "4c4c4544-0042", "serial": "S1", "product": "HGX"},
    "digest": "d1",
    "checks": {"kernel-log": "ok", "gpus": "unknown"},
    "inventory": {
        "gpus": [{"index": 0, "uuid": "GPU-1", "serial": None, "pci": "0000:18:00", "name": "H200"}],
        "driver": "595.45.04",
    },
    "answers": [
        {"id": "q1", "state": "done", "boot_id": "boot-1", "result": {"seen": 8, "gpus": [{"ok": True}]}, "error": ""}
    ],
}
ANSWER: dict[str, Any] = {
    "stream": 1,
    "acknowledged": 1,
    "come_back_seconds": 60,
    "requests": [{"id": "q1", "kind": "probe-gpus", "ttl_seconds": 30, "arguments": {}}],
    "withdrawn": ["q0"],
    "send_full": False,
    "error": "records[0].fault: found 'x'",
}

SLURM_TEXTS = (
    b"ReservationName=r-1 StartTime=2026-11-30T14:00:00 Nodes=gpu-[001-003,7],login Flags=MAINT Users=root",
    b"No reservations in the system",
    b"SLURM_VERSION = 22.05.8\nSlurmUser = slurm(64030)\nRebootProgram = /usr/sbin/reboot\nReturnToService = 0",
    b"slurm-wlm 22.05.8",
    b"gpu:h100:8(S:0-1),nvme:2",
    b"rack[1-4]n[01-16],login-1",
)

DOCUMENTS: dict[str, dict[str, Any]] = {
    path: document for path, document in Bmc().documents.items() if path in (ROOT, f"{ROOT}Systems", SYSTEM, CHASSIS)
}
DOCUMENTS |= {
    f"{ROOT}TaskService": {"Id": "TaskService", "Name": "Tasks", "Tasks": {"@odata.id": TASKS}},
    TASKS: {"Name": "Tasks", "Members": [{"@odata.id": f"{TASKS}/7"}]},
    f"{TASKS}/7": {"Id": "7", "Name": "Firmware update", "TaskState": "Running"},
}

DEFINITION: dict[str, Any] = {
    "name": "east",
    "kind": "slurm",
    "groups": [
        {"nodes": ["gpu-[001-004]"], "pool": "h200", "gpus": 8, "domains": ["r1"], "survives_reboot": {"/nvme": True}},
        {"nodes": ["login-1"], "role": "login"},
    ],
    "slurm": {"conf": "/etc/slurm/slurm.conf"},
    "bmcs": [
        {"nodes": ["gpu-[001-004]"], "address": "https://{node}-bmc.example", "user": "daytwo", "password": "env:BMC"}
    ],
    "policy": {
        "faults": {
            "xid-79": {"mode": "auto", "action": "reboot", "verify": ["boot-id", "dcgm-2"], "debounce_seconds": 5}
        },
        "approval": {
            "people": [{"name": "Alice", "roles": ["operator"], "identities": ["cli:alice", "slack:U1"]}],
            "roles": {"operator": ["reboot"], "lead": ["*"]},
            "two_person": ["reprovision"],
        },
    },
}
