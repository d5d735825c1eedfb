"""PostgreSQL's own programs, as `daytwo.store.backups` uses them: pg_dump, pg_restore and psql, found in the path.

The password goes to them through the environment: what a program was called with, everybody on the machine can read.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sqlalchemy import URL, inspect, text
from sqlmodel import Session

from daytwo.domain.errors import BadInput, Failed, Refused
from daytwo.store.engine import Store
from daytwo.store.versions import UNFINISHED

VARIABLES: Final = {
    "host": "PGHOST",
    "port": "PGPORT",
    "passfile": "PGPASSFILE",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "connect_timeout": "PGCONNECT_TIMEOUT",
    "target_session_attrs": "PGTARGETSESSIONATTRS",
}
"""What a store's URL may say after its `?`, as libpq's programs are told it."""
PACKAGE: Final = "postgresql-client"


def dump(store: Store, file: Path) -> None:
    """Write the whole database, as it is at one moment, into a file. Raises `Failed` with the program's own words."""
    _run(store.engine.url, "pg_dump", "--format=custom", "--no-owner", "--no-privileges", f"--file={file}")


def revision_in(file: Path) -> str:
    """The revision of the tables in a backup. Raises `BadInput` for a file that is no backup of a store."""
    told = _read(file, "--data-only", "--table=alembic_version", "--file=-")
    lines = told.splitlines()
    copied = next((number for number, line in enumerate(lines) if line.startswith("COPY ")), None)
    if copied is None:
        raise BadInput(f"FILE: found {str(file)!r}, a database that is no store of daytwo")
    return lines[copied + 1].strip()


def load(store: Store, file: Path) -> None:
    """Make the database what the file holds, in one transaction, with the mark that the restore is not finished.

    Raises `BadInput` for a file that cannot be read to its end, before anything is changed.
    """
    tables = inspect(store.engine).get_table_names()
    with tempfile.TemporaryDirectory(prefix="daytwo-restore-") as folder:
        drops, rows = Path(folder) / "drops.sql", Path(folder) / "rows.sql"
        drops.write_text(
            "".join(f'DROP TABLE "{table}" CASCADE;\n' for table in tables) + f"CREATE TABLE {UNFINISHED} ();\n"
        )
        _read(file, "--no-owner", "--no-privileges", f"--file={rows}")
        how = ("--no-psqlrc", "--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1")
        _run(store.engine.url, "psql", *how, f"--file={drops}", f"--file={rows}")


def drop_all(store: Store) -> None:
    """Leave the database without a table, as one is before daytwo is first up on it."""
    with store.write() as session:
        connection = session.connection()
        for table in inspect(connection).get_table_names():
            connection.execute(text(f'DROP TABLE "{table}" CASCADE'))


def is_marked(store: Store) -> bool:
    """Whether a restore has replaced the rows and not ended."""
    with store.read() as session:
        return inspect(session.connection()).has_table(UNFINISHED)


def lift_mark(session: Session) -> None:
    """The restore is finished, when this transaction is."""
    session.connection().execute(text(f"DROP TABLE {UNFINISHED}"))


def refuse_while_used(store: Store) -> None:
    """Raise `Refused` while another process of daytwo is connected to the database."""
    others = text(
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND application_name = 'daytwo' AND pid <> pg_backend_pid()"
    )
    with store.read() as session:
        count = session.connection().execute(others).scalar()
    if count:
        raise Refused(f"{count} connections of daytwo are open to the store; stop every process of daytwo first")


def _read(file: Path, *options: str) -> str:
    try:
        return _run(None, "pg_restore", *options, str(file))
    except Failed as error:
        raise BadInput(f"FILE: found {str(file)!r}, which cannot be restored ({error})") from error


def _run(url: URL | None, program: str, *arguments: str) -> str:
    if shutil.which(program) is None:
        raise Failed(f"{program} is missing; its Debian package is {PACKAGE}")
    command = (program, *arguments)
    done = subprocess.run(command, env=_environment(url), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip() or f"ended with {done.returncode}"
        raise Failed(f"{program}: {said.removeprefix(f'{program}: ')}")
    return done.stdout


def _environment(url: URL | None) -> Mapping[str, str]:
    if url is None:
        return os.environ
    given = {"PGHOST": url.host, "PGPORT": url.port, "PGUSER": url.username, "PGPASSWORD": url.password}
    asked = {VARIABLES[name]: value for name, value in url.query.items() if name in VARIABLES}
    named = {**given, "PGDATABASE": url.database, **asked, "PGAPPNAME": "daytwo-backup"}
    return os.environ | {name: str(value) for name, value in named.items() if value is not None}
