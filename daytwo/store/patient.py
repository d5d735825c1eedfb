"""A connection to PostgreSQL that waits for an answer only so long: a server that hangs must not keep threads for ever.

libpq's own timeouts are for connecting and for a dead network. A server that is stopped, or a disk that does not
return, keeps its sockets open and acknowledges every packet. `daytwo.store.engine` makes these.
"""

from __future__ import annotations

import time
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from sqlalchemy import Connection

R = TypeVar("R")


class PatientConnection(psycopg.Connection[Any]):
    """Closes itself, and raises `psycopg.OperationalError`, when the server says nothing for `patience` seconds.

    `None` waits for ever, as for a migration.
    """

    patience: float | None = None

    def wait(self, gen: PQGen[R], interval: float = 0.1, timeout: float | None = None) -> R:
        """Wait for one answer."""
        limit = self.patience if timeout is None else timeout
        began = time.monotonic()
        try:
            return super().wait(gen, interval, limit)
        except psycopg.OperationalError as error:
            if timeout is None and limit is not None and time.monotonic() - began >= limit:
                # What it was asked is still under way there: this connection can be used for nothing else.
                self.pgconn.finish()
                raise psycopg.OperationalError(f"no answer within {limit:g} s") from error
            raise


def alone(connection: Connection, patience: float | None) -> None:
    """Take a connection out of its pool and have it wait for so long, in seconds, or for ever; it is not used again."""
    driver = connection.connection.driver_connection
    connection.detach()
    if not isinstance(driver, PatientConnection):
        raise TypeError(f"found a {type(driver).__name__}; allowed is a connection of the store")
    driver.patience = patience
