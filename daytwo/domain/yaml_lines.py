"""YAML as plain values, with the line of everything in it: what `load_definition` needs to say where a slip is.

A narrow reading on purpose. Only `true` and `false` are booleans, so that `mode: off` is the word; no times and no
sexagesimals; no aliases, which can make a small file a huge one; no key twice, where the last would win in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

Path = tuple[str | int, ...]

MAX_CHARS: Final = 2_000_000
MAX_DEPTH: Final = 50


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where, what was found, and what is allowed. `line` counts from 1."""

    line: int
    path: str
    found: str
    allowed: str


@dataclass(slots=True)
class Document:
    """The values of one document, the line of each path, and what could not be read."""

    data: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def line_of(self, path: Path) -> int:
        """The line of `path`, or of the nearest thing around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


class _Loader(yaml.SafeLoader):
    """The safe loader with the scalars of YAML 1.2's core schema, and no more."""


_Loader.yaml_implicit_resolvers = {}  # its own, and not those of the safe loader
_NUMBER = list("-+0123456789.")
for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?(0|[1-9][0-9]*)", _NUMBER),
    ("float", r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?", _NUMBER),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), _first)


def read_yaml(text: str) -> Document:
    """Read one document. Never raises: what is wrong is in `problems`."""
    document = Document()
    if len(text) > MAX_CHARS:
        document.problems.append(Problem(1, "", f"{len(text)} characters", f"at most {MAX_CHARS}"))
        return document
    try:
        document.problems += _too_much(text)
        root = None if document.problems else yaml.compose(text, _Loader)
    except yaml.YAMLError as error:
        document.problems.append(_syntax(error))
        return document
    if root is not None:
        document.data = _value(root, (), document)
    return document


def path_text(path: Path) -> str:
    """A path as people write it: `groups[0].nodes`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def _too_much(text: str) -> Iterator[Problem]:
    """What makes of a small text a large value, or a deep one that the library would read by calling itself."""
    depth = 0
    for event in yaml.parse(text, _Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            yield Problem(_line(event), "", f"more than {MAX_DEPTH} levels", "fewer")
            return
        if isinstance(event, yaml.AliasEvent):
            yield Problem(_line(event), "", f"the alias *{event.anchor}", "values written out")


def _syntax(error: yaml.YAMLError) -> Problem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    said = getattr(error, "problem", None) or str(error)
    line = mark.line + 1 if mark else 1
    if "\\t" in said:
        return Problem(line, "", "a tab", "spaces: YAML is not indented by tabs")
    if "got '['" in said:
        return Problem(line, "", "'[' inside [ ]", 'a range in quotes: ["gpu-[001-016]"]')
    for part, found, allowed in _SLIPS:
        if part in said:
            return Problem(line, "", found, allowed)
    return Problem(line, "", " ".join(str(said).split()), "one YAML document")


_SLIPS: Final = (
    ("',' or ']'", "a list that is not closed, or lacks a comma", "[a, b]"),
    ("',' or '}'", "fields in braces that are not closed, or lack a comma", "{name: value, other: value}"),
    (
        "mapping values are not allowed",
        "a second ':' where no field can begin",
        "`name: value`, one a line",
    ),
    ("could not find expected ':'", "a line without ':'", "`name: value`"),
    (
        "expected <block end>",
        "a line that is not indented like those beside it",
        "one indentation for one level",
    ),
    ("unexpected end of stream", "text in quotes that is not closed", "a quote at both ends"),
    ("expected the node content", "the end of the file, or a sign, where a value should be", "a value"),
    ("another document", "a second document after '---'", "one YAML document"),
    ("cannot start any token", "a sign that nothing begins with", "text in quotes"),
    ("not allowed", "a character that cannot be printed", "plain text in UTF-8"),
)
"""What the YAML library says, what that mostly is, and what is allowed."""


def _line(at: yaml.Node | yaml.Event) -> int:
    return at.start_mark.line + 1 if at.start_mark else 1


def _value(node: yaml.Node, path: Path, document: Document) -> Any:
    document.lines.setdefault(path, _line(node))
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, document)
    if isinstance(node, yaml.SequenceNode):
        return [_value(child, (*path, number), document) for number, child in enumerate(node.value)]
    return _scalar(node, path, document)


def _mapping(node: yaml.MappingNode, path: Path, document: Document) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = _line(key_node)
        key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
        if key is None:
            document.problems.append(Problem(line, path_text(path), "a key that is not a word", "a word"))
            continue
        here = (*path, key)
        if key in values:
            first = document.lines[here]
            document.problems.append(
                Problem(line, path_text(here), f"the key again, first on line {first}", "each key once")
            )
            continue
        document.lines[here] = line
        values[key] = _value(value_node, here, document)
    return values


def _scalar(node: yaml.Node, path: Path, document: Document) -> Any:
    loader = _Loader("")
    try:
        return loader.construct_object(node, deep=True)
    except (yaml.YAMLError, ValueError):
        line = _line(node)
        document.problems.append(
            Problem(line, path_text(path), f"the tag {node.tag}", "plain text, numbers, true, false")
        )
        return None
    finally:
        loader.dispose()
