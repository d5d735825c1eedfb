"""From the YAML of a cluster definition to `ClusterDefinition`, or to everything that is wrong with it at once.

The CLI calls it for `clusters` and `policy check`, the demo for its own definition. The text comes in; nothing is read
here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from daytwo.domain.definition import ClusterDefinition, twice
from daytwo.domain.errors import BadInput
from daytwo.domain.ladders import rung_of
from daytwo.domain.node_ranges import RangeError, expand_nodes
from daytwo.domain.plain_words import allowed_by
from daytwo.domain.policy import Approval
from daytwo.domain.proposal import interrupts
from daytwo.domain.vocabulary import Action, ClusterKind, Mode, NodeRole
from daytwo.domain.yaml_lines import Document, Path, Problem, path_text, read_yaml
from daytwo.faults.catalogue import catalogue
from daytwo.faults.model import VerifyTest

__all__ = ["DefinitionError", "Problem", "check_definition", "expand_nodes", "load_definitions"]

MAX_SHOWN: Final = 50
IDENTITY: Final = re.compile(r"(cli|slack|oidc):\S+")
IDENTITIES: Final = "cli:<Unix user>, slack:<member id> or oidc:<subject>"


class DefinitionError(BadInput):
    """A definition that cannot be used. One line for each of its `problems`: file, line, field, found, allowed."""

    def __init__(self, file: str, problems: tuple[Problem, ...]) -> None:
        self.file, self.problems = file, problems
        lines = [_line(file, problem) for problem in problems[:MAX_SHOWN]]
        more = len(problems) - MAX_SHOWN
        super().__init__("\n".join([*lines, f"{file}: and {more} more"] if more > 0 else lines))


def load_definitions(text: str, file: str) -> ClusterDefinition:
    """Return the definition in `text`. `file` is its name in messages. Raises `DefinitionError`."""
    document = read_yaml(text)
    problems = list(document.problems)
    definition = None
    if not isinstance(document.data, dict):
        problems = problems or [Problem(1, "", _shown(document.data), "the fields of a cluster: name, kind, groups, …")]
    else:
        problems += _of_meaning(document)
        definition, wrong = _validated(document)
        problems += wrong
    if problems or definition is None:
        raise DefinitionError(file, tuple(sorted(problems, key=lambda problem: (problem.line, problem.path))))
    return definition


def check_definition(definition: ClusterDefinition) -> tuple[str, ...]:
    """Return what is allowed and still likely to surprise, a sentence each."""
    return (*_about_nodes(definition), *_about_bmcs(definition), *_about_people(definition), *_about_rules(definition))


def _line(file: str, problem: Problem) -> str:
    where = f"{problem.path}: " if problem.path else ""
    return f"{file}:{problem.line}: {where}found {problem.found}, allowed: {problem.allowed}"


# ---- what the models say


def _validated(document: Document) -> tuple[ClusterDefinition | None, list[Problem]]:
    try:
        return ClusterDefinition.model_validate(document.data), []
    except ValidationError as error:
        # An error without a place is about the whole: nodes that stand twice, which `_of_meaning` names by line.
        return None, [_problem(document, details) for details in error.errors() if details["loc"]]


def _problem(document: Document, details: ErrorDetails) -> Problem:
    path: Path = tuple(part for part in details["loc"] if part != "[key]")
    line, field = document.line_of(path), path_text(path)
    if details["type"] == "extra_forbidden":
        return Problem(
            line, field, "a field that is not known", _near(str(path[-1]), list(_model_at(path[:-1]).model_fields))
        )
    if details["type"] == "missing":
        return Problem(line, field, "nothing", allowed_by(details))
    if details["type"] == "string_pattern_mismatch":
        described = _model_at(path[:-1]).model_fields[str(path[-1])].description
        return Problem(line, field, _shown(details["input"]), described or details["msg"])
    said = allowed_by(details)
    if said.startswith("found ") and ", allowed: " in said:
        found, _, allowed = said.removeprefix("found ").partition(", allowed: ")
        return Problem(line, field, found, allowed)
    return Problem(line, field, _shown(details["input"]), said)


def _model_at(path: Path) -> type[BaseModel]:
    """The model around `path`, found by walking the annotations; indexes and keys of dictionaries lead nowhere."""
    model: type[BaseModel] = ClusterDefinition
    for part in path:
        if part in model.model_fields:
            annotation = model.model_fields[str(part)].annotation
            kinds = (kind for kind in (annotation, *_kinds(annotation)) if isinstance(kind, type))
            model = next((kind for kind in kinds if issubclass(kind, BaseModel)), model)
    return model


def _kinds(annotation: Any) -> Iterator[Any]:
    for kind in get_args(annotation):
        yield kind
        yield from _kinds(kind)


def _near(word: str, allowed: list[str]) -> str:
    """The words that are allowed, with the one that was probably meant in front."""
    close = get_close_matches(word, allowed, n=1, cutoff=0.6)
    known = ", ".join(allowed)
    return f"{close[0]} (did you mean that?), or one of {known}" if close else known


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


# ---- what no model can say


def _of_meaning(document: Document) -> Iterator[Problem]:
    yield from _nodes_twice(document)
    policy = document.data.get("policy")
    if isinstance(policy, dict):
        yield from _unknown_faults(document, policy.get("faults"))
        yield from _unknown_actions(document, policy.get("approval"))
        yield from _unknown_people(document, policy.get("approval"))


def _nodes_twice(document: Document) -> Iterator[Problem]:
    groups = document.data.get("groups")
    names = [_names(group) for group in groups] if isinstance(groups, list) else []
    for name, first, second in twice(names)[:MAX_SHOWN]:
        path: Path = ("groups", second, "nodes")
        found = f"{name}, which is in groups[{first}] already"
        yield Problem(document.line_of(path), path_text(path), found, "each node in one group")


def _names(group: Any) -> tuple[str, ...]:
    """The names of a group as far as they can be read; the model says what is wrong with the rest."""
    nodes = group.get("nodes") if isinstance(group, dict) else None
    if not isinstance(nodes, list) or not all(isinstance(node, str) for node in nodes):
        return ()
    try:
        return expand_nodes(nodes)
    except RangeError:
        return ()


def _unknown_faults(document: Document, rules: Any) -> Iterator[Problem]:
    for fault in rules if isinstance(rules, dict) else ():
        try:
            catalogue().get(fault)
        except LookupError:
            path: Path = ("policy", "faults", fault)
            allowed = _near(fault, [known.id for known in catalogue().all()])
            yield Problem(
                document.line_of(path), path_text(path), "a fault that is not known", f"xid-<number>, {allowed}"
            )


def _unknown_actions(document: Document, approval: Any) -> Iterator[Problem]:
    roles = approval.get("roles") if isinstance(approval, dict) else None
    allowed = [*(action.value for action in Action), "*"]
    for role, actions in roles.items() if isinstance(roles, dict) else ():
        for number, action in enumerate(actions if isinstance(actions, list) else ()):
            if isinstance(action, str) and action not in allowed:
                path: Path = ("policy", "approval", "roles", role, number)
                yield Problem(document.line_of(path), path_text(path), repr(action), _near(action, allowed))


def _unknown_people(document: Document, approval: Any) -> Iterator[Problem]:
    """Roles that no table has, and identities that no channel proves: either would shut somebody out in silence."""
    people = approval.get("people") if isinstance(approval, dict) else None
    roles = approval.get("roles", Approval().roles) if isinstance(approval, dict) else {}
    for number, person in enumerate(people if isinstance(people, list) else ()):
        path: Path = ("policy", "approval", "people", number)
        for at, role in _texts(person, "roles", path):
            if isinstance(roles, dict) and role not in roles:
                yield Problem(document.line_of(at), path_text(at), repr(role), _near(role, list(roles)))
        for at, identity in _texts(person, "identities", path):
            if not IDENTITY.fullmatch(identity):
                yield Problem(document.line_of(at), path_text(at), repr(identity), IDENTITIES)


def _texts(person: Any, field: str, path: Path) -> Iterator[tuple[Path, str]]:
    """The texts in a list, each with its path; the model says what is wrong with the rest."""
    values = person.get(field) if isinstance(person, dict) else None
    for number, value in enumerate(values if isinstance(values, list) else ()):
        if isinstance(value, str):
            yield (*path, field, number), value


# ---- what is allowed, and surprises


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
    for number, access in enumerate(definition.bmcs):
        if not access.verify:
            yield f"bmcs[{number}].verify: false, so whoever answers at the address learns the password"
    if definition.reboot_by == "bmc" and not definition.bmcs:
        yield "reboot_by: bmc, but there are no bmcs, so the scheduler reboots"


def _about_people(definition: ClusterDefinition) -> Iterator[str]:
    approval = definition.policy.approval
    if not approval.people and not approval.root_is_lead:
        yield "policy.approval.people: none, and root is no lead, so nobody can approve anything"
    for person in approval.people:
        if not person.identities:
            yield f"policy.approval.people: {person.name} has no identities, so cannot come in"
    for action in approval.two_person:
        who = [p for p in approval.people if any({"*", action.value} & set(approval.roles.get(r, ())) for r in p.roles)]
        if len(who) + approval.root_is_lead < 2:
            yield f"policy.approval.two_person: {action.value} needs two persons, but {len(who)} may approve it"
    for action in approval.unverified_may:
        if interrupts(action):
            yield f"policy.approval.unverified_may: {action.value} interrupts work, on an unproven identity"


def _about_rules(definition: ClusterDefinition) -> Iterator[str]:
    policy = definition.policy
    for fault, rule in policy.faults.items():
        known = catalogue().get(fault) if _is_known(fault) else None
        if known is None:
            yield f"policy.faults.{fault}: not in the catalogue, so the rule holds for nothing"
        elif rule.mode is Mode.AUTO and policy.rule_for(known).action in policy.approval.never_automatic:
            yield f"policy.faults.{fault}.mode: auto, but {policy.rule_for(known).action.value} always asks"
        for test in rule.verify or ():
            if test not in list(VerifyTest) or VerifyTest(test).wanted:
                yield f"policy.faults.{fault}.verify: {test} cannot be run yet, so nodes return with it untested"
        if rule.ladder and rule.action and rung_of(rule.action) > rung_of(rule.ladder[-1]):
            yield f"policy.faults.{fault}.action: {rule.action.value} is above its ladder, so a person follows it"


def _is_known(fault: str) -> bool:
    try:
        catalogue().get(fault)
    except LookupError:
        return False
    return True
