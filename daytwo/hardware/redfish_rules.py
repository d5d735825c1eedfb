"""What may be done to a machine as its BMC shows it, and whether it was done. Pure: `daytwo.hardware.redfish` reads."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from daytwo.domain.errors import NotYet
from daytwo.domain.seams import Act, ActKind, Look, NodeFacts, Outcome, Ownership
from daytwo.hardware.redfish_memory import Heard
from daytwo.hardware.redfish_system import State

MOVING: Final = timedelta(minutes=10)
"""A boot whose progress moved in this time is under way: a large machine trains its memory for minutes."""
OBEYS: Final = timedelta(minutes=10)
"""How long a system may take to shut down after it was asked to. Then it has not obeyed."""
FRESH: Final = timedelta(seconds=15)
"""A word of the agent younger than this was spoken after the act's settling time, so by a system that is up now."""
SPEAKS_AGAIN: Final = timedelta(minutes=2)
"""An agent whose last word is younger than this is waited for: two pulses, in which its gateway may have been away."""
SAME: Final = timedelta(seconds=2)
"""Two readings of one time differ by less, where the BMC computes it from an uptime."""
RUNS: Final = frozenset({None, "None", "OSRunning"})
"""BootProgress of a machine that does not boot, or whose BMC does not tell."""
UP: Final = RUNS | {"OSBootStarted"}
"""`OSBootStarted` is the last that a BMC sees whose operating system does not talk to it."""


def known(state: State) -> dict[str, Any]:
    """What of a machine goes into the baseline of an act."""
    return {
        "last_reset": state.last_reset.isoformat() if state.last_reset else None,
        "boot_at": state.boot_at.isoformat() if state.boot_at else None,
        "power": state.power,
    }


def not_marked(act: Act, facts: NodeFacts) -> str:
    """Say why the scheduler does not leave the node to this repair, or ""."""
    if facts.ownership is not Ownership.OURS or facts.mark_repair_id != act.mark.repair_id:
        return f"{'+'.join(facts.states)}: {facts.reason!r}, not drained by {act.mark.repair_id}"
    return f"{act.node} still runs work ({'+'.join(facts.states)})" if facts.busy else ""


def anothers_power(act: Act, state: State) -> str:
    """Say why the machine's power is somebody else's, or "". Ours is never off before we send."""
    if state.power == "On":
        return ""
    return f"{act.node} is switched off or {state.power}, not by daytwo"


def at_rest(act: Act, state: State, now: datetime) -> State:
    """Return the state of a machine that does not boot just now; `now` is by the BMC's clock. Raises `NotYet`."""
    if state.boot not in RUNS and state.boot_at is not None and now - state.boot_at < MOVING:
        raise NotYet(f"{act.node}: it boots ({state.boot} at {state.boot_at})", 30.0)
    return state


def reset_since(act: Act, state: State) -> bool:
    """Say whether the BMC tells of a reset after the act's baseline."""
    return _later(state.last_reset, act.baseline["bmc"]["last_reset"])


def judge(act: Act, state: State, *, at_work: str, seen_off: bool, heard: Heard, now: datetime) -> Look:
    """Decide from all that was seen. `seen_off`: the power was off since the act was sent. `now` is by our clock."""
    booted = _booted(act, heard)
    shown = f"power {state.power}, last reset {state.last_reset or 'not told'}, boot {state.boot or 'not told'}"
    happened = seen_off or booted or reset_since(act, state) or _later(state.boot_at, act.baseline["bmc"]["boot_at"])
    if happened and state.power == "On" and state.boot in UP:
        proof_type = "agent-boot-id" if booted else "bmc"
        return Look(
            outcome=Outcome.DONE, proof=f"{shown}{', off in between' if seen_off else ''}", proof_type=proof_type
        )
    if happened or state.power != "On" or at_work or _may_still_obey(act, now):
        return Look(
            outcome=Outcome.PENDING,
            proof=f"{shown}; {at_work}" if at_work else shown,
            proof_type="bmc",
            progress=f"boot {state.boot}" if state.boot not in RUNS else "",
        )
    if _same(state.last_reset, act.baseline["bmc"]["last_reset"]) or _in_its_old_boot(act, heard, now, FRESH):
        outcome = Outcome.NOT_DONE
    else:
        outcome = Outcome.PENDING if _in_its_old_boot(act, heard, now, SPEAKS_AGAIN) else Outcome.UNCLEAR
    return Look(outcome=outcome, proof=shown, proof_type="bmc")


def _may_still_obey(act: Act, now: datetime) -> bool:
    return act.kind is ActKind.REBOOT and now - datetime.fromisoformat(act.baseline["at"]) < OBEYS


def _booted(act: Act, heard: Heard) -> bool:
    before = act.baseline.get("boot_id")
    return bool(before and heard.boot_id and heard.boot_id != before)


def _in_its_old_boot(act: Act, heard: Heard, now: datetime, within: timedelta) -> bool:
    before = act.baseline.get("boot_id")
    return bool(before) and heard.boot_id == before and heard.at is not None and now - heard.at < within


def _later(found: datetime | None, before: str | None) -> bool:
    return found is not None and before is not None and found - datetime.fromisoformat(before) > SAME


def _same(found: datetime | None, before: str | None) -> bool:
    # One that went back is neither later nor the same: the BMC lost its clock, perhaps by this very reset.
    return found is not None and before is not None and abs(found - datetime.fromisoformat(before)) <= SAME
