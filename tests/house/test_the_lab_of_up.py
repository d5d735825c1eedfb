"""What `daytwo up --lab` declares, before anything is started."""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from daytwo.domain.definition import ClusterDefinition
from daytwo.domain.errors import BadInput
from daytwo.domain.vocabulary import Action
from daytwo.lab.demo import screen
from daytwo.settings import load
from daytwo.store.engine import Store
from daytwo.store.tables import ClusterRow
from tests.serving import Away, Shared, shared
from workers.lab_part import LabPart
from workers.ports import Ports
from workers.up import plan

__all__ = ["shared"]


def test_whoever_runs_the_lab_may_approve_in_it(tmp_path: Path) -> None:
    (person,) = LabPart(tmp_path, 16, 60.0).definition().policy.approval.people
    assert (person.roles, person.identities) == (("lead",), (f"cli:{pwd.getpwuid(os.geteuid()).pw_name}",))


@pytest.mark.parametrize("action", [Action.REPROVISION, Action.FAILOVER, Action.REMOVE])
def test_the_temporal_ui_never_takes_a_node_away(tmp_path: Path, action: Action) -> None:
    assert action not in LabPart(tmp_path, 16, 60.0).definition().policy.approval.unverified_may


@pytest.fixture
def service(tmp_path: Path, store: Store, shared: Shared) -> Iterator[Path]:
    with shared.serving(store, Away()) as socket:
        yield socket


def boot_seconds(store: Store) -> float:
    with store.read() as session:
        found = ClusterDefinition.model_validate(session.get_one(ClusterRow, "sim").definition)
    return found.policy.timing.boot_seconds


@pytest.mark.parametrize(("nodes", "kept"), [(3, True), (4, False)])
async def test_a_policy_that_was_applied_outlives_a_restart_of_the_same_fleet(
    tmp_path: Path, service: Path, store: Store, nodes: int, kept: bool
) -> None:
    first = LabPart(tmp_path, 3, 60.0)
    await first.declare(service)
    mine = first.definition().model_dump(mode="json")
    mine["policy"]["timing"]["boot_seconds"] = 4711
    with store.write() as session:
        session.get_one(ClusterRow, "sim").definition = mine
    await LabPart(tmp_path, nodes, 60.0).declare(service)
    assert (boot_seconds(store) == 4711, len(json.loads(first.tokens.read_text()))) == (kept, nodes)


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
