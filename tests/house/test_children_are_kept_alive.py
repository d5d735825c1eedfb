"""The supervisor of `daytwo up`, with real processes."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from daytwo.domain.errors import Failed, Refused
from daytwo.one_at_a_time import only_one
from workers.ports import Ports
from workers.supervise import Child, Supervisor


def child(name: str, script: str, *, ready: Path, limit_seconds: float = 20.0) -> Child:
    async def probe() -> bool:
        return await asyncio.to_thread(ready.exists)

    return Child(name, ("sh", "-c", script), dict(os.environ), probe, limit_seconds)


async def until(holds: Callable[[], bool], seconds: float = 10.0) -> None:
    ends_at = time.monotonic() + seconds
    for _ in range(10_000):
        if await asyncio.to_thread(holds):
            return
        assert time.monotonic() < ends_at, f"not within {seconds} s"
        await asyncio.sleep(0.02)


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
async def supervisor(tmp_path: Path, said: list[str]) -> AsyncIterator[Supervisor]:
    made = Supervisor(tmp_path / "log", said.append)
    yield made
    await made.stop()


async def test_a_child_that_dies_is_started_again(supervisor: Supervisor, tmp_path: Path, said: list[str]) -> None:
    second_life = tmp_path / "second"
    script = f"[ -e {tmp_path}/first ] && touch {second_life} && sleep 60; touch {tmp_path}/first; exit 3"
    await supervisor.start(child("phoenix", script, ready=second_life))
    assert re.fullmatch(r"phoenix ended with exit code 3; starting it again in 0\.[3-6] s", said[0])


async def test_a_child_that_cannot_be_started_again_is_started_when_it_can(
    supervisor: Supervisor, tmp_path: Path, said: list[str]
) -> None:
    program, alive = tmp_path / "program", tmp_path / "alive"
    program.write_text(f"#!/bin/sh\ntouch {alive}\nsleep 60\n")
    program.chmod(0o755)
    kept = child("moved", "", ready=alive)
    await supervisor.start(replace(kept, command=(str(program),)))
    program.rename(tmp_path / "elsewhere")
    alive.unlink()
    os.kill(supervisor.status()["moved"] or 0, signal.SIGKILL)
    await until(lambda: any("could not be started" in line for line in said))
    (tmp_path / "elsewhere").rename(program)
    await until(alive.exists)


async def test_a_log_that_is_too_long_begins_anew_while_it_is_written(tmp_path: Path) -> None:
    supervisor = Supervisor(tmp_path / "log", print, log_bytes=10_000, look_seconds=0.05)
    log = supervisor.log_of("chatty")
    until_short = f"until [ -e {log}.1 ] && [ ! -s {log} ]; do sleep 0.05; done"
    script = f"head -c 20000 /dev/zero; touch {tmp_path}/up; {until_short}; echo more; exec sleep 60"
    await supervisor.start(child("chatty", script, ready=tmp_path / "up"))
    await until(lambda: log.read_text() == "more\n")
    await supervisor.stop()
    assert log.with_name("chatty.log.1").stat().st_size == 20_000


async def test_a_child_that_keeps_dying_is_reported_with_its_log(supervisor: Supervisor, tmp_path: Path) -> None:
    with pytest.raises(Failed, match=r"hopeless ended 3 times(?s:.*)the reason"):
        await supervisor.start(child("hopeless", "echo the reason; exit 1", ready=tmp_path / "never"))


async def test_a_child_that_never_answers_is_reported(supervisor: Supervisor, tmp_path: Path) -> None:
    with pytest.raises(Failed, match=r"mute did not answer within 0\.2 s"):
        await supervisor.start(child("mute", "sleep 60", ready=tmp_path / "never", limit_seconds=0.2))


async def test_children_stop_in_reverse_order(supervisor: Supervisor, tmp_path: Path) -> None:
    order = tmp_path / "order"
    for name in ("first", "second"):
        mark = tmp_path / name
        script = f"trap 'echo {name} >> {order}; exit' TERM; touch {mark}; while :; do sleep 0.05; done"
        await supervisor.start(child(name, script, ready=mark))
    await supervisor.stop()
    assert order.read_text().split() == ["second", "first"]


def test_children_die_with_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    script = f"""
import asyncio, os
from pathlib import Path
from workers.supervise import Child, Supervisor
async def main():
    async def ready(): return True
    kept = Supervisor(Path({str(tmp_path)!r}), print)
    await kept.start(Child("orphan", ("sleep", "60"), dict(os.environ), ready))
    print(kept.status()["orphan"], flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        orphan = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    assert ends_within(5.0, orphan)


def ends_within(seconds: float, pid: int) -> bool:
    for _ in range(int(seconds / 0.05)):
        stat = Path(f"/proc/{pid}/stat")
        if not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False


def test_a_second_installation_on_one_folder_is_refused(tmp_path: Path) -> None:
    with (
        only_one(tmp_path),
        pytest.raises(Refused, match=rf"already up on {tmp_path} \(process {os.getpid()}\)"),
        only_one(tmp_path),
    ):
        pass


def test_a_port_in_use_is_named_or_replaced() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, Ports() as ports:
        port = taken.getsockname()[1]
        with pytest.raises(Refused, match=f"port {port} for the gateway is in use"):
            ports.choose(port, what="the gateway", any_free=False)
        assert ports.choose(port, what="the gateway", any_free=True) != port
