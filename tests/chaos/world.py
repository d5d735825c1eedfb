"""The world of a chaos run, which nobody strikes: a simulated fleet whose machines are reset by real BMC software.

`python -m tests.chaos.world FOLDER NODES SPEED SEED`

It serves the fleet on `lab.sock`, starts the sushy emulator, and gives each machine a BMC of its own: a TLS port that
leads to the emulator and shows that one machine. Where they listen is in `bmcs.json`. The emulator tells of each change
of power, and the machine follows. Resets are counted in two logs, `bmc.log` here and `emulator.log`.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import signal
import socket
import subprocess
import sysconfig
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final

import bcrypt
import click
import httpx
import uvicorn
from fastapi import FastAPI, Request, Response

from daytwo.lab.main import build, moving
from daytwo.lab.server import Lab, lab_app
from daytwo.lab.serving import listen, serving_app
from daytwo.lab.world import Node

GPUS: Final = 2
USER, PASSWORD = "daytwo", "chaos-Hunter2-secret"
SYSTEMS: Final = "/redfish/v1/Systems"
FOLLOW_SECONDS: Final = 0.02
PASSED_ON: Final = ("authorization", "content-type")


class World:
    """The fleet, its machines by BMC port, and all that its kernels ever printed."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab = lab
        self.folder = folder
        self.listeners = {name: _listener() for name in lab.fleet.nodes}
        self.by_port = {port_of(listener): name for name, listener in self.listeners.items()}
        self.kernels: dict[tuple[str, str], list[Any]] = {}

    def remember(self) -> None:
        """Keep the kernel log of each boot: the next boot begins a new one."""
        for name, node in self.lab.fleet.nodes.items():
            self.kernels[name, node.boot_id] = node.kernel

    def xids(self) -> list[tuple[str, str, int]]:
        """Node, boot and number of every line in which a driver has told of a fault."""
        lines = ((name, boot, line) for (name, boot), log in self.kernels.items() for line in log)
        return [(name, boot, line.sequence) for name, boot, line in lines if "NVRM: Xid" in line.text]

    def power(self, name: str, state: str) -> None:
        """Let a machine follow its BMC."""
        node = self.lab.advance().node(name)
        if state == "Off" and node.power != "off":
            self.lab.fleet.switch_off(node)
        elif state == "On" and node.power == "off":
            self.lab.fleet.boot(node, "power-cycle")

    def tell_where(self) -> None:
        """Write down on which port each BMC listens."""
        path = self.folder / "bmcs.json"
        path.with_suffix(".new").write_text(json.dumps({name: port for port, name in self.by_port.items()}))
        path.with_suffix(".new").replace(path)


def _listener() -> socket.socket:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)
    return listener


def port_of(listener: socket.socket) -> int:
    """The port that a socket listens on."""
    port: int = listener.getsockname()[1]
    return port


def mirrored(node: Node, known: Mapping[str, int]) -> dict[str, Any]:
    """A node for its agent; of the kernel log what comes after the line that is known of this boot."""
    after = known.get(node.boot_id, 0)
    return {
        "name": node.name,
        "system_uuid": node.system_uuid,
        "serial": node.serial,
        "boot_id": node.boot_id,
        "boot_time": node.boot_time.isoformat(),
        "power": node.power,
        "agent_silent": node.agent_silent,
        "gpus": [dataclasses.asdict(gpu) for gpu in node.gpus],
        "kernel": [dataclasses.asdict(line) for line in node.kernel[after:]],
    }


def fleet_app(world: World) -> FastAPI:
    """The lab's own application, and beside it what agents of another process see of their nodes."""
    app = lab_app(world.lab)

    @app.post("/mirror")
    async def mirror(known: dict[str, int]) -> list[dict[str, Any]]:
        return [mirrored(node, known) for node in world.lab.advance().nodes.values()]

    @app.post("/cancel/{name}")
    async def cancel(name: str) -> int:
        running = [job for job in world.lab.advance().queue.on(name) if job.state == "RUNNING"]
        for job in running:
            world.lab.fleet.queue.end(job, "CANCELLED")
        return len(running)

    @app.get("/xids")
    async def xids() -> list[tuple[str, str, int]]:
        world.remember()
        return world.xids()

    return app


def power_app(world: World) -> FastAPI:
    """What the emulator tells of the power of its machines."""
    app = FastAPI(docs_url=None, redoc_url=None)

    @app.put("/")
    async def changed(system: dict[str, Any]) -> None:
        world.power(system["name"], system["power_state"])

    return app


def bmc_app(world: World, emulator: httpx.AsyncClient) -> FastAPI:
    """All BMCs: which one is asked, its port says."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    log = (world.folder / "bmc.log").open("a", buffering=1)

    @app.api_route("/{path:path}", methods=["GET", "POST", "PATCH", "DELETE"])
    async def bmc(request: Request) -> Response:
        node = world.by_port[request.scope["server"][1]]
        headers = {name: request.headers[name] for name in PASSED_ON if name in request.headers}
        path, body = request.url.path, await request.body()
        answer = await emulator.request(request.method, path, headers=headers, content=body)
        if request.method == "POST":
            log.write(json.dumps({"node": node, "path": path, "status": answer.status_code}) + "\n")
        content = only(answer.content, world, node) if path.rstrip("/") == SYSTEMS else answer.content
        return Response(content, answer.status_code, media_type=answer.headers.get("content-type"))

    return app


def only(content: bytes, world: World, node: str) -> bytes:
    """The collection of systems with the one that is behind this BMC."""
    found = json.loads(content)
    mine = f"{SYSTEMS}/{world.lab.fleet.nodes[node].system_uuid}"
    found["Members"] = [{"@odata.id": mine}]
    found["Members@odata.count"] = 1
    return json.dumps(found).encode()


class _Tls(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        """Leave signals to whoever runs the loop."""
        yield


@contextlib.asynccontextmanager
async def serving_bmcs(world: World, emulator: httpx.AsyncClient) -> AsyncIterator[None]:
    """Serve every BMC over TLS while the block lasts."""
    pem = str(world.folder / "bmc.pem")
    options: dict[str, Any] = {"log_level": "error", "lifespan": "off", "ws": "none", "timeout_keep_alive": 60}
    server = _Tls(uvicorn.Config(bmc_app(world, emulator), ssl_certfile=pem, ssl_keyfile=pem, **options))
    task = asyncio.create_task(server.serve(sockets=list(world.listeners.values())))
    try:
        yield
    finally:
        server.should_exit = server.force_exit = True
        await task


def emulator_config(world: World, port: int, told: int) -> Path:
    """Write the emulator's configuration: every machine of the fleet, and where to tell of its power."""
    folder = world.folder
    password = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
    (folder / "htpasswd").write_text(f"{USER}:{password}\n")
    (folder / "emulator").mkdir()
    nics = [{"mac": "00:5c:52:31:3a:01", "ip": "::1"}]
    systems = [
        {"uuid": node.system_uuid, "name": name, "power_state": "On", "nics": nics, "external_notifier": True}
        for name, node in world.lab.fleet.nodes.items()
    ]
    values = {
        "SUSHY_EMULATOR_LISTEN_IP": "127.0.0.1",
        "SUSHY_EMULATOR_LISTEN_PORT": port,
        "SUSHY_EMULATOR_AUTH_FILE": str(folder / "htpasswd"),
        "SUSHY_EMULATOR_FAKE_DRIVER": True,
        "SUSHY_EMULATOR_STATE_DIR": str(folder / "emulator"),
        "SUSHY_EMULATOR_FAKE_SYSTEMS": systems,
        "EXTERNAL_NOTIFICATION_URL": f"http://127.0.0.1:{told}/",
    }
    path = folder / "emulator.conf"
    path.write_text("\n".join(f"{name} = {value!r}" for name, value in values.items()))
    return path


@contextlib.asynccontextmanager
async def an_emulator(world: World, told: int) -> AsyncIterator[httpx.AsyncClient]:
    """The sushy emulator as a process, and a client of it."""
    probe = _listener()
    port = port_of(probe)
    probe.close()
    process = _started(world.folder, emulator_config(world, port, told))
    address = f"http://127.0.0.1:{port}"
    try:
        async with httpx.AsyncClient(base_url=address, trust_env=False, timeout=30) as client:
            await _answers(client, process)
            yield client
    finally:
        process.terminate()


def _started(folder: Path, config: Path) -> subprocess.Popen[bytes]:
    program = Path(sysconfig.get_path("scripts")) / "sushy-emulator"
    with (folder / "emulator.log").open("wb") as log:
        return subprocess.Popen([program, "--config", config], stdout=log, stderr=log, cwd=folder)


async def _answers(client: httpx.AsyncClient, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        if process.poll() is not None:
            raise RuntimeError("the emulator ended")
        with contextlib.suppress(httpx.HTTPError):
            await client.get("/redfish/v1/")
            return
        await asyncio.sleep(0.05)
    raise TimeoutError("the emulator does not answer")


async def run(folder: Path, *, nodes: int, speed: float, seed: int) -> None:
    """Be the world until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    world = World(build(nodes=nodes, gpus=GPUS, seed=seed, speed=speed), folder)
    told = _listener()
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(serving_app(power_app(world), told))
        emulator = await stack.enter_async_context(an_emulator(world, port_of(told)))
        await stack.enter_async_context(serving_bmcs(world, emulator))
        await stack.enter_async_context(serving_app(fleet_app(world), listen(folder / "lab.sock")))
        await stack.enter_async_context(moving(world.lab, None))
        world.tell_where()
        while not stop.is_set():
            world.remember()
            await asyncio.sleep(FOLLOW_SECONDS)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("nodes", type=int)
@click.argument("speed", type=float)
@click.argument("seed", type=int)
def main(folder: Path, nodes: int, speed: float, seed: int) -> None:
    """Run the world."""
    asyncio.run(run(folder, nodes=nodes, speed=speed, seed=seed))


if __name__ == "__main__":
    main()
