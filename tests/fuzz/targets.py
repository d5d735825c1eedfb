"""Everything that reads what a stranger wrote, each with what must hold of it whatever was written.

A target is a function of bytes. The coverage-guided fuzzer (`tests/fuzz/run.py`) calls it as often as it can,
`make test` some hundred times with damaged samples.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import requests
import sushy
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError
from sushy.auth import AuthBase
from sushy.connector import Connector

from daytwo.agent.journal import MemoryJournal
from daytwo.agent.link import read_reply
from daytwo.agent.seams import LogRecord
from daytwo.agent.spool import Spool
from daytwo.domain.definition import BmcAccess
from daytwo.domain.errors import BadInput, DaytwoError, UnknownAnswer
from daytwo.domain.load_definition import check_definition, load_definitions
from daytwo.domain.machines import Identity
from daytwo.domain.message import clean, clean_markdown
from daytwo.domain.seams import ActKind
from daytwo.faults.kernel_line import parse_line
from daytwo.gateway.models import Findings, Pulse
from daytwo.gateway.problems import malformed
from daytwo.hardware import command_answers, redfish_system
from daytwo.hardware.redfish_session import errors_of
from daytwo.schedulers import slurm_text
from daytwo.sending import Sent, program_ended
from tests.agent.fakes import EPOCH, Node
from tests.fuzz import samples
from tests.fuzz.strategies import damaged
from tests.redfish.bmc import SERIAL
from tests.redfish.bmc import UUID as SYSTEM_UUID

LATER = datetime(2026, 12, 31, tzinfo=UTC)
Fuzz = Callable[[bytes], object]


@dataclass(frozen=True)
class Target:
    """Something to feed, beginning with its samples."""

    name: str
    feed: Fuzz
    samples: tuple[bytes, ...] = ()


def kernel_lines(data: bytes) -> None:
    """What the agent makes of lines of a kernel log can be shown, and the gateway takes it."""
    node = Node()
    for number, raw in enumerate(data.split(b"\n\n")[:20], start=1):
        record = parse_line(raw)
        if record is None:
            continue
        assert _is_harmless(record.text), record.text
        node.log.records.append(LogRecord(record, number, EPOCH, (number,)))
    node.run(3)
    node.agent.close()
    for call in node.gateway.calls:
        (Findings if call.what == "findings" else Pulse).model_validate_json(json.dumps(call.body))
    assert sum("refuses" in line for line in node.said) == 0


def a_message(data: bytes) -> None:
    """A node's message is refused, or can be kept."""
    for model in (Findings, Pulse):
        _taken_or_refused(model, data)


@given(st.sampled_from((Findings, Pulse)), damaged(samples.FINDINGS), damaged(samples.PULSE))
def damaged_messages(model: type[BaseModel], findings: Any, pulse: Any) -> None:
    """The same, for messages that are nearly right."""
    body = json.dumps(findings if model is Findings else pulse)
    _taken_or_refused(model, body.encode())


@given(st.integers(0, 600), damaged(samples.ANSWER), st.binary(max_size=30))
def answers_to_the_agent(status: int, answer: Any, raw: bytes) -> None:
    """No answer, whoever gives it, ends the agent."""
    node = Node()
    node.log.write(f"{samples.XID}")
    body = json.dumps(answer).encode()
    node.gateway.replies = [read_reply(status, body), read_reply(200, body), read_reply(200, raw)]
    node.run(5)
    node.agent.close()


def a_spool(data: bytes) -> None:
    """A damaged spool is read as far as it goes."""
    entries = []
    for line in data.split(b"\n"):
        with suppress(ValueError, RecursionError):
            entries.append(json.loads(line))
    journal = MemoryJournal()
    journal.append([entry for entry in entries if isinstance(entry, dict)], durable=True)
    spool = Spool(journal, max_records=3)
    spool.batch(10, 1000)
    spool.commit()


def slurm_text_answers(data: bytes) -> None:
    """Text of Slurm is read, or unknown."""
    text = data.decode(errors="replace")
    for read in (slurm_text.read_reservations, slurm_text.read_config, slurm_text.read_version, slurm_text.expand):
        with suppress(UnknownAnswer):
            read(text)
    assert slurm_text.count_gpus(text) >= 0


def slurm_json(data: bytes) -> None:
    """JSON of Slurm is read, or unknown."""
    text = data.decode(errors="replace")
    with suppress(UnknownAnswer):
        slurm_text.read_nodes(text)
    with suppress(UnknownAnswer):
        slurm_text.read_jobs(text)


@given(damaged(samples.NODES), damaged(samples.JOBS))
def damaged_slurm(nodes: Any, jobs: Any) -> None:
    """The same, for answers that are nearly right."""
    with suppress(UnknownAnswer):
        for node in slurm_text.read_nodes(json.dumps(nodes)):
            assert node.states
            assert node.gpus >= 0
    with suppress(UnknownAnswer):
        for job in slurm_text.read_jobs(json.dumps(jobs)):
            assert job.shown_id
            job.elapsed_seconds(LATER)


@given(st.data())
def redfish(data: st.DataObject) -> None:
    """What a BMC says is understood, refused or unknown."""
    documents = dict(samples.DOCUMENTS)
    for path in data.draw(st.lists(st.sampled_from(sorted(documents)), min_size=1, max_size=2)):
        documents[path] = data.draw(damaged(documents[path]))
    talk: Any = Talk(documents)
    with suppress(DaytwoError), errors_of(talk):
        ask_everything(talk)


def program_answers(data: bytes) -> None:
    """What a program of the operators says is taken, or unknown."""
    program_ended(data)
    for question in ("look", "act"):
        told, answer, why = command_answers.read(question, Sent(True, "", data.decode(errors="replace")))
        assert (told == "told") == (why == "")
        assert told != "told" or question != "look" or answer.outcome


def definition(data: bytes) -> None:
    """A definition is read, or everything that is wrong with it is told."""
    with suppress(BadInput):
        check_definition(load_definitions(data.decode(errors="replace"), "east.yaml"))


@given(damaged(samples.DEFINITION))
def damaged_definitions(document: Any) -> None:
    """The same, for definitions that are nearly right."""
    with suppress(BadInput):
        check_definition(load_definitions(yaml.safe_dump(document), "east.yaml"))


def shown_text(data: bytes) -> None:
    """What is shown is one line of plain characters."""
    text = data.decode("utf-8", "surrogateescape")
    for shown in (clean(text), clean_markdown(text)):
        assert _is_harmless(shown), shown
        assert "\n" not in shown
    assert len(clean(text, 80)) <= 80


MESSAGES = tuple(json.dumps(body).encode() for body in (samples.FINDINGS, samples.PULSE))
SPOOL = b'{"stream": 1, "last": 2, "dropped": 0}\n{"k": "a", "v": [1]}\n{"ack": 1}\n{"drop": [2]}\n{"restart": true}\n'
RAW = (
    Target("kernel-lines", kernel_lines, samples.KERNEL_LINES),
    Target("messages", a_message, MESSAGES),
    Target("spool", a_spool, (SPOOL + json.dumps({"r": samples.RECORD}).encode(),)),
    Target("slurm-text", slurm_text_answers, samples.SLURM_TEXTS),
    Target("slurm-json", slurm_json, tuple(json.dumps(each).encode() for each in (samples.NODES, samples.JOBS))),
    Target("program-answers", program_answers, (b'{"outcome": "done", "proof": "off", "identity": {"serial": "S1"}}',)),
    Target("definitions", definition, (yaml.safe_dump(samples.DEFINITION).encode(),)),
    Target("shown-text", shown_text, (samples.XID.encode(), b"\x1b[31m<b>[x](http://y)\xe2\x80\xae`#")),
)
SHAPED: tuple[Callable[[], None], ...] = (
    damaged_messages,
    answers_to_the_agent,
    damaged_slurm,
    redfish,
    damaged_definitions,
)
QUIET = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None)


def all_targets() -> dict[str, Target]:
    """By name; those of `SHAPED` make their input out of the bytes as hypothesis does. To be called once."""
    shaped = (Target(test.__name__.replace("_", "-"), QUIET(test).hypothesis.fuzz_one_input) for test in SHAPED)
    return {target.name: target for target in (*RAW, *shaped)}


class Talk:
    """A conversation with a BMC that has said everything already."""

    address = "https://bmc"

    def __init__(self, documents: dict[str, Any]) -> None:
        self.access = BmcAccess(nodes=("n",), address=self.address, user="daytwo", password="env:BMC")
        self._line = _Remembered(self.address, documents)
        self.root: Any = None

    def get(self, path: str) -> Any:
        found = self._line.get(path).json()
        if not isinstance(found, dict):
            raise UnknownAnswer(f"{path} is no object")
        return found

    def scrubbed(self, text: str) -> str:
        return text

    def enter(self) -> None:
        self.root = sushy.Sushy(self.address, auth=_NoDoor(), connector=self._line)


class _NoDoor(AuthBase):
    def _do_authenticate(self) -> None:
        """Nobody asks who we are."""

    def can_refresh_session(self) -> bool:
        return False


class _Remembered(Connector):
    def __init__(self, address: str, documents: dict[str, Any]) -> None:
        super().__init__(address)
        self._documents = documents

    def get(self, path: str = "", *_more: Any, **_options: Any) -> Any:
        answer = requests.Response()
        found = self._documents.get(path) or self._documents.get(f"{path}/") or {}
        answer.status_code, answer._content = 200, json.dumps(found).encode()
        return answer


def ask_everything(talk: Any) -> None:
    """All that the driver asks of a BMC."""
    talk.enter()
    system = redfish_system.find(talk, Identity(UUID(SYSTEM_UUID), SERIAL))
    redfish_system.state(system)
    redfish_system.located(talk, system)
    redfish_system.tasks(talk)
    for kind in (ActKind.REBOOT, ActKind.POWER_CYCLE):
        redfish_system.way(talk, system, kind)


def _taken_or_refused(model: type[BaseModel], data: bytes) -> None:
    try:
        said = model.model_validate_json(data)
    except ValidationError as error:
        malformed(error).response()
    else:
        _can_be_kept(said)


def _can_be_kept(said: BaseModel) -> None:
    kept = json.dumps(said.model_dump(mode="json"), allow_nan=False, ensure_ascii=False)
    kept.encode()
    assert "\\u0000" not in json.dumps(kept)


def _is_harmless(text: str) -> bool:
    text.encode()
    return all(char in "\t\n" or not (ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0) for char in text)
