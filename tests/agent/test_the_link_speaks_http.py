"""The HTTP client against a real server on this machine."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from daytwo.agent.link import Address, Gateway, HttpLink
from daytwo.agent.seams import Call, Reply
from tests.agent.processes import TOKEN, HttpGateway, until

PULSE = Call("pulse", {"boot_id": "b", "answers": [], "checks": {"name": "grün"}})


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    return path


@pytest.fixture
def gateway(http_gateway: HttpGateway, token_file: Path) -> Iterator[Gateway]:
    client = Gateway(Address(http_gateway.url, "n1", token_file))
    yield client
    client.close()


def post_once(address: Address) -> Reply:
    client = Gateway(address)
    reply = client.post(PULSE)
    client.close()
    return reply


def test_a_call_arrives_as_it_was_made(gateway: Gateway, http_gateway: HttpGateway) -> None:
    reply = gateway.post(PULSE)
    assert (reply.status, reply.body["come_back_seconds"]) == (200, 0.2)
    assert (http_gateway.calls, http_gateway.tokens) == ([("pulse", PULSE.body)], [f"Bearer {TOKEN}"])


def test_a_rotated_token_is_used_at_the_next_call(
    gateway: Gateway, http_gateway: HttpGateway, token_file: Path
) -> None:
    gateway.post(PULSE)
    token_file.write_text("another")
    gateway.post(PULSE)
    assert http_gateway.tokens[-1] == "Bearer another"


@pytest.mark.parametrize("content", [None, "", "  \n", "two\nlines", "\x00"])
def test_a_token_that_cannot_be_used_is_no_answer_and_named(
    gateway: Gateway, token_file: Path, content: str | None
) -> None:
    token_file.unlink() if content is None else token_file.write_text(content)
    reply = gateway.post(PULSE)
    assert reply.status == 0
    assert str(token_file) in reply.error


def test_a_refusal_says_why(gateway: Gateway, http_gateway: HttpGateway) -> None:
    http_gateway.refusals = [(403, {"error": "node: found 'n1'"})]
    reply = gateway.post(PULSE)
    assert (reply.status, reply.error) == (403, "node: found 'n1'")


def test_a_gateway_that_is_away_is_no_answer(token_file: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        reply = post_once(Address(f"http://127.0.0.1:{taken.getsockname()[1]}", "n1", token_file))
    assert reply.status == 0
    assert "Connection refused" in reply.error


def test_a_connection_that_the_other_side_closed_is_opened_anew(gateway: Gateway, http_gateway: HttpGateway) -> None:
    gateway.post(PULSE)
    connection = gateway._connection
    assert connection is not None
    connection.sock.shutdown(socket.SHUT_RDWR)
    assert gateway.post(PULSE).status == 200


class Raw:
    """A server that answers each connection with these bytes."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        connection, _ = self._socket.accept()
        with connection, self._socket:
            connection.settimeout(5.0)
            connection.recv(65_536)
            connection.sendall(self._answer)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"garbage\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n<html/>",
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n[42]",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n\xff\xfe\xfd",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + 100_000 * b"[",
    ],
)
def test_an_answer_that_cannot_be_read_is_no_answer(token_file: Path, answer: bytes) -> None:
    reply = post_once(Address(Raw(answer).url, "n1", token_file))
    assert (reply.status, reply.body) == (0, {})


def test_a_proxys_refusal_without_json_keeps_its_status(token_file: Path) -> None:
    answer = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 3\r\n\r\nbad"
    reply = post_once(Address(Raw(answer).url, "n1", token_file))
    assert (reply.status, reply.error) == (502, "bad")


def test_sending_does_not_wait_for_the_answer(http_gateway: HttpGateway, token_file: Path) -> None:
    woken = threading.Event()
    link = HttpLink(Address(http_gateway.url, "n1", token_file), woken.set)
    began = time.monotonic()
    link.send(PULSE)
    assert time.monotonic() - began < 0.1
    assert woken.wait(5.0)
    assert until(link.collect).status == 200
    link.close()


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is needed to make a certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
    subprocess.run(
        ["openssl", "req", "-x509", *made, *name, "-keyout", str(key), "-out", str(certificate)],
        check=True,
        capture_output=True,
    )
    return key, certificate


class Quiet(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def https_url(certificate: tuple[Path, Path]) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate[1], certificate[0])
    with HTTPServer(("127.0.0.1", 0), Quiet) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.handle_error = lambda *_: None
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"https://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_tls_needs_a_certificate_that_somebody_vouches_for(
    https_url: str, certificate: tuple[Path, Path], token_file: Path
) -> None:
    trusting = post_once(Address(https_url, "n1", token_file, ca_file=certificate[1]))
    doubting = post_once(Address(https_url, "n1", token_file))
    assert (trusting.status, doubting.status) == (200, 0)
    assert "certificate verify failed" in doubting.error
