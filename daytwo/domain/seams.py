"""Where daytwo meets the world: what a scheduler, a machine and a node promise. Adapters implement it; no I/O here.

Reading is a method. Writing never is: an adapter *describes* the write (`Send`), and the ledger of intents
(`daytwo.intents`) carries it out through a child that sends before the deadline or dies.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, Protocol

from pydantic import Field, FieldSerializationInfo, SecretStr, field_serializer

from daytwo.domain.vocabulary import Action, Frozen, Lasting, Mark, Workload


class Ownership(StrEnum):
    """Whose marks are on a node. `half-done`: ours, a part missing (a crash between two writes, a lifted drain)."""

    FREE = "free"
    OURS = "ours"
    HALF_DONE = "half-done"
    FOREIGN = "foreign"


class ActKind(StrEnum):
    """Every kind of write that daytwo makes to the world."""

    RESERVE = "reserve"
    DRAIN = "drain"
    REQUEUE = "requeue"
    UNDRAIN = "undrain"
    UNRESERVE = "unreserve"
    REBOOT = "reboot"
    POWER_CYCLE = "power-cycle"
    RESET_GPU = "reset-gpu"


ACT_OF: Final = {
    Action.REBOOT: ActKind.REBOOT,
    Action.POWER_CYCLE: ActKind.POWER_CYCLE,
    Action.RESET_GPU: ActKind.RESET_GPU,
}
"""The write behind an action on a machine. An action that is not here is done by no driver of this version."""

NEEDS_NO_DRIVER: Final = frozenset({Action.VERIFY, Action.REMOVE, Action.TELL_OWNER, Action.INSPECT})


class Act(Lasting):
    """One write to one target. `target` is the job for a requeue, else the node; `baseline` is what was true before.

    A requeue carries `{"restarts": n}` and a reboot `{"boot_time": iso, "boot_id": id}` in `baseline`: without it
    nobody could tell afterwards whether the act happened. An act on hardware also carries who the machine is,
    `{"identity": {"system_uuid": …, "serial": …}, "identity_at": iso}`, as its agent said. A mark over those that
    earlier repairs of the node have left carries `{"over": [repair, …]}`; one that is only to be worded anew
    `{"reword": True}`. An unreserve of what an earlier repair has left has that repair as its `target`.
    """

    kind: ActKind
    cluster: str
    node: str
    target: str
    mark: Mark
    baseline: dict[str, Any] = Field(default_factory=dict)


class Command(Frozen):
    """A write that is a program. It is run without a shell."""

    type: Literal["command"] = "command"
    argv: tuple[str, ...]
    env: dict[str, str] = Field(default_factory=dict)


class Request(Frozen):
    """A write that is an HTTP request over a Unix socket (`socket`), with a JSON body."""

    type: Literal["request"] = "request"
    socket: str
    method: str = "POST"
    path: str
    body: dict[str, Any] = Field(default_factory=dict)


class HttpsRequest(Frozen):
    """A write that is an HTTPS request with a JSON body. `url` and `ca_file` are absolute; no redirect is followed.

    `secret_headers` carry who we are. They are shown only to the child that sends, through its standard input: dump
    with the context `{"reveal": True}`.
    """

    type: Literal["https"] = "https"
    url: str = Field(pattern=r"^https://")
    method: str = "POST"
    body: dict[str, Any] = Field(default_factory=dict)
    secret_headers: dict[str, SecretStr] = Field(default_factory=dict)
    ca_file: str | None = None
    verify: bool = True

    @field_serializer("secret_headers")
    def _shown(self, headers: dict[str, SecretStr], info: FieldSerializationInfo) -> dict[str, str]:
        reveal = info.context is not None and info.context.get("reveal") is True
        return {name: value.get_secret_value() if reveal else str(value) for name, value in headers.items()}


class Program(Frozen):
    """A question to an operator's program, or a write by it: JSON on its standard input, JSON on its output.

    It runs in a group of processes of its own that dies whole after `seconds`. `secrets` reach it in `input` under
    that name, and are shown only to the child that runs it: dump with the context `{"reveal": True}`.
    """

    type: Literal["program"] = "program"
    argv: tuple[str, ...]
    input: dict[str, Any]
    secrets: dict[str, SecretStr] = Field(default_factory=dict)
    seconds: float

    @field_serializer("secrets")
    def _shown(self, secrets: dict[str, SecretStr], info: FieldSerializationInfo) -> dict[str, str]:
        reveal = info.context is not None and info.context.get("reveal") is True
        return {name: value.get_secret_value() if reveal else str(value) for name, value in secrets.items()}


Send = Annotated[Command | Request | HttpsRequest | Program, Field(discriminator="type")]


class AlreadyDone(Frozen):
    """A fresh look shows that nothing is left to write; `proof` says what was seen."""

    proof: str


class NotOurs(Frozen):
    """A fresh look shows another's mark; nothing may be written. `found` quotes it."""

    found: str


Preparation = Command | Request | HttpsRequest | Program | AlreadyDone | NotOurs


class Outcome(StrEnum):
    """What can be said of an act afterwards. `pending`: taken, not finished. `unclear`: a person must look."""

    DONE = "done"
    PENDING = "pending"
    NOT_DONE = "not-done"
    UNCLEAR = "unclear"


class Look(Frozen):
    """The answer to "did it happen?". `not-done` needs positive evidence, else it is `unclear`.

    `progress` names the stage of a boot that is under way, where the driver sees it: the act's limit counts anew from
    each change of it.
    """

    outcome: Outcome
    progress: str = ""
    proof: str = ""
    proof_type: Literal["", "agent-boot-id", "slurm-boot-time", "scheduler-state", "bmc", "command"] = ""


class Target(Protocol):
    """Anything an act can be sent to.

    `settle_seconds` is how long after a send's deadline the target may still be working on it: only then may `look`
    decide that it did not happen. It is longer than the sender's own deadline.
    """

    settle_seconds: float

    async def prepare(self, act: Act) -> Preparation:
        """Read again, right before the write, and describe it. Raises `Unreachable` or `UnknownAnswer`."""

    async def look(self, act: Act) -> Look:
        """Say whether `act` happened. Raises `Unreachable` or `UnknownAnswer`."""


class NodeFacts(Lasting):
    """What a scheduler says of one node. `states` are its own words, upper case (`IDLE`, `DRAIN`, `REBOOT_ISSUED`).

    `gpus` is the count the scheduler believes in, `gpus_configured` what it should have; `None` is not known.
    `planned` says who keeps the node for maintenance now, `reserved` for whom it is reserved otherwise, or will be.
    """

    node: str
    states: tuple[str, ...]
    reason: str = ""
    reason_by: str = ""
    reason_at: datetime | None = None
    boot_time: datetime | None = None
    gpus: int | None = None
    gpus_configured: int | None = None
    reservations: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    ownership: Ownership = Ownership.FREE
    mark_repair_id: str | None = None
    drained_by: Literal["nobody", "ours", "scheduler", "person"] = "nobody"
    responding: bool = True
    busy: bool = False
    rebooting: bool = False
    planned: str = ""
    reserved: str = ""
    at: datetime


class Recorded(Frozen):
    """Something that a scheduler's accounting has kept of a node: `DRAIN`, `BOOT`, `job 88213 NODE_FAIL`.

    `by` is who is named for it; `until` is `None` while it lasts.
    """

    what: str
    by: str = ""
    reason: str = ""
    since: datetime | None = None
    until: datetime | None = None

    def __str__(self) -> str:
        begin = f"{self.since:%Y-%m-%d %H:%M:%SZ}" if self.since else "?"
        end = f" to {self.until:%H:%M:%SZ}" if self.until else ""
        return f"{begin}{end} {self.what} by {self.by or 'unknown'}: {self.reason or 'no reason'}"


class Scheduler(Target, Protocol):
    """A scheduler domain. Idempotent; touches only what carries our mark; an error is unknown, never empty."""

    async def facts(self) -> tuple[NodeFacts, ...]:
        """All nodes of the domain, in one call."""

    async def node(self, node: str) -> NodeFacts:
        """One node, read now. Raises `NotFound` for a node the scheduler does not know."""

    async def started_at(self) -> datetime:
        """When its controller was started last. One that was started without its state has lost our marks."""

    async def late_after_seconds(self) -> float:
        """For how long after its start its controller cannot know which nodes are silent: it calls none late before."""

    async def workloads(self, nodes: Sequence[str]) -> tuple[Workload, ...]:
        """Every job on these nodes, each with all of its nodes."""

    async def recorded(self, node: str, since: datetime) -> tuple[Recorded, ...]:
        """What its accounting has kept of the node since then, jobs that were taken off it too; empty without one."""

    def quarantine_acts(self, cluster: str, node: str, mark: Mark) -> tuple[Act, ...]:
        """What keeps new work off the node, in the order to write it. Containing is the same acts."""

    def release_acts(self, cluster: str, node: str, mark: Mark) -> tuple[Act, ...]:
        """What lifts our marks, in the reverse order."""

    def interrupt_acts(self, cluster: str, node: str, mark: Mark, jobs: Sequence[Workload]) -> tuple[Act, ...]:
        """What takes the given running jobs off the node: a requeue for each that opted in, nothing for the others."""


class Hardware(Target, Protocol):
    """A way to act on a machine."""

    def capabilities(self) -> frozenset[ActKind]:
        """The acts this driver can carry out."""

    async def baseline(self, act: Act) -> Act:
        """Return `act` with what must be known beforehand to prove it afterwards (boot time, boot id)."""


class Notifier(Protocol):
    """Tells people. The first implementation writes to the log; none may raise for a message that was sent."""

    async def tell(self, subject: str, text: str, *, urgent: bool, to: tuple[str, ...] = ()) -> None:
        """Send one message to these groups; none: to everybody. `text` is plain, already escaped."""
