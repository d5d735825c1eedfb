"""The real CLI against a real service; `cli(...)` runs one command in this process."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlmodel import select

from daytwo.cli.main import run
from daytwo.store.engine import Store
from daytwo.store.tables import DecisionRow
from tests.rows import REPAIR, a_cluster, a_node, a_repair, keep
from tests.serving import Repairer, Shared, shared

__all__ = ["shared"]

ME = f"cli:{getpass.getuser()}"
APPROVE = ("repairs", "approve", REPAIR)
REMOVE = (*APPROVE, "--revision", "2", "--action", "remove", "--reason", "go")


@dataclass(frozen=True)
class Ran:
    """What a command left: exit code, standard output, standard error."""

    code: int
    out: str
    err: str


Cli = Callable[..., Ran]


@pytest.fixture
def fleet(store: Store) -> Store:
    keep(store, a_cluster(), a_node(), a_repair())
    return store


@pytest.fixture
def repairer(fleet: Store) -> Repairer:
    return Repairer(fleet)


@pytest.fixture
def socket(fleet: Store, repairer: Repairer, shared: Shared) -> Iterator[Path]:
    with shared.serving(fleet, repairer) as path:
        yield path


@pytest.fixture
def cli(socket: Path, capfd: pytest.CaptureFixture[str]) -> Cli:
    return runner(socket, capfd)


def runner(socket: Path, capfd: pytest.CaptureFixture[str]) -> Cli:
    def command(*words: str) -> Ran:
        code = run(["--socket", str(socket), *words])
        return Ran(code, *capfd.readouterr())

    return command


def decisions(store: Store) -> list[DecisionRow]:
    with store.read() as session:
        return list(session.exec(select(DecisionRow)).all())
