"""A gateway whose store is away says so to every node, and asks the store only now and then."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from sqlmodel import Session

from daytwo.backoff import Backoff, Gate
from daytwo.domain.errors import Unreachable
from daytwo.gateway.app import Gateway, create_app
from daytwo.store.engine import Store
from tests.rows import a_node, keep


class Counted(Store):
    """A store that counts who asks, and may be away."""

    asked, is_away = 0, True

    @contextmanager
    def read(self) -> Iterator[Session]:
        self.asked += 1
        if self.is_away:
            raise Unreachable("store x does not answer: refused")
        with super().read() as session:
            yield session


@pytest.fixture
def counted(tmp_path: Path, migrated_file: Path) -> Counted:
    (tmp_path / "daytwo.db").write_bytes(migrated_file.read_bytes())
    store = Counted(f"sqlite:///{tmp_path}/daytwo.db")
    keep(store, a_node())
    return store


async def speak(store: Counted, times: int, gateway: Gateway | None = None) -> list[int]:
    transport = httpx.ASGITransport(create_app(gateway or Gateway(store)), raise_app_exceptions=False)
    headers = {"Authorization": f"Bearer {'x' * 43}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway", headers=headers) as client:
        answers = await asyncio.gather(*(client.post("/v1/nodes/gpu-07/pulse", json={}) for _ in range(times)))
    return [answer.status_code for answer in answers]


async def test_every_node_is_told_to_come_back_and_the_store_is_asked_a_few_times(counted: Counted) -> None:
    gateway = Gateway(counted)
    assert set(await speak(counted, 20, gateway)) == {503}
    before = counted.asked
    assert set(await speak(counted, 200, gateway)) == {503}
    assert counted.asked - before <= 1


async def test_a_store_that_is_back_is_used_again(counted: Counted) -> None:
    gateway = Gateway(counted)
    gateway._gate = Gate("the store", Backoff(0.01, 0.01))
    await speak(counted, 5, gateway)
    counted.is_away = False
    await asyncio.sleep(0.05)
    assert await speak(counted, 1, gateway) == [401]


async def test_a_store_that_is_back_is_used_by_all_whatever_the_first_of_them_gets(counted: Counted) -> None:
    gateway = Gateway(counted)
    gateway._gate = Gate("the store", Backoff(0.01, 0.01))
    await speak(counted, 5, gateway)
    counted.is_away = False
    await asyncio.sleep(0.05)
    with pytest.raises(LookupError):
        await gateway._ask(lambda: {}["a question that fails"])
    assert await speak(counted, 1, gateway) == [401]
