"""Ids that people read aloud: a prefix, the second they were made, and five random letters. They sort by time."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime

# Without 0/o, 1/l/i: these ids are typed from a phone at night.
ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"


def new_id(prefix: str, now: datetime) -> str:
    """Return an id such as `r-20261130-142100-x7k2q`; `now` is UTC."""
    letters = "".join(secrets.choice(ALPHABET) for _ in range(5))
    return f"{prefix}-{now:%Y%m%d-%H%M%S}-{letters}"


def containment_id(incident: str, node: str) -> str:
    """The id in the marks of one of the nodes that an incident contains: a reservation has one node, and one name."""
    return f"{incident}-{hashlib.sha256(node.encode()).hexdigest()[:8]}"


def incident_of(mark: str) -> str:
    """The incident in the id of a mark; some other text for the id of a repair, which is no incident's."""
    return mark.rpartition("-")[0]
