"""The agent as a process against the real gateway and a real store: nothing in between speaks for either."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import uvicorn
from sqlmodel import delete, select

from daytwo import __version__, node_requests
from daytwo.domain.definition import ClusterDefinition, NodeGroup
from daytwo.domain.vocabulary import ClusterKind
from daytwo.gateway.app import Gateway, create_app
from daytwo.gateway.identity import issue_token, revoke_tokens
from daytwo.intake import declare
from daytwo.lab.fake_nvml.harness import FakeNvml
from daytwo.node_requests import NodeRequest
from daytwo.store.engine import Store
from daytwo.store.tables import FindingRow, NodeRow, NodeTokenRow, ObservationRow
from tests.agent.processes import AgentProcess, until

XID_79 = "NVRM: Xid (PCI:0000:1a:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
def url(store: Store) -> Iterator[str]:
    app = create_app(Gateway(store, pulse_seconds=0.5))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, lifespan="off", ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    until(lambda: server.started)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(10)


@pytest.fixture
def running(store: Store, url: str, tmp_path: Path, nvml_library: Path, fake_nvml: FakeNvml) -> Iterator[AgentProcess]:
    group = NodeGroup(nodes=("n1",), gpus=2)
    declare(store, ClusterDefinition(name="east", kind=ClusterKind.SLURM, groups=(group,)), now=now())
    agent = AgentProcess(tmp_path, url, fake_nvml.environment(nvml_library))
    (tmp_path / "token").write_text(issue_token(store, "east", "n1", now=now()))
    agent.log.touch()
    agent.start()
    try:
        until(lambda: node(store).inventory, 30.0)
        yield agent
    finally:
        agent.kill()


def node(store: Store) -> NodeRow:
    with store.read() as session:
        return session.exec(select(NodeRow)).one()


def findings(store: Store, fault: str) -> list[FindingRow]:
    with store.read() as session:
        return list(session.exec(select(FindingRow).where(FindingRow.fault == fault)))


def one(store: Store, fault: str) -> Callable[[], FindingRow | None]:
    return lambda: next(iter(findings(store, fault)), None)


def test_a_node_says_what_it_is(running: AgentProcess, store: Store, fake_nvml: FakeNvml) -> None:
    until(lambda: set(node(store).checks.values()) == {"ok"})
    row = node(store)
    assert (row.agent_version, row.inventory["driver"]) == (__version__, "580.95.05")
    assert [gpu["uuid"] for gpu in row.inventory["gpus"]] == [fake_nvml.uuid(0), fake_nvml.uuid(1)]


def test_a_kernel_line_becomes_one_finding_however_often_it_comes(
    running: AgentProcess, store: Store, fake_nvml: FakeNvml
) -> None:
    running.write(*[XID_79] * 30)
    until(lambda: (found := one(store, "xid-79")()) and found.count == 30, 40.0)
    assert [(row.entity, row.status) for row in findings(store, "xid-79")] == [(fake_nvml.uuid(0), "firing")]


def test_a_reading_that_ends_clears_its_finding(running: AgentProcess, store: Store, fake_nvml: FakeNvml) -> None:
    fake_nvml.gpu(1).recovery_action = 2
    until(one(store, "recovery-action"))
    fake_nvml.gpu(1).recovery_action = 0
    until(lambda: (found := one(store, "recovery-action")()) and found.status == "cleared")


def test_what_happens_while_the_agent_is_dead_arrives_after_kill_9(running: AgentProcess, store: Store) -> None:
    running.kill()
    running.write(XID_79)
    running.start()
    until(one(store, "xid-79"))


@pytest.mark.parametrize("kind", ["probe-gpus", "probe-kernel"])
def test_a_question_in_the_mailbox_is_answered(running: AgentProcess, store: Store, kind: str) -> None:
    node_requests.ask(store, NodeRequest("r1", "east", "n1", kind, ttl_seconds=30), now=now())
    row = until(lambda: done if (done := node_requests.answer_for(store, "r1", now=now())).state == "done" else None)
    assert row.result
    assert set(row.result) >= {"probe-gpus": {"seen", "expected"}, "probe-kernel": {"xids", "readable"}}[kind]


def test_a_store_that_was_put_back_gets_a_new_stream(running: AgentProcess, store: Store) -> None:
    running.write(XID_79)
    until(one(store, "xid-79"))
    with store.write() as session:
        session.exec(select(NodeRow)).one().stream = 7
    running.write("NVRM: Xid (PCI:0000:1a:00): 48, pid=1, name=python, DBE")
    until(one(store, "xid-48"))
    assert node(store).stream == 8


def test_a_store_that_was_put_back_is_told_again_what_it_has_forgotten(running: AgentProcess, store: Store) -> None:
    running.write(XID_79)
    until(one(store, "xid-79"))
    with store.write() as session:
        session.exec(delete(FindingRow))
        session.exec(delete(ObservationRow))
        session.exec(select(NodeRow)).one().stream += 1_000_000
    until(one(store, "xid-79"))


def tokens(store: Store) -> list[bool]:
    """Whether each token of the node is still good, oldest first."""
    with store.read() as session:
        rows = session.exec(select(NodeTokenRow)).all()
    return [row.revoked_at is None for row in sorted(rows, key=lambda row: row.created_at)]


def is_heard_again(store: Store) -> bool:
    """True once the node was heard after this moment."""
    since = now()
    return bool(until(lambda: (heard := node(store).last_heard_at) and heard > since))


def test_a_token_is_rotated_without_a_gap_and_ends_when_the_new_one_is_used(
    running: AgentProcess, store: Store, tmp_path: Path
) -> None:
    new = issue_token(store, "east", "n1", now=now())
    assert (is_heard_again(store), tokens(store)) == (True, [True, True])
    (tmp_path / "token").write_text(new)
    until(lambda: tokens(store) == [False, True])
    assert is_heard_again(store)


def test_an_agent_whose_tokens_were_all_revoked_is_heard_once_it_has_another(
    running: AgentProcess, store: Store, tmp_path: Path
) -> None:
    revoke_tokens(store, "east", "n1", now=now())
    until(lambda: "401" in running.said.read_text())
    (tmp_path / "token").write_text(issue_token(store, "east", "n1", now=now()))
    running.kill()  # instead of waiting out the minute between its tries
    running.start()
    assert is_heard_again(store)
