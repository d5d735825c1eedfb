"""The real CLI against a real service; `cli(...)` runs one command in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from daytwo.cli.main import run
from daytwo.store.engine import Store
from tests.rows import a_cluster, a_node, a_repair, keep
from tests.serving import Repairer, Shared, shared

__all__ = ["shared"]


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
