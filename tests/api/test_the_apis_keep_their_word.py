"""Both APIs against their own descriptions (schemathesis): whatever is sent, the answer is one that is described, and
never a failure of the server.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, settings
from pydantic import BaseModel, TypeAdapter
from schemathesis.generation.modes import GenerationMode
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from daytwo.gateway.app import Gateway, create_app
from daytwo.gateway.identity import issue_token
from daytwo.gateway.limits import Buckets, Rate
from daytwo.gateway.models import Findings, Pulse
from daytwo.service import app as service
from daytwo.service.local_socket import PEER_UID, actor_of
from daytwo.store.engine import Store
from tests.builders import NOW
from tests.rows import a_cluster, a_finding_row, a_node, a_repair, an_event, keep
from tests.serving import Away

SOME = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


class AsMe:
    """An app on a socket whose other end is the user that runs the tests."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {})[PEER_UID] = os.geteuid()
        await self._app(scope, receive, send)


def people(store: Store) -> FastAPI:
    return service.create_app(store, delivery=Away(), owner=actor_of(os.geteuid()))


def nodes(store: Store) -> Starlette:
    quick = Buckets(Rate(burst=1e9, per_second=1e9))
    return create_app(Gateway(store, requests=quick, records=quick))


def nodes_document() -> dict[str, Any]:
    """The gateway describes itself to nobody: its messages are described by its models."""
    schemas: dict[str, Any] = {}
    paths = {f"/v1/nodes/{{node}}/{name}": {"post": message(model, schemas)} for name, model in MESSAGES.items()}
    info = {"title": "daytwo gateway", "version": "1"}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def message(model: type[BaseModel], schemas: dict[str, Any]) -> dict[str, Any]:
    schema = TypeAdapter(model).json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(schema.pop("$defs", {}))
    return {
        "parameters": [{"name": "node", "in": "path", "required": True, "schema": {"type": "string"}}],
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
        "responses": {"200": {"description": "taken"}},
    }


MESSAGES: dict[str, type[BaseModel]] = {"findings": Findings, "pulse": Pulse}
PEOPLE = people(Store("sqlite://")).openapi()
NODES = nodes_document()


def operations(document: dict[str, Any]) -> list[tuple[str, str]]:
    return [(path, method.upper()) for path, methods in document["paths"].items() for method in methods]


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory, migrated_file: Path) -> Iterator[Store]:
    """A store with one of everything."""
    path = tmp_path_factory.mktemp("api") / "daytwo.db"
    shutil.copyfile(migrated_file, path)
    store = Store(f"sqlite:///{path}")
    keep(store, a_cluster(), a_node(), a_repair(), an_event(), a_finding_row())
    yield store
    store.close()


@pytest.fixture(scope="module")
def of_people(known: Store) -> Any:
    return described(PEOPLE, AsMe(people(known)))


@pytest.fixture(scope="module")
def of_nodes(known: Store) -> Any:
    return described(NODES, nodes(known))


def described(document: dict[str, Any], app: ASGIApp) -> Any:
    schema = schemathesis.openapi.from_dict(document)
    schema.app = app
    return schema


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["good", "bad"])
@pytest.mark.parametrize(("path", "method"), operations(PEOPLE), ids=lambda part: part)
def test_the_service_answers_as_it_is_described(of_people: Any, path: str, method: str, mode: GenerationMode) -> None:
    operation = of_people[path][method]
    if mode is GenerationMode.NEGATIVE and not (operation.body or operation.query):
        return

    @SOME
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: schemathesis.Case) -> None:
        if "wait" in (case.query or {}):
            case.query["wait"] = 0
        # A rule may refuse what is well-formed: a freeze without a reason.
        case.call_and_validate(excluded_checks=[schemathesis.checks.positive_data_acceptance])

    ask()


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["good", "bad"])
@pytest.mark.parametrize("path", ["/v1/nodes/{node}/findings", "/v1/nodes/{node}/pulse"])
def test_the_gateway_takes_or_refuses_every_message(
    known: Store, of_nodes: Any, path: str, mode: GenerationMode
) -> None:
    token = issue_token(known, "east", "gpu-07", now=NOW)

    @SOME
    @given(case=of_nodes[path]["POST"].as_strategy(generation_mode=mode))
    def say(case: schemathesis.Case) -> None:
        case.path_parameters = {"node": "gpu-07"}
        answer = case.call(headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code in (200, 409, 413, 422)

    say()
