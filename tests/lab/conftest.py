"""A fleet with a clock that the test moves, and a lab that really serves on a socket."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from daytwo.lab.definition import node_names
from daytwo.lab.fleet import Fleet
from daytwo.lab.server import Lab, now
from daytwo.lab.serving import serving

SPEED = 60.0


class Wall:
    """Real time as the fleet sees it: moved by the test."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 30, 3, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


class World:
    """A fleet and both of its clocks."""

    def __init__(self, nodes: int = 16) -> None:
        self.wall = Wall()
        self.fleet = Fleet(node_names(nodes), wall=self.wall, seed=7)

    def after(self, seconds: float) -> Fleet:
        """Let simulated seconds pass, with real time at a sixtieth."""
        self.wall.now += timedelta(seconds=seconds / SPEED)
        self.fleet.advance(self.fleet.timeline.now + seconds)
        return self.fleet


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def socket() -> Iterator[str]:
    """Where the lab listens. The kernel allows 107 bytes, which a test's own folder may exceed."""
    with tempfile.TemporaryDirectory() as folder:
        yield f"{folder}/lab.sock"


@pytest.fixture
async def lab(socket: str) -> AsyncIterator[Lab]:
    """A lab that serves on `socket`; its time only moves by `skip`."""
    served = Lab(Fleet(node_names(16), wall=now, seed=7), speed=SPEED, clock=lambda: 0.0)
    async with serving(served, Path(socket)):
        yield served


@pytest.fixture
async def running_lab(socket: str) -> AsyncIterator[Lab]:
    """A lab that serves on `socket`, and whose time runs."""
    served = Lab(Fleet(node_names(16), wall=now, seed=7), speed=SPEED)
    async with serving(served, Path(socket)):
        yield served
