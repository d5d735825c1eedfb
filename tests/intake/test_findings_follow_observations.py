"""What fires, counts up and clears, and what never does."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlmodel import Session

from daytwo.domain.definition import ClusterDefinition
from daytwo.domain.errors import NotFound
from daytwo.domain.vocabulary import Clears, FindingStatus
from daytwo.intake import Effect, declare, observe
from daytwo.intake.findings import MAX_FIRING, MAX_KNOWN
from tests.intake.conftest import NOW

FIRING, CLEARED = FindingStatus.FIRING, FindingStatus.CLEARED


def test_what_fires_again_counts_up(intake: Any) -> None:
    assert intake.send(intake.observation(1), intake.observation(2, count=4)) == (Effect.FIRED, Effect.COUNTED)
    assert [(row.status, row.count) for row in intake.findings()] == [("firing", 5)]


def test_entities_are_findings_of_their_own(intake: Any) -> None:
    intake.send(intake.observation(1), intake.observation(2, entity="GPU-2"))
    assert [row.entity for row in intake.findings()] == ["GPU-1", "GPU-2"]


@pytest.mark.parametrize(
    ("fault", "effect"), [("xid-79", "recorded"), ("unknown-code", "recorded"), ("xid-154", "cleared")]
)
def test_a_good_reading_clears_only_what_it_may(intake: Any, fault: str, effect: str) -> None:
    effects = intake.send(*(intake.observation(n, fault=fault, status=each) for n, each in ((1, FIRING), (2, CLEARED))))
    assert effects == (Effect.FIRED, effect)


def test_a_site_may_say_what_clears_a_fault(intake: Any, definition: ClusterDefinition) -> None:
    rule = {"faults": {"xid-79": {"clears": Clears.READING}}}
    policy = type(definition.policy).model_validate(rule)
    declare(intake.store, definition.model_copy(update={"policy": policy}), now=NOW)
    assert intake.send(intake.observation(1), intake.observation(2, status=CLEARED))[1] is Effect.CLEARED


def test_what_is_cleared_before_it_fired_is_no_finding(intake: Any) -> None:
    assert intake.send(intake.observation(1, fault="slurm-drained", status=CLEARED)) == (Effect.RECORDED,)
    assert intake.findings() == []


def test_a_new_episode_starts_anew(intake: Any) -> None:
    seen, later = {"fault": "slurm-drained"}, NOW + timedelta(hours=1)
    intake.send(intake.observation(1, **seen), intake.observation(2, status=CLEARED, **seen))
    again = intake.observation(3, first_seen=later, last_seen=later, **seen)
    assert intake.send(again, now=later) == (Effect.FIRED,)
    row = intake.findings()[0]
    assert (row.count, row.first_seen, row.cleared_by) == (1, later, None)


def test_a_late_record_does_not_fire_what_was_cleared_after_it(intake: Any) -> None:
    seen = {"fault": "slurm-drained"}
    intake.send(intake.observation(1, **seen), intake.observation(5, status=CLEARED, **seen))
    assert intake.send(intake.observation(3, **seen)) == (Effect.COUNTED,)
    assert [(row.status, row.count) for row in intake.findings()] == [("cleared", 2)]


def test_only_the_newest_evidence_is_kept(intake: Any) -> None:
    intake.send(*(intake.observation(n, evidence=(f"line {n}",)) for n in range(1, 9)))
    assert intake.findings()[0].evidence == [f"line {n}" for n in range(4, 9)]


def test_a_node_cannot_invent_findings_without_end(intake: Any) -> None:
    intake.send(intake.observation(1))
    intake.multiply_findings(MAX_FIRING - 2)
    effects = intake.send(*(intake.observation(n, entity=f"GPU-{n}") for n in (7, 8, 9)))
    assert effects == (Effect.FIRED, Effect.RECORDED, Effect.RECORDED)


def test_a_node_cannot_hide_what_the_plane_itself_sees_behind_what_it_invents(intake: Any) -> None:
    intake.send(intake.observation(1))
    intake.multiply_findings(MAX_FIRING)
    assert intake.send(intake.observation(fault="slurm-down", entity="node")) == (Effect.FIRED,)


def test_of_what_has_ended_the_oldest_makes_room(intake: Any) -> None:
    end = {"fault": "slurm-drained", "status": CLEARED}
    intake.send(intake.observation(1, fault="slurm-drained"), intake.observation(2, **end))
    intake.multiply_findings(MAX_KNOWN - 1)
    assert intake.send(intake.observation(3)) == (Effect.FIRED,)
    assert (len(intake.findings()), intake.findings()[-1].fault) == (MAX_KNOWN, "xid-79")
    assert "GPU-1" not in {row.entity for row in intake.findings() if row.fault == "slurm-drained"}


def test_what_a_repair_has_judged_makes_no_room(intake: Any) -> None:
    end = {"fault": "slurm-drained", "status": CLEARED}
    intake.send(intake.observation(1, fault="slurm-drained"), intake.observation(2, **end))
    intake.multiply_findings(MAX_KNOWN - 1)
    intake.close_repair()
    assert intake.send(intake.observation(3)) == (Effect.RECORDED,)


def test_a_batch_makes_its_node_due_once(intake: Any) -> None:
    before = intake.row().due
    intake.send(intake.observation(1), intake.observation(2))
    intake.send(intake.observation(1), intake.observation(2))
    assert intake.row().due == before + 1


def test_nothing_is_kept_of_a_batch_with_an_undeclared_node(intake: Any) -> None:
    with pytest.raises(NotFound, match="gpu-99"):
        intake.send(intake.observation(1), intake.observation(2, node="gpu-99"))
    assert intake.observations() == 0


def test_effects_come_in_the_order_of_the_observations(intake: Any) -> None:
    seen = [intake.observation(node=node) for node in ("gpu-02", "gpu-01", "gpu-02")]
    assert intake.send(*seen) == (Effect.FIRED, Effect.FIRED, Effect.COUNTED)


def test_a_writer_that_no_longer_may_writes_nothing(intake: Any) -> None:
    def refuse(_session: Session) -> None:
        raise PermissionError

    with pytest.raises(PermissionError):
        observe(intake.store, [intake.observation(1)], now=NOW, guard=refuse)
    assert intake.observations() == 0
