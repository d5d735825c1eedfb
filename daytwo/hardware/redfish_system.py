"""What a BMC says of a machine: who it is, whether it is on, who else is at work there, and how it can be reset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from sushy import ResetType, TaskState, exceptions

from daytwo.domain.errors import Refused, UnknownAnswer
from daytwo.domain.machines import Identity
from daytwo.domain.seams import ActKind
from daytwo.hardware.redfish_identity import same_machine
from daytwo.hardware.redfish_session import Conversation

MAX_TASKS: Final = 100
"""More than this are not read one by one."""
ENDED: Final = frozenset({TaskState.COMPLETED, TaskState.CANCELLED, TaskState.EXCEPTION, TaskState.KILLED})
WAYS: Final = {
    ActKind.REBOOT: ("GracefulRestart",),
    # Both take the machine from under its system. The first also takes the current away from the boards.
    ActKind.POWER_CYCLE: ("PowerCycle", "ForceRestart"),
}


class State(NamedTuple):
    """A machine as its BMC shows it. `boot` is BootProgress' last state; times are the BMC's, absent where not told."""

    path: str
    power: str
    last_reset: datetime | None
    boot: str | None
    boot_at: datetime | None


class Way(NamedTuple):
    """How to reset it: where to post, and which ResetType."""

    target: str
    reset_type: str


def find(talk: Conversation, identity: Identity) -> Any:
    """The one system behind this BMC that is the machine. Raises `Refused`, saying who is there instead."""
    systems = talk.root.get_system_collection().get_members()
    mine = [system for system in systems if same_machine(identity, system.uuid, system.serial_number)]
    if len(mine) == 1:
        return mine[0]
    there = ", ".join(f"{s.path} (UUID {s.uuid}, serial {s.serial_number})" for s in systems) or "no system"
    found = "is twice" if mine else "is not"
    raise Refused(f"{talk.address}: the machine of the node ({identity}) {found} there: {there}")


def state(system: Any) -> State:
    """What there is to know without asking again."""
    progress = system.json.get("BootProgress") or {}
    return State(
        path=system.path,
        power=str(system.json.get("PowerState")),
        last_reset=_time(system.json.get("LastResetTime")),
        boot=progress.get("LastState"),
        boot_at=_time(progress.get("LastStateTime")),
    )


def located(talk: Conversation, system: Any) -> str:
    """Whose locator is on, or "". Somebody may stand in front of it."""
    for path, document in ((system.path, system.json), *_chassis(talk, system)):
        if _is_located(document, lit_is_located=talk.access.lit_is_located):
            return f"the locator of {path} is on"
    return ""


def tasks(talk: Conversation) -> str:
    """What is at work in this BMC, or "". Raises `NotYet` or `Unreachable` where it does not answer."""
    if not talk.root.json.get("Tasks"):
        return ""
    try:
        collection = talk.root.get_task_service().tasks
        paths = collection.members_identities
        if len(paths) > MAX_TASKS:
            return f"it has {len(paths)} tasks, too many to read"
        return "; ".join(_at_work(collection.get_members()))
    except exceptions.ConnectionError:
        raise
    except (exceptions.SushyError, ValueError, TypeError, LookupError, AttributeError) as error:
        return f"its tasks cannot be read ({type(error).__name__})"


def way(talk: Conversation, system: Any, kind: ActKind) -> Way:
    """How this BMC can do the act: of the system, else of a chassis that holds nothing else. Raises `Refused`."""
    allowed = _allowed(system)
    for word in WAYS[kind]:
        if word in allowed:
            return Way(_target(talk, system.json, "#ComputerSystem.Reset"), word)
    why = f"{kind} needs {' or '.join(WAYS[kind])}; {system.path} allows {', '.join(sorted(allowed)) or 'no reset'}"
    for path, chassis in _chassis(talk, system) if kind is ActKind.POWER_CYCLE else ():
        action = chassis.get("Actions", {}).get("#Chassis.Reset", {})
        words = [word for word in WAYS[kind] if word in action.get("ResetType@Redfish.AllowableValues", ())]
        if words and (inside := _links(chassis, "ComputerSystems")) != [system.path]:
            why += f"; {path} holds {len(inside)} systems"
        elif words:
            return Way(_target(talk, chassis, "#Chassis.Reset"), words[0])
    raise Refused(f"{talk.address}: {why}")


def _chassis(talk: Conversation, system: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    # Not as sushy's objects: those want fields that some BMCs leave out.
    for path in _links(system.json, "Chassis"):
        yield path, talk.get(path)


def _links(document: dict[str, Any], name: str) -> list[str]:
    return [str(link["@odata.id"]) for link in (document.get("Links") or {}).get(name) or ()]


def _allowed(system: Any) -> frozenset[str]:
    """The resets that the system says it allows. Raises `Refused` if it has a reset and does not say."""
    try:
        allowed = system.get_allowed_reset_system_values()
    except exceptions.MissingActionError:
        return frozenset()
    if allowed == set(ResetType):  # what sushy makes of silence
        raise Refused(f"{system.path}: the BMC does not say which resets it allows")
    return frozenset(value.value for value in allowed)


def _target(talk: Conversation, document: dict[str, Any], action: str) -> str:
    """Where to post, as a path: wherever the BMC points, we speak to nobody else."""
    link = urlsplit(str(document["Actions"][action]["target"]))
    if (link.netloc and f"https://{link.netloc}" != talk.address) or not link.path.startswith("/"):
        raise UnknownAnswer(f"{talk.address}: {action} points to {link.geturl()!r}")
    return link.path


def _is_located(document: dict[str, Any], *, lit_is_located: bool) -> bool:
    active = document.get("LocationIndicatorActive")
    if active is not None:
        return active is not False
    led = document.get("IndicatorLED")
    return led == "Blinking" or (led == "Lit" and lit_is_located)


def _at_work(found: Iterable[Any]) -> Iterator[str]:
    for task in found:
        if task.task_state not in ENDED:
            yield f"task {task.identity} ({task.name}) is {task.json.get('TaskState') or 'in no known state'}"


def _time(value: Any) -> datetime | None:
    """A time of the BMC; `None` for none, for one without a zone, and for nonsense."""
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo else None
