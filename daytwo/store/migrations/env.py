"""Runs migrations on the engine of `Store.migrate`, in one transaction: two processes may start at once."""

from alembic import context
from sqlalchemy import Connection, text

from daytwo.store import tables
from daytwo.store.locks import Lock, hold_on
from daytwo.store.patient import alone


def run() -> None:
    """Apply what is missing, under a lock from the first look on."""
    engine = context.config.attributes["engine"]
    with engine.connect().execution_options(daytwo_write=True) as connection:
        context.configure(connection=connection, target_metadata=tables.NodeRow.metadata, render_as_batch=True)
        with connection.begin():
            _be_alone(connection)
            context.run_migrations()


def _be_alone(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        # Another's migration, or our own, may take longer than a writer waits. The connection is not used again.
        alone(connection, None)
        for limit in ("lock_timeout", "statement_timeout"):
            connection.execute(text(f"SET LOCAL {limit} = 0"))
    hold_on(connection, Lock.MIGRATIONS)


run()
