"""What a proposal says would be lost and kept, and when a person must be asked again."""

from __future__ import annotations

from typing import Any

import pytest

from daytwo.domain.policy import FaultRule, Policy
from daytwo.domain.proposal import Proposal, has_grown, interrupts, is_requeued, new_owners, refreshed
from daytwo.domain.vocabulary import Action, Moment
from tests.builders import GPU, NOW, a_finding, a_job, a_proposal, a_situation

REQUEUED = a_job("77", user="bob", may_requeue=True, opted_into_requeue=True)


def proposing(action: Action, fault: str = "xid-79", **fields: Any) -> Proposal:
    situation = a_situation(a_finding(fault), **fields)
    return a_proposal(situation, Policy(faults={fault: FaultRule(action=action)}))


@pytest.mark.parametrize("action", [Action.INSPECT, Action.TELL_OWNER, Action.VERIFY, Action.RUN_DIAGNOSTIC])
def test_an_action_that_interrupts_nothing_loses_nothing(action: Action) -> None:
    proposal = proposing(action, workloads=(a_job(),))
    assert (proposal.workloads, proposal.lost) == ((), ())
    assert proposal.kept == ("everything: nothing that runs is touched",)


@pytest.mark.parametrize(
    "action", [Action.RESET_GPU, Action.REBOOT, Action.POWER_CYCLE, Action.REPROVISION, Action.FAILOVER, Action.REMOVE]
)
def test_an_action_that_interrupts_names_the_jobs(action: Action) -> None:
    proposal = proposing(action, workloads=(a_job(),))
    assert interrupts(action)
    assert [job.id for job in proposal.workloads] == ["88213"]


@pytest.mark.parametrize("may_requeue", [True, False])
def test_a_job_that_did_not_ask_to_be_requeued_is_waited_for_and_not_lost(may_requeue: bool) -> None:
    proposal = proposing(Action.REBOOT, workloads=(a_job(may_requeue=may_requeue),))
    waited = "job 88213 of alice is waited for, never cancelled: it did not ask to be requeued"
    assert (proposal.kept[0], any("job" in line for line in proposal.lost)) == (waited, False)


def test_a_job_that_asked_to_be_requeued_is_not_lost() -> None:
    proposal = proposing(Action.REBOOT, workloads=(REQUEUED,))
    assert not any("job" in line for line in proposal.lost)
    assert "job 77 of bob is requeued, as it asked" in proposal.kept


@pytest.mark.parametrize(("may", "asked", "is_so"), [(True, True, True), (True, False, False), (False, True, False)])
def test_a_requeue_needs_slurms_leave_and_the_owners_wish(may: bool, asked: bool, is_so: bool) -> None:
    assert is_requeued(a_job(may_requeue=may, opted_into_requeue=asked)) is is_so


def test_jobs_that_could_not_be_read_are_unknown_and_not_none() -> None:
    assert (
        "unknown: the jobs on the node, the scheduler could not be read"
        in proposing(Action.REBOOT, workloads=None).lost
    )


@pytest.mark.parametrize("action", [Action.REBOOT, Action.POWER_CYCLE])
@pytest.mark.parametrize(
    ("survives", "lost", "kept"),
    [
        ({}, ("/dev/shm", "unknown: whether the node's own disks survive a boot"), ()),
        ({"/raid": True}, ("/dev/shm",), ("/raid",)),
        ({"/raid": False}, ("/dev/shm", "/raid"), ()),
        ({"/dev/shm": True}, ("unknown: whether the node's own disks survive a boot",), ("/dev/shm",)),
        ({"/raid": True, "/scratch": False}, ("/dev/shm", "/scratch"), ("/raid",)),
    ],
)
def test_a_boot_says_path_by_path_what_it_clears(
    action: Action, survives: dict[str, bool], lost: tuple[str, ...], kept: tuple[str, ...]
) -> None:
    proposal = proposing(action, survives_reboot=survives)
    assert (proposal.lost, proposal.kept) == (lost, kept)


@pytest.mark.parametrize(
    ("action", "lost"),
    [
        (Action.RESET_GPU, f"what is in the memory of {GPU}"),
        (Action.REPROVISION, "everything on the node's own disks"),
        (Action.FAILOVER, "what is on the node's own disks leaves with it"),
        (Action.REMOVE, "what is on the node's own disks leaves with it"),
    ],
)
def test_other_actions_say_what_goes_with_them(action: Action, lost: str) -> None:
    assert proposing(action).lost == (lost,)


@pytest.mark.parametrize(
    ("fault", "action", "workloads", "moment"),
    [
        ("xid-79", Action.REBOOT, (a_job(),), Moment.NOW),
        ("slurm-drained", Action.REBOOT, (a_job(),), Moment.WHEN_IDLE),
        ("slurm-drained", Action.REBOOT, None, Moment.WHEN_IDLE),
        ("slurm-drained", Action.REBOOT, (), Moment.NOW),
        ("slurm-drained", Action.VERIFY, (a_job(),), Moment.NOW),
    ],
)
def test_jobs_of_a_node_that_is_only_degraded_end_first(
    fault: str, action: Action, workloads: Any, moment: Moment
) -> None:
    assert proposing(action, fault, workloads=workloads).moment is moment


def test_a_job_that_ends_first_is_not_told_to_be_requeued() -> None:
    job = a_job(may_requeue=True, opted_into_requeue=True)
    assert proposing(Action.REBOOT, "slurm-drained", workloads=(job,)).kept[0] == "job 88213 of alice ends first"


def test_a_proposal_carries_what_it_was_made_from() -> None:
    proposal = a_proposal(a_situation(a_finding(evidence=("NVRM: Xid …",)), policy_revision=7))
    assert (proposal.repair_id, proposal.revision, proposal.last_observation, proposal.at) == (
        "r-20261130-142100-x7k2q",
        1,
        7,
        NOW,
    )
    assert (proposal.policy_revision, proposal.boot_id, proposal.evidence) == (7, "boot-1", ("NVRM: Xid …",))


def test_a_proposal_reads_back_from_json_as_it_was() -> None:
    proposal = a_proposal(a_situation(a_finding(), workloads=(a_job(), REQUEUED)))
    assert Proposal.model_validate_json(proposal.model_dump_json()) == proposal


ONE_JOB = proposing(Action.REBOOT, workloads=(a_job(),))


@pytest.mark.parametrize(
    ("new", "grown"),
    [
        (ONE_JOB, False),
        (proposing(Action.REBOOT), False),
        (proposing(Action.REBOOT, workloads=(a_job(elapsed_seconds=99_999),)), False),
        (proposing(Action.REBOOT, workloads=(a_job(), REQUEUED)), True),
        (proposing(Action.REBOOT, workloads=(a_job(), a_job("99"))), False),
        (proposing(Action.REBOOT, workloads=(a_job(user="carol"),)), True),
        (proposing(Action.REBOOT, workloads=None), True),
        (proposing(Action.POWER_CYCLE, workloads=(a_job(),)), True),
        (proposing(Action.REBOOT, workloads=(a_job(),), survives_reboot={"/raid": False}), True),
        (ONE_JOB.model_copy(update={"evidence": ("more",), "faults": ("xid-79", "xid-154")}), False),
    ],
    ids=[
        "the same",
        "no job left",
        "time passed",
        "another owner",
        "another job of the same owner",
        "another user",
        "jobs unknown",
        "another action",
        "more is cleared",
        "a companion",
    ],
)
def test_a_person_is_asked_again_only_when_more_is_at_stake(new: Proposal, grown: bool) -> None:
    assert has_grown(ONE_JOB, new) is grown


def test_the_next_job_of_somebody_whose_job_has_ended_asks_nobody_again() -> None:
    ended = refreshed(ONE_JOB, proposing(Action.REBOOT))
    assert (ended.workloads, has_grown(ended, ONE_JOB)) == ((), False)
    assert has_grown(refreshed(ended, proposing(Action.REBOOT)), ONE_JOB) is False


def test_somebody_who_was_in_no_version_of_a_revision_is_named() -> None:
    ended = refreshed(ONE_JOB, proposing(Action.REBOOT))
    assert new_owners(ended, proposing(Action.REBOOT, workloads=(a_job(), a_job("99", user="carol")))) == ["carol/nlp"]


def test_a_proposal_of_before_knows_the_owners_of_its_jobs() -> None:
    before = Proposal.model_validate(ONE_JOB.model_dump(exclude={"owners"}))
    assert has_grown(refreshed(before, proposing(Action.REBOOT)), ONE_JOB) is False
