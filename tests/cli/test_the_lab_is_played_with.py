"""`daytwo lab` against a real lab on a real socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from daytwo.lab.main import build
from daytwo.lab.serving import serving
from tests.cli.conftest import Ran, runner


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Path]:
    async with serving(build(nodes=3, gpus=8, seed=1, speed=60), tmp_path / "lab.sock"):
        yield tmp_path / "lab.sock"


async def lab_command(lab: Path, capfd: pytest.CaptureFixture[str], *words: str) -> Ran:
    return await asyncio.to_thread(runner(lab, capfd), "lab", *words, "--lab-socket", str(lab))


async def test_a_node_is_broken_and_healed(lab: Path, capfd: pytest.CaptureFixture[str]) -> None:
    broken = await lab_command(lab, capfd, "break", "node-02", "xid-79", "--gpu", "5", "-o", "json")
    healed = await lab_command(lab, capfd, "heal", "node-02", "-o", "json")
    assert [json.loads(ran.out)[0]["faults"] for ran in (broken, healed)] == [["xid-79"], []]


async def test_the_status_shows_every_node(lab: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert (await lab_command(lab, capfd, "status", "-o", "name")).out.split() == ["node-01", "node-02", "node-03"]


@pytest.mark.parametrize(("words", "code"), [(("node-99", "xid-79"), 3), (("node-02", "hammer"), 2)])
async def test_what_is_not_there_cannot_be_broken(
    lab: Path, capfd: pytest.CaptureFixture[str], words: tuple[str, ...], code: int
) -> None:
    assert (await lab_command(lab, capfd, "break", *words)).code == code


async def test_a_node_may_be_named_with_its_cluster(lab: Path, capfd: pytest.CaptureFixture[str]) -> None:
    broken = await lab_command(lab, capfd, "break", "sim/node-02", "xid-79", "-o", "name")
    assert (broken.code, broken.out) == (0, "node-02\n")


async def test_an_unknown_node_of_the_lab_leads_to_its_status(lab: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert "Next: daytwo lab status" in (await lab_command(lab, capfd, "break", "node-99", "xid-79")).err
