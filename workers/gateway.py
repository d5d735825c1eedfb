"""The gateway process, `python -m workers.gateway`: binds the address of `DAYTWO_GATEWAY_URL` until SIGTERM or SIGINT.

`DAYTWO_GATEWAY_TLS_CERT` and `DAYTWO_GATEWAY_TLS_KEY` name PEM files. `DAYTWO_GATEWAY_PEER_CONNECTIONS` is how many
connections one address may have: more than 64 where nodes come through a NAT, or through a proxy on another machine.
`DAYTWO_PULSE_SECONDS` is how often a node with nothing to say reports; only labs need another value than 60.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import uvicorn

from daytwo import settings as settings_module
from daytwo.backoff import patiently
from daytwo.domain.errors import BadInput, DaytwoError
from daytwo.gateway.app import PULSE_SECONDS, Gateway, create_app
from daytwo.gateway.doors import PATIENT_LOOP, PER_ADDRESS, PatientProtocol, open_doors
from daytwo.process import harden
from daytwo.settings import Settings
from daytwo.store.engine import Store

log = logging.getLogger(__name__)

PORTS: Final = {"http": 80, "https": 443}
STOP_SECONDS: Final = 10


def main() -> int:
    """Run the gateway; return the exit code."""
    # `daytwo up` looks among its open files for the port that answers.
    harden(readable=True)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        settings = settings_module.load()
        serve(settings, os.environ)
    except DaytwoError as error:
        sys.stderr.write(f"gateway: {error}\n")
        return error.exit_code
    return 0


def serve(settings: Settings, environ: Mapping[str, str]) -> None:
    """Serve until a signal. Raises `BadInput` naming the variable that is wrong."""
    pulse_seconds = settings_module.seconds("DAYTWO_PULSE_SECONDS", PULSE_SECONDS, environ)
    cert, key = _file(environ, "CERT"), _file(environ, "KEY")
    address = urlsplit(settings.gateway_url)
    per_address = settings_module.whole("DAYTWO_GATEWAY_PEER_CONNECTIONS", PER_ADDRESS, environ)
    settings_module.check_tls(settings, environ)
    settings.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    store = Store(settings.store_url)
    try:
        asyncio.run(patiently("the store", lambda: asyncio.to_thread(store.migrate)))
        config = uvicorn.Config(
            create_app(Gateway(store, pulse_seconds=pulse_seconds)),
            http=PatientProtocol,
            loop=PATIENT_LOOP,
            ssl_certfile=cert,
            ssl_keyfile=key,
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            ws="none",
            lifespan="off",
            timeout_graceful_shutdown=STOP_SECONDS,
        )
        host, port = address.hostname or "127.0.0.1", address.port or PORTS[address.scheme]
        with open_doors(host, port, per_address=per_address) as doors:
            log.info("listening on %s", settings.gateway_url)
            uvicorn.Server(config).run(sockets=doors)
    finally:
        store.close()


def _file(environ: Mapping[str, str], what: str) -> str | None:
    name = f"DAYTWO_GATEWAY_TLS_{what}"
    found = environ.get(name)
    if found and not Path(found).is_file():
        raise BadInput(f"{name}: found {found!r}; allowed is the path of a PEM file")
    return found or None


if __name__ == "__main__":
    sys.exit(main())
