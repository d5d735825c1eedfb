"""One proposal for all that is wrong with a node, led by the worst: what people are advised to do, and why. Pure.

Triage calls it with the cases that are the node's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from daytwo.domain.cases import Case, distinct, rules_of
from daytwo.domain.circumstances import Circumstances
from daytwo.domain.containing import contains
from daytwo.domain.proposal import Advice
from daytwo.domain.reaching import ladder_here, reached
from daytwo.domain.rivals import RIVAL
from daytwo.domain.verdicts import Propose
from daytwo.domain.vocabulary import Action, FindingStatus, Mode, NodeRole
from daytwo.faults.model import FLOOR

MAX_EVIDENCE: Final = 12


def proposed(here: Circumstances, own: Sequence[Case], cases: Sequence[Case]) -> Propose:
    """Advise on the node's own cases; of all that fires (`cases`) what is recorded on the same entities goes along."""
    lead = max(own, key=lambda case: case.weight)
    action, rung, because = reached(here, lead)
    mode, held_back = _mode(here, lead, action)
    contain, containing = contains(here, own)
    whole = _with_companions(own, cases)
    advice = _advice(lead, whole, action=action, rung=rung, mode=mode, because=because)
    advice = advice.model_copy(update={"ladder": ladder_here(here, lead)} | _after_failure(here, lead, because))
    rules = (*rules_of([lead], "mode", "action"), *because, *held_back, *containing)
    return Propose(why=f"{advice.title}: {action.value}", rules=rules, contain=contain, advice=advice)


def _mode(here: Circumstances, lead: Case, action: Action) -> tuple[Mode, tuple[str, ...]]:
    """The mode of the lead's rule, and what keeps an automatic one from acting by itself."""
    if lead.rule.mode is not Mode.AUTO:
        return lead.rule.mode, ()
    node, approval = here.situation, here.policy.approval
    reasons = (
        (node.role is not NodeRole.WORKER, f"never automatic on a {node.role.value} node"),
        (action in approval.never_automatic, f"{action.value} is never automatic"),
        (action in approval.two_person, f"{action.value} needs two persons"),
        (action is Action.INSPECT, "only a person can look"),
        (node.facts is None, "never automatic while the scheduler cannot be read"),
        (_has_rival(here), "never automatic while another tool repairs the node too"),
    )
    held_back = tuple(text for holds, text in reasons if holds)
    return (Mode.RECOMMEND if held_back else Mode.AUTO), held_back


def _has_rival(here: Circumstances) -> bool:
    return any(f.fault == RIVAL and f.status is FindingStatus.FIRING for f in here.situation.findings)


def _with_companions(own: Sequence[Case], cases: Sequence[Case]) -> list[Case]:
    """What is to be repaired, worst first, then what is only recorded on the same entities: one fault, many codes."""
    entities = {case.finding.entity for case in own}
    led = sorted(own, key=lambda case: case.weight, reverse=True)
    return led + [case for case in cases if not case.asks and case.finding.entity in entities]


def _advice(
    lead: Case, cases: Sequence[Case], *, action: Action, rung: int, mode: Mode, because: tuple[str, ...]
) -> Advice:
    return Advice(
        action=action,
        rung=rung,
        ladder=lead.rule.ladder,
        fault=lead.fault.id,
        title=lead.fault.title,
        faults=distinct(cases, lambda case: (case.fault.id, case.finding.fault)),
        entities=distinct(cases, lambda case: (case.finding.entity,)),
        severity=lead.fault.severity,
        mode=mode,
        reason=" ".join((lead.fault.meaning, *_sentences(because))),
        rule=lead.rule.says("action"),
        source=lead.fault.source,
        evidence=distinct(cases, lambda case: case.finding.evidence)[:MAX_EVIDENCE],
        findings=tuple(case.finding.id for case in cases),
        verify=tuple(dict.fromkeys((*(t.value for t in FLOOR), *distinct(cases, lambda case: case.rule.verify)))),
        first_seen=min(case.finding.first_seen for case in cases),
    )


def _after_failure(here: Circumstances, lead: Case, because: tuple[str, ...]) -> dict[str, str]:
    """What is said first where an act did not help: the tests, for what the fault was may be so no more."""
    repair = here.situation.open_repair
    if repair is None or not repair.disturbed or not repair.failed:
        return {}
    said = _sentences(dict.fromkeys((repair.failed, *because)))
    return {
        "title": f"still faulty; at first: {lead.fault.title}",
        "reason": " ".join((*said, "At first:", lead.fault.meaning)),
    }


def _sentences(rules: Iterable[str]) -> list[str]:
    return [f"{text[:1].upper()}{text[1:]}." for text in rules]
