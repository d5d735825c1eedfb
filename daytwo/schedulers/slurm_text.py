"""Reads what Slurm's programs print: JSON of 22.05 and of 23.02 on, and `key=value` text where there is no JSON. Pure.

Whatever cannot be read raises `UnknownAnswer`; nothing here turns it into "no nodes" or "no jobs".
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, Final, NamedTuple

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from daytwo.domain.errors import UnknownAnswer

HEARD_CHARS: Final = 120
NULL: Final = "(null)"
NO_RESERVATIONS: Final = "No reservations in the system"
# More than any cluster has, and a limit on what one malformed range can cost.
MOST_NAMES: Final = 1 << 18
END_OF_TIME: Final = 253402300800
"""Seconds; the year 10000, of which Python knows nothing."""
_DIGITS: Final = re.compile(r"[0-9]{1,9}", re.ASCII)


def _number(value: Any) -> Any:
    """Numbers are plain in 22.05; later `{"set": true, "infinite": false, "number": 7}`."""
    if isinstance(value, dict):
        return value.get("number") if value.get("set") and not value.get("infinite") else None
    return value


def _moment(value: Any) -> datetime | None:
    seconds = _number(value)
    return datetime.fromtimestamp(seconds, UTC) if isinstance(seconds, int) and 0 < seconds < END_OF_TIME else None


def _words(value: Any) -> Any:
    """States are one lower-case word in 22.05 (flags apart); later a list of upper-case ones."""
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError("no words")
    return tuple(word.upper() for word in words)


Number = Annotated[int | None, BeforeValidator(_number)]
Moment = Annotated[datetime | None, BeforeValidator(_moment)]
Words = Annotated[tuple[str, ...], BeforeValidator(_words)]
States = Annotated[Words, Field(min_length=1)]
Text = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]


class SlurmNode(BaseModel):
    """One node in Slurm's JSON. `boot_time` is absent (0) while a node does not answer."""

    name: str
    state: States
    state_flags: Words = ()
    reason: Text
    reason_set_by_user: Text
    reason_changed_at: Moment
    boot_time: Moment
    gres: Text
    partitions: tuple[str, ...]

    @property
    def states(self) -> tuple[str, ...]:
        """Base state first, then the flags."""
        return self.state + self.state_flags

    @property
    def gpus(self) -> int:
        """How many GPUs are configured."""
        return count_gpus(self.gres)


class SlurmJob(BaseModel):
    """One job in Slurm's JSON. Times are seconds since the epoch, limits minutes."""

    job_id: int
    array_job_id: Number
    array_task_id: Number
    het_job_id: Number
    het_job_offset: Number
    name: Text
    user_name: Text
    user_id: int
    account: Text
    partition: Text
    nodes: Text
    gres_detail: tuple[str, ...]
    start_time: Moment
    suspend_time: Moment
    pre_sus_time: Number
    time_limit: Number
    requeue: bool
    batch_flag: bool
    comment: Text
    restart_cnt: int
    job_state: States

    @property
    def shown_id(self) -> str:
        """The id that people type: `42`, `42_7` (array task), `42+1` (part of a heterogeneous job)."""
        if self.het_job_id:
            return f"{self.het_job_id}+{self.het_job_offset}"
        task = self.array_job_id and self.array_task_id is not None
        return f"{self.array_job_id}_{self.array_task_id}" if task else str(self.job_id)

    @property
    def state(self) -> str:
        """The word that says most: a job that is completing still holds its nodes."""
        return "COMPLETING" if "COMPLETING" in self.job_state else self.job_state[0]

    def elapsed_seconds(self, now: datetime) -> int | None:
        """How long it ran, without the time it was suspended."""
        if self.start_time is None:
            return None
        if self.state == "SUSPENDED":
            return self.pre_sus_time
        since = max(self.start_time, self.suspend_time or self.start_time)
        return max(0, int((now - since).total_seconds())) + (self.pre_sus_time or 0)


class _Answer(BaseModel):
    errors: list[Any] = []


class _Nodes(_Answer):
    nodes: tuple[SlurmNode, ...]


class _Jobs(_Answer):
    jobs: tuple[SlurmJob, ...]


def unknown(what: str, heard: str) -> UnknownAnswer:
    """Return the error for an answer that cannot be read, quoting its beginning."""
    return UnknownAnswer(f"Slurm's answer on {what} cannot be read: {heard.strip()[:HEARD_CHARS]!r}")


def read_nodes(text: str) -> tuple[SlurmNode, ...]:
    """Read all nodes. A Slurm without nodes does not exist: no rows raise `UnknownAnswer`."""
    try:
        answer = _Nodes.model_validate_json(text)
    except ValidationError as error:
        raise unknown("nodes", _why(error, text)) from None
    if answer.errors or not answer.nodes:
        raise unknown("nodes", str(answer.errors or text))
    return answer.nodes


def read_jobs(text: str) -> tuple[SlurmJob, ...]:
    """Read all jobs; none is an answer."""
    try:
        answer = _Jobs.model_validate_json(text)
    except ValidationError as error:
        raise unknown("jobs", _why(error, text)) from None
    if answer.errors:
        raise unknown("jobs", str(answer.errors))
    return answer.jobs


def _why(error: ValidationError, text: str) -> str:
    first = error.errors()[0]
    place = ".".join(str(step) for step in first["loc"])
    return f"{place}: {first['msg']}" if place else text


class SlurmReservation(NamedTuple):
    """One reservation. `who` are its users, else its accounts; a time is `None` if it cannot be read."""

    name: str
    nodes: tuple[str, ...]
    who: str
    flags: frozenset[str]
    start: datetime | None
    end: datetime | None


def read_reservations(text: str) -> tuple[SlurmReservation, ...]:
    """Read `scontrol -o show reservations`."""
    if text.strip() == NO_RESERVATIONS:
        return ()
    found = tuple(_reservation(line) for line in text.splitlines() if line)
    if not found:
        raise unknown("reservations", text)
    return found


def _reservation(line: str) -> SlurmReservation:
    words = dict(word.partition("=")[::2] for word in line.split())
    if not line.startswith("ReservationName=") or not words.get("Nodes"):
        raise unknown("reservations", line)
    who = next((words[key] for key in ("Users", "Accounts", "Groups") if words.get(key, NULL) != NULL), "somebody")
    return SlurmReservation(
        name=words["ReservationName"],
        nodes=() if words["Nodes"] == NULL else expand(words["Nodes"]),
        who=who,
        flags=frozenset(words.get("Flags", "").split(",")),
        start=local_time(words.get("StartTime", "")),
        end=local_time(words.get("EndTime", "")),
    )


def local_time(shown: str) -> datetime | None:
    """Read a time, which Slurm shows in the local time of whoever asks; `None` if it is none (`Unknown`)."""
    try:
        return datetime.fromisoformat(shown).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def read_config(text: str) -> dict[str, str]:
    """Read `scontrol show config`: `Name = value` lines."""
    pairs = (line.partition("=")[::2] for line in text.splitlines() if "=" in line)
    found = {name.strip(): value.strip() for name, value in pairs}
    if not {"SLURM_VERSION", "SlurmUser", "RebootProgram"} <= found.keys():
        raise unknown("its configuration", text)
    return found


def read_version(text: str) -> tuple[int, int]:
    """Read `scontrol --version`, such as `slurm-wlm 22.05.8`."""
    found = re.search(r"\b([0-9]{1,4})\.([0-9]{1,4})", text)
    if not found:
        raise unknown("its version", text)
    return int(found[1]), int(found[2])


def count_gpus(gres: str) -> int:
    """Return the GPUs of `gpu:h100:8(S:0-1),nvme:2`. A `gpu` without a number is one."""
    plain = re.sub(r"\([^)]*\)", "", gres)
    fields = [item.strip().split(":") for item in plain.split(",")]
    return sum(int(words[-1]) if _DIGITS.fullmatch(words[-1]) else 1 for words in fields if words[0] == "gpu")


def expand(hostlist: str) -> tuple[str, ...]:
    """Return the names of a host list such as `gpu-[001-003,7],login`. Raises `UnknownAnswer` for a malformed one."""
    names = tuple(itertools.islice(_names(hostlist), MOST_NAMES + 1))
    if len(names) > MOST_NAMES or not all(re.fullmatch(r"[\w.-]+", name) for name in names):
        raise unknown("a list of nodes", hostlist)
    return names


def _names(hostlist: str) -> Iterator[str]:
    for pattern in re.findall(r"(?:[^,\[]|\[[^\]]*\]|\[)+", hostlist):
        pieces = re.split(r"\[([^\]]*)\]", pattern)
        # Every second piece stood in brackets; a name may have several.
        choices = [_numbers(piece, hostlist) if place % 2 else [piece] for place, piece in enumerate(pieces)]
        yield from map("".join, itertools.product(*choices))


def _numbers(ranges: str, hostlist: str) -> list[str]:
    found: list[str] = []
    for item in ranges.split(","):
        low, _, high = item.partition("-")
        high = high or low
        if not _DIGITS.fullmatch(low) or not _DIGITS.fullmatch(high):
            raise unknown("a list of nodes", hostlist)
        if len(found) + int(high) - int(low) > MOST_NAMES:
            raise unknown("a list of nodes", hostlist)
        found.extend(f"{number:0{len(low)}d}" for number in range(int(low), int(high) + 1))
    return found
