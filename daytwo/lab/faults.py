"""What can be broken in the simulated fleet, and how: one row a fault. `Fleet.break_node` reads it.

The texts are the driver's own, as operators posted them where they did; address and process are filled in.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from pydantic import Field

from daytwo.domain.vocabulary import Frozen

Cure = Literal["reboot", "power-cycle", "never"]
OnJobs = Literal["nothing", "hang", "die"]


class Break(Frozen):
    """A fault to inject and how it behaves afterwards. Absent fields take the fault's own default.

    A power cycle also cures what a reboot cures. `returns_after` is simulated seconds from the cure to the relapse.
    `reason` and `by` are for drains.
    """

    fault: str
    gpu: int | None = Field(default=None, ge=0)
    cured_by: Cure | None = None
    never_comes_back: bool = False
    comes_back_without_gpu: bool = False
    returns_after: float | None = Field(default=None, gt=0)
    job_dies: bool = False
    reason: str = Field(default="", max_length=200)
    by: str = Field(default="", max_length=64)


@dataclass(frozen=True, slots=True)
class Script:
    """What a fault does to a node. `lines` are kernel texts; `{pci}`, `{pid}`, `{name}`, `{gpu}` are filled in.

    `recovery` is the recovery action that the driver then asks for (Xid 154). `node_wide`: no GPU is concerned.
    """

    lines: tuple[str, ...] = ()
    lost: bool = False
    recovery: int = 0
    remap_pending: bool = False
    remap_failed: bool = False
    hw_slowdown: bool = False
    on_jobs: OnJobs = "nothing"
    cured_by: Cure = "reboot"
    node_wide: bool = False
    level: int = 3


@dataclass(frozen=True, slots=True)
class Drain:
    """Why a node takes no work, by whom, since when."""

    reason: str
    by: str
    at: datetime


@dataclass(slots=True)
class ActiveFault:
    """A fault that is on a node now, and has struck at least once. `gpu` is an index; `drain` is what it set."""

    script: Script
    how: Break
    gpu: int | None
    drain: Drain | None = None

    @property
    def cured_by(self) -> Cure:
        """What ends it."""
        return self.how.cured_by or self.script.cured_by

    def survives(self, boot: Literal["reboot", "power-cycle"]) -> bool:
        """True if this kind of boot does not cure it."""
        return self.cured_by == "never" or (self.cured_by == "power-cycle" and boot == "reboot")


RECOVERY_WORDS: Final = {0: "None", 1: "GPU Reset Required", 2: "Node Reboot Required", 4: "Drain and Reset"}
"""How driver 570 names the recovery actions that the lab uses."""


def xid(number: int, rest: str) -> str:
    """Return the driver's line for an Xid; `rest` follows the number."""
    return f"NVRM: Xid (PCI:{{pci}}): {number}, {rest}"


_OWNER = "pid={pid}, name={name}"
_NOBODY = "pid='<unknown>', name=<unknown>"
_SM = "Graphics SM Warp Exception on (GPC 1, TPC 3, SM 0): Out Of Range Address"
_MMU = (
    "Ch 00000007, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC1 GPCCLIENT_T1_3 faulted @ 0x7f2a_90000000. "
    "Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ"
)
_GSP = (
    "Timeout after 6s of waiting for RPC response from GPU{gpu} GSP! "
    "Expected function 76 (GSP_RM_CONTROL) (0x20802a02 0x8)."
)
_GSP_TASK = "GSP task exception: load access page fault (cause:0xd) @ pc:0x13636b2, partition:2#0, task:3, gfid: 0"
_DBE = (
    "An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer "
    "at partition 4, subpartition 1."
)
_REMAP = "Row Remapper: New row (0x0000000018f31d80) marked for remapping, reset gpu to activate."
_ECC = "An uncorrectable ECC error detected (possible firmware handling failure) DRAM:1 LTC:0"
_UNCONTAINED = "Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No"
_STUCK = "Ch 00000018, errorString CTX SWITCH TIMEOUT, Info 0x3c046"
_NVLINK = "NVLink: fatal error detected on link 14(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)"
_OFF_BUS = (
    "NVRM: The NVIDIA GPU {pci}.0\nNVRM: (PCI ID: 10de:2330) installed in this system has\n"
    "NVRM: fallen off the bus and is not responding to commands."
)

SCRIPTS: Final[dict[str, Script]] = {
    "xid-13": Script((xid(13, f"{_OWNER}, {_SM}"),), level=4, on_jobs="die"),
    "xid-31": Script((xid(31, f"{_OWNER}, {_MMU}"),), level=4, on_jobs="die"),
    "xid-43": Script((xid(43, f"{_OWNER}, Ch 00000008"),), level=4, on_jobs="die"),
    "xid-45": Script((xid(45, f"{_OWNER}, Ch 00000010"),), level=4),
    "xid-48": Script((xid(48, f"{_OWNER}, {_DBE}"),), recovery=4, remap_pending=True, on_jobs="die"),
    "xid-63": Script(
        (xid(63, f"{_NOBODY}, {_REMAP}"),),
        remap_pending=True,
    ),
    "xid-64": Script(
        (xid(64, f"{_NOBODY}, Row Remapper Error: (0x00000002eebc4100) - All reserved rows for bank are remapped"),),
        remap_failed=True,
        cured_by="never",
    ),
    "xid-74": Script((xid(74, f"{_NOBODY}, {_NVLINK}"),), recovery=1, on_jobs="hang"),
    "xid-79": Script((xid(79, f"{_NOBODY}, GPU has fallen off the bus."),), lost=True, recovery=1, on_jobs="hang"),
    "xid-94": Script((xid(94, "pid={pid}, Contained: CE User Channel (0x9). RST: No, D-RST: No"),), on_jobs="die"),
    "xid-95": Script((xid(95, f"pid={{pid}}, {_UNCONTAINED}"),), recovery=2, on_jobs="die"),
    "xid-109": Script((xid(109, f"{_OWNER}, {_STUCK}"),), on_jobs="hang"),
    "xid-119": Script((xid(119, f"{_OWNER}, {_GSP}"),) * 3, recovery=2, on_jobs="hang"),
    "xid-120": Script((xid(120, _GSP_TASK),), recovery=2, on_jobs="hang"),
    "xid-140": Script(
        (xid(140, f"{_NOBODY}, {_ECC}"),),
        recovery=1,
        on_jobs="die",
    ),
    "xid-154": Script(recovery=2),
    "gpu-off-bus": Script((_OFF_BUS,), lost=True, on_jobs="hang"),
    "thermal-throttle": Script(hw_slowdown=True, cured_by="never"),
    "slurm-drained": Script(node_wide=True, cured_by="never"),
    "person-drain": Script(node_wide=True, cured_by="never"),
    "agent-silent": Script(node_wide=True, cured_by="never"),
}
"""Every fault that can be injected, by the id that the catalogue gives it; `person-drain` is a person's own drain."""

DRAINS: Final = {
    "slurm-drained": ("Kill task failed", "slurm"),
    "person-drain": ("alice: swapping the PSU, ask first", "alice"),
}
"""Reason and author of the drains, where the command names none."""
