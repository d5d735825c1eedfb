"""A migration that was released has run on somebody's store: to change it is to have two kinds of that store."""

from __future__ import annotations

import hashlib

import pytest

from daytwo.store.engine import MIGRATIONS
from tests.upgrades.released import RELEASED

FROZEN = {"0001_first_tables.py": "533c11f5fd8399ec08ece4d2fbe2361f1a97d5dc937ff0fe63525d2b8f45bb83"}
"""Released migrations and their SHA-256. A release adds what it brings; a line is never changed."""


@pytest.mark.parametrize("name", FROZEN)
def test_a_released_migration_is_never_edited(name: str) -> None:
    assert hashlib.sha256((MIGRATIONS / "versions" / name).read_bytes()).hexdigest() == FROZEN[name]


def test_every_release_left_a_store_to_migrate() -> None:
    assert RELEASED[0] == "0.1.0"
    assert len(RELEASED) == len(FROZEN)
