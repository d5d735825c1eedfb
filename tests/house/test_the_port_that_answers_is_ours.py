"""A port may be taken between the moment it was chosen and the start of the part that listens on it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from daytwo.domain.errors import Failed
from workers.ports import listens
from workers.supervise import Child, Supervisor


def test_a_port_belongs_to_the_process_that_listens_on_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as another:
            assert (listens(os.getpid(), port), listens(another.pid, port)) == (True, False)
            another.communicate(b"\n")
    assert not listens(os.getpid(), port)


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
