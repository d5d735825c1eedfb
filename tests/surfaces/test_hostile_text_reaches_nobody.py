"""Text that a node, a job or a scheduler chose is planted in every field that takes text, and looked for where people
look: the CLI in all its forms, notices, logs, the Temporal UI, a node's mark in its scheduler.
"""

from __future__ import annotations

import json
import logging
import re
import unicodedata
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from daytwo import evidence
from daytwo.cli.main import run
from daytwo.domain.message import as_markdown, as_text, summary_line
from daytwo.domain.policy import Policy
from daytwo.domain.proposal import Proposal, build_proposal
from daytwo.domain.seams import NodeFacts
from daytwo.domain.triage import triage
from daytwo.domain.verdicts import Propose
from daytwo.domain.verification import Evidence, judge
from daytwo.domain.vocabulary import Mark, State
from daytwo.faults.catalogue import catalogue
from daytwo.gateway.findings import take_findings
from daytwo.gateway.identity import Identity
from daytwo.gateway.models import Findings, Pulse
from daytwo.gateway.pulse import take_pulse
from daytwo.intake import observe_facts
from daytwo.notify.log import LogNotifier
from daytwo.store import audit
from daytwo.store.engine import Store
from daytwo.store.situations import load_situation, node_row
from daytwo.store.tables import CheckResultRow, CheckRunRow, IntentRow, NodeRequestRow
from tests.builders import NOW, a_job, a_proposal
from tests.rows import REPAIR, a_cluster, a_definition, a_node, a_repair, an_event, keep
from tests.serving import Repairer, Shared

PIECES = (
    "\x1b[2J\x1b[31m",
    "\x1b]0;owned\x07",
    "\x9b31m\x85",
    "\x00\x08\x7f",
    "\u202egpj.exe\u2066\u200b",
    "\r\nFORGED approved by root\n",
    "\u2028FORGED\u2029",
    "[click](http://evil.example)",
    "![x](https://evil.example/p.png)",
    "<script>alert(1)</script>",
    "`code` | cell | *bold* # head",
)
EVERYTHING = "".join(PIECES)
IN_A_NAME = "<script>alert(1)</script>|`x`[click](http://evil.example)"
"""A name may hold whatever prints in ASCII."""
HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
NOT_HEALTHY = 10
FORMS = ("table", "json", "yaml", "name")
COMMANDS = (
    *(("nodes", "list"), ("nodes", "show", "gpu-07"), ("findings", "list", "--all"), ("repairs", "list", "--all")),
    *(("repairs", "show", REPAIR), ("status",), ("audit", "list"), ("clusters", "list")),
)


def planted(model: type[BaseModel], text: str) -> dict[str, Any]:
    """A message of a node with `text` in each field that takes any, and a name in each that takes names."""
    record = {
        "sequence": 1,
        "fault": "gpu-off-bus",
        "entity": IN_A_NAME,
        "status": "firing",
        "count": 1,
        "first_seen": 1.0,
        "last_seen": 1.0,
        "source": IN_A_NAME,
        "boot_id": IN_A_NAME,
        "kernel_sequence": 7,
        "evidence": [text, text + "2"],
        "detail": {text[:64]: text, "process": text, "message": text, "reported_as": text},
    }
    envelope = {"stream": 0, "boot_id": IN_A_NAME, "clock": 1.0}
    if model is Findings:
        return {**envelope, "records": [record, {**record, "sequence": 2, "fault": "made-up", "kernel_sequence": 8}]}
    gpu = {"index": 0, "uuid": text, "serial": text, "pci": text, "name": text}
    answer = {"id": IN_A_NAME, "state": "done", "boot_id": IN_A_NAME, "result": {text: [text]}, "error": text}
    pulse = {
        "sequence": 1,
        "version": text[:64],
        "started_at": 1.0,
        "identity": {"system_uuid": text, "serial": text, "product": text},
        "digest": IN_A_NAME,
        "checks": {IN_A_NAME: "firing"},
        "inventory": {"gpus": [gpu], "driver": text},
        "answers": [answer],
    }
    return envelope | pulse


def facts_of(text: str) -> NodeFacts:
    """What Slurm says: people and jobs choose most of it."""
    states = ("IDLE", "DRAIN")
    return NodeFacts(
        node="gpu-07",
        states=states,
        reason=text,
        reason_by=text,
        drained_by="person",
        gpus=8,
        gpus_configured=8,
        at=NOW,
    )


@pytest.fixture
def fleet(store: Store) -> Store:
    keep(store, a_cluster(), a_node(stream=0))
    identity = Identity("east", "gpu-07", "hash")
    findings = Findings.model_validate_json(json.dumps(planted(Findings, EVERYTHING)))
    take_findings(store, identity, findings, now=NOW, pulse_seconds=60)
    pulse = Pulse.model_validate_json(json.dumps(planted(Pulse, EVERYTHING)))
    take_pulse(store, identity, pulse, now=NOW, pulse_seconds=60)
    observe_facts(store, "east", [facts_of(EVERYTHING)], now=NOW)
    return store


@pytest.fixture
def proposal(fleet: Store) -> Proposal:
    """What triage makes of all that, with a job that is as bad."""
    job = a_job(name=EVERYTHING, user=EVERYTHING, account=EVERYTHING, partition=EVERYTHING)
    with fleet.read() as session:
        node = node_row(session, "east", "gpu-07")
        facts = facts_of(EVERYTHING).model_copy(update={"drained_by": None, "states": ("MIXED",)})
        situation = load_situation(
            session, node, a_definition(), policy_revision=1, facts=facts, workloads=(job,), now=NOW
        )
    later = NOW + timedelta(minutes=10)
    verdict = triage(situation, Policy(), catalogue(), later)
    assert isinstance(verdict, Propose), verdict
    return build_proposal(
        situation, verdict.advice, repair_id=REPAIR, revision=2, last_observation=1, contain=True, now=later
    )


@pytest.fixture
def shown(fleet: Store, proposal: Proposal, shared: Shared) -> Iterator[Path]:
    """A service that knows the worst of a node and of its repair."""
    answers = {"gpus": [], "seen": 0, "error": EVERYTHING, "driver": EVERYTHING}
    said = dict.fromkeys(("attention", "waiting_for", "outcome", "why", "opened_by"), EVERYTHING)
    act = {"proof": EVERYTHING, "error": EVERYTHING, "target": EVERYTHING}
    keep(
        fleet,
        a_repair(proposal=proposal.model_dump(mode="json"), **said),
        an_event(text=EVERYTHING, actor=EVERYTHING, data={"why": EVERYTHING}),
        IntentRow(
            **act,
            id="i",
            repair_id=REPAIR,
            cluster="east",
            node="gpu-07",
            driver="slurm",
            kind="drain",
            created_at=NOW,
            updated_at=NOW,
        ),
        CheckRunRow(id="c", cluster="east", node="gpu-07", repair_id=REPAIR, started_at=NOW, summary=EVERYTHING),
        *(CheckResultRow(run_id="c", name=t.name, result=t.result, text=t.text) for t in judged(answers)),
    )
    collected = {"parts": [{"name": EVERYTHING, "bytes": 1, "error": EVERYTHING}], "archive": EVERYTHING}
    with fleet.write() as session:
        asked = {"cluster": "east", "node": "gpu-07", "kind": "collect-evidence", "created_at": NOW, "deadline": NOW}
        evidence.keep(session, NodeRequestRow(id="q", repair_id=REPAIR, **asked), collected, NOW)
        audit.append(session, EVERYTHING, EVERYTHING, EVERYTHING, data={"why": EVERYTHING}, now=NOW)
    with shared.serving(fleet, Repairer(fleet)) as socket:
        yield socket


def judged(answers: dict[str, Any]) -> Any:
    unknown = dict.fromkeys(("kernel", "facts", "expected_gpus", "boot_id_before", "acted_at"))
    boots = {"boot_id_now": EVERYTHING, "boot_expected": True, "same_boot_ok": True}
    wanted = {"wanted": ("gpu-count", "driver", "boot-id"), "fault": "xid-79", "known_uuids": (EVERYTHING,)}
    return judge(Evidence(**wanted, **boots, **unknown, gpus=answers, now=NOW)).results


def is_plain(text: str) -> bool:
    """Whether a terminal, a log or a chat shows it as it stands, on lines of our own making."""
    chars = {char for char in text if unicodedata.category(char) in HIDDEN}
    return chars <= {"\n"} and not any(line.lstrip().startswith("FORGED") for line in text.splitlines())


def has_markup(markdown: str) -> bool:
    return re.search(r"(?<!\\)(<script|\]\(|!\[|https?:|`code|\*bold)", markdown) is not None


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_cli_shows_hostile_text_as_text(
    shown: Path, capfd: pytest.CaptureFixture[str], words: tuple[str, ...], form: str
) -> None:
    code = run(["--socket", str(shown), *words, "-o", form])
    out, err = capfd.readouterr()
    assert (code in (0, NOT_HEALTHY), is_plain(out), is_plain(err)) == (True, True, True)
    if form in ("json", "yaml"):
        assert {"json": json.loads, "yaml": yaml.safe_load}[form](out)


def test_an_error_shows_hostile_text_as_text(shown: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run(["--socket", str(shown), "repairs", "show", EVERYTHING.replace("\x00", "")])
    assert is_plain(capfd.readouterr().err)


async def test_notices_and_logs_show_hostile_text_as_text(
    proposal: Proposal, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        await LogNotifier(tmp_path / "notices.jsonl").tell(summary_line(proposal), as_text(proposal), urgent=True)
    (notice,) = (tmp_path / "notices.jsonl").read_text().splitlines()
    assert EVERYTHING[:4] not in notice
    assert all(is_plain(record.getMessage()) for record in caplog.records)
    assert is_plain("".join(str(value) for value in json.loads(notice).values()))


def test_the_logs_of_intake_and_gateway_show_hostile_text_as_text(
    caplog: pytest.LogCaptureFixture, store: Store
) -> None:
    with caplog.at_level(logging.DEBUG):
        keep(store, a_cluster(), a_node())
        pulse = Pulse.model_validate_json(json.dumps(planted(Pulse, EVERYTHING)))
        take_pulse(store, Identity("east", "gpu-07", "hash"), pulse, now=NOW, pulse_seconds=60)
    assert "answers refused" in caplog.text
    assert is_plain(caplog.text)


def test_the_temporal_ui_shows_hostile_text_as_text(proposal: Proposal) -> None:
    told = as_markdown(proposal, State.PROPOSED)
    assert "evil" in told
    assert (is_plain(told), has_markup(told)) == (True, False)


def test_a_mark_is_one_plain_line(proposal: Proposal) -> None:
    assert is_plain(Mark(repair_id=REPAIR, text=summary_line(proposal)).reason)


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=6).map("".join))
def test_no_mixture_of_hostile_text_gets_through(text: str) -> None:
    told = dict.fromkeys(("title", "reason", "rule", "source"), text) | {"evidence": (text,), "entities": (text,)}
    job = a_job(name=text, user=text, account=text)
    proposal = a_proposal(**told, lost=(text,), kept=(text,), workloads=(job,))
    for shown in (summary_line(proposal), as_text(proposal), as_markdown(proposal, State.PROPOSED)):
        assert is_plain(shown)
    assert not has_markup(as_markdown(proposal, State.PROPOSED))
