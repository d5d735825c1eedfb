"""A real PostgreSQL for the tests: Debian's programs in a folder of its own, behind a Unix socket.

It runs in a time zone that is not ours and sorts text as people do, which a site's server may do too.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from daytwo.store.engine import Store

PACKAGES = "postgresql"
SOMEBODY = "nobody"
"""Whom the server runs as where we are root, which it refuses to be."""
FAST = (
    *("fsync=off", "synchronous_commit=off", "full_page_writes=off", "wal_level=minimal", "max_wal_senders=0"),
    *("autovacuum=off", "shared_buffers=32MB", "min_wal_size=32MB"),
)
"""A test's data need not survive a power cut."""
MEMORY = Path("/dev/shm")
ROOM = 2**30
"""Bytes. A server with a few databases needs an eighth of it."""
STRANGE = ("timezone=Asia/Kolkata", "default_transaction_isolation=serializable", "deadlock_timeout=100ms")
"""What a site may have set, and daytwo must not depend on."""


def programs() -> Path | None:
    """The folder of `initdb` and `postgres`, the newest version's; Debian keeps them out of the path."""
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    found = str(versions[-1]) if versions else shutil.which("initdb")
    return Path(found).resolve().parent if found else None


def missing() -> str:
    """Why no PostgreSQL can be started here, and how to get one; empty if it can."""
    if programs() is None:
        return f"no PostgreSQL found; its Debian package is {PACKAGES}: scripts/debian-packages.sh postgres"
    if shutil.which("setpriv") is None:
        return "setpriv is missing; its Debian package is util-linux"
    return ""


class Postgres:
    """One server with a migrated template. Each test has a database of its own."""

    def __init__(self, folder: Path, *settings: str) -> None:
        self.folder = folder
        self._settings = (*FAST, *STRANGE, "listen_addresses=", *settings)
        self._bin = programs() or Path()
        self._numbers = itertools.count(1)
        self._server: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """Make the cluster of databases, start the server, and migrate the template."""
        self._own()
        how = ("--auth=trust", "--username=daytwo", "--encoding=UTF8", "--no-sync", *_sorting())
        self._do("initdb", f"--pgdata={self.folder}/data", *how)
        self.start()
        self._sql("CREATE DATABASE template_daytwo")
        store = Store(self.url("template_daytwo"))
        store.migrate()
        store.close()

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = [f"-c{setting}" for setting in self._settings]
        command = (f"{self._bin}/postgres", "-D", f"{self.folder}/data", "-k", str(self.folder), *options)
        with (self.folder / "server.log").open("ab") as log:
            # It ends with us, also where we are killed.
            self._server = subprocess.Popen(_as_somebody(*command, ends="INT"), stdout=log, stderr=log, cwd="/")
        self._do("pg_isready", "--quiet", f"--host={self.folder}", "--username=daytwo", "--dbname=postgres", tries=300)

    @property
    def pid(self) -> int:
        """The server's first process, which starts one for each connection."""
        assert self._server is not None
        return self._server.pid

    def stop(self, how: int) -> None:
        """End the server with this signal: SIGINT breaks connections off, SIGQUIT is a crash."""
        if self._server is not None:
            self._server.send_signal(how)
            self._server.wait(30)
            self._server = None

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Stop every process of the server while the block lasts: it takes what comes in, and answers nothing."""
        assert self._server is not None
        every = [self._server.pid, *_children(self._server.pid)]
        try:
            for pid in every:
                os.kill(pid, signal.SIGSTOP)
            yield
        finally:
            for pid in every:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://daytwo@/{database}?host={self.folder}"

    @contextmanager
    def database(self) -> Iterator[str]:
        """The address of a migrated database, which is there while the block lasts."""
        name = f"test_{next(self._numbers)}"
        self._sql(f"CREATE DATABASE {name} TEMPLATE template_daytwo STRATEGY file_copy")
        yield self.url(name)
        self._sql(f"DROP DATABASE {name} WITH (FORCE)")

    @contextmanager
    def empty_database(self) -> Iterator[str]:
        """The address of a database without tables, which is there while the block lasts."""
        name = f"empty_{next(self._numbers)}"
        self._sql(f"CREATE DATABASE {name}")
        yield self.url(name)
        self._sql(f"DROP DATABASE {name} WITH (FORCE)")

    def _sql(self, statement: str) -> None:
        with psycopg.connect(host=str(self.folder), user="daytwo", dbname="postgres", autocommit=True) as connection:
            connection.execute(statement.encode())

    def _own(self) -> None:
        if os.geteuid() == 0:
            shutil.chown(self.folder, SOMEBODY)

    def _do(self, program: str, *arguments: str, tries: int = 1) -> None:
        command = _as_somebody(f"{self._bin}/{program}", *arguments)
        for _ in range(tries):
            done = subprocess.run(command, capture_output=True, text=True, cwd="/", check=False)
            if done.returncode == 0:
                return
        told = self.folder / "server.log"
        raise RuntimeError(f"{program}: {done.stderr}\n{told.read_text() if told.exists() else ''}")


@contextmanager
def a_postgres(*settings: str) -> Iterator[Postgres]:
    """A server that runs while the block lasts; later settings go before earlier ones and before our own."""
    # Not under pytest's own folder, which is closed to others; and a socket's path is short.
    in_memory = MEMORY if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM else None
    with tempfile.TemporaryDirectory(prefix="daytwo-pg-", dir=in_memory) as folder:
        server = Postgres(Path(folder), *settings)
        try:
            server.begin()
            yield server
        finally:
            server.stop(3)


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _as_somebody(*command: str, ends: str = "clear") -> tuple[str, ...]:
    if os.geteuid() != 0:
        return ("setpriv", f"--pdeathsig={ends}", *command)
    who = pwd.getpwnam(SOMEBODY)
    ids = (f"--reuid={who.pw_uid}", f"--regid={who.pw_gid}", "--clear-groups")
    return ("setpriv", *ids, f"--pdeathsig={ends}", *command)


def _sorting() -> tuple[str, ...]:
    return ("--locale-provider=icu", "--icu-locale=en", "--locale=C.UTF-8")
