"""freeze and thaw."""

from __future__ import annotations

import re

from tests.cli.conftest import ME, Cli


def test_a_freeze_and_its_thaw(cli: Cli) -> None:
    assert "storm" in cli("freeze", "east", "--reason", "storm").out
    assert cli("thaw", "east", "--reason", "over").code == 0
    assert cli("freeze", "--list", "-o", "name").out == ""


def test_a_second_freeze_says_who_froze_it_and_when(cli: Cli) -> None:
    cli("freeze", "east", "--reason", "storm")
    again = cli("freeze", "east", "--reason", "smoke")
    assert (again.code, f"storm; also {ME}: smoke" in again.out) == (0, True)
    assert re.search(rf"It was frozen \d+s ago already, by {ME}; that freeze stands", again.err)
    assert len(cli("freeze", "--list", "-o", "name").out.splitlines()) == 1
