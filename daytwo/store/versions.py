"""Which version of the tables a store has, and which this program knows. Called by `Store` at every start."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect
from sqlmodel import Session, col, select

from daytwo import __version__
from daytwo.domain.errors import Refused, TooNew
from daytwo.store.tables import SchemaVersionRow

FIX: Final = "docs/upgrading.md, Going back"

UNFINISHED: Final = "daytwo_restore_unfinished"
"""A table that is there from the moment at which a restore has replaced the rows until it has ended."""


def found_revision(connection: Connection) -> str | None:
    """The revision that the tables are at; `None` where there are none yet."""
    return MigrationContext.configure(connection).get_current_revision()


def known_revisions(config: Config) -> tuple[str, ...]:
    """All revisions that this program can make, the newest first."""
    return tuple(script.revision for script in ScriptDirectory.from_config(config).walk_revisions())


def refuse_unfinished(connection: Connection, store: str) -> None:
    """Raise `Refused` where a restore has begun and not ended: what is in the store is not to be acted on."""
    if inspect(connection).has_table(UNFINISHED):
        raise Refused(f"store {store}: a restore was not finished; run it again: daytwo restore FILE")


def refuse_newer(connection: Connection, known: tuple[str, ...], store: str) -> None:
    """Raise `TooNew` where a newer program has changed the tables: this one would read and write them wrongly."""
    found = found_revision(connection)
    if found is not None:
        refuse_revision(found, known, store, wrote=None if found in known else _version_of(connection, found))


def refuse_revision(found: str, known: tuple[str, ...], store: str, *, wrote: str | None) -> None:
    """Raise `TooNew` unless this program knows the revision. `wrote` is the version that made it, if that is known."""
    if found in known:
        return
    raise TooNew(
        f"store {store}: its tables are at revision {found}, made by daytwo {wrote or 'of a later version'}; this is "
        f"daytwo {__version__}, which knows them up to {known[0]}; run daytwo {wrote or 'of that version'} or newer, "
        f"or restore a backup from before the upgrade ({FIX})"
    )


def note_version(session: Session, revision: str) -> None:
    """Write down, once, that this version made `revision`."""
    if session.get(SchemaVersionRow, revision) is None:
        session.add(SchemaVersionRow(revision=revision, version=__version__, at=datetime.now(UTC)))


def _version_of(connection: Connection, revision: str) -> str | None:
    # A newer program may have changed everything but this table, which is never changed.
    if not inspect(connection).has_table(SchemaVersionRow.__tablename__):
        return None
    query = select(SchemaVersionRow.version).where(col(SchemaVersionRow.revision) == revision)
    return connection.execute(query).scalar()
