"""Ids that people read aloud: a prefix, the second they were made, and five random letters. They sort by time."""

from __future__ import annotations

import secrets
from datetime import datetime

# Without 0/o, 1/l/i: these ids are typed from a phone at night.
ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"


def new_id(prefix: str, now: datetime) -> str:
    """Return an id such as `r-20261130-142100-x7k2q`; `now` is UTC."""
    letters = "".join(secrets.choice(ALPHABET) for _ in range(5))
    return f"{prefix}-{now:%Y%m%d-%H%M%S}-{letters}"
