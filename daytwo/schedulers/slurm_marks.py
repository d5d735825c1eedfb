"""Whose marks are on a Slurm node: the names we write, the reasons that Slurm writes itself, and the truth table.

Pure; used by the Slurm scheduler and the Slurm reboot driver. Our marks are two: a reservation named after the repair
(it survives a reboot and keeps jobs off by itself), and a drain with our reason.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final, Literal

from daytwo.domain.seams import Ownership
from daytwo.domain.vocabulary import Mark

DrainedBy = Literal["nobody", "ours", "scheduler", "person"]

OUT: Final = frozenset({"DRAIN", "DOWN", "FAIL"})
"""States in which a node takes no new work. Only then does its reason count: 24.11 leaves old ones behind."""

REASON_CHARS: Final = 250
"""Accounting keeps a node's reason in a column of 255."""

OWNERSHIP: Final[dict[tuple[bool, bool, DrainedBy], Ownership]] = {
    # (a reservation of ours, a drain, who took the node out): what that makes of the node
    (False, False, "nobody"): Ownership.FREE,
    (False, False, "scheduler"): Ownership.FREE,  # down by itself; nobody holds it
    (False, False, "person"): Ownership.FOREIGN,  # set down by hand
    (False, True, "ours"): Ownership.HALF_DONE,
    (False, True, "scheduler"): Ownership.FREE,  # Slurm's own drain may be adopted
    (False, True, "person"): Ownership.FOREIGN,
    (True, False, "nobody"): Ownership.HALF_DONE,  # a crash between two writes, or a drain that somebody lifted
    (True, False, "scheduler"): Ownership.HALF_DONE,
    (True, False, "person"): Ownership.FOREIGN,
    (True, True, "ours"): Ownership.OURS,
    (True, True, "scheduler"): Ownership.HALF_DONE,
    (True, True, "person"): Ownership.FOREIGN,  # a person drained it again, over our reason
}

# Wordings of slurmctld, slurmd and slurmstepd (SchedMD/slurm, 22.05 to 26.05). "Reboot ASAP" is not here: a person
# asked for that reboot. Nor are health-check programs, whose reasons their operators stand behind.
SLURM_REASON: Final = re.compile(
    r"""Kill\ task\ failed | Job\ step\ not\ running | Prolog\ error | Epilog\ error | Prolog/Epilog\ failure
    | Job\ env\ setup\ error | batch\ job\ complete\ failure | Duplicate\ jobid
    | gres/\S+\ count\ (reported\ lower | too\ low | changed) | Could\ not\ unpack\ gres\ data
    | Low\ (RealMemory|socket|CPUs|TmpDisk) | CoreSpec\ differ | Bad\ core\ count | SlurmdSpoolDir\ is\ full
    | Not\ responding | Node\ unexpectedly\ rebooted | ResumeTimeout\ reached | reboot\ timed\ out
    | Powered\ down\ after | Reported\ active\ features
    """,
    re.VERBOSE,
)
OUR_REASON: Final = re.compile(r"daytwo ([a-z0-9][a-z0-9-]*): ")
OUR_RESERVATION: Final = re.compile(r"daytwo-([a-z0-9][a-z0-9-]*)")
FEWER_GPUS: Final = re.compile(r"gres/gpu count (?:reported lower than configured|too low) \((\d+) < \d+\)")


def reservation_name(repair_id: str) -> str:
    """Return the name of the reservation that a repair makes."""
    return f"daytwo-{repair_id}"


def is_ours(reservation: str) -> bool:
    """True for a reservation that a repair of ours made."""
    return OUR_RESERVATION.fullmatch(reservation) is not None


def repair_of_reason(reason: str) -> str | None:
    """Return the repair whose mark this reason is. What Slurm appends (` : reboot issued`) does not matter."""
    found = OUR_REASON.match(reason)
    return found[1] if found else None


def repair_of_reservations(names: Iterable[str]) -> str | None:
    """Return the repair that made the first of these reservations that is ours."""
    return next((found[1] for name in names if (found := OUR_RESERVATION.fullmatch(name))), None)


def drained_by(states: Iterable[str], reason: str, user: str, system_users: frozenset[str]) -> DrainedBy:
    """Say who took the node out of service. `system_users` are those in whose name Slurm itself drains."""
    out = OUT & set(states)
    if not out:
        return "nobody"
    if repair_of_reason(reason):
        # We drain and nothing else. 24.11 leaves a reason on a node that returns, and keeps it when it falls later.
        return "ours" if "DRAIN" in out else "person" if "FAIL" in out else "scheduler"
    by_slurm = SLURM_REASON.match(reason) and user in system_users
    return "scheduler" if by_slurm or _down_without_reason(states, reason) else "person"


def _down_without_reason(states: Iterable[str], reason: str) -> bool:
    # A person cannot set a node down or drain it with scontrol without a reason; slurmctld can, while a node starts.
    return not reason and "DRAIN" not in states


def ownership(reservations: Collection[str], states: Iterable[str], by: DrainedBy, reason: str) -> Ownership:
    """Look the node up in the truth table. A reservation of another repair than the drain's does not make it whole."""
    repair = repair_of_reason(reason) if by == "ours" else None
    reserved = reservation_name(repair) in reservations if repair else repair_of_reservations(reservations) is not None
    return OWNERSHIP[(reserved, "DRAIN" in states, by)]


def adopting_reason(mark: Mark, old: str) -> str:
    """Return our reason with Slurm's own kept inside, within what Slurm stores."""
    tail = f" (was: {old})" if old else ""
    return f"{mark.reason[: max(REASON_CHARS - len(tail), 60)]}{tail}"[:REASON_CHARS]


def believed_gpus(configured: int, states: Iterable[str], reason: str) -> int | None:
    """Return how many GPUs Slurm believes in: what a refused registration said, else what is configured."""
    if "INVALID_REG" not in states:
        return configured
    # Inside our reason the numbers are old ones, from before the repair.
    found = None if repair_of_reason(reason) else FEWER_GPUS.search(reason)
    return int(found[1]) if found else None
