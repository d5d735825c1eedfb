"""The table of signatures is what workflows call; every entry has an activity of that name, input and result."""

from __future__ import annotations

import inspect
import typing
from pathlib import Path

import pytest
from temporalio import activity

from activities import signatures
from activities.registry import activities_of
from activities.signatures import Signature
from activities.world import World
from daytwo.adapters import Adapters
from daytwo.intents import Ledger
from daytwo.notify.log import LogNotifier
from daytwo.store.engine import Store


@pytest.fixture
def registered(store: Store, tmp_path: Path) -> dict[str, object]:
    adapters = Adapters(store)
    world = World(store, adapters, Ledger(store, adapters), LogNotifier(tmp_path / "notices.jsonl"))
    found = {}
    for method in activities_of(world):
        definition = activity._Definition.from_callable(method)
        assert definition is not None
        found[definition.name] = method
    return found


def test_every_signature_has_an_activity_and_no_activity_is_left_over(registered: dict[str, object]) -> None:
    assert sorted(registered) == sorted(signature.name for signature in signatures.ALL)


@pytest.mark.parametrize("signature", signatures.ALL, ids=lambda s: s.name)
def test_an_activity_takes_and_returns_what_its_signature_says(
    registered: dict[str, object], signature: Signature[typing.Any, typing.Any]
) -> None:
    method = inspect.unwrap(registered[signature.name])
    hints = typing.get_type_hints(method)
    assert (hints["return"], *[v for k, v in hints.items() if k != "return"]) == (signature.result, signature.input)
