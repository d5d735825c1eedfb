"""Login, controller and storage nodes, and the node that daytwo itself runs on."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from daytwo.domain.policy import Person
from daytwo.store.engine import Store
from daytwo.store.tables import LeaseRow, NodeRow
from tests.approvals.conftest import Court, a_court
from tests.builders import NOW
from tests.rows import LEA, a_policy, keep

OLI = Person(name="Oli", roles=("operator",), identities=("cli:oli",))


@pytest.fixture
def court(store: Store, tmp_path: Path) -> Court:
    return a_court(store, tmp_path, policy=a_policy(people=(LEA, OLI)))


def becomes(court: Court, **fields: Any) -> None:
    """The node of the repair is declared otherwise."""
    with court.store.write() as session:
        session.get_one(NodeRow, ("east", "gpu-07")).sqlmodel_update(fields)


def leads_on(court: Court, host: str) -> None:
    """A controller on this host holds a lease."""
    ends = NOW + timedelta(seconds=10)
    keep(court.store, LeaseRow(name="reconcile", holder=f"{host}:4711:0a0b0c0d", epoch=1, expires_at=ends))


@pytest.mark.parametrize(
    ("role", "actor", "status"),
    [
        ("worker", "cli:oli", "accepted"),
        ("controller", "cli:oli", "refused"),
        ("login", "cli:oli", "refused"),
        ("storage", "cli:oli", "refused"),
        ("controller", "cli:lea", "accepted"),
    ],
)
async def test_an_act_on_a_node_that_others_depend_on_needs_a_lead(
    court: Court, role: str, actor: str, status: str
) -> None:
    becomes(court, role=role)
    assert (await court.approved(actor)).status == status


async def test_the_refusal_names_the_role_of_the_node_and_of_who_may(court: Court) -> None:
    becomes(court, role="storage")
    why = (await court.approved("cli:oli")).why
    assert why == "gpu-07 is a storage node: an act on it needs one of the roles lead"


@pytest.mark.parametrize("host", ["gpu-07", "GPU-07.example.org"])
async def test_the_node_that_daytwo_runs_on_is_not_acted_on(court: Court, host: str) -> None:
    leads_on(court, host)
    verdict = await court.approved("cli:lea")
    assert (verdict.status, "daytwo itself runs on gpu-07" in verdict.why) == ("refused", True)


async def test_another_node_may_be_acted_on_while_daytwo_leads(court: Court) -> None:
    leads_on(court, "gpu-070")
    assert (await court.approved("cli:lea")).status == "accepted"
