"""A token names one node, and nobody is let in without one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from daytwo.domain.errors import NotFound
from daytwo.gateway.identity import hash_of, identify, issue_token, revoke_tokens
from daytwo.store.engine import Store
from daytwo.store.tables import NodeTokenRow


def test_a_node_with_its_own_token_is_heard(agent: Any) -> None:
    assert agent.pulse().status_code == 200


@pytest.mark.parametrize("header", ["", "Bearer", "dtn_wrong", "Basic abc", "Bearer dtn_wrong", "Bearer " + "x" * 5000])
def test_a_bad_token_is_refused(agent: Any, header: str) -> None:
    agent.headers = {"Authorization": header}
    assert agent.pulse().status_code == 401


def test_a_token_does_not_open_another_nodes_door(agent: Any) -> None:
    agent.name = "gpu-02"
    answer = agent.pulse()
    assert (answer.status_code, answer.json()["field"]) == (403, "node")


def test_a_node_that_exists_nowhere_looks_like_another_nodes_name(agent: Any) -> None:
    agent.name = "gpu-99"
    assert agent.findings().status_code == 403


def test_a_revoked_token_is_refused(agent: Any, declared: Store, now: Any) -> None:
    assert revoke_tokens(declared, "east", "gpu-01", now=now()) == 1
    assert agent.pulse().status_code == 401


def test_the_store_never_holds_the_token(agent: Any, declared: Store) -> None:
    with declared.read() as session:
        row = session.get(NodeTokenRow, agent.token)
    assert row is None


def test_a_token_for_an_undeclared_node_is_not_issued(declared: Store, now: Any) -> None:
    with pytest.raises(NotFound):
        issue_token(declared, "east", "gpu-99", now=now())


def test_an_old_token_is_good_until_the_new_one_is_used(agent: Any, declared: Store, now: Any) -> None:
    old = agent.token
    agent.token = issue_token(declared, "east", "gpu-01", now=now() + timedelta(seconds=1))
    assert identify(declared, hash_of(f"Bearer {old}") or "") is not None
    agent.pulse()
    assert identify(declared, hash_of(f"Bearer {old}") or "") is None
