"""Values that tests of several folders start from. Each takes what the test is about and fills in the rest."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from daytwo.domain.policy import Policy
from daytwo.domain.proposal import Advice, Proposal, build_proposal
from daytwo.domain.seams import NodeFacts
from daytwo.domain.situation import OpenRepair, PastRepair, Situation
from daytwo.domain.triage import triage
from daytwo.domain.verdicts import Propose
from daytwo.domain.vocabulary import Action, Finding, FindingStatus, NodeRole, State, Workload
from daytwo.faults.catalogue import catalogue

NOW = datetime(2026, 11, 30, 14, 21, tzinfo=UTC)
GPU = "GPU-5f1c0f3e-0000-0000-0000-000000000001"


def a_finding(fault: str = "xid-79", entity: str = GPU, **fields: Any) -> Finding:
    """A finding that has been firing for a minute."""
    since = fields.pop("first_seen", NOW - timedelta(minutes=1))
    values = {"id": 1, "cluster": "east", "node": "gpu-07", "status": FindingStatus.FIRING, "last_seen": since}
    return Finding(**values | {"fault": fault, "entity": entity, "first_seen": since} | fields)


def node_facts(*states: str, **fields: Any) -> NodeFacts:
    """What a scheduler says of an idle node with eight GPUs."""
    values = {"node": "gpu-07", "states": states or ("IDLE",), "gpus": 8, "gpus_configured": 8, "at": NOW}
    return NodeFacts(**values | fields)


def a_job(job_id: str = "88213", **fields: Any) -> Workload:
    """A job over two nodes that did not opt into a requeue."""
    values = {"name": "llm-70b", "user": "alice", "account": "nlp", "nodes": ("gpu-07", "gpu-08"), "gpus": 16}
    return Workload(**values | {"id": job_id, "elapsed_seconds": 18_720} | fields)


def a_situation(*findings: Finding, **fields: Any) -> Situation:
    """A worker in a pool of a hundred, with nothing else wrong."""
    values: dict[str, Any] = {
        "cluster": "east",
        "node": "gpu-07",
        "role": NodeRole.WORKER,
        "pool": "h200",
        "domains": ("rack-1",),
        "expected_gpus": 8,
        "boot_id": "boot-1",
        "last_heard_at": NOW,
        "facts": node_facts(),
        "findings": findings,
        "workloads": (),
        "history": (),
        "open_repair": None,
        "trouble": (),
        "pool_nodes": 100,
        "pool_contained": 0,
        "policy_revision": 1,
        "survives_reboot": {},
    }
    return Situation(**values | fields)


def a_past_repair(fault: str = "xid-79", **fields: Any) -> PastRepair:
    """A repair that rebooted the node and succeeded an hour ago."""
    closed = fields.pop("closed_at", NOW - timedelta(hours=1))
    values: dict[str, Any] = {
        "repair_id": "r-20261130-120000-aaaaa",
        "fault": fault,
        "action": Action.REBOOT,
        "rung": 4,
    }
    values |= {"outcome": State.SUCCEEDED, "acted": True, "opened_at": closed - timedelta(hours=1), "closed_at": closed}
    return PastRepair(**values | fields)


def an_open_repair(**fields: Any) -> OpenRepair:
    """A repair whose first proposal stands."""
    values: dict[str, Any] = {"repair_id": "r-20261130-142100-x7k2q", "state": "proposed", "revision": 1, "rung": 4}
    return OpenRepair(**values | {"action": Action.REBOOT, "contained": True, "disturbed": False} | fields)


def advice_for(situation: Situation, policy: Policy | None = None) -> Advice:
    """What triage advises; the test fails where it does not propose."""
    verdict = triage(situation, policy or Policy(), catalogue(), NOW)
    assert isinstance(verdict, Propose), verdict
    return verdict.advice


def a_proposal(situation: Situation | None = None, policy: Policy | None = None, **fields: Any) -> Proposal:
    """The proposal for a situation; a GPU off the bus where the test does not care."""
    about = situation or a_situation(a_finding())
    built = build_proposal(
        about,
        advice_for(about, policy),
        repair_id="r-20261130-142100-x7k2q",
        revision=1,
        last_observation=7,
        contain=True,
        now=NOW,
    )
    return built.model_copy(update=fields)
