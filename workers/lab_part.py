"""The simulated fleet as a part of `daytwo up`: its cluster is declared, its nodes get tokens, its process starts."""

from __future__ import annotations

import json
import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from daytwo.domain.definition import ClusterDefinition
from daytwo.domain.errors import Failed
from daytwo.lab.approval import lab_approval
from daytwo.lab.definition import CLUSTER, lab_definition, node_names

_NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_TIMEOUT_SECONDS: Final = 30.0

PULSE_SECONDS: Final = 5.0
"""How often a lab's nodes report: they live faster than real ones."""


@dataclass(frozen=True, slots=True)
class LabPart:
    """A fleet of `nodes` that lives `speed` times as fast as real, with its files in `state_dir`."""

    state_dir: Path
    nodes: int
    speed: float

    @property
    def socket(self) -> Path:
        """Where the fleet's scheduler, its BMCs and people's commands are."""
        return self.state_dir / "lab.sock"

    @property
    def tokens(self) -> Path:
        """The nodes' credentials, as the fleet's process reads them."""
        return self.state_dir / "lab-tokens.json"

    @property
    def _declared(self) -> Path:
        """Which fleet was declared last."""
        return self.state_dir / "lab-declared.json"

    def _fleet(self) -> str:
        return json.dumps({"nodes": self.nodes, "speed": self.speed})

    def _was_declared(self) -> bool:
        return self._declared.exists() and self._declared.read_text() == self._fleet()

    def command(self, gateway_url: str) -> tuple[str, ...]:
        """The module and options that run it."""
        given = {"socket": self.socket, "nodes": self.nodes, "speed": self.speed}
        agents = {"gateway": gateway_url, "tokens": self.tokens}
        return (
            "daytwo.lab",
            *(word for name, value in {**given, **agents}.items() for word in (f"--{name}", f"{value}")),
        )

    def definition(self) -> ClusterDefinition:
        """The cluster to declare: the lab's own, and whoever runs this is its lead."""
        usual = lab_definition(str(self.socket), nodes=self.nodes, speed=self.speed)
        return usual.model_copy(update={"policy": usual.policy.model_copy(update={"approval": lab_approval()})})

    async def declare(self, service: Path) -> None:
        """Declare the cluster and issue tokens, through the service's socket. Raises `Failed` with what it answered.

        A cluster that stands is left as it is, since somebody may have applied another policy; a fleet of another size
        or speed is another one.
        """
        transport = httpx.AsyncHTTPTransport(uds=str(service), verify=_NO_TLS)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://service", timeout=_TIMEOUT_SECONDS
        ) as client:
            if not (self._was_declared() and await _stands(client)):
                await _post(client, "/v1/clusters", self.definition().model_dump(mode="json"))
                self._declared.write_text(self._fleet())
            issued = [
                await _post(client, "/v1/tokens", {"node": f"{CLUSTER}/{node}"})
                for node in await _nodes(client)
                if node in node_names(self.nodes)
            ]
        _write_private(self.tokens, json.dumps({token["node"]: token["token"] for token in issued}))


async def _stands(client: httpx.AsyncClient) -> bool:
    """Whether the cluster is declared."""
    return CLUSTER in [each["name"] for each in (await _get(client, "/v1/clusters"))["items"]]


async def _nodes(client: httpx.AsyncClient) -> list[str]:
    """The declared nodes, page by page."""
    found: list[str] = []
    after: str | None = ""
    while after is not None:
        asked = {"cluster": CLUSTER, "limit": 200, **({"after": after} if after else {})}
        page = await _get(client, "/v1/nodes", **asked)
        found += [each["name"] for each in page["items"]]
        after = page["next"]
    return found


async def _get(client: httpx.AsyncClient, path: str, **query: Any) -> dict[str, Any]:
    return _answered(await client.get(path, params=query), f"GET {path}")


async def _post(client: httpx.AsyncClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
    return _answered(await client.post(path, json=body), f"POST {path}")


def _answered(answer: httpx.Response, asked: str) -> dict[str, Any]:
    if answer.is_error:
        raise Failed(f"the service answered {answer.status_code} to {asked}: {answer.text[:500]}")
    found: dict[str, Any] = answer.json()
    return found


def _write_private(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
