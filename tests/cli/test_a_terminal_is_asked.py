"""On a terminal: questions before a decision, and colour."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from daytwo.store.engine import Store
from tests.cli.conftest import APPROVE, REMOVE, decisions
from tests.rows import REPAIR

ROOT = Path(__file__).parents[2]


def on_terminal(socket: Path, *words: str, answer: str = "", **environment: str) -> tuple[int, str]:
    main, child = pty.openpty()
    command = [sys.executable, "-m", "daytwo.cli.main", "--socket", str(socket), *words]
    env = {**os.environ, "TERM": "xterm", **environment}
    with subprocess.Popen(command, cwd=ROOT, stdin=child, stdout=child, stderr=child, env=env) as process:
        os.close(child)
        os.write(main, answer.encode())
        shown = b"".join(iter(lambda: read(main), b""))
    os.close(main)
    return process.returncode, shown.decode()


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end has closed: Linux says EIO
        return b""


def test_without_a_revision_the_proposal_is_shown_and_asked_about(socket: Path, fleet: Store) -> None:
    code, shown = on_terminal(socket, *APPROVE, answer="y\n")
    assert (code, decisions(fleet)[0].revision) == (0, 2)
    assert f"Approve (reboot) on east/gpu-07: revision 2 of {REPAIR}?" in shown


def test_saying_no_decides_nothing(socket: Path, fleet: Store) -> None:
    code, shown = on_terminal(socket, *APPROVE, answer="n\n")
    assert (code, decisions(fleet), "Nothing was decided." in shown) == (1, [], True)


@pytest.mark.parametrize(("answer", "made"), [("y\n", 1), ("n\n", 0)])
def test_on_a_terminal_it_is_asked_whether_that_is_meant(socket: Path, fleet: Store, answer: str, made: int) -> None:
    _, shown = on_terminal(socket, *REMOVE, answer=answer)
    assert ("Is that meant?" in shown, len(decisions(fleet))) == (True, made)


@pytest.mark.parametrize(("variable", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_colour_is_for_terminals_that_want_it(socket: Path, variable: dict[str, str], coloured: bool) -> None:
    _, shown = on_terminal(socket, "nodes", "list", **variable)
    assert ("\x1b[" in shown, "✔ healthy" in shown) == (coloured, True)
