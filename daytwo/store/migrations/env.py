"""Runs migrations on the engine of `Store.migrate`, in one transaction: two processes may start at once."""

from alembic import context

from daytwo.store import tables


def run() -> None:
    """Apply what is missing, under the write lock from the first look on."""
    engine = context.config.attributes["engine"]
    with engine.connect().execution_options(daytwo_write=True) as connection:
        context.configure(connection=connection, target_metadata=tables.NodeRow.metadata, render_as_batch=True)
        with connection.begin():
            context.run_migrations()


run()
