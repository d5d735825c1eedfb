"""What `daytwo up --lab` declares, before anything is started."""

from __future__ import annotations

import os
import pwd
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from daytwo.domain.errors import BadInput
from daytwo.domain.vocabulary import Action
from daytwo.lab.demo import screen
from daytwo.settings import load
from workers.lab_part import LabPart
from workers.ports import Ports
from workers.up import plan


def test_whoever_runs_the_lab_may_approve_in_it(tmp_path: Path) -> None:
    (person,) = LabPart(tmp_path, 16, 60.0).definition().policy.approval.people
    assert (person.roles, person.identities) == (("lead",), (f"cli:{pwd.getpwuid(os.geteuid()).pw_name}",))


@pytest.mark.parametrize("action", [Action.REPROVISION, Action.FAILOVER, Action.REMOVE])
def test_the_temporal_ui_never_takes_a_node_away(tmp_path: Path, action: Action) -> None:
    assert action not in LabPart(tmp_path, 16, 60.0).definition().policy.approval.unverified_may


def test_a_lab_lives_at_the_speed_that_was_asked_for(tmp_path: Path) -> None:
    words = LabPart(tmp_path, 16, 60.0).command("http://127.0.0.1:8460")
    assert words[:7] == ("daytwo.lab", "--socket", f"{tmp_path}/lab.sock", "--nodes", "16", "--speed", "60.0")


def test_a_state_folder_too_deep_for_a_socket_is_named(tmp_path: Path) -> None:
    deep = load({"DAYTWO_STATE_DIR": f"{tmp_path}/{'x' * 100}"})
    with pytest.raises(BadInput, match=r"DAYTWO_SERVICE_SOCKET: found .* at most 107 bytes"):
        plan(deep, Ports(), temporal_port=0, ui_port=0, any_port=True, lab=None, speed=1.0)


def test_the_summary_says_how_long_each_step_took() -> None:
    detected = datetime(2026, 11, 30, 14, 0, tzinfo=UTC)
    rows = screen.stamps({"detected": detected, "recommended": detected + timedelta(seconds=2.5)})
    assert [rows[2][2], rows[-1]] == ["2.5 s", ("fault to proposal", "", "2.5 s")]
