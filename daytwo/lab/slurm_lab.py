"""A real Slurm in a folder, without systemd: munged, slurmctld and one slurmd per node, on one machine, as root.

Used by the tests and by the real demo. It also runs as its own process, until SIGTERM:

    python -m daytwo.lab.slurm_lab DIR --nodes 4

Every node is a PID namespace, so that ending it is a power cut for all that ran there. Every daemon dies with the
thread that started it: start a lab, and switch its nodes on, from a thread that lives as long as the lab.
"""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from daytwo.domain.definition import SlurmAccess
from daytwo.domain.errors import Failed, Refused
from daytwo.lab.slurm_config import LabPlace, LabSettings, cgroup_conf, gres_conf, hook, slurm_conf
from daytwo.lab.slurm_firmware import Firmware
from daytwo.lab.slurm_programs import INSTALLED, PATH, Programs, last_words

# A major number that nothing uses: opening such a device fails, as a lab GPU should.
UNUSED_MAJOR: Final = 240
POWER_CUT: Final = signal.SIGKILL
START_SECONDS: Final = 30.0


def missing(path: str = PATH) -> str:
    """Say in one sentence why a lab cannot run here with the programs on `path`, or return an empty string."""
    return Programs(path=path).missing()


class SlurmLab:
    """One Slurm. `root` is its folder, world-readable and below a world-readable one. Use it as a context manager.

    `auto_return` False: a node that reboots does not come back by itself. `programs`: another Slurm than the installed.
    """

    def __init__(self, root: Path, settings: LabSettings, programs: Programs = INSTALLED) -> None:
        self.root = root
        self.settings = settings
        self.programs = programs
        self.auto_return = True
        self.conf = root / "etc/slurm.conf"
        self.gpus = dict.fromkeys(settings.nodes, settings.gpus)
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._lock = threading.RLock()
        self._firmware: Firmware | None = None

    @property
    def access(self) -> SlurmAccess:
        """How daytwo reaches this Slurm."""
        return SlurmAccess(bin=str(self.root / "cli"), conf=str(self.conf))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start all daemons and wait until every node is idle. Raises `Refused` (no Slurm here) or `Failed`."""
        reason = self.programs.missing()
        if reason:
            raise Refused(reason)
        self._write_files()
        try:
            self._start_daemons()
        except BaseException:
            self.stop()
            raise

    def _start_daemons(self) -> None:
        self._spawn("munged", _munged(self.root))
        self._wait("munged", lambda: (self.root / "run/munge.sock").exists())
        self.start_controller()
        self._firmware = Firmware(self)
        for node in self.settings.nodes:
            self.power_on(node, booted=False)
        self._wait("nodes", lambda: {self.states()[node] for node in self.settings.nodes} == {"IDLE"})
        self._firmware.start()

    def start_controller(self, *options: str) -> None:
        """Start slurmctld and wait until it answers. With `-c` it forgets its saved state."""
        self._spawn("slurmctld", self.programs.wrap(str(self.root / "bin/slurmctld"), "-D", *options))
        self._wait("slurmctld", lambda: "UP" in self.run("scontrol", "ping"))

    def stop_controller(self) -> None:
        """End slurmctld as an orderly restart does: it saves its state."""
        self._end("slurmctld", signal.SIGTERM)

    def stop(self) -> None:
        """Stop everything. Jobs die with their nodes."""
        if self._firmware is not None:
            self._firmware.stop()
            self._firmware = None
        for node in self.settings.nodes:
            self.cut_power(node)
        for name in ("slurmctld", "munged"):
            self._end(name, signal.SIGTERM)

    def run(self, *argv: str) -> str:
        """Run a Slurm program on this lab and return its output. Raises `Failed` with what it said."""
        wrapped = self.programs.wrap(*argv)
        done = subprocess.run(
            wrapped, env=self.environment(), cwd="/", capture_output=True, text=True, timeout=30, check=False
        )
        if done.returncode:
            raise Failed(last_words(done, argv))
        return done.stdout

    def environment(self) -> dict[str, str]:
        """The variables with which a program finds this Slurm."""
        return {"PATH": PATH, "LANG": "C.UTF-8", "HOME": "/root", "SLURM_CONF": str(self.conf)}

    def states(self) -> dict[str, str]:
        """The state of every node, as `scontrol` prints it."""
        rows = self.run("sinfo", "-h", "-N", "-o", "%N %T").split("\n")
        return {node: state.upper() for node, state in (row.split(maxsplit=1) for row in rows if row)}

    def power_on(self, node: str, *, booted: bool = True) -> None:
        """Start a node's slurmd. `booted`: it reports a new boot time, as after a real boot."""
        (self.root / "spool" / node).mkdir(exist_ok=True)
        slurmd = self.programs.wrap(
            *(str(self.root / "bin/slurmd"), "-D", "-N", node, "-d", str(self.root / "bin/slurmstepd")),
            *(["-b"] if booted else []),
        )
        # The shell is the init of the node: it reaps what jobs leave behind.
        init = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child=KILL", "--", "sh", "-c", '"$@" & wait $!']
        self._spawn(node, [*init, "sh", *slurmd], LAB_NODE=node)

    def cut_power(self, node: str) -> None:
        """End a node and all that runs on it, at once."""
        self._end(node, POWER_CUT)

    def fit_gpus(self, node: str, count: int) -> None:
        """Give a node `count` GPUs from its next start on. Slurm goes on to expect the configured number."""
        self.gpus[node] = count
        (self.root / "etc/gres.conf").write_text(gres_conf(self.root, self.gpus))

    def rename(self, node: str, name: str) -> None:
        """End a node and give another one its place in the configuration, as an operator does: the file, a restart."""
        self.cut_power(node)
        self.conf.write_text(self.conf.read_text().replace(f"NodeName={node} ", f"NodeName={name} "))
        self.stop_controller()
        self.start_controller()

    def _write_files(self) -> None:
        for folder in ("etc", "log", "run", "state", "spool", "bin", "dev"):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        self.root.chmod(0o755)
        self.programs.write_clients(self.root / "cli")
        self._write_devices()
        key = self.root / "etc/munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)
        ports = free_ports(len(self.settings.nodes) + 1)
        host = socket.gethostname().split(".")[0]
        place = LabPlace(self.root, host, ports[0], dict(zip(self.settings.nodes, ports[1:], strict=True)))
        self.conf.write_text(slurm_conf(self.settings, place))
        (self.root / "etc/gres.conf").write_text(gres_conf(self.root, self.gpus))
        (self.root / "etc/cgroup.conf").write_text(cgroup_conf())
        for name, text in self.settings.files.items():
            (self.root / "etc" / name).write_text(text)
        self.set_hook("prolog", "exit 0")
        self.set_hook("reboot", f'echo "$LAB_NODE" > {self.root}/run/firmware')

    def _write_devices(self) -> None:
        for index in range(self.settings.gpus):
            device = self.root / f"dev/nvidia{index}"
            if not device.exists():
                os.mknod(device, 0o020666, os.makedev(UNUSED_MAJOR, index))
        for daemon in ("slurmctld", "slurmd", "slurmstepd"):
            # A daemon started as `slurmctld-wlm` crashes: it looks at its own name.
            link = self.root / "bin" / daemon
            link.unlink(missing_ok=True)
            link.symlink_to(self.programs.find(daemon))

    def set_hook(self, name: str, *lines: str) -> None:
        """Replace the script `name` (`prolog`, `reboot`) at once."""
        fresh = self.root / "bin" / f"{name}.new"
        fresh.write_text(hook(lines))
        fresh.chmod(0o755)
        fresh.rename(self.root / "bin" / name)

    def _spawn(self, name: str, argv: Sequence[str], **variables: str) -> None:
        with self._lock, (self.root / "log" / f"{name}.out").open("ab") as output:
            self._daemons[name] = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *argv],
                env={**self.environment(), **variables},
                cwd=self.root / "log",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def _end(self, name: str, how: signal.Signals) -> None:
        with self._lock:
            daemon = self._daemons.pop(name, None)
        if daemon is None:
            return
        daemon.send_signal(how)
        try:
            daemon.wait(3.0)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()

    def _wait(self, what: str, ready: Callable[[], bool]) -> None:
        end = time.monotonic() + START_SECONDS
        while not _true(ready):
            dead = [name for name, daemon in self._daemons.items() if daemon.poll() is not None]
            if dead or time.monotonic() > end:
                raise Failed(f"the Slurm lab did not start ({what}); ended: {dead or 'nothing'}; see {self.root}/log")
            time.sleep(0.03)


def _munged(root: Path) -> list[str]:
    run = root / "run"
    files = {"socket": run / "munge.sock", "key-file": root / "etc/munge.key", "pid-file": run / "munged.pid"}
    files |= {"log-file": root / "log/munged.log", "seed-file": run / "munge.seed"}
    return ["munged", "-F", "--force", "--num-threads=10", *(f"--{name}={path}" for name, path in files.items())]


def free_ports(count: int) -> list[int]:
    """Return ports of 127.0.0.1 that nobody listens on now."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in held]
    for server in held:
        server.close()
    return ports


def _true(ready: Callable[[], bool]) -> bool:
    try:
        return ready()
    except (Failed, KeyError, ValueError, subprocess.TimeoutExpired):
        return False


def main(argv: Sequence[str] | None = None) -> int:
    """Run a lab until SIGTERM or SIGINT. Prints one line when it is ready: `ready SLURM_CONF=<path>`."""
    parser = argparse.ArgumentParser(prog="python -m daytwo.lab.slurm_lab", description=__doc__)
    parser.add_argument("dir", type=Path)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--prefix", default="gpu-", help="node names are PREFIX and a number")
    parser.add_argument("--gpus", type=int, default=8)
    asked = parser.parse_args(argv)
    names = tuple(f"{asked.prefix}{number:02d}" for number in range(1, asked.nodes + 1))
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    try:
        with SlurmLab(asked.dir.resolve(), LabSettings(nodes=names, gpus=asked.gpus)) as lab:
            sys.stdout.write(f"ready SLURM_CONF={lab.conf}\n")
            sys.stdout.flush()
            signal.sigwait({signal.SIGTERM, signal.SIGINT})
    except (Refused, Failed) as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
