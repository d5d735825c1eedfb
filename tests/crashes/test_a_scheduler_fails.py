"""A scheduler that answers garbage, hangs or refuses: nothing is decided on missing answers."""

from __future__ import annotations

import pytest

from daytwo.domain.vocabulary import State
from tests.crashes.storms import MODES, STATES, Storm


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("mode", MODES)
async def test_nothing_is_decided_while_the_scheduler_fails(storm: Storm, mode: str, state: State) -> None:
    assert storm.began[mode, state].state == state
    assert storm.ended[mode, state] == storm.began[mode, state]
