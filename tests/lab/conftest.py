"""A fleet with a clock that the test moves, and a lab that really serves on a socket."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.types import Receive, Scope, Send

from daytwo.lab.definition import node_names
from daytwo.lab.fleet import Fleet
from daytwo.lab.server import Lab, lab_app, now
from daytwo.lab.serving import listen, serving_app

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


class Stage:
    """One server for all tests, with the lab of the test that runs: starting a server takes longer than most tests."""

    app: FastAPI

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)

    def show(self, lab: Lab) -> Lab:
        self.app = lab_app(lab)
        return lab


@pytest.fixture(scope="session")
async def served() -> AsyncIterator[tuple[Stage, str]]:
    """The stage, and the socket on which it is served."""
    stage = Stage()
    # The kernel allows 107 bytes for the name of a socket, which a test's own folder may exceed.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "lab.sock")
        async with serving_app(stage, listen(path)):
            yield stage, str(path)


@pytest.fixture
def socket(served: tuple[Stage, str]) -> str:
    """Where the lab of this test is served."""
    return served[1]


@pytest.fixture
def lab(served: tuple[Stage, str]) -> Lab:
    """A served lab whose time only moves by `skip`."""
    return served[0].show(Lab(Fleet(node_names(16), wall=now, seed=7), speed=SPEED, clock=lambda: 0.0))


@pytest.fixture
def running_lab(served: tuple[Stage, str]) -> Lab:
    """A served lab whose time runs."""
    return served[0].show(Lab(Fleet(node_names(16), wall=now, seed=7), speed=SPEED))


@pytest.fixture
def socket_path() -> Iterator[Path]:
    """Where a lab of its own may listen."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder, "lab.sock")
