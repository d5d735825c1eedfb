"""Secrets that a definition only refers to, read at the moment they are used. Drivers call it."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import SecretStr

from daytwo.domain.errors import Refused


def resolve(reference: str, field: str) -> SecretStr:
    """Return the secret that `file:/path` or `env:NAME` stands for. Raises `Refused`, naming the reference only."""
    kind, _, where = reference.partition(":")
    try:
        secret = os.environ.get(where, "") if kind == "env" else Path(where).read_text(encoding="utf-8").strip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{field} {reference} cannot be read ({type(error).__name__})") from None
    if not secret:
        raise Refused(f"{field} {reference} is empty")
    return SecretStr(secret)
