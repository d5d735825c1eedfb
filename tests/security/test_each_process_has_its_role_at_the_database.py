"""deploy/postgresql/roles.sql on a real PostgreSQL: each process can do its work, and no more."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError

from daytwo.domain.definition import ClusterDefinition
from daytwo.domain.vocabulary import Channel
from daytwo.gateway.findings import take_findings
from daytwo.gateway.identity import Identity, identify, issue_token, retire_older
from daytwo.gateway.models import Findings, Pulse
from daytwo.gateway.pulse import take_pulse
from daytwo.service import administration, credentials, freezes, holding
from daytwo.service.decisions import DecisionRequest, decide
from daytwo.service.decisions import Identity as Person
from daytwo.store import audit
from daytwo.store.engine import Store
from tests.builders import NOW
from tests.fuzz import samples
from tests.postgres import Postgres
from tests.rows import REPAIR, a_cluster, a_definition, a_node, a_repair, keep

ROLES = Path(__file__).parents[2] / "deploy/postgresql/roles.sql"
ME = Person(actor="cli:lea", channel=Channel.CLI, verified=True)
As = Callable[[str], Store]


@pytest.fixture(scope="module")
def url(postgres: Postgres) -> Iterator[str]:
    with postgres.database() as url:
        owner = Store(url)
        keep(owner, a_cluster(), a_node(), a_repair())
        owner.close()
        with psycopg.connect(url.replace("+psycopg", "")) as connection:
            for _ in range(2):
                connection.execute(ROLES.read_bytes())
        yield url


@pytest.fixture(scope="module")
def acting(url: str) -> Iterator[As]:
    """A store as a process with this role has it."""
    with ExitStack() as stack:

        def as_role(role: str) -> Store:
            store = Store(url.replace("daytwo@", f"daytwo_{role}@"))
            stack.callback(store.close)
            return store

        yield as_role


@pytest.mark.parametrize("role", ["gateway", "service", "plane"])
def test_a_process_starts_on_tables_that_are_up_to_date(acting: As, role: str) -> None:
    acting(role).migrate()
    with acting(role).write() as session, pytest.raises(ProgrammingError, match="permission denied"):
        session.execute(text("CREATE TABLE mine (id int)"))


def test_the_gateway_takes_what_nodes_say(acting: As, url: str) -> None:
    store, owner = acting("gateway"), Store(url)
    token = issue_token(owner, "east", "gpu-07", now=NOW)
    owner.close()
    assert identify(store, "no token") is None
    node = Identity("east", "gpu-07", token)
    findings = Findings.model_validate_json(json.dumps({**samples.FINDINGS, "stream": 0}))
    answer, _ = take_findings(store, node, findings, now=NOW, pulse_seconds=60)
    pulse = Pulse.model_validate_json(json.dumps({**samples.PULSE, "stream": answer["stream"]}))
    assert take_pulse(store, node, pulse, now=NOW, pulse_seconds=60)["requests"] == []
    with store.write() as session:
        retire_older(session, node, now=NOW)
        session.execute(text("DELETE FROM findings WHERE id = 0"))  # what has ended makes room


def test_the_service_writes_what_people_decide(acting: As) -> None:
    store, owner = acting("service"), "cli:lea"
    asked = DecisionRequest(request_id="q-00000001", repair_id=REPAIR, revision=2, kind="approve", reason="test")
    assert decide(store, ME, asked, NOW).status == "pending"
    freezes.freeze(store, ME, "east", reason="test", now=NOW)
    freezes.thaw(store, ME, "east", reason="test", owner=owner, now=NOW)
    administration.apply_cluster(store, ME, ClusterDefinition.model_validate(a_definition()), owner=owner, now=NOW)
    administration.issue(store, ME, "gpu-07", owner=owner, now=NOW)
    credentials.revoke(store, ME, "gpu-07", owner=owner, now=NOW)
    holding.hold(store, ME, holding.HoldRequest(node="gpu-07", reason="test"), NOW)
    with store.read() as session:
        assert audit.verify(session).ok


FORBIDDEN = (
    *(
        ("gateway", what)
        for what in ("INSERT INTO decisions (id) VALUES ('d')", "UPDATE repairs SET state = 'approved'")
    ),
    ("gateway", "INSERT INTO intents (id) VALUES ('i')"),
    ("gateway", "INSERT INTO node_tokens (hash) VALUES ('h')"),
    ("gateway", "UPDATE node_tokens SET node = 'gpu-08'"),
    ("gateway", "UPDATE clusters SET definition = '{}'"),
    ("gateway", "INSERT INTO audit (number) VALUES (1)"),
    *(("gateway", f"SELECT * FROM {table}") for table in ("decisions", "audit", "intents", "freezes")),
    ("service", "INSERT INTO intents (id) VALUES ('i')"),
    ("service", "UPDATE intents SET state = 'proven'"),
    *((role, f"{act} audit") for role in ("service", "plane") for act in ("DELETE FROM", "TRUNCATE")),
    *((role, "UPDATE audit SET actor = 'another'") for role in ("service", "plane")),
    *((role, "DELETE FROM decisions") for role in ("service", "plane")),
    ("plane", "INSERT INTO node_tokens (hash) VALUES ('h')"),
)


@pytest.mark.parametrize(("role", "statement"), FORBIDDEN)
def test_a_process_may_not_do_what_is_anothers(acting: As, role: str, statement: str) -> None:
    with acting(role).write() as session, pytest.raises(ProgrammingError, match="permission denied"):
        session.execute(text(statement))
