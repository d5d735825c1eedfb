"""`daytwo backup FILE` and `daytwo restore FILE`, as a process: `python -m workers.backup backup|restore FILE`.

It speaks to the store itself and not through the service: a restore is made while nothing runs.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from daytwo import settings as settings_module
from daytwo.cli.backup import file_argument
from daytwo.cli.failure import from_error, from_usage
from daytwo.domain.errors import BadInput, DaytwoError, Failed
from daytwo.one_at_a_time import only_one
from daytwo.service.local_socket import actor_of
from daytwo.store import backups
from daytwo.store.engine import Store

AFTERWARDS: Final = """\
Everything is frozen. Start daytwo; then:
  daytwo repairs list                 what goes on, and what it asks because nobody knows
  daytwo audit list --limit 5         what was compared with Temporal
  daytwo thaw --reason "looked"       let acts begin again
Tokens of nodes that were revoked since are good again, and those issued since are not: daytwo nodes token"""


@click.group()
def main_group() -> None:
    """Copy the store, or put it back."""


@main_group.command("backup")
@file_argument
def backup(file: str) -> None:
    """Copy the store into a new file."""
    store = Store(settings_module.load().store_url)
    try:
        if not store.has_tables():
            raise BadInput("DAYTWO_STORE_URL: found a store without tables; allowed is one that daytwo has been up on")
        store.check_version()
        taken = backups.take(store, _path(file), actor=actor_of(os.geteuid()), now=datetime.now(UTC))
    finally:
        store.close()
    click.echo(f"{taken.file}: the store at {_at(taken)}, audit row {taken.count}, head {taken.head}")


@main_group.command("restore")
@file_argument
def restore(file: str) -> None:
    """Put the store back."""
    settings, now = settings_module.load(), datetime.now(UTC)
    settings.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside = settings.state_dir / f"store-before-restore-{now:%Y%m%d-%H%M%S}"
    with only_one(settings.state_dir):
        found = backups.put_back(settings.store_url, _path(file), aside=aside, actor=actor_of(os.geteuid()), now=now)
    click.echo(f"The store is what it was at {_at(found)}: audit row {found.count}, head {found.head}")
    if aside.exists():
        click.echo(f"The one before is kept in {aside}")
    click.echo(AFTERWARDS)


def _path(file: str) -> Path:
    path = Path(file).absolute()
    if not path.parent.is_dir():
        raise BadInput(f"FILE: found {file!r}, in a folder that does not exist; allowed is a file in one that does")
    return path


def _at(backup: backups.Backup) -> str:
    return f"{backup.at:%Y-%m-%d %H:%M:%SZ}"


def main() -> int:
    """Run one command; errors that people can act on are one message and their exit code."""
    try:
        main_group.main(standalone_mode=False)
    except click.UsageError as error:
        from_usage(error).show()
        return from_usage(error).exit_code
    except DaytwoError as error:
        from_error(error).show()
        return error.exit_code
    except OSError as error:
        from_error(Failed(f"{error.filename}: {error.strerror}")).show()
        return Failed.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
