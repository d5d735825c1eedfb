"""What the listings print."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from daytwo.store.engine import Store
from tests.cli.conftest import Cli
from tests.rows import REPAIR, a_finding_row, a_node, a_repair, an_event, hear_all, keep

LISTS = [
    (("repairs", "list"), REPAIR),
    (("nodes", "list"), "east/gpu-07"),
    (("findings", "list"), "1"),
    (("clusters", "list"), "east"),
    (("audit", "list"), "1"),
    (("freeze", "--list"), "east"),
]


@pytest.fixture
def full(fleet: Store, cli: Cli) -> Cli:
    keep(fleet, a_finding_row())
    cli("freeze", "east", "--reason", "storm")
    return cli


@pytest.mark.parametrize(("words", "name"), LISTS)
def test_names_are_one_a_line(full: Cli, words: tuple[str, ...], name: str) -> None:
    assert full(*words, "-o", "name").out == f"{name}\n"


@pytest.mark.parametrize(("words", "name"), LISTS)
def test_json_and_yaml_hold_the_same(full: Cli, words: tuple[str, ...], name: str) -> None:
    items = json.loads(full(*words, "-o", "json").out)
    assert items == yaml.safe_load(full(*words, "-o", "yaml").out)
    assert len(items) == 1


@pytest.mark.parametrize(("words", "name"), LISTS)
def test_a_table_has_a_head_and_no_escapes_when_piped(full: Cli, words: tuple[str, ...], name: str) -> None:
    shown = full(*words).out
    assert shown.splitlines()[0].isupper()
    assert "\x1b" not in shown
    assert name in shown


@pytest.mark.parametrize(
    "words",
    [
        ("repairs", "show", REPAIR),
        ("nodes", "show", "gpu-07"),
        ("nodes", "show", "east/gpu-07"),
        ("faults", "show", "xid-79"),
    ],
)
def test_every_name_that_a_list_prints_can_be_shown(full: Cli, words: tuple[str, ...]) -> None:
    assert [full(*words, "-o", form).code for form in ("table", "json", "yaml", "name")] == [0, 0, 0, 0]


def test_an_empty_list_is_empty_and_says_so_aside(cli: Cli) -> None:
    shown = cli("findings", "list")
    assert (shown.out, shown.err) == ("", "None.\n")


def test_a_bounded_list_says_how_to_go_on(fleet: Store, cli: Cli) -> None:
    keep(fleet, a_node("gpu-08"))
    assert cli("nodes", "list", "--limit", "1").err == "There is more: --after east/gpu-07\n"
    assert "gpu-08" in cli("nodes", "list", "--limit", "1", "--after", "east/gpu-07").out


def test_ended_repairs_are_listed_when_asked_for(fleet: Store, cli: Cli) -> None:
    keep(fleet, a_repair("r-20261129-100000-aaaaa", open_key=None, state="succeeded"))
    ended = "r-20261129-100000-aaaaa\n"
    assert cli("repairs", "list", "--state", "succeeded", "-o", "name").out == ended
    assert cli("repairs", "list", "--all", "-o", "name").out == f"{REPAIR}\n{ended}"


EVIL: dict[str, Any] = {
    "nodes": {"state_why": "\x1b[2Jgone\rhealthy\n\u202egnp"},
    "findings": {"evidence": ["\x1b]0;title\x07line\nsecond"]},
}


def test_what_a_node_says_cannot_speak_to_the_terminal(fleet: Store, cli: Cli) -> None:
    keep(fleet, a_node("gpu-08", **EVIL["nodes"]), a_finding_row(node="gpu-08", **EVIL["findings"]))
    keep(fleet, an_event(text="\x1b[31mred\nsecond line"))
    shown = [
        cli(*words).out
        for words in (("nodes", "list"), ("findings", "list"), ("nodes", "show", "gpu-08"), ("repairs", "show", REPAIR))
    ]
    assert not any(char in text for text in shown for char in "\x1b\r\u202e\x07")
    assert not any(line.startswith("second") for text in shown for line in text.splitlines())


def test_status_counts_and_answers_with_its_exit_code(cli: Cli, fleet: Store) -> None:
    hear_all(fleet)
    shown = cli("status", "--exit-status")
    assert (shown.code, "1 healthy" in shown.out, "is the controller up?" in shown.out) == (8, True, True)
