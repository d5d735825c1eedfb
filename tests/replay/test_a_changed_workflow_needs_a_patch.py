"""The histories are a net that holds: a workflow that was changed without a patch does not get through."""

from __future__ import annotations

import pytest

from tests.replay.changed_workflows import SleepsFirst, SleepsFirstIfNew, TellsNobody
from tests.replay.replaying import RECORDED, history, replay


@pytest.mark.parametrize("changed", [SleepsFirst, TellsNobody])
@pytest.mark.parametrize("name", ["succeeded", "dismissed", "needs-help"])
async def test_a_workflow_that_was_changed_without_a_patch_fails(name: str, changed: type) -> None:
    failure = await replay(history(name), changed)
    assert "TMPRL1100" in str(failure)


@pytest.mark.parametrize("name", RECORDED)
async def test_the_same_change_with_a_patch_passes(name: str) -> None:
    assert await replay(history(name), SleepsFirstIfNew) is None
