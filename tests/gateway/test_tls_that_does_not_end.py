"""Who begins TLS and does not end is hung up on, and takes no more connections than anybody else."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from starlette.applications import Starlette

from daytwo.gateway.app import Gateway
from daytwo.gateway.doors import HEAD_SECONDS, PATIENT_LOOP, PatientLoop
from tests.gateway.conftest import serving
from tests.gateway.test_a_hostile_node_stops_nobody import hostile, is_open

PER_ADDRESS = 4


class HastyLoop(PatientLoop):
    """Waits for TLS as long as a test may take."""

    handshake_seconds = 0.5


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate with its key, in one file."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is needed to make a certificate")
    file = tmp_path_factory.mktemp("tls") / "pem"
    made = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=g", "-days", "2")
    command = ("openssl", "req", "-x509", *made, "-keyout", file, "-out", file.with_name("certificate"))
    subprocess.run(command, check=True, capture_output=True)
    file.write_bytes(file.read_bytes() + file.with_name("certificate").read_bytes())
    return file


@pytest.fixture(scope="module")
def secure_port(app: Starlette, certificate: Path) -> Iterator[int]:
    loop = f"{__name__}:{HastyLoop.__name__}"
    with serving(app, per_address=PER_ADDRESS, loop=loop, ssl_certfile=str(certificate)) as url:
        yield urlsplit(url).port or 0


def client_hello() -> bytes:
    """What a client of TLS says first."""
    told = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), told, server_hostname="g")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return told.read()


HELLO = client_hello()


@pytest.mark.parametrize("said", [b"", HELLO[:3], HELLO[: len(HELLO) // 2], HELLO], ids=["0", "3", "half", "whole"])
def test_a_handshake_that_does_not_end_is_not_waited_for(secure_port: int, gateway: Gateway, said: bytes) -> None:
    began = time.monotonic()
    with hostile(secure_port) as connection:
        connection.sendall(said)
        with suppress(ConnectionError):
            while connection.recv(65536):
                pass
    assert 0.3 < time.monotonic() - began < 2


def test_handshakes_that_do_not_end_count_for_their_address(secure_port: int, gateway: Gateway) -> None:
    with ExitStack() as stack:
        held = [stack.enter_context(hostile(secure_port)) for _ in range(3 * PER_ADDRESS)]
        assert is_served(secure_port)
        assert sum(map(is_open, held)) <= PER_ADDRESS


def test_their_places_are_free_again_when_they_were_hung_up_on(secure_port: int, gateway: Gateway) -> None:
    with ExitStack() as stack:
        held = [stack.enter_context(hostile(secure_port)) for _ in range(PER_ADDRESS)]
        end = time.monotonic() + 5
        while any(map(is_open, held)) and time.monotonic() < end:
            time.sleep(0.02)
        assert is_served(secure_port, "127.0.0.2")


def test_the_gateway_waits_no_longer_for_tls_than_for_a_head() -> None:
    assert PATIENT_LOOP == "daytwo.gateway.doors:PatientLoop"
    assert PatientLoop.handshake_seconds == HEAD_SECONDS


def is_served(port: int, source: str = "127.0.0.1") -> bool:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    plain = socket.create_connection(("127.0.0.1", port), timeout=5, source_address=(source, 0))
    with context.wrap_socket(plain) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: g\r\n\r\n")
        return connection.recv(4096).startswith(b"HTTP/1.1 200")
