"""A repair that a person asks for: its advice, in the form that triage gives. Pure; `assess` calls it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from daytwo.domain.ladders import rung_of
from daytwo.domain.proposal import Advice
from daytwo.domain.verdicts import Propose, Verdict
from daytwo.domain.vocabulary import Action, Finding, Frozen, Mode, Severity
from daytwo.faults.model import FLOOR

ASKED: Final = "asked"
"""Stands where a proposal names its fault: no fault was seen, somebody asked."""


class Asked(Frozen):
    """Who asked for which action, why and when."""

    action: Action
    by: str
    why: str
    at: datetime


def chosen(verdict: Verdict, asked: Asked | None, *, disturbed: bool, findings: Sequence[Finding] = ()) -> Verdict:
    """What holds of a person's wish and of triage: the wish, until triage wants more or something was done.

    Tests that somebody asked for judge what was known of the node by then, as on one that was removed; only what is
    seen since wants more. `findings` are the node's. Without a wish it is triage's.
    """
    if asked is None or disturbed:
        return verdict
    more = isinstance(verdict, Propose) and verdict.advice.rung > rung_of(asked.action)
    if isinstance(verdict, Propose) and more and not _is_to_be_tested(verdict.advice, asked, findings):
        return verdict
    return Propose(
        why=f"{asked.action.value}: asked for by {asked.by}", rules=("a person asked",), advice=_advice(asked)
    )


def _is_to_be_tested(advice: Advice, asked: Asked, findings: Sequence[Finding]) -> bool:
    about = [finding for finding in findings if finding.id in advice.findings]
    return asked.action is Action.VERIFY and bool(about) and all(finding.last_seen <= asked.at for finding in about)


def _advice(asked: Asked) -> Advice:
    """Never critical: work that runs on a node that nobody found faulty is not interrupted by default."""
    return Advice(
        action=asked.action,
        rung=rung_of(asked.action),
        ladder=(asked.action,),
        fault=ASKED,
        title=f"asked for by {asked.by}",
        faults=(ASKED,),
        entities=("node",),
        severity=Severity.DEGRADED,
        mode=Mode.RECOMMEND,
        reason=f"{asked.by}: {asked.why}",
        rule="a person asked",
        source="the person who asked",
        verify=tuple(test.value for test in FLOOR),
        first_seen=asked.at,
    )
