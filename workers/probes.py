"""How `daytwo up` finds out that a part answers. Each function here makes a probe for `workers.supervise`."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Final

import httpx

from workers.supervise import Probe
from workers.temporal_server import NAMESPACE, TemporalServer

_TIMEOUT_SECONDS: Final = 2.0

# Only our own processes on this machine are asked, and whether they answer, not who they are. Without a context of its
# own every client would load the system's certificates.
_ANY_PEER: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_ANY_PEER.check_hostname = False
_ANY_PEER.verify_mode = ssl.CERT_NONE


def http(url: str) -> Probe:
    """Ready when the URL answers with success."""

    async def probe() -> bool:
        return await _succeeds(httpx.AsyncHTTPTransport(verify=_ANY_PEER), url)

    return probe


def http_over_socket(path: Path) -> Probe:
    """Ready when an HTTP server behind the Unix socket answers anything at all."""

    async def probe() -> bool:
        return await _succeeds(httpx.AsyncHTTPTransport(uds=str(path), verify=_ANY_PEER), "http://service/healthz")

    return probe


def socket_exists(path: Path) -> Probe:
    """Ready when the Unix socket is there; its owner removes an older one before it makes its own."""

    async def probe() -> bool:
        return await asyncio.to_thread(path.is_socket)

    return probe


def polls(temporal: TemporalServer, task_queue: str) -> Probe:
    """Ready when Temporal sees a worker that polls the task queue."""
    url = f"{temporal.ui_url}/api/v1/namespaces/{NAMESPACE}/task-queues/{task_queue}?taskQueueType=1"

    async def probe() -> bool:
        try:
            async with _client(httpx.AsyncHTTPTransport(verify=_ANY_PEER)) as client:
                return bool((await client.get(url)).json().get("pollers"))
        except (httpx.HTTPError, ValueError):
            return False

    return probe


def leads(service: Path) -> Probe:
    """Ready when the service sees a controller that holds the leases of its loops."""

    async def probe() -> bool:
        try:
            async with _client(httpx.AsyncHTTPTransport(uds=str(service), verify=_ANY_PEER)) as client:
                loops = (await client.get("http://service/v1/status")).json().get("loops", [])
        except (httpx.HTTPError, ValueError):
            return False
        return bool(loops) and all(loop["alive"] for loop in loops)

    return probe


async def _succeeds(transport: httpx.AsyncHTTPTransport, url: str) -> bool:
    try:
        async with _client(transport) as client:
            return (await client.get(url)).is_success
    except httpx.HTTPError:
        return False


def _client(transport: httpx.AsyncHTTPTransport) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=transport, timeout=_TIMEOUT_SECONDS, trust_env=False)
