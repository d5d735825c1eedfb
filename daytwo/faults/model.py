"""What a fault is: the words of the catalogue. Standard library only, because the agent carries it to every node."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Action(StrEnum):
    """What can be done to a node. The order is no ladder: each class of fault has its own (`daytwo.domain.ladders`)."""

    RUN_DIAGNOSTIC = "run-diagnostic"
    VERIFY = "verify"
    RESTART_SERVICE = "restart-service"
    RESET_GPU = "reset-gpu"
    REBOOT = "reboot"
    POWER_CYCLE = "power-cycle"
    REPROVISION = "reprovision"
    FAILOVER = "failover"
    REMOVE = "remove"
    TELL_OWNER = "tell-owner"
    INSPECT = "inspect"

    @property
    def touches_nothing(self) -> bool:
        """True for the two that only tell somebody."""
        return self in (Action.TELL_OWNER, Action.INSPECT)


class FaultClass(StrEnum):
    """Which ladder of actions a fault climbs."""

    BOARD = "board"
    SOFTWARE = "software"
    FILESYSTEM = "filesystem"
    LINK = "link"
    FACILITY = "facility"
    APPLICATION = "application"
    SCHEDULER = "scheduler"
    AGENT = "agent"


class Clears(StrEnum):
    """What ends a finding. An Xid never clears by falling silent unless the catalogue says `quiet-for`."""

    READING = "reading"
    RESET = "reset"
    BOOT_AND_TESTS = "boot-and-tests"
    PART_SWAPPED = "part-swapped"
    QUIET_FOR = "quiet-for"
    PERSON = "person"


class Severity(StrEnum):
    """How soon somebody must look: critical pages, degraded waits for the day, cosmetic never pages."""

    CRITICAL = "critical"
    DEGRADED = "degraded"
    COSMETIC = "cosmetic"


class Mode(StrEnum):
    """What daytwo may do about a fault by itself."""

    OFF = "off"
    RECORD = "record"
    RECOMMEND = "recommend"
    AUTO = "auto"


class VerifyTest(StrEnum):
    """A test that a node passes before it returns. `wanted` ones are not run yet: the verdict calls them untested."""

    BOOT_ID = "boot-id"
    """The agent that answers runs in the boot that the act led to."""
    GPU_COUNT = "gpu-count"
    GPU_UUIDS = "gpu-uuids"
    RECOVERY_ACTION_ZERO = "recovery-action-zero"
    NO_PENDING_REMAP = "no-pending-remap"
    """No row remap is pending, and none has failed."""
    NO_NEW_XID = "no-new-xid"
    SLURM_GRES = "slurm-gres"
    DRIVER = "driver"
    SAME_MACHINE = "same-machine"
    """Who answers calls itself, by its firmware, what the node called itself before."""

    DCGM_2 = "dcgm-2"
    DCGM_3 = "dcgm-3"
    NVBANDWIDTH = "nvbandwidth"
    PCIE_WIDTH_UNDER_LOAD = "pcie-width-under-load"
    NVLINK_ALL_PAIRS = "nvlink-all-pairs"
    NCCL_ALL_PAIRS = "nccl-all-pairs"
    LOAD_10_MINUTES = "load-10-minutes"
    CLOCKS = "clocks"
    NO_LEFTOVER_PROCESSES = "no-leftover-processes"

    @property
    def wanted(self) -> bool:
        """True for a test that the catalogue asks for and daytwo cannot run yet."""
        return self not in FLOOR


FLOOR: tuple[VerifyTest, ...] = (
    VerifyTest.BOOT_ID,
    VerifyTest.GPU_COUNT,
    VerifyTest.GPU_UUIDS,
    VerifyTest.RECOVERY_ACTION_ZERO,
    VerifyTest.NO_PENDING_REMAP,
    VerifyTest.NO_NEW_XID,
    VerifyTest.SLURM_GRES,
    VerifyTest.DRIVER,
    VerifyTest.SAME_MACHINE,
)
"""What every node passes before it returns, whatever the fault was."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One entry of the catalogue.

    `first_action` is the catalogue's own advice and the first rung of the ladder; `None` takes the class's ladder from
    its start. `new_work_fails` is why a node may be contained unasked. `verify` names the tests that prove the cure:
    the floor, then those of this fault. `family` is the data file it stands in and names its runbook,
    `docs/runbooks/<family>.md`.
    """

    id: str
    title: str
    fault_class: FaultClass
    severity: Severity
    mode: Mode
    clears: Clears
    meaning: str
    source: str
    first_action: Action | None = None
    new_work_fails: bool = False
    quiet_for_seconds: float | None = None
    debounce_seconds: float = 0.0
    verify: tuple[str, ...] = ()
    xid: int | None = None
    notes: str = ""
    family: str = ""
