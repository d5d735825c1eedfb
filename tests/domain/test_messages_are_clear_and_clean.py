"""What people read: a line, ten seconds of text, and Markdown; and that nothing a node says can dress itself up."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daytwo.domain.message import (
    Around,
    approve_command,
    as_markdown,
    as_text,
    clean,
    clean_markdown,
    new_jobs,
    signal_command,
    summary_line,
)
from daytwo.domain.policy import FaultRule, Policy
from daytwo.domain.proposal import Proposal, refreshed
from daytwo.domain.seams import NodeFacts, Ownership
from daytwo.domain.vocabulary import Action, Mode, Moment, State, Workload
from tests.builders import a_finding, a_job, a_proposal, a_situation, node_facts
from workflows.names import CLAIMABLE, workflow_id

LINE = "NVRM: Xid (PCI:0000:18:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
JOBS = (
    a_job(time_limit_seconds=86_400),
    a_job("77", user="bob", may_requeue=True, opted_into_requeue=True, nodes=("gpu-07",), gpus=8, elapsed_seconds=None),
)


def the_proposal(**fields: Any) -> Proposal:
    findings = (a_finding(evidence=(LINE,)), a_finding("xid-154", id=2, detail={"recovery_action": 1}))
    return a_proposal(a_situation(*findings, workloads=JOBS, survives_reboot={"/raid": True}), **fields)


EXPECTED = """\
🔴 gpu-07 GPU-5f1c0f3e GPU fell off the bus (xid-79, also xid-154) since 14:20:00Z · east · new jobs are kept off
   Job 88213 llm-70b, alice/nlp, 2 nodes/16 GPUs, 5 h 12 min of 1 d 0 h: is waited for
   Job 77 llm-70b, bob/nlp, 1 node/8 GPUs, ? of ?: is requeued
   Do: reboot, then test. If that does not help: power-cycle, failover, remove.
   Lost: /dev/shm. Kept: job 88213 of alice is waited for, never cancelled: it did not ask to be requeued; \
job 77 of bob is requeued, as it asked; /raid.
   Why: The driver cannot reach the GPU over PCIe any more. Every job on it is dead and every new one fails. \
Rule: action of xid-79 by catalogue. Source: NVIDIA catalogue: RESTART_BM; CONTACT_SUPPORT.
   rev 1 · daytwo repairs approve r-20261130-142100-x7k2q --revision 1 --reason "..."\
"""


def test_a_proposal_is_read_in_ten_seconds() -> None:
    assert as_text(the_proposal()) == EXPECTED


@pytest.mark.parametrize(
    ("left", "gone"), [((), "alice/nlp, bob/nlp"), (JOBS[:1], "bob/nlp")], ids=["none left", "one left"]
)
def test_whoever_reads_a_proposal_reads_for_whose_jobs_it_goes_too(left: tuple[Workload, ...], gone: str) -> None:
    now = the_proposal().model_copy(update={"workloads": left})
    line = f"It goes for new jobs of {gone} too, whose jobs have ended since it was proposed."
    told = refreshed(the_proposal(), now)
    shown = (as_text(told), as_markdown(told, State.PROPOSED).replace("\\", ""))
    assert [line in text for text in shown] == [True, True]


def test_a_proposal_is_one_line() -> None:
    assert summary_line(the_proposal()) == (
        "🔴 gpu-07: GPU fell off the bus (xid-79) → reboot · rev 1 · r-20261130-142100-x7k2q"
    )


@pytest.mark.parametrize(
    ("situation", "words"),
    [
        (a_situation(a_finding()), "No job on the node."),
        (a_situation(a_finding(), workloads=None), "Jobs: not known, the scheduler could not be read."),
        (a_situation(a_finding("agent-silent", "node")), "Interrupts nothing."),
        (a_situation(a_finding(), workloads=tuple(a_job(str(n)) for n in range(7))), "and 2 more jobs"),
        (a_situation(a_finding("slurm-drained", "node")), "🟡 gpu-07 Slurm drained the node itself"),
        (a_situation(*(a_finding(entity=f"GPU-{n}", id=n) for n in range(5))), "GPU-0, GPU-1, GPU-2 +2 "),
        (a_situation(a_finding(entity="pci:0000:18:00")), "pci:0000:18:00 GPU fell off"),
    ],
)
def test_the_text_says_how_it_is(situation: Any, words: str) -> None:
    assert words in as_text(a_proposal(situation))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"contain": False}, "daytwo keeps no new jobs off"),
        ({"moment": Moment.WHEN_IDLE}, "reboot when its jobs have ended, then test"),
        ({"moment": Moment.WHEN_IDLE}, "Job 77 llm-70b, bob/nlp, 1 node/8 GPUs, ? of ?: is waited for"),
        ({"reason": "new firmware"}, "Why: new firmware. Rule:"),
        ({"moment": Moment.NEXT_CHECKPOINT}, "reboot at the next checkpoint, then test"),
        ({"mode": Mode.AUTO}, "The policy approves it."),
        ({"action": Action.INSPECT}, "Do: inspect, then test.\n"),
        ({"lost": (), "kept": ()}, "Lost: nothing. Kept: nothing that is known."),
    ],
)
def test_what_is_done_and_when_is_said(fields: dict[str, Any], words: str) -> None:
    assert words in as_text(the_proposal(**fields))


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (node_facts("IDLE"), "takes new jobs"),
        (
            node_facts("IDLE", "DRAIN", drained_by="person", reason="fan", reason_by="bob"),
            "bob has taken the node: fan",
        ),
        (
            node_facts("IDLE", "DRAIN", drained_by="scheduler", reason="Low RAM"),
            "its scheduler has drained it (Low RAM)",
        ),
        (node_facts("ALLOCATED", responding=False), "takes no new jobs: it does not answer its scheduler"),
        (node_facts("DOWN"), "takes no new jobs: DOWN"),
        (node_facts("IDLE", "DRAIN", ownership=Ownership.OURS, drained_by="ours"), "new jobs are kept off"),
        (None, "whether it takes new jobs is not known"),
    ],
)
def test_whether_the_node_takes_new_jobs_is_its_schedulers_word(facts: NodeFacts | None, words: str) -> None:
    proposal = the_proposal(contain=False)
    assert words in as_text(proposal, Around(new_jobs=new_jobs(proposal, facts))).splitlines()[0]


def test_a_node_that_goes_on_taking_jobs_says_why() -> None:
    proposal = the_proposal(contain=False, rules_fired=("mode", "not contained: its budget"))
    assert new_jobs(proposal, node_facts("IDLE")) == "takes new jobs (not contained: its budget)"


def test_what_an_approval_would_wait_for_is_told_before_it() -> None:
    text = as_text(the_proposal(), Around(waits=("frozen by cli:lea: storm", "the rack")))
    assert "   Approved now, it would wait: frozen by cli:lea: storm; the rack.\n" in text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 min of"), (59, "0 min of"), (3_599, "59 min of"), (3_600, "1 h 0 min of"), (90_000, "1 d 1 h of")],
)
def test_a_time_is_as_long_as_a_person_says_it(seconds: int, words: str) -> None:
    situation = a_situation(a_finding(), workloads=(a_job(elapsed_seconds=seconds),))
    assert f", {words} ?" in as_text(a_proposal(situation))


def test_the_page_of_the_temporal_ui_says_all_and_how_to_answer() -> None:
    page = as_markdown(the_proposal(), State.PROPOSED)
    for words in ("### 🔴 gpu-07: GPU fell off", "**Do:** reboot", "**Lost:** /dev/shm", "**Evidence**", "**Rule:**"):
        assert words in page
    assert approve_command(the_proposal()) in page
    assert signal_command(the_proposal(), "approve") in page


@pytest.mark.parametrize("state", [state for state in State if state is not State.PROPOSED])
def test_a_proposal_that_waits_for_no_answer_shows_no_command(state: State) -> None:
    assert "daytwo repairs" not in as_markdown(the_proposal(), state)


@pytest.mark.parametrize("name", CLAIMABLE)
def test_the_signal_reaches_the_workflow_with_what_it_takes(name: str) -> None:
    words = shlex.split(signal_command(the_proposal(), name))
    options = dict(zip(words[3::2], words[4::2], strict=True))
    assert (options["--workflow-id"], options["--name"]) == (workflow_id("east", "gpu-07"), name)
    assert json.loads(options["--input"]) == {
        "repair": "r-20261130-142100-x7k2q",
        "revision": 1,
        "who": "<you>",
        "reason": "<why>",
    }


@pytest.mark.parametrize(
    ("dirty", "shown"),
    [
        ("plain text, 1 µs — fine", "plain text, 1 µs — fine"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;https://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b31mred", "red"),
        ("a\x1bcb", "ab"),
        ("two\nlines\r\nand\ttab", "two lines and tab"),
        ("\u202egnp.exe", "gnp.exe"),
        ("zero\u200bwidth", "zerowidth"),
        ("nul\x00bell\x07", "nulbell"),
        ("lone \ud800 surrogate", "lone surrogate"),
        ("line\u2028separator", "lineseparator"),
        ("  many   spaces ", "many spaces"),
    ],
)
def test_what_a_terminal_would_obey_is_taken_out(dirty: str, shown: str) -> None:
    assert clean(dirty) == shown


@pytest.mark.parametrize(("length", "limit"), [(501, 500), (100_000, 500), (70, 64)])
def test_a_long_text_is_cut_where_everybody_sees_it(length: int, limit: int) -> None:
    assert clean("x" * length, limit) == "x" * (limit - 1) + "…"


@given(st.text(max_size=80))
def test_whatever_comes_in_one_plain_line_comes_out(text: str) -> None:
    shown = clean(text, 40)
    assert len(shown) <= 40
    assert shown.isprintable() or all(char.isprintable() or char == " " for char in shown)


@pytest.mark.parametrize(
    ("dirty", "shown"),
    [
        ("**bold** _it_ `code`", r"\*\*bold\*\* \_it\_ \`code\`"),
        ("[click](https://evil.example)", r"\[click\]\(https\://evil.example\)"),
        ("www.evil.example", r"www\.evil.example"),
        ("![x](y)", r"\!\[x\]\(y\)"),
        ("<script>", r"\<script\>"),
        ("# head | cell", r"\# head \| cell"),
        ("&lt;", r"\&lt;"),
        ("a\n\n# b", r"a \# b"),
        ("back\\slash", "back\\\\slash"),
    ],
)
def test_markdown_shows_a_text_as_it_stands(dirty: str, shown: str) -> None:
    assert clean_markdown(dirty) == shown


NASTY = "\x1b[2J\n```\n**approve**: [here](https://evil.example) <img src=x>"


def nasty() -> Proposal:
    job = a_job(f"1{NASTY}", name=NASTY, user=NASTY, account=NASTY)
    finding = a_finding(entity=f"GPU-{NASTY}", evidence=(NASTY,))
    proposal = a_proposal(a_situation(finding, workloads=(job,)))
    return proposal.model_copy(update={"title": NASTY, "reason": NASTY, "node": NASTY, "cluster": NASTY, "rule": NASTY})


@pytest.mark.parametrize("tell", [as_text, summary_line])
def test_a_text_from_a_node_adds_no_line_and_no_escape(tell: Any) -> None:
    assert "\x1b" not in tell(nasty())
    assert len(tell(nasty()).splitlines()) in (1, 6)


def test_a_text_from_a_node_stays_text_in_markdown() -> None:
    page = as_markdown(nasty(), State.PROPOSED)
    before, answer = page.split("**Answer**")
    assert "\x1b" not in page
    assert not re.search(r"(?<!\\)[<\[]", before)
    # Three commands, each a line and one span of code: what came from a node cannot end it.
    assert re.fullmatch(r"[^`]*(\n- `[^`\n]+`){3}", answer)


def test_the_title_of_an_unknown_fault_is_cleaned_too() -> None:
    proposal = a_proposal(a_situation(a_finding("x\x1b[31m")), Policy(default=FaultRule(mode=Mode.RECOMMEND)))
    assert "\x1b" not in as_text(proposal) + summary_line(proposal) + as_markdown(proposal, State.PROPOSED)


def test_a_reservation_of_the_node_is_shown_with_its_owner_and_times() -> None:
    says = "reserved for maintenance by anna: psu-swap from 2026-12-01 08:00Z, until 2026-12-01 10:00Z"
    proposal = a_proposal(a_situation(a_finding(), facts=node_facts(reserved=says)))
    assert f"Also: {says}." in as_text(proposal)
    assert f"**Reserved:** {clean_markdown(says)}" in as_markdown(proposal, State.PROPOSED)


def test_faults_that_are_not_named_are_counted() -> None:
    faults = ("xid-79", *(f"xid-{number}" for number in range(119, 124)))
    many = the_proposal().model_copy(update={"faults": faults})
    assert "(xid-79, also xid-119, also xid-120, also xid-121, and 2 more)" in as_text(many)
