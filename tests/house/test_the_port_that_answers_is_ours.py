"""A port may be taken between the moment it was chosen and the start of the part that listens on it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from daytwo.domain.errors import Failed, Refused
from workers.ports import Ports, listens
from workers.supervise import Child, Supervisor

ROOT = Path(__file__).parents[2]


def test_a_port_belongs_to_the_process_that_listens_on_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as another:
            assert (listens(os.getpid(), port), listens(another.pid, port)) == (True, False)
            another.communicate(b"\n")
    assert not listens(os.getpid(), port)


def test_a_port_in_use_leads_to_the_option_that_takes_another() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, Ports() as ports, pytest.raises(Refused) as refused:
        ports.choose(server.getsockname()[1], what="the gateway", any_free=False)
    assert "--any-port" in refused.value.following


CHOOSE = """
import sys
from workers.ports import Ports
with Ports() as ports:
    for number, wanted in enumerate((int(word) for word in sys.argv[1:]), 1):
        print(ports.choose(wanted, what="a part", any_free=True), flush=True)
    sys.stdin.read()
"""


def test_several_that_choose_at_once_choose_different_ports() -> None:
    with Ports() as before:
        wanted = [before.choose(0, what="a part", any_free=True) for _ in range(3)]
    command = [sys.executable, "-c", CHOOSE, *map(str, wanted)]
    started = [
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(6)
    ]
    chosen = [int(process.stdout.readline()) for process in started for _ in wanted if process.stdout]
    for process in started:
        process.communicate()
    assert (len(chosen), len(set(chosen))) == (18, 18)
    assert set(wanted) <= set(chosen)


def test_a_port_that_is_held_can_be_listened_on_by_the_part() -> None:
    with Ports() as ports:
        port = ports.choose(0, what="a part", any_free=True)
        with socket.create_server(("127.0.0.1", port)):
            assert listens(os.getpid(), port)
        with pytest.raises(Refused, match=f"port {port} for a part is in use"):
            Ports().choose(port, what="a part", any_free=False)


async def test_a_part_whose_port_another_answers_on_is_not_ready(tmp_path: Path) -> None:
    said: list[str] = []

    async def answers() -> bool:
        return True

    with socket.create_server(("127.0.0.1", 0)) as server:
        command = (sys.executable, "-c", "import time; time.sleep(60)")
        child = Child("temporal", command, dict(os.environ), answers, limit_seconds=1.0, port=server.getsockname()[1])
        supervisor = Supervisor(tmp_path, said.append)
        with pytest.raises(Failed, match="did not answer"):
            await supervisor.start(child)
        await supervisor.stop()
