"""One node stalls, floods and pours; the others are served. It has an address of its own, 127.0.0.2."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from sqlalchemy import text
from starlette.applications import Starlette

from daytwo.domain.errors import Refused
from daytwo.gateway.app import Gateway
from daytwo.gateway.doors import PatientProtocol, open_doors
from daytwo.gateway.identity import issue_token, revoke_tokens
from daytwo.gateway.limits import Buckets, Familiar, Rate
from daytwo.store.engine import Store
from tests.gateway.conftest import NODE, OTHER, Agent, Time, serving

PER_ADDRESS = 8
HEAD = b"POST /v1/nodes/gpu-02/findings HTTP/1.1\r\nHost: g\r\n"
POURED = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
HUNDRED_MB = 100 * 1000 * 1000


class Hasty(PatientProtocol):
    """Waits for a head as long as a test may take."""

    head_seconds = 0.3


@pytest.fixture(scope="module")
def strict_url(app: Starlette) -> Iterator[str]:
    with serving(app, per_address=PER_ADDRESS, http=Hasty) as url:
        yield url


@pytest.fixture
def port(strict_url: str, gateway: Gateway) -> int:
    return urlsplit(strict_url).port or 0


@pytest.fixture
def good(strict_url: str, declared: Store, gateway: Gateway, now: Time) -> Iterator[Agent]:
    with httpx.Client(base_url=strict_url, timeout=10, trust_env=False) as client:
        yield Agent(client, issue_token(declared, "east", NODE, now=now()), now)


@pytest.fixture
def hostile_token(declared: Store, now: Time) -> str:
    return issue_token(declared, "east", OTHER, now=now())


def hostile(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=5, source_address=("127.0.0.2", 0))


def is_open(connection: socket.socket) -> bool:
    if not select.select([connection], [], [], 0.02)[0]:
        return True
    try:
        return connection.recv(1) != b""
    except OSError:
        return False


def test_one_address_has_so_many_connections_and_no_more(port: int, good: Agent) -> None:
    with ExitStack() as stack:
        held = [stack.enter_context(hostile(port)) for _ in range(5 * PER_ADDRESS)]
        shown_out, _, _ = select.select(held[PER_ADDRESS:], [], [], 5)
        assert good.pulse().status_code == 200
        assert shown_out
        assert not any(map(is_open, held[PER_ADDRESS:]))


def test_who_hangs_up_may_come_again(port: int) -> None:
    for _ in range(3 * PER_ADDRESS):
        hostile(port).close()
    time.sleep(0.1)
    with hostile(port) as connection:
        assert is_open(connection)


@pytest.mark.parametrize("begun", [b"", HEAD, HEAD + b"X: "], ids=["nothing", "a line", "half a line"])
def test_a_head_that_does_not_end_is_not_waited_for(port: int, begun: bytes) -> None:
    with hostile(port) as connection, suppress(ConnectionError):
        began = time.monotonic()
        connection.sendall(begun)
        while is_open(connection) and time.monotonic() - began < 5:
            connection.sendall(b"x" if begun else b"")
    assert time.monotonic() - began < 2


def test_a_second_head_that_does_not_end_is_not_waited_for_either(port: int) -> None:
    with hostile(port) as connection, suppress(ConnectionError):
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: g\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        began = time.monotonic()
        while is_open(connection) and time.monotonic() - began < 5:
            connection.sendall(b"P")
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("who", ["nobody", "another", "itself"])
def test_what_is_answered_already_is_not_read_on(port: int, good: Agent, hostile_token: str, who: str) -> None:
    """An answer that is given early (401, 403, 413) ends the connection: nobody pours into it for ever."""
    token = {"nobody": "dtn_guess", "another": good.token, "itself": hostile_token}[who]
    with hostile(port) as connection:
        connection.sendall(HEAD + f"Authorization: Bearer {token}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        poured = pour(connection)
    assert poured < HUNDRED_MB / 4


def pour(connection: socket.socket) -> int:
    poured = 0
    with suppress(OSError):
        while poured < HUNDRED_MB:
            connection.sendall(POURED)
            poured += len(POURED)
    return poured


def test_a_hundred_megabytes_are_refused_by_their_header(port: int, hostile_token: str) -> None:
    with hostile(port) as connection:
        head = HEAD + f"Authorization: Bearer {hostile_token}\r\nContent-Length: {HUNDRED_MB}\r\n\r\n".encode()
        connection.sendall(head)
        assert connection.recv(4096).startswith(b"HTTP/1.1 413")


def test_a_hundred_megabytes_without_a_length_cost_no_memory(port: int, good: Agent, hostile_token: str) -> None:
    before = resident()
    for _ in range(5):
        with hostile(port) as connection:
            head = f"Authorization: Bearer {hostile_token}\r\nTransfer-Encoding: chunked\r\n\r\n"
            connection.sendall(HEAD + head.encode())
            pour(connection)
    assert good.pulse().status_code == 200
    assert resident() - before < 16 * 2**20


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_a_thousand_calls_of_one_node_are_refused_and_the_others_served(
    port: int, good: Agent, hostile_token: str
) -> None:
    answers: list[bytes] = []
    threads = [threading.Thread(target=call, args=(port, hostile_token, 250, answers)) for _ in range(4)]
    for thread in threads:
        thread.start()
    served = [good.pulse().status_code for _ in range(20)]
    for thread in threads:
        thread.join()
    assert set(served) == {200}
    assert (len(answers), answers.count(b"429") > 800) == (1000, True)


def call(port: int, token: str, times: int, answers: list[bytes]) -> None:
    body = b'{"stream": 0, "boot_id": "b", "clock": 1.0, "records": []}'
    head = HEAD + f"Authorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with hostile(port) as connection:
        for _ in range(times):
            connection.sendall(head + body)
            answer = connection.recv(4096)
            while not answer.endswith(b"}"):
                answer += connection.recv(4096)
            answers.append(answer[9:12])


def test_requests_that_are_none_fill_no_log(port: int, good: Agent, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(20):
        with hostile(port) as connection:
            connection.sendall(b"\x16\x03\x01 what\r\n\r\n")
            assert connection.recv(4096).startswith(b"HTTP/1.1 400")
    assert good.pulse().status_code == 200
    assert caplog.text == ""


def test_who_is_too_fast_costs_no_look_into_the_store(gateway: Gateway, agent: Agent, declared: Store) -> None:
    gateway.requests = Buckets(Rate(burst=1, per_second=0.001))
    assert agent.pulse().status_code == 200
    with declared.write() as session:
        session.execute(text("ALTER TABLE node_tokens RENAME TO elsewhere"))
    assert agent.pulse().status_code == 429


def test_a_revoked_token_is_refused_at_once_although_it_is_known(agent: Agent, declared: Store, now: Time) -> None:
    agent.pulse()
    revoke_tokens(declared, "east", NODE, now=now())
    assert [agent.pulse().status_code for _ in range(2)] == [401, 401]


def test_only_so_many_tokens_are_remembered() -> None:
    familiar = Familiar(most=2)
    for name in ("a", "b", "b", "c"):
        familiar.meet(name, "east", name)
    assert (len(familiar), familiar.node_of("a"), familiar.node_of("c")) == (2, None, ("east", "c"))


def test_an_address_that_is_taken_is_named(strict_url: str) -> None:
    port = urlsplit(strict_url).port or 0
    with pytest.raises(Refused, match=f"DAYTWO_GATEWAY_URL: cannot listen on 127.0.0.1 port {port}"):
        open_doors("127.0.0.1", port)


def test_an_address_that_is_not_ours_is_named() -> None:
    with pytest.raises(Refused, match=r"DAYTWO_GATEWAY_URL: cannot listen on 192\.0\.2\.1"):
        open_doors("192.0.2.1", 0)
