"""What a cluster definition may say and is still likely to surprise. The CLI prints it with every definition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from daytwo.domain.definition import ClusterDefinition
from daytwo.domain.drivers import WOULD, able, skipped
from daytwo.domain.ladders import rung_of
from daytwo.domain.node_ranges import expand_nodes
from daytwo.domain.plain_words import nearest
from daytwo.domain.policy import FaultRule
from daytwo.domain.proposal import interrupts
from daytwo.domain.vocabulary import ClusterKind, Mode, NodeRole
from daytwo.faults.catalogue import catalogue
from daytwo.faults.model import VerifyTest

SERVED: Final = "cli:"
"""How the identities begin that this version lets in."""
MOST_NAMED: Final = 5


def check_definition(definition: ClusterDefinition) -> tuple[str, ...]:
    """Return what is allowed and still likely to surprise, a sentence each."""
    return (
        *_about_nodes(definition),
        *_about_bmcs(definition),
        *_about_drivers(definition),
        *_about_people(definition),
        *_about_roles(definition),
        *_about_rules(definition),
    )


def _about_nodes(definition: ClusterDefinition) -> Iterator[str]:
    if definition.kind is ClusterKind.SIMULATED and definition.simulated_socket is None:
        yield "simulated_socket: nothing, so the simulated cluster cannot be reached"
    for number, group in enumerate(definition.groups):
        if group.role is not NodeRole.WORKER:
            continue
        if group.gpus is None:
            yield f"groups[{number}].gpus: nothing, so a GPU that was lost before daytwo came goes unnoticed"
        if not group.domains:
            yield f"groups[{number}].domains: none, so nothing shows that many faults have one cause"
        if not group.survives_reboot:
            yield f"groups[{number}].survives_reboot: none, so no proposal can say what a boot clears"


def _about_bmcs(definition: ClusterDefinition) -> Iterator[str]:
    declared = {name for group in definition.groups for name in expand_nodes(group.nodes)}
    for number, access in enumerate(definition.bmcs):
        if not access.verify:
            yield f"bmcs[{number}].verify: false, so whoever answers at the address learns the password"
        if strangers := [name for name in expand_nodes(access.nodes) if name not in declared]:
            yield f"bmcs[{number}].nodes: {_some(strangers)}, in no group, so that is nobody's BMC"
    if definition.reboot_by == "bmc" and not definition.bmcs:
        yield "reboot_by: bmc, but there are no bmcs, so the scheduler reboots"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{', '.join(names[:MOST_NAMED])}{more}"


def _about_drivers(definition: ClusterDefinition) -> Iterator[str]:
    """Steps that are skipped for want of a driver: those that a driver could do, and those that the site asks for."""
    missing = [action for action in WOULD if action not in able(definition)]
    for action in missing:
        yield f"{action.value}: no driver does it, so ladders go past it; allowed is {WOULD[action]}"
    for name, rule in _rules(definition):
        wanted = (*((rule.action,) if rule.action else ()), *(rule.ladder or ()))
        for skip, would in skipped(definition, (each for each in wanted if each not in missing)).items():
            yield f"policy.{name}: {skip} is asked for, but done by {would}, so it is skipped"


def _about_people(definition: ClusterDefinition) -> Iterator[str]:
    approval = definition.policy.approval
    if not approval.people and not approval.root_is_lead:
        yield "policy.approval.people: none, and root is no lead, so nobody can approve anything"
    for person in approval.people:
        if not person.identities:
            yield f"policy.approval.people: {person.name} has no identities, so cannot come in"
        elif not any(identity.startswith(SERVED) for identity in person.identities):
            yield f"policy.approval.people: {person.name} has no {SERVED} identity, and this version lets in no other"
    for action in approval.two_person:
        who = [p for p in approval.people if any({"*", action.value} & set(approval.roles.get(r, ())) for r in p.roles)]
        if len(who) + approval.root_is_lead < 2:
            yield f"policy.approval.two_person: {action.value} needs two persons, but {len(who)} may approve it"
    for action in approval.unverified_may:
        if interrupts(action):
            yield f"policy.approval.unverified_may: {action.value} interrupts work, on an unproven identity"


def _about_roles(definition: ClusterDefinition) -> Iterator[str]:
    """Roles that are nobody's because `roles` was written anew without them."""
    approval = definition.policy.approval
    for field, names in (("groups", approval.groups), ("beyond_workers", approval.beyond_workers)):
        for name in names:
            if name not in approval.roles:
                yield f"policy.approval.{field}: {name} is none of the roles {', '.join(approval.roles)}"


def _rules(definition: ClusterDefinition) -> Iterator[tuple[str, FaultRule]]:
    policy = definition.policy
    yield from ((f"faults.{fault}", rule) for fault, rule in policy.faults.items())
    yield from ((f"classes.{kind.value}", rule) for kind, rule in policy.classes.items())
    yield "default", policy.default


def _about_rules(definition: ClusterDefinition) -> Iterator[str]:
    for name, rule in _rules(definition):
        for test in rule.verify or ():
            if test not in list(VerifyTest):
                yield f"policy.{name}.verify: {test} is no test that is known; allowed is {nearest(test, VerifyTest)}"
            elif VerifyTest(test).wanted:
                yield f"policy.{name}.verify: {test} cannot be run yet, so nodes return with it untested"
        if rule.ladder and rule.action and rung_of(rule.action) > rung_of(rule.ladder[-1]):
            yield f"policy.{name}.action: {rule.action.value} is above its ladder, so a person follows it"
    yield from _about_faults(definition)


def _about_faults(definition: ClusterDefinition) -> Iterator[str]:
    policy = definition.policy
    for name, rule in policy.faults.items():
        try:
            fault = catalogue().get(name)
        except LookupError:
            yield f"policy.faults.{name}: not in the catalogue, so the rule holds for nothing"
            continue
        action = policy.rule_for(fault).action
        if rule.mode is Mode.AUTO and action in policy.approval.never_automatic:
            yield f"policy.faults.{name}.mode: auto, but {action.value} always asks"
        known = [each.id for each in catalogue().all()]
        if name not in known:
            yield f"policy.faults.{name}: an Xid that the catalogue lacks; it has {nearest(name, known)}"
