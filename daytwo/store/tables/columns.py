"""Kinds of columns that the tables share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Column, DateTime, Dialect, Integer, TypeDecorator
from sqlmodel import Field


class UtcDateTime(TypeDecorator[datetime]):
    """An aware UTC time in every database; a naive one is refused on the way in."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse a naive time; store the others as UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"naive time {value!r}: times in the store are UTC and aware")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Give back the time as UTC, in whatever zone the database keeps or shows it."""
        if value is None:
            return None
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


def timed(*, nullable: bool = False, index: bool = False) -> Any:
    """A column for an aware time."""
    return Field(default=None, sa_column=Column(UtcDateTime(), nullable=nullable, index=index))


def as_json(default: type) -> Any:
    """A column for what is kept as JSON; `default` makes an empty one."""
    return Field(default_factory=default, sa_column=Column(JSON, nullable=False))


def serial() -> Any:
    """A primary key that the database counts."""
    # SQLite numbers rows by itself only for a column of type INTEGER.
    return Field(default=None, sa_column=Column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True))
