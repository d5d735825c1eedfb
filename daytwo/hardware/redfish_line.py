"""sushy's connection to one BMC, tied down: it speaks to nobody else, never logs in by itself, reads no endless answer.

Only `daytwo.hardware.redfish_session` makes one.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from typing import Any, Final

import requests
from requests.adapters import HTTPAdapter
from sushy.connector import Connector
from urllib3.exceptions import HTTPError

CONNECT_SECONDS: Final = 5.0
MAX_BYTES: Final = 4 * 1024 * 1024
"""Of one answer. The longest real ones are lists of a few hundred kilobytes."""

# What sushy logs quotes the BMC, which may quote us. What went wrong is in our own errors.
logging.getLogger("sushy").setLevel(logging.CRITICAL + 1)


class TokenRefused(Exception):
    """401 to a token: it has ended, or it is one of the refusals that GB200 and GB300 BMCs make now and then."""


class Line(Connector):  # type: ignore[misc]  # sushy has no types
    """A connection to `address`. `heard` is called with every answer, before sushy looks at it, and may raise."""

    def __init__(
        self, address: str, *, verify: str | bool, read_seconds: float, heard: Callable[[requests.Response], None]
    ) -> None:
        super().__init__(
            address,
            verify=verify,
            response_callback=heard,
            server_side_retries=1,  # one try on a broken connection; 0 would mean three
            server_side_retries_delay=0,
            default_request_timeout=read_seconds,
            connect_timeout=CONNECT_SECONDS,
        )
        # No proxy, no .netrc, no other certificates from the environment.
        self._session.trust_env = False
        # A link or a redirect to another host would carry our token there.
        self._session.max_redirects = 0
        self._session.adapters.clear()
        self._session.mount(f"{address}/", _Bounded())

    def get(self, *args: Any, **options: Any) -> Any:
        """As sushy's, with a second try where a token was refused."""
        try:
            return super().get(*args, **options)
        except TokenRefused:
            return super().get(*args, **options)

    def speak_as_nobody(self) -> None:
        """Forget who we are."""
        self._session.auth = None
        self._session.headers.pop("X-Auth-Token", None)


class _Bounded(HTTPAdapter):
    def send(self, *args: Any, **options: Any) -> requests.Response:
        """As requests', with the whole body read here, up to its limit."""
        answer = super().send(*args, **options)
        body = bytearray()
        try:
            for piece in answer.raw.stream(65_536, decode_content=True):
                body += piece
                if len(body) > MAX_BYTES:
                    raise requests.exceptions.ContentDecodingError(f"longer than {MAX_BYTES} bytes")
        except HTTPError as error:
            raise requests.exceptions.ConnectionError(error) from error
        finally:
            answer.raw.close()
        answer.raw = io.BytesIO(bytes(body))
        return answer
