"""A service with one cluster, one node and one open repair, and a client of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import pytest

from daytwo.store.engine import Store
from tests.rows import a_cluster, a_node, a_repair, keep
from tests.serving import Repairer, Shared, served, shared

__all__ = ["shared"]


@pytest.fixture
def fleet(store: Store) -> Store:
    keep(store, a_cluster(), a_node(), a_repair())
    return store


@pytest.fixture
def repairer(fleet: Store) -> Repairer:
    return Repairer(fleet)


@pytest.fixture
def client(fleet: Store, repairer: Repairer, shared: Shared) -> Iterator[httpx.Client]:
    with shared.serving(fleet, repairer) as socket, connected(socket) as http:
        yield http


@pytest.fixture
def open_socket(fleet: Store, repairer: Repairer) -> Iterator[Path]:
    """A service in a folder that every user may enter."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with served(fleet, Path(folder) / "s", repairer) as socket:
            yield socket


def connected(socket: Path) -> httpx.Client:
    return httpx.Client(transport=httpx.HTTPTransport(uds=str(socket)), base_url="http://daytwo", timeout=10)
