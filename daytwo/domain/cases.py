"""From firing findings to cases: which fault each is, which rule holds, and what it asks to be done. Triage calls it.

Three things make a case more than a look into the catalogue: a cleanup that the driver says was caused by an earlier
Xid belongs to that Xid, the driver's recovery action goes before the catalogue's advice, and silence never interrupts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from daytwo.domain.flapping import flaps, told
from daytwo.domain.ladders import ladder_from, rung_of
from daytwo.domain.policy import EffectiveRule, Origin, Policy
from daytwo.domain.vocabulary import Action, Clears, Fault, FaultClass, Finding, Mode, Severity
from daytwo.faults.catalogue import DRAINED_BY_PERSON, UNKNOWN_CODE, Catalogue
from daytwo.faults.recovery import NOTHING, Recovery, asked, recovery
from daytwo.faults.signals import OFF_BUS_SIGNS, SAME_READING

_SEVERITY: Final = {Severity.CRITICAL: 2, Severity.DEGRADED: 1, Severity.COSMETIC: 0}


@dataclass(frozen=True, slots=True)
class Case:
    """One firing finding with the fault it stands for and the rule that holds. `notes` are further rules that fired."""

    finding: Finding
    fault: Fault
    rule: EffectiveRule
    notes: tuple[str, ...] = ()

    @property
    def asks(self) -> bool:
        """True if the policy wants a person (or itself) to be asked. A person's own drain is never asked about."""
        return self.rule.mode in (Mode.RECOMMEND, Mode.AUTO) and self.fault.id != DRAINED_BY_PERSON

    @property
    def weight(self) -> tuple[int, int, bool, float, int]:
        """What leads: the most severe, then the highest rung, then a fault before the driver's reading of it."""
        is_cause = self.finding.fault not in SAME_READING
        age = -self.finding.first_seen.timestamp()
        return (_SEVERITY[self.fault.severity], rung_of(self.rule.action), is_cause, age, -self.finding.id)


def cases_of(findings: Iterable[Finding], policy: Policy, catalogue: Catalogue) -> tuple[Case, ...]:
    """Return a case for each finding whose mode is not `off`. Never raises: a fault without an entry asks a person."""
    cases = [_case(finding, policy, catalogue) for finding in findings if not _asks_nothing(finding)]
    words = _driver_words(cases)
    judged = (_quietly(_obeying(case, words.get(case.finding.entity))) for case in cases)
    return tuple(case for case in judged if case.rule.mode is not Mode.OFF)


def entry_of(catalogue: Catalogue, fault_id: str) -> Fault:
    """Return the catalogue's entry; a fault that it does not know is judged like an unknown code, under its own id."""
    try:
        return catalogue.get(fault_id)
    except LookupError:
        return replace(catalogue.get(UNKNOWN_CODE), id=fault_id, title=f"{fault_id}, not in the catalogue")


def recovery_number(finding: Finding) -> int | None:
    """Return the number of a recovery action as the node reported it; `None` if it could not be read."""
    number = finding.detail.get("recovery_action", finding.detail.get("recovery_to"))
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def _asks_nothing(finding: Finding) -> bool:
    return finding.fault in SAME_READING and recovery_number(finding) == NOTHING


def _case(finding: Finding, policy: Policy, catalogue: Catalogue) -> Case:
    cause = finding.detail.get("caused_by")
    if isinstance(cause, int) and not isinstance(cause, bool) and finding.fault != f"xid-{cause}":
        fault = entry_of(catalogue, f"xid-{cause}")
        return Case(finding, fault, policy.rule_for(fault), (f"{finding.fault} was caused by {fault.id}",))
    fault = entry_of(catalogue, finding.fault)
    if finding.fault in SAME_READING:
        fault = asked(fault, recovery_number(finding))
    flapping = bool(finding.turns) and flaps(finding.turns, finding.turns[-1], policy.flapping)
    return Case(finding, fault, policy.rule_for(fault), (told(finding.turns, policy.flapping),) if flapping else ())


def _driver_words(cases: list[Case]) -> dict[str, Recovery]:
    """What the driver asks for each GPU; of two readings the one that takes away more.

    For a GPU off the bus it asks for a reset of what it cannot reach, so its word does not count (faults.md 6).
    """
    lost = {case.finding.entity for case in cases if case.fault.id in OFF_BUS_SIGNS}
    words: dict[str, Recovery] = {}
    for case in cases:
        entity = case.finding.entity
        if case.finding.fault in SAME_READING and entity not in lost:
            words[entity] = max(
                words.get(entity, recovery(NOTHING)), recovery(recovery_number(case.finding)), key=_takes_away
            )
    return words


def _takes_away(asks: Recovery) -> int:
    return -1 if asks.action is None else rung_of(asks.action)


def _obeying(case: Case, word: Recovery | None) -> Case:
    """The driver's verdict is the first evidence (faults.md 1); only the site's own rule for this fault goes before."""
    if word is None or word.action is None or case.rule.origins["action"] is Origin.FAULT_RULE:
        return case
    number = f"0x{word.number:x}" if word.number >= 0 else "unreadable"
    note = f"the driver asks: {word.name} ({number})"
    return replace(case, rule=_with_action(case.rule, word.action), notes=(*case.notes, note))


def _quietly(case: Case) -> Case:
    """Silence of an agent is not death: it asks a person, and keeps nothing off the node (operations.md, rule 9)."""
    if case.fault.fault_class is not FaultClass.AGENT:
        return case
    action = case.rule.action if case.rule.action.touches_nothing else Action.INSPECT
    rule = _with_action(case.rule, action).model_copy(update={"contain": False, "ladder": (action,)})
    return replace(case, rule=rule, notes=(*case.notes, "silence alone never interrupts"))


def _with_action(rule: EffectiveRule, action: Action) -> EffectiveRule:
    return rule.model_copy(update={"action": action, "ladder": ladder_from(rule.ladder, action)})


def ids_of(cases: Iterable[Case]) -> tuple[str, ...]:
    """The faults that these cases stand for, each once."""
    return distinct(cases, lambda case: (case.fault.id,))


def rules_of(cases: Iterable[Case], *fields: str) -> tuple[str, ...]:
    """What the rules of these cases say of these fields, each once."""
    return distinct(cases, lambda case: tuple(case.rule.says(field) for field in fields))


def distinct(cases: Iterable[Case], of: Callable[[Case], tuple[str, ...]]) -> tuple[str, ...]:
    """The values of all cases in their order, each once."""
    return tuple(dict.fromkeys(value for case in cases for value in of(case)))


def clears_by_reading(cases: Iterable[Case]) -> bool:
    """True if every one of these faults ends with its reading; only then may a repair end by itself."""
    return all(case.rule.clears is Clears.READING for case in cases)
