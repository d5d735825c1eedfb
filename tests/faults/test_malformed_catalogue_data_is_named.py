"""A mistake in a data file is refused with file, entry, field, what was found and what is allowed."""

from __future__ import annotations

import re

import pytest

from daytwo.faults.catalogue import CatalogueError, read_catalogue
from daytwo.faults.model import FLOOR

REQUIRED_BY_OTHERS = """
ids = ["unknown-code", "slurm-"]
[defaults]
class = "board"
severity = "degraded"
mode = "recommend"
clears = "person"
[faults.unknown-code]
title = "t"
meaning = "m"
source = "s"
[faults.slurm-drained-by-person]
title = "t"
meaning = "m"
source = "s"
"""

GOOD = {
    "title": '"A fault"',
    "class": '"board"',
    "severity": '"critical"',
    "mode": '"recommend"',
    "clears": '"reset"',
    "meaning": '"It broke."',
    "source": '"a test"',
}


def family(entry: str = "xid-1", ids: str = '["xid-"]', **changes: str | None) -> str:
    fields = {name: value for name, value in (GOOD | changes).items() if value is not None}
    lines = "\n".join(f"{name} = {value}" for name, value in fields.items())
    return f"ids = {ids}\n[faults.{entry}]\n{lines}\n"


def read(text: str) -> None:
    read_catalogue([("base.toml", REQUIRED_BY_OTHERS), ("xid.toml", text)])


def test_a_complete_entry_is_read() -> None:
    read(family())


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"mode": '"sometimes"'}, "field mode: found 'sometimes', allowed: off, record, recommend, auto"),
        ({"mode": '["auto"]'}, "field mode: found ['auto'], allowed: off, record, recommend, auto"),
        ({"class": '"cable"'}, "field class: found 'cable', allowed: board, software"),
        ({"severity": "1"}, "field severity: found 1, allowed: critical, degraded, cosmetic"),
        ({"clears": '"silence"'}, "field clears: found 'silence', allowed: reading, reset"),
        ({"first_action": '"pray"'}, "field first_action: found 'pray', allowed: run-diagnostic, verify"),
        ({"verify": '["dcgm-9"]'}, "field verify: found ['dcgm-9'], allowed: boot-id, gpu-count"),
        ({"verify": '"dcgm-3"'}, "field verify: found 'dcgm-3', allowed: a list"),
        ({"source": '"  "'}, "field source: found '  ', allowed: a text that is not empty"),
        ({"source": None}, "field source: found nothing, allowed: a value: the field is required"),
        ({"new_work_fails": "1"}, "field new_work_fails: found 1, allowed: true, false"),
        ({"debounce_seconds": "-1"}, "field debounce_seconds: found -1, allowed: a number of seconds, 0 or more"),
        ({"debounce_seconds": "nan"}, "field debounce_seconds: found nan, allowed: a number of seconds, 0 or more"),
        ({"debounce_seconds": "true"}, "field debounce_seconds: found True, allowed: a number of seconds, 0 or more"),
        ({"clears": '"quiet-for"'}, "field quiet_for_seconds: found nothing, allowed: a number of seconds, because"),
        ({"quiet_for_seconds": "60"}, "field quiet_for_seconds: found 60.0, allowed: nothing, unless clears is"),
        ({"colour": '"red"'}, "field colour: found 'red', allowed: one of the fields title, class"),
    ],
)
def test_a_wrong_field_is_named(changes: dict[str, str | None], complaint: str) -> None:
    with pytest.raises(CatalogueError, match=re.escape(f"xid.toml: entry xid-1: {complaint}")):
        read(family(**changes))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (family(entry="xid-01"), "entry xid-01: field id: found 'xid-01', allowed: lower-case words"),
        (family(entry="Xid-1"), "entry Xid-1: field id: found 'Xid-1', allowed: lower-case words"),
        (family(entry="gpu-1"), "entry gpu-1: field id: found 'gpu-1', allowed: an id that begins with xid-"),
        (family(ids='"xid-"'), "field ids: found 'xid-', allowed: a list"),
        ("[faults]\n", "field ids: found nothing, allowed: a list"),
        ('ids = ["xid-"]\n', "entry faults: field -: found nothing, allowed: a table"),
        ('ids = ["xid-"]\n[faults]\nxid-1 = 3\n', "entry xid-1: field -: found 3, allowed: a table"),
        ('ids = ["xid-"]\nversion = 2\n[faults]\n', "field version: found 2, allowed: ids, defaults, faults"),
        (
            'ids = ["xid-"]\n[defaults]\ntitle = "t"\n[faults]\n',
            "entry [defaults]: field title: found 't', allowed: one",
        ),
        ("ids = \n", "field -: found 'Invalid value (at line 1, column 7)', allowed: TOML"),
    ],
)
def test_a_wrong_file_is_named(text: str, complaint: str) -> None:
    with pytest.raises(CatalogueError, match=f"^xid.toml: .*{re.escape(complaint)}"):
        read(text)


def test_an_id_stands_in_one_file_only() -> None:
    again = family(entry="unknown-code", ids='["unknown-code"]')
    with pytest.raises(CatalogueError, match=r"^xid.toml: entry unknown-code: .* base.toml has it"):
        read(again)


def test_a_catalogue_without_the_entries_that_others_fall_back_to_is_refused() -> None:
    with pytest.raises(CatalogueError, match="entry unknown-code: field id: found nothing"):
        read_catalogue([("xid.toml", family())])


def test_an_entry_overrides_the_defaults_of_its_file_and_adds_to_the_floor() -> None:
    text = family(mode='"off"', verify='["driver", "dcgm-3"]').replace("[faults", '[defaults]\nmode="auto"\n[faults')
    fault = read_catalogue([("base.toml", REQUIRED_BY_OTHERS), ("xid.toml", text)]).get("xid-1")
    assert (fault.mode, fault.verify, fault.family) == ("off", (*FLOOR, "dcgm-3"), "xid")
