"""A Slurm lab that keeps accounts: a MariaDB and a slurmdbd beside slurmctld. Used by the tests.

The database listens on a socket in the lab's folder and is lost with it.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Final

from daytwo.domain.errors import Failed, Refused
from daytwo.lab.slurm_config import LabSettings
from daytwo.lab.slurm_lab import SlurmLab, free_ports
from daytwo.lab.slurm_programs import INSTALLED, Programs

SYSTEM_TABLES: Final = ("system_tables.sql", "system_tables_data.sql")
# Without it slurmdbd 24.11 reads a result as having no columns, and ends.
CLIENT_LIBRARY: Final = Path("/usr/lib/x86_64-linux-gnu/libmariadb.so.3")

SLURM_CONF: Final = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStoragePass={root}/run/munge.sock
JobAcctGatherType=jobacct_gather/none
"""
SLURMDBD_CONF: Final = """\
AuthType=auth/munge
AuthInfo=socket={root}/run/munge.sock
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser=root
LogFile={root}/log/slurmdbd.log
PidFile={root}/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=accounts
"""


class AccountingLab(SlurmLab):
    """A lab with accounts."""

    def __init__(self, root: Path, settings: LabSettings, programs: Programs = INSTALLED) -> None:
        (self._port,) = free_ports(1)
        more = SLURM_CONF.format(root=root, port=self._port)
        super().__init__(root, replace(settings, extra=settings.extra + more), programs)

    def start(self) -> None:
        """Start everything. Raises as a lab does, also for what accounts need."""
        if reason := self.programs.missing_accounting():
            raise Refused(reason)
        super().start()

    def start_controller(self, *options: str) -> None:
        """Start slurmctld, the first time after the daemons that keep its accounts."""
        if not (self.root / "db").exists():
            self._start_database()
            self._start_slurmdbd()
        super().start_controller(*options)

    def stop(self) -> None:
        """Stop everything, the accounts last: slurmctld writes to them when it ends."""
        for node in self.settings.nodes:
            self.cut_power(node)
        for name in ("slurmctld", "slurmdbd", "mariadbd"):
            self._end(name, signal.SIGTERM)
        super().stop()

    def _start_database(self) -> None:
        data = self.root / "db"
        data.mkdir()
        server = [self.programs.find("mariadbd"), "--no-defaults", "--user=root", f"--datadir={data}"]
        done = subprocess.run(
            [*server, "--bootstrap"], input=_system_tables(), capture_output=True, text=True, timeout=60, check=False
        )
        if done.returncode:
            raise Failed(f"the database was not made: {done.stderr[-300:]}")
        fast = ("--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0", "--skip-log-bin", "--skip-networking")
        files = (f"--socket={self.root}/run/mysql.sock", f"--pid-file={self.root}/run/mariadb.pid")
        self._spawn("mariadbd", [*server, *fast, *files])
        self._wait("mariadbd", lambda: (self.root / "run/mysql.sock").exists())

    def _start_slurmdbd(self) -> None:
        conf, library = self.root / "etc/slurmdbd.conf", self.root / "lib"
        conf.write_text(SLURMDBD_CONF.format(root=self.root, port=self._port))
        conf.chmod(0o600)
        library.mkdir()
        if self.programs.tree is not None and CLIENT_LIBRARY.exists():
            shutil.copy(CLIENT_LIBRARY, library)
        # Started under another name it crashes.
        (self.root / "bin/slurmdbd").symlink_to(self.programs.find("slurmdbd"))
        where = {"MYSQL_UNIX_PORT": f"{self.root}/run/mysql.sock", "LD_LIBRARY_PATH": str(library)}
        self._spawn("slurmdbd", self.programs.wrap(str(self.root / "bin/slurmdbd"), "-D"), **where)
        self._wait("slurmdbd", lambda: bool(self.run("sacctmgr", "-n", "show", "user")))
        self.run("sacctmgr", "-i", "add", "cluster", "lab")


def _system_tables() -> str:
    """What a new database begins with, from the installed server's files, which were renamed once."""
    for folder, prefix in (("mysql", "mysql"), ("mariadb", "mariadb")):
        files = [Path("/usr/share", folder, f"{prefix}_{name}") for name in SYSTEM_TABLES]
        if all(file.exists() for file in files):
            first = "create database mysql;\nuse mysql;\nset @auth_root_socket=NULL;\n"
            return first + "".join(file.read_text() for file in files)
    raise Refused("the installed MariaDB has no SQL files of its system tables")
