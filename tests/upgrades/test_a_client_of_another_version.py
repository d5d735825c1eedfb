"""The command line goes through the service, and says so where the two are not of one version."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer

import pytest

from daytwo import __version__
from daytwo.cli.main import run


class Newer(BaseHTTPRequestHandler):
    """A service of daytwo 7.1.0 with nothing in it."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("daytwo-version", "7.1.0")
        self.end_headers()
        self.wfile.write(b'{"items": [], "next": null}')

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def address_string(self) -> str:
        return "peer"


@pytest.fixture
def newer(tmp_path: Path) -> Iterator[Path]:
    with ThreadingUnixStreamServer(str(tmp_path / "s"), Newer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield tmp_path / "s"
        server.shutdown()


def test_a_service_of_another_version_is_named_beside_its_answer(
    newer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["--socket", str(newer), "repairs", "list", "--output", "json"]) == 0
    told = capsys.readouterr()
    assert f"This is daytwo {__version__}; the service is daytwo 7.1.0." in told.err
    assert "7.1.0" not in told.out
