"""What to do about one node, from what is known of it now. Pure and total: no clock, no I/O, an answer for everything.

The reconciler calls it for each node that is due, the activity `assess` before and after each wait of a repair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Final, Literal

from pydantic import Field

from daytwo.domain.cases import Case, cases_of, entry_of
from daytwo.domain.common_cause import count_trouble, shared_trouble
from daytwo.domain.incidents import repeats, told
from daytwo.domain.ladders import REBOOT_CLASS, next_rung, rung_of
from daytwo.domain.others_hands import others_work
from daytwo.domain.policy import Policy
from daytwo.domain.proposal import NOT_CONTAINED, Advice
from daytwo.domain.rivals import RIVAL
from daytwo.domain.situation import DomainTrouble, PastRepair, Situation
from daytwo.domain.tests_first import (
    driver_change,
    has_booted_after,
    is_held,
    says_change,
    settles_at,
    why_tests_first,
)
from daytwo.domain.vocabulary import Action, FaultClass, FindingStatus, Frozen, Mode, NodeRole, State
from daytwo.faults.catalogue import Catalogue
from daytwo.faults.model import FLOOR
from daytwo.faults.signals import OFF_BUS, SAME_READING

__all__ = ["Propose", "Quiet", "Verdict", "Watch", "Withhold", "asking", "count_trouble", "triage"]

OFF_BUS_SIGNS: Final = ("xid-79", OFF_BUS)

LEAVES_MARKS: Final = frozenset({State.REMOVED, State.HANDED_OVER})
"""How a repair may end with its marks still on the node: somebody else stands behind them then."""

MAX_EVIDENCE: Final = 12
DAY: Final = timedelta(days=1)
WEEK: Final = timedelta(days=7)


class Quiet(Frozen):
    """Nothing fires."""

    kind: Literal["quiet"] = "quiet"
    why: str
    rules: tuple[str, ...] = ()
    look_again_at: datetime | None = None


class Watch(Frozen):
    """Something fires that asks nobody, or has not fired for long enough."""

    kind: Literal["watch"] = "watch"
    why: str
    rules: tuple[str, ...] = ()
    look_again_at: datetime | None = None


class Withhold(Frozen):
    """Somebody would be asked, but not now, or not about this node alone. The findings wait as firing.

    `domain` is set for a common cause. `contain`: keep new work off all the same.
    """

    kind: Literal["withhold"] = "withhold"
    cause: Literal["held", "planned", "retired", "snoozed", "noted", "common-cause"]
    why: str
    rules: tuple[str, ...] = ()
    look_again_at: datetime | None = None
    contain: bool = False
    domain: str | None = None
    faults: tuple[str, ...] = ()


class Propose(Frozen):
    """Ask: open a repair, or tell the open one. `contain`: keep new work off before anybody answers."""

    kind: Literal["propose"] = "propose"
    why: str
    rules: tuple[str, ...] = ()
    look_again_at: datetime | None = None
    contain: bool = False
    advice: Advice


Verdict = Annotated[Quiet | Watch | Withhold | Propose, Field(discriminator="kind")]


def triage(situation: Situation, policy: Policy, catalogue: Catalogue, now: datetime) -> Verdict:
    """Judge one node. Never raises; the verdict names every rule that fired."""
    firing = [finding for finding in situation.findings if finding.status is FindingStatus.FIRING]
    cases = cases_of(firing, policy, catalogue)
    wanting = [case for case in cases if case.asks]
    if not cases:
        return Quiet(why=_why_quiet(situation, len(firing)))
    if not wanting:
        return Watch(why=f"recorded only: {_names(cases)}", rules=_rules(cases, "mode"))
    ripe = [case for case in wanting if _ripe_at(case, now) <= now]
    if not ripe:
        return Watch(
            why=f"not for long enough: {_names(wanting)}",
            rules=_rules(wanting, "debounce_seconds"),
            look_again_at=min(_ripe_at(case, now) for case in wanting),
        )
    judge = _Judge(situation, policy, now, catalogue)
    return judge.withheld(ripe) or judge.proposed(judge.remaining(ripe), cases)


def asking(situation: Situation, policy: Policy, catalogue: Catalogue) -> tuple[str, ...]:
    """Return the faults that fire and that this policy asks somebody about, now or after their debounce."""
    firing = [finding for finding in situation.findings if finding.status is FindingStatus.FIRING]
    return _ids(case for case in cases_of(firing, policy, catalogue) if case.asks)


class _Judge:
    """One node, one policy, one moment: what the questions about ripe cases have in common."""

    def __init__(self, situation: Situation, policy: Policy, now: datetime, catalogue: Catalogue) -> None:
        self.situation, self.policy, self.now, self.catalogue = situation, policy, now, catalogue

    def withheld(self, ripe: Sequence[Case]) -> Withhold | None:
        """The reason not to ask about any of these cases now, if there is one."""
        if self.situation.held and self.situation.open_repair is None:
            rules = ("a person holds the node",)
            return Withhold(cause="held", why=self.situation.held, rules=rules, faults=_ids(ripe))
        if retired := given_away(self.situation):
            rules = ("a removed node waits for its replacement",)
            return Withhold(cause="retired", why=retired, rules=rules, faults=_ids(ripe))
        if planned := others_work(self.situation.facts):
            rules = ("planned work is judged when it ends",)
            return Withhold(cause="planned", why=planned, rules=rules, faults=_ids(ripe))
        if settling := self._settling(ripe):
            return settling
        awake = self._awake(ripe)
        if not awake:
            return self._answered(ripe)
        return None if self.remaining(ripe) else self._one_cause(awake)

    def _settling(self, ripe: Sequence[Case]) -> Withhold | None:
        """Everything waits where all of it may come from a driver that somebody has just changed."""
        change = driver_change(self.situation)
        if change is None or not all(is_held(case, change, self.policy.timing, self.now) for case in ripe):
            return None
        contain, rules = self._contain(ripe)
        return Withhold(
            cause="planned",
            why=says_change(change),
            rules=("a new driver is judged when it has settled", *rules),
            look_again_at=settles_at(change, self.policy.timing),
            contain=contain,
            faults=_ids(ripe),
        )

    def remaining(self, ripe: Iterable[Case]) -> list[Case]:
        """The cases that are this node's own: not answered already, and not part of a common cause."""
        return [case for case in self._awake(ripe) if self._trouble(case) is None]

    def _trouble(self, case: Case) -> DomainTrouble | None:
        since, fault_class = case.finding.first_seen, case.fault.fault_class
        return shared_trouble(self.situation, self.policy, fault_class, since=since, now=self.now)

    def proposed(self, own: Sequence[Case], cases: Sequence[Case]) -> Propose:
        """One proposal for all that is wrong with the node, led by the worst."""
        lead = max(own, key=lambda case: case.weight)
        action, rung, because = self._action(lead)
        mode, held_back = self._mode(lead, action)
        contain, containing = self._contain(own)
        whole = _with_companions(own, cases)
        advice = _advice(lead, whole, action=action, rung=rung, mode=mode, because=because)
        advice = advice.model_copy(update={"ladder": self._ladder(lead)} | self._after_failure(lead, because))
        rules = (*_rules([lead], "mode", "action"), *because, *held_back, *containing)
        return Propose(why=f"{advice.title}: {action.value}", rules=rules, contain=contain, advice=advice)

    def _after_failure(self, lead: Case, because: tuple[str, ...]) -> dict[str, str]:
        """What is said first where an act did not help: the tests, for what the fault was may be so no more."""
        repair = self.situation.open_repair
        if repair is None or not repair.disturbed or not repair.failed:
            return {}
        said = _sentences(dict.fromkeys((repair.failed, *because)))
        return {
            "title": f"still faulty; at first: {lead.fault.title}",
            "reason": " ".join((*said, "At first:", lead.fault.meaning)),
        }

    def _awake(self, ripe: Iterable[Case]) -> list[Case]:
        return [case for case in ripe if self._answer(case) is None]

    def _answer(self, case: Case) -> tuple[Literal["snoozed", "noted"], datetime, str] | None:
        """What somebody has answered about this fault that still holds, and until when."""
        for past in self.situation.history:
            if not _is_about(past, case) or self._is_outdated(past, case):
                continue
            if past.snooze_until is not None and past.snooze_until > self.now:
                return "snoozed", past.snooze_until, f"dismissed with {past.repair_id}"
            until = past.closed_at + timedelta(seconds=self.policy.timing.noted_seconds)
            if _was_noted(past) and until > self.now:
                return "noted", until, f"somebody was told by {past.repair_id}"
        return None

    def _is_outdated(self, past: PastRepair, case: Case) -> bool:
        """An answer from before a boot by another hand: the question is another one now."""
        tests = why_tests_first(self.situation, case, self.policy.timing)
        return bool(tests) and has_booted_after(self.situation, past.closed_at)

    def _answered(self, ripe: Sequence[Case]) -> Withhold:
        answers = [answer for case in ripe if (answer := self._answer(case)) is not None]
        cause, until, why = min(answers, key=lambda answer: answer[1])
        # A dismissal lifts containment; one that only took note does not.
        contain, rules = self._contain(ripe) if cause == "noted" else (False, ())
        return Withhold(
            cause=cause, why=why, rules=(why, *rules), look_again_at=until, contain=contain, faults=_ids(ripe)
        )

    def _one_cause(self, cases: Sequence[Case]) -> Withhold:
        trouble = next(trouble for case in cases if (trouble := self._trouble(case)) is not None)
        contain, rules = self._contain(cases)
        why = f"{trouble.nodes} nodes of {trouble.domain} have {trouble.fault_class} faults: one cause, not many nodes"
        return Withhold(
            cause="common-cause",
            why=why,
            rules=("breaker", *rules),
            contain=contain,
            domain=trouble.domain,
            faults=_ids(cases),
        )

    def _action(self, lead: Case) -> tuple[Action, int, tuple[str, ...]]:
        """The action, the rung reached, and the rules that moved it off the first action."""
        at_least, because = self._at_least(lead)
        tests = why_tests_first(self.situation, lead, self.policy.timing)
        if tests and at_least <= rung_of(Action.VERIFY) <= rung_of(lead.rule.action):
            return Action.VERIFY, rung_of(Action.VERIFY), (*lead.notes, *because, tests)
        action = lead.rule.action
        if not self._is_able(action):
            because = (*because, f"no driver can {action.value}")
        if rung_of(action) < at_least or not self._is_able(action):
            climbed = next_rung(self._ladder(lead), max(at_least, rung_of(action)) - 1)
            action = climbed or Action.INSPECT
            because = (*because, f"next: {climbed.value}" if climbed else "the ladder has ended: a person must look")
        if action in REBOOT_CLASS and (spent := self._spent()):
            # Boots are used up. A spare helps after one that did not; short of that a person must look.
            spare = at_least > 0 and Action.FAILOVER in self._ladder(lead)
            action, because = Action.FAILOVER if spare else Action.INSPECT, (*because, spent)
        return action, max(at_least, rung_of(action)), (*lead.notes, *because)

    def _is_able(self, action: Action) -> bool:
        return self.situation.able is None or action in self.situation.able

    def _ladder(self, lead: Case) -> tuple[Action, ...]:
        """The rungs that somebody can climb here."""
        return tuple(action for action in lead.rule.ladder if self._is_able(action))

    def _at_least(self, lead: Case) -> tuple[int, tuple[str, ...]]:
        floors = [(0, "")]
        repair = self.situation.open_repair
        if repair is not None and repair.disturbed:
            floors.append((repair.rung, repair.failed or "this repair has climbed"))
        since = self.now - timedelta(seconds=self.policy.attempts.relapse_seconds)
        floors += [
            (_rung_tried(past) + 1, f"relapse after {past.repair_id}")
            for past in self.situation.history
            if past.closed_at >= since and _was_tried(past) and past.was_about(lead.fault.id)
        ]
        floors += self._too_often(lead)
        rung, rule = max(floors)
        return rung, (rule,) if rule else ()

    def _too_often(self, lead: Case) -> list[tuple[int, str]]:
        """The rung of removal, where the same part was repaired so often that another repair is no use."""
        if Action.REMOVE not in self._ladder(lead):
            return []
        entity, fault_class, rule = lead.finding.entity, lead.fault.fault_class, self.policy.attempts
        past = repeats(self.situation.history, entity, fault_class, class_of=self._class_of, rule=rule, now=self.now)
        return [(rung_of(Action.REMOVE), told(past, entity, fault_class, rule))] if past else []

    def _class_of(self, fault: str) -> FaultClass:
        return entry_of(self.catalogue, fault).fault_class

    def _spent(self) -> str:
        """Why no further boot is proposed, or nothing."""
        limits = self.policy.attempts
        for span, most, words in ((DAY, limits.per_day, "24 h"), (WEEK, limits.per_week, "7 days")):
            boots = [p for p in self.situation.history if _booted(p) and p.closed_at > self.now - span]
            if len(boots) >= most:
                return f"{len(boots)} of {most} boots in {words} are used: a person must look"
        return ""

    def _mode(self, lead: Case, action: Action) -> tuple[Mode, tuple[str, ...]]:
        """The mode of the lead's rule, and what keeps an automatic one from acting by itself."""
        if lead.rule.mode is not Mode.AUTO:
            return lead.rule.mode, ()
        reasons = (
            (self.situation.role is not NodeRole.WORKER, f"never automatic on a {self.situation.role.value} node"),
            (action in self.policy.approval.never_automatic, f"{action.value} is never automatic"),
            (action in self.policy.approval.two_person, f"{action.value} needs two persons"),
            (action is Action.INSPECT, "only a person can look"),
            (self.situation.facts is None, "never automatic while the scheduler cannot be read"),
            (self._has_rival(), "never automatic while another tool repairs the node too"),
        )
        held_back = tuple(text for holds, text in reasons if holds)
        return (Mode.RECOMMEND if held_back else Mode.AUTO), held_back

    def _has_rival(self) -> bool:
        return any(f.fault == RIVAL and f.status is FindingStatus.FIRING for f in self.situation.findings)

    def _contain(self, cases: Iterable[Case]) -> tuple[bool, tuple[str, ...]]:
        """Whether to keep new work off unasked, and the rules that say so."""
        wanting = [case for case in cases if case.rule.contain]
        if not wanting:
            return False, ()
        for holds, text in self._against_containing():
            if holds:
                return False, (f"{NOT_CONTAINED}{text}",)
        return True, _rules(wanting[:1], "contain")

    def _against_containing(self) -> tuple[tuple[bool, str], ...]:
        """The conditions under which a node is not contained, whatever its faults."""
        here, budget = self.situation, self.policy.budget
        most = max(1, min(int(budget.containing_share * here.pool_nodes), budget.containing_nodes))
        already = here.open_repair is not None and here.open_repair.contained
        full = not already and here.pool_contained >= most
        return (
            (not self.policy.contain_unasked, "the policy contains nothing unasked"),
            (here.role is not NodeRole.WORKER, f"it is a {here.role.value} node"),
            (here.facts is None, "the scheduler cannot be read"),
            (
                full,
                f"out in its pool: {here.pool_contained}; the budget contains {most} unasked",
            ),
        )


def _advice(
    lead: Case, cases: Sequence[Case], *, action: Action, rung: int, mode: Mode, because: tuple[str, ...]
) -> Advice:
    return Advice(
        action=action,
        rung=rung,
        ladder=lead.rule.ladder,
        fault=lead.fault.id,
        title=lead.fault.title,
        faults=_distinct(cases, lambda case: (case.fault.id, case.finding.fault)),
        entities=_distinct(cases, lambda case: (case.finding.entity,)),
        severity=lead.fault.severity,
        mode=mode,
        reason=" ".join((lead.fault.meaning, *_sentences(because))),
        rule=lead.rule.says("action"),
        source=lead.fault.source,
        evidence=_distinct(cases, lambda case: case.finding.evidence)[:MAX_EVIDENCE],
        findings=tuple(case.finding.id for case in cases),
        verify=tuple(dict.fromkeys((*(t.value for t in FLOOR), *_distinct(cases, lambda case: case.rule.verify)))),
        first_seen=min(case.finding.first_seen for case in cases),
    )


def _sentences(rules: Iterable[str]) -> list[str]:
    return [f"{text[:1].upper()}{text[1:]}." for text in rules]


def _with_companions(own: Sequence[Case], cases: Sequence[Case]) -> list[Case]:
    """What is to be repaired, worst first, then what is only recorded on the same entities: one fault, many codes."""
    entities = {case.finding.entity for case in own}
    led = sorted(own, key=lambda case: case.weight, reverse=True)
    return led + [case for case in cases if not case.asks and case.finding.entity in entities]


def given_away(situation: Situation) -> str:
    """A node that was removed or handed over keeps the marks of that repair until another takes them over."""
    mark = situation.facts.mark_repair_id if situation.facts else None
    left = [past for past in situation.history if past.outcome in LEAVES_MARKS]
    if mark is None or mark not in {past.repair_id for past in left}:
        return ""
    last = left[0]  # the newest says what the node is now; the marks may be those of one before it
    back = f"daytwo nodes repair {situation.cluster}/{situation.node} --action verify"
    return f"{last.outcome} with {last.repair_id}; the marks of {mark} still stand; to test and return it: {back}"


def _is_about(past: PastRepair, case: Case) -> bool:
    """The same fault, or a late sign of it on an entity of that repair."""
    late = case.finding.entity in past.entities and any(case.finding.fault in group for group in _same_signs(past))
    return late or past.was_about(case.fault.id) or past.was_about(case.finding.fault)


def _same_signs(past: PastRepair) -> list[tuple[str, ...]]:
    """Signs that come after the fault they are of: the driver's word, and NVML's, that a GPU off the bus is gone."""
    off_bus = any(past.was_about(fault) for fault in OFF_BUS_SIGNS)
    return [SAME_READING, OFF_BUS_SIGNS] if off_bus else [SAME_READING]


def _was_noted(past: PastRepair) -> bool:
    return past.outcome is State.SUCCEEDED and past.action is not None and past.action.touches_nothing


def _was_tried(past: PastRepair) -> bool:
    """A repair that came to something. A dismissal tried nothing, nor did a fault that went away."""
    return past.outcome is State.SUCCEEDED or (past.acted and past.outcome in (State.HANDED_OVER, State.REMOVED))


def _rung_tried(past: PastRepair) -> int:
    if past.action is None or past.action.touches_nothing:
        return past.rung
    return rung_of(past.action)


def _booted(past: PastRepair) -> bool:
    return past.acted and past.action in REBOOT_CLASS


def _ripe_at(case: Case, now: datetime) -> datetime:
    # A clock that was put back has seen it in what is now the future.
    return min(case.finding.first_seen, now) + timedelta(seconds=case.rule.debounce_seconds)


def _why_quiet(situation: Situation, firing: int) -> str:
    if firing:
        return "what fires is switched off by the policy, or asks nothing"
    if situation.open_repair is not None:
        return f"nothing fires any more that {situation.open_repair.repair_id} is about"
    return "nothing fires"


def _rules(cases: Iterable[Case], *fields: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(case.rule.says(field) for case in cases for field in fields))


def _ids(cases: Iterable[Case]) -> tuple[str, ...]:
    return _distinct(cases, lambda case: (case.fault.id,))


def _names(cases: Iterable[Case]) -> str:
    return ", ".join(_ids(cases))


def _distinct(cases: Iterable[Case], of: Callable[[Case], tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for case in cases for value in of(case)))
