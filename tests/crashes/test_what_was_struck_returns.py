"""What became of the repairs whose worker died, and of those whose scheduler failed: nothing was done twice."""

from __future__ import annotations

import pytest

from tests.crashes.living import SOUND, LivingPlane
from tests.crashes.storms import MODES, STATES, Storm
from tests.crashes.strikes import MOMENTS


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("state", STATES)
async def test_a_repair_goes_on_when_the_scheduler_answers_again(
    storm: Storm, plane: LivingPlane, state: str, mode: str
) -> None:
    node = storm.nodes[mode, state]
    assert await plane.ending(node) == SOUND, plane.story(node)


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_repair_outlives_its_worker(struck: dict[str, str], plane: LivingPlane, moment: str) -> None:
    node = struck[moment]
    assert await plane.ending(node) == SOUND, plane.story(node)
