"""Where the processes of one installation find each other. Read once at the edge, from `DAYTWO_*` variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from daytwo.domain.errors import BadInput

VARIABLES: Final = {
    "DAYTWO_STATE_DIR": "folder of store, sockets and spools (default ~/.local/state/daytwo, root: /var/lib/daytwo)",
    "DAYTWO_STORE_URL": "SQLAlchemy URL of the store, sqlite:// or postgresql+psycopg:// (default: in state folder)",
    "DAYTWO_SERVICE_SOCKET": "Unix socket of the service (default: service.sock in the state folder); or --socket",
    "DAYTWO_GATEWAY_URL": "where nodes reach the gateway (default http://127.0.0.1:8460)",
    "DAYTWO_GATEWAY_TLS_CERT": "PEM file of the gateway's certificate, where its URL is https",
    "DAYTWO_GATEWAY_TLS_KEY": "PEM file of the key to it",
    "DAYTWO_GATEWAY_PEER_CONNECTIONS": "connections that one address may have to the gateway (default 64)",
    "DAYTWO_TASK_QUEUE": "Temporal task queue of the control worker (default daytwo)",
    "DAYTWO_PULSE_SECONDS": "how often a node with nothing to say reports (default 60; labs: less)",
    "DAYTWO_SEND_SECONDS": "how long sending one act may take before it is given up (default 10)",
    "DAYTWO_LEASE_SECONDS": "after how long another controller takes over from one that died (default 15)",
    "DAYTWO_STICKY_SECONDS": "after how long another worker takes over from one that died (default 10)",
    "DAYTWO_LAB_SOCKET": "Unix socket of the simulated fleet (default: lab.sock in the state folder); or --lab-socket",
}
"""Every variable that the plane and the command line read: `daytwo help environment`. The agent's are its options."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Addresses and folders; each field is the variable `DAYTWO_<FIELD>`.

    Temporal's address, namespace and keys are not here: `temporalio.envconfig` reads `TEMPORAL_*` and `temporal.toml`.
    """

    state_dir: Path
    """Folder of the store, sockets and spools. Default `~/.local/state/daytwo`, for root `/var/lib/daytwo`."""
    store_url: str
    """SQLAlchemy URL of the store. Default: `daytwo.db` in `state_dir`."""
    service_socket: Path
    """Unix socket of the service for people. Default: `service.sock` in `state_dir`."""
    gateway_url: str
    """Where nodes reach the gateway. Default `http://127.0.0.1:8460`."""
    task_queue: str
    """Temporal task queue of the control worker. Default `daytwo`."""


def load(environ: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings of this process. Raises `BadInput` naming variable, what was found and what is allowed."""
    state_dir = Path(_said(environ, "DAYTWO_STATE_DIR") or _default_state_dir())
    if not state_dir.is_absolute():
        raise BadInput(f"DAYTWO_STATE_DIR: found {str(state_dir)!r}; allowed is an absolute path")
    return Settings(
        state_dir=state_dir,
        store_url=_url(
            environ, "DAYTWO_STORE_URL", f"sqlite:///{state_dir}/daytwo.db", ("sqlite", "postgresql+psycopg")
        ),
        service_socket=Path(_said(environ, "DAYTWO_SERVICE_SOCKET") or state_dir / "service.sock"),
        gateway_url=_url(environ, "DAYTWO_GATEWAY_URL", "http://127.0.0.1:8460", ("http", "https")),
        task_queue=_said(environ, "DAYTWO_TASK_QUEUE") or "daytwo",
    )


def check_tls(settings: Settings, environ: Mapping[str, str] = os.environ) -> None:
    """Raise `BadInput` naming the variable when `gateway_url` and the gateway's certificate contradict each other."""
    is_https = urlsplit(settings.gateway_url).scheme == "https"
    for name in ("DAYTWO_GATEWAY_TLS_CERT", "DAYTWO_GATEWAY_TLS_KEY"):
        if is_https != bool(_said(environ, name)):
            found = f"{_said(environ, name) or 'nothing'}, with DAYTWO_GATEWAY_URL={settings.gateway_url}"
            raise BadInput(
                f"{name}: found {found}; allowed is {'a PEM file' if is_https else 'nothing, or https there'}"
            )


def seconds(name: str, default: float, environ: Mapping[str, str] = os.environ) -> float:
    """Return the duration in variable `name`, seconds from 0.1 to 3600. Raises `BadInput` naming it."""
    found = _said(environ, name) or str(default)
    try:
        duration = float(found)
    except ValueError:
        duration = 0.0
    if not 0.1 <= duration <= 3600:
        raise BadInput(f"{name}: found {found!r}; allowed is a number of seconds from 0.1 to 3600")
    return duration


def whole(name: str, default: int, environ: Mapping[str, str] = os.environ) -> int:
    """Return the number in variable `name`, from 1 to 1,000,000. Raises `BadInput` naming it."""
    found = _said(environ, name) or str(default)
    number = int(found) if found.isascii() and found.isdigit() and len(found) < 8 else 0
    if not 1 <= number <= 1_000_000:
        raise BadInput(f"{name}: found {found!r}; allowed is a whole number from 1 to 1000000")
    return number


def _said(environ: Mapping[str, str], name: str) -> str:
    """What a variable of the table says; nothing is the same as not set."""
    if name not in VARIABLES:
        raise LookupError(f"{name} is not in the table of variables")
    return environ.get(name, "")


def _default_state_dir() -> Path:
    return Path("/var/lib/daytwo") if os.geteuid() == 0 else Path.home() / ".local/state/daytwo"


def _url(environ: Mapping[str, str], name: str, default: str, schemes: tuple[str, ...]) -> str:
    value = _said(environ, name) or default
    scheme = urlsplit(value).scheme
    if scheme not in schemes:
        # Never the value itself: the URL of a store may hold a password.
        raise BadInput(
            f"{name}: found a URL of scheme {scheme!r}; allowed is one that starts with {' or '.join(schemes)}"
        )
    return value
