"""What people are told is logged and kept in a file."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path

import pytest

from daytwo.notify.log import LogNotifier


async def test_a_notice_is_one_line_of_the_file(tmp_path: Path) -> None:
    await LogNotifier(tmp_path / "new/notices.jsonl").tell("gpu-07", "off the bus\nreboot?", urgent=True)
    lines = (tmp_path / "new/notices.jsonl").read_text().splitlines()
    told = json.loads(lines[0])
    assert (len(lines), told["subject"], told["text"], told["urgent"]) == (1, "gpu-07", "off the bus\nreboot?", True)


async def test_notices_at_once_do_not_mix(tmp_path: Path) -> None:
    notifiers = [LogNotifier(tmp_path / "notices.jsonl") for _ in range(4)]
    await asyncio.gather(*(notifier.tell("x", "y" * 3000, urgent=False) for notifier in notifiers * 10))
    lines = (tmp_path / "notices.jsonl").read_text().splitlines()
    assert {json.loads(line)["text"] for line in lines} == {"y" * 3000}
    assert len(lines) == 40


@pytest.mark.parametrize(("urgent", "level"), [(True, logging.WARNING), (False, logging.INFO)])
async def test_an_urgent_notice_stands_out_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, urgent: bool, level: int
) -> None:
    caplog.set_level(logging.INFO)
    await LogNotifier(tmp_path / "notices.jsonl").tell("gpu-07", "off the bus", urgent=urgent)
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [(level, "gpu-07\noff the bus")]
