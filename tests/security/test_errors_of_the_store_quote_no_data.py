"""What nodes and people wrote does not get into a log by way of a failing statement."""

from __future__ import annotations

import pytest
from sqlalchemy.exc import IntegrityError

from daytwo.store.engine import Store
from tests.rows import a_node, keep


def test_an_error_of_the_store_quotes_no_values(store: Store) -> None:
    keep(store, a_node())
    with pytest.raises(IntegrityError) as caught:
        keep(store, a_node(state_why="planted-9f1c"))
    assert "planted-9f1c" not in str(caught.value)
