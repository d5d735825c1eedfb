"""From the YAML of a cluster definition to `ClusterDefinition`, or to everything that is wrong with it at once.

The CLI calls it for `clusters` and `policy check`, the demo for its own definition; the service has the names checked
once more, as it is not only the CLI that may speak to it. The text comes in; nothing is read here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from daytwo.domain.definition import NODES_TWICE, ClusterDefinition, twice
from daytwo.domain.definition_notes import check_definition
from daytwo.domain.errors import BadInput
from daytwo.domain.node_ranges import RangeError, expand_nodes
from daytwo.domain.plain_words import allowed_by, nearest
from daytwo.domain.policy import Approval
from daytwo.domain.vocabulary import Action
from daytwo.domain.yaml_lines import Document, Path, Problem, path_text, read_yaml
from daytwo.faults.catalogue import catalogue

__all__ = ["DefinitionError", "Problem", "check_definition", "check_names", "expand_nodes", "load_definitions"]

MAX_SHOWN: Final = 50
LAST_XID: Final = 999
"""Drivers print Xids below 200. A rule may be written before the catalogue knows its Xid, but not for any number."""
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


def check_names(definition: ClusterDefinition) -> None:
    """Raise `BadInput` for names that nothing has, in a definition that did not come through `load_definitions`."""
    problems = tuple(_of_meaning(Document(definition.model_dump(mode="json", exclude_unset=True))))
    if problems:
        raise BadInput("\n".join(_says(problem) for problem in problems[:MAX_SHOWN]))


def _line(file: str, problem: Problem) -> str:
    return f"{file}:{problem.line}: {_says(problem)}"


def _says(problem: Problem) -> str:
    where = f"{problem.path}: " if problem.path else ""
    return f"{where}found {problem.found}, allowed: {problem.allowed}"


# ---- what the models say


def _validated(document: Document) -> tuple[ClusterDefinition | None, list[Problem]]:
    try:
        return ClusterDefinition.model_validate(document.data), []
    except ValidationError as error:
        problems = [(_problem if details["loc"] else _of_whole)(document, details) for details in error.errors()]
        # Nodes that stand twice are named by line in `_of_meaning`.
        return None, [problem for problem in problems if problem.found != NODES_TWICE]


def _problem(document: Document, details: ErrorDetails) -> Problem:
    path: Path = tuple(part for part in details["loc"] if part != "[key]")
    line, field = document.line_of(path), path_text(path)
    if details["type"] == "extra_forbidden":
        return Problem(
            line, field, "a field that is not known", nearest(str(path[-1]), list(_model_at(path[:-1]).model_fields))
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


def _of_whole(document: Document, details: ErrorDetails) -> Problem:
    """Fields that do not go together. The model says which of them is to blame, as nothing else can."""
    field, _, said = allowed_by(details).partition(": found ")
    found, _, allowed = said.partition(", allowed: ")
    return Problem(document.line_of((field,)), field, found, allowed)


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
        if not _may_come(fault):
            path: Path = ("policy", "faults", fault)
            known = nearest(fault, [each.id for each in catalogue().all()])
            found = f"{fault!r}, a fault that is not known"
            yield Problem(document.line_of(path), path_text(path), found, f"{known}, or xid-<number> up to {LAST_XID}")


def _may_come(fault: str) -> bool:
    """True for what the catalogue has, and for an Xid that a later driver may print."""
    try:
        return (catalogue().get(fault).xid or 0) <= LAST_XID
    except LookupError:
        return False


def _unknown_actions(document: Document, approval: Any) -> Iterator[Problem]:
    roles = approval.get("roles") if isinstance(approval, dict) else None
    allowed = [*(action.value for action in Action), "*"]
    for role, actions in roles.items() if isinstance(roles, dict) else ():
        for number, action in enumerate(actions if isinstance(actions, list) else ()):
            if isinstance(action, str) and action not in allowed:
                path: Path = ("policy", "approval", "roles", role, number)
                yield Problem(document.line_of(path), path_text(path), repr(action), nearest(action, allowed))


def _unknown_people(document: Document, approval: Any) -> Iterator[Problem]:
    """Roles that no table has, and identities that no channel proves: either would shut somebody out in silence."""
    people = approval.get("people") if isinstance(approval, dict) else None
    yield from _unknown_roles(document, approval)
    for number, person in enumerate(people if isinstance(people, list) else ()):
        for at, identity in _texts(person, "identities", ("policy", "approval", "people", number)):
            if not IDENTITY.fullmatch(identity):
                yield Problem(document.line_of(at), path_text(at), repr(identity), IDENTITIES)


def _unknown_roles(document: Document, approval: Any) -> Iterator[Problem]:
    roles = approval.get("roles", Approval().roles) if isinstance(approval, dict) else None
    if not isinstance(roles, dict):
        return
    here: Path = ("policy", "approval")
    people = approval.get("people")
    named = [*_texts(approval, "groups", here), *_texts(approval, "beyond_workers", here)]
    for number, person in enumerate(people if isinstance(people, list) else ()):
        named += _texts(person, "roles", (*here, "people", number))
    for at, role in named:
        if role not in roles:
            yield Problem(document.line_of(at), path_text(at), repr(role), nearest(role, roles))


def _texts(holder: Any, field: str, path: Path) -> Iterator[tuple[Path, str]]:
    """The texts in a list, each with its path; the model says what is wrong with the rest."""
    values = holder.get(field) if isinstance(holder, dict) else None
    for number, value in enumerate(values if isinstance(values, list) else ()):
        if isinstance(value, str):
            yield (*path, field, number), value
