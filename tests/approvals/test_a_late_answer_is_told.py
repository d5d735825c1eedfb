"""A decision that comes to nothing after its asker has stopped waiting is told to people, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from daytwo.domain.vocabulary import State
from tests.approvals.conftest import Court


def told(folder: Path) -> str:
    file = folder / "notices.jsonl"
    return file.read_text() if file.exists() else ""


async def test_a_hold_that_came_too_late_is_told(court: Court, tmp_path: Path) -> None:
    hold = court.written("cli:lea", "hold")
    for _ in range(2):
        court.later(90)
        await court.judge(hold, State.VERIFYING)
    assert told(tmp_path).count("void, a repair that is verifying does not take hold") == 1


@pytest.mark.parametrize(("seconds", "actor", "channel"), [(5, "cli:lea", "cli"), (90, "policy", "policy")])
async def test_what_its_asker_reads_or_nobody_asked_is_not_told(
    court: Court, tmp_path: Path, seconds: float, actor: str, channel: str
) -> None:
    hold = court.written(actor, "hold", channel=channel)
    court.later(seconds)
    await court.judge(hold, State.VERIFYING)
    assert told(tmp_path) == ""
