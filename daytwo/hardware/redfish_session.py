"""One conversation with one BMC: who we are, what can go wrong, and that nothing secret is told.

A session where the BMC has them, basic authentication only where it has none: sushy's own choice would send a password
again that was just refused. `daytwo.hardware.redfish` calls it, in a thread.
"""

from __future__ import annotations

import base64
import contextlib
import ssl
from collections.abc import Iterator, MutableMapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import requests
import sushy
from pydantic import SecretStr
from sushy import exceptions
from sushy.auth import AuthBase

from daytwo.domain.definition import BmcAccess
from daytwo.domain.errors import DaytwoError, NotYet, Refused, UnknownAnswer, Unreachable
from daytwo.hardware.redfish_line import Line, TokenRefused
from daytwo.hardware.references import resolve

READ_SECONDS: Final = 10.0
"""For each piece of an answer. A busy BMC answers in a few seconds, one that boots not at all."""
BUSY_SECONDS: Final = 10.0
"""After a 503 without Retry-After."""
ERROR_CHARS: Final = 300


class LoginRefused(Exception):
    """401 to our name and password, or again to a token that was just given."""


class Token(NamedTuple):
    """A session that is open at a BMC: what proves it, its address there, and when it was last used."""

    key: SecretStr
    path: str
    at: datetime


Tokens = MutableMapping[str, Token]
"""Sessions that were left open, by the address of their BMC."""


def ca_file(access: BmcAccess) -> str | None:
    """The certificates that vouch for these BMCs; `None` where nobody needs to. Raises `Refused` if there are none."""
    if not access.verify:
        return None
    found = access.ca or ssl.get_default_verify_paths().cafile
    if not found or not Path(found).is_file():
        raise Refused(f"bmcs: ca: found {found or 'nothing'}, allowed is a file with certificates")
    return found


class Conversation:
    """What can be asked once we are in. `bmc_time` is the BMC's clock, ours where it does not tell its own."""

    def __init__(self, address: str, access: BmcAccess, tokens: Tokens, read_seconds: float) -> None:
        self.address, self.access = address, access
        self.bmc_time = datetime.now(UTC)
        self.root: Any = None
        self._password = resolve(access.password, "bmcs: the password")
        self._tokens = tokens
        self._line = Line(address, verify=ca_file(access) or False, read_seconds=read_seconds, heard=self._hear)

    @property
    def headers(self) -> dict[str, SecretStr]:
        """Who we are, for one more request that somebody else sends."""
        if token := self._tokens.get(self.address):
            return {"X-Auth-Token": token.key}
        pair = f"{self.access.user}:{self._password.get_secret_value()}".encode()
        return {"Authorization": SecretStr(f"Basic {base64.b64encode(pair).decode()}")}

    def get(self, path: str) -> dict[str, Any]:
        """The resource at `path`, as it stands. Raises `UnknownAnswer` for what is no object."""
        found = self._line.get(path).json()
        if not isinstance(found, dict):
            raise UnknownAnswer(f"{self.address}: {path} is no object")
        return found

    def enter(self) -> None:
        """Go on with the session that is open, or log in, once. Raises `LoginRefused`."""
        resumed = self.address in self._tokens
        try:
            self._enter()
        except TokenRefused:
            self._tokens.pop(self.address, None)
            if not resumed:
                raise LoginRefused from None
            self._enter()

    def _enter(self) -> None:
        self._line.speak_as_nobody()
        self.root = sushy.Sushy(self.address, auth=_Door(self), connector=self._line)
        # Anybody may read the root: only this shows that we are in.
        self.root.get_system_collection()
        if token := self._tokens.get(self.address):
            self._tokens[self.address] = token._replace(at=datetime.now(UTC))

    def authenticate(self, root: dict[str, Any]) -> None:
        """Say who we are, having read the service root. sushy calls it through its door."""
        if self.address not in self._tokens and _has_sessions(root):
            self._open_session(root)
        token = self._tokens.get(self.address)
        if token:
            self._line.set_http_session_auth(token.key.get_secret_value())
        else:
            self._line.set_http_basic_auth(self.access.user, self._password.get_secret_value())

    def _open_session(self, root: dict[str, Any]) -> None:
        path = _path(((root.get("Links") or {}).get("Sessions") or {}).get("@odata.id")) or _SESSIONS
        pair = {"UserName": self.access.user, "Password": self._password.get_secret_value()}
        answer = self._line.post(path, data=pair)
        key = answer.headers.get("X-Auth-Token")
        if not key:
            raise UnknownAnswer(f"{self.address}: opened a session without a token")
        where = answer.headers.get("Location")
        with contextlib.suppress(ValueError, AttributeError):
            where = where or answer.json().get("@odata.id")
        self._tokens[self.address] = Token(SecretStr(key), _path(where) or "", datetime.now(UTC))

    def leave(self, *, log_out: bool) -> None:
        """End the connection, with `log_out` also the session. One that the BMC will not end times out there."""
        token = self._tokens.pop(self.address, None) if log_out else None
        if token and token.path:
            self._line.set_http_session_auth(token.key.get_secret_value())
            with contextlib.suppress(exceptions.SushyError, DaytwoError, TokenRefused, LoginRefused):
                self._line.delete(token.path)
        self._line.close()

    def scrubbed(self, text: str) -> str:
        """`text` without our secrets, and no longer than an error should be."""
        for secret in (self._password, *self.headers.values()):
            for word in secret.get_secret_value().split():
                text = text.replace(word, "***")
        return text[:ERROR_CHARS]

    def _hear(self, answer: requests.Response) -> None:
        """Judge what sushy would answer with another login, or with a wait of its own length."""
        with contextlib.suppress(KeyError, TypeError, ValueError):
            told = parsedate_to_datetime(answer.headers["Date"])
            self.bmc_time = told if told.tzinfo else told.replace(tzinfo=UTC)
        if answer.status_code == 401:
            raise self._refusal(answer.request)
        if answer.status_code in (429, 503):
            raise NotYet(f"{self.address}: is busy (HTTP {answer.status_code})", _retry_after(answer))

    def _refusal(self, request: requests.PreparedRequest) -> Exception:
        if "X-Auth-Token" in request.headers:
            return TokenRefused()
        if request.method == "POST" or "Authorization" in request.headers:
            return LoginRefused()
        return UnknownAnswer(f"{self.address}: wants a login before it says how to log in")


_SESSIONS: Final = "/redfish/v1/SessionService/Sessions"


class _Door(AuthBase):  # type: ignore[misc]  # sushy has no types
    """How sushy lets us in: in our way, and never again by itself."""

    def __init__(self, conversation: Conversation) -> None:
        super().__init__()
        self._conversation = conversation

    def _do_authenticate(self) -> None:
        self._conversation.authenticate(self._root_resource.json)

    def can_refresh_session(self) -> bool:
        """Never: a refusal is ours to judge."""
        return False


@contextlib.contextmanager
def errors_of(talk: Conversation) -> Iterator[None]:
    """Turn what a conversation runs into into our errors; no message holds a secret.

    Raises `LoginRefused`, `Unreachable`, `UnknownAnswer`, `NotYet` (busy) or `Refused` (the account may not).
    """
    where = talk.address
    try:
        yield
    except TokenRefused:
        raise LoginRefused from None
    except exceptions.ConnectionError as error:
        raise Unreachable(f"{where}: {_cause(error)}") from None
    except exceptions.AccessError as error:
        raise Refused(f"{where}: {talk.access.user} may not do that there (HTTP {error.status_code})") from None
    except exceptions.HTTPError as error:
        said = error.detail or error.code
        raise UnknownAnswer(talk.scrubbed(f"{where}: HTTP {error.status_code}: {said}")) from None
    except (exceptions.SushyError, ValueError, TypeError, LookupError, AttributeError) as error:
        # What sushy does with JSON of another shape than the standard's.
        raise UnknownAnswer(talk.scrubbed(f"{where}: cannot be read: {type(error).__name__}: {error}")) from None


def _has_sessions(root: dict[str, Any]) -> bool:
    return bool(root.get("SessionService") or (root.get("Links") or {}).get("Sessions"))


def _path(link: Any) -> str | None:
    return urlsplit(link).path if isinstance(link, str) else None


def _retry_after(answer: requests.Response) -> float:
    said = answer.headers.get("Retry-After", "")
    return min(float(said), 600.0) if said.isdigit() else BUSY_SECONDS


_CAUSES: Final = {
    "CERTIFICATE_VERIFY_FAILED": "its certificate is not vouched for (bmcs: ca)",
    "No connection adapters": "points to another address, which is not followed",
    "redirects": "redirects, which is not followed",
    "timed out": "did not answer in time",
    "Connection refused": "refuses connections",
    "Connection aborted": "broke the connection off",
    "resolve": "its name is not known",
    "longer than": "answers endlessly",
    "SSL": "speaks no TLS that we can use",
}


def _cause(error: BaseException) -> str:
    """What is behind sushy's ConnectionError, in words; its own quote urllib3's objects."""
    innermost = error
    while innermost.__context__ is not None:
        innermost = innermost.__context__
    otherwise = f"cannot be reached ({type(innermost).__name__})"
    return next((words for sign, words in _CAUSES.items() if sign in str(error)), otherwise)
