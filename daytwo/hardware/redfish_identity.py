"""Is this the machine? What the node's agent read from its firmware must equal what the BMC says of the system.

Power off the wrong machine, and a job of somebody else dies (operations rule 5).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from daytwo.domain.errors import Refused
from daytwo.domain.machines import Identity, identity_from
from daytwo.domain.seams import Act

MAX_AGE: Final = timedelta(days=30)
"""What an agent said longer ago may be of a board that was swapped since."""


def identity_of(act: Act, now: datetime) -> Identity:
    """Who the node is, as its agent said when the act was intended. Raises `Refused` if that is unknown or old."""
    said, at = act.baseline.get("identity") or {}, act.baseline.get("identity_at")
    identity = identity_from(said.get("system_uuid"), said.get("serial"))
    if not identity.is_known or at is None:
        raise Refused(f"{act.node}: its agent never said which machine it is, so no BMC can be known as its own")
    if (age := now - datetime.fromisoformat(at)) > MAX_AGE:
        raise Refused(
            f"{act.node}: its agent said {age.days} days ago which machine it is; allowed are {MAX_AGE.days} days"
        )
    return identity


def same_machine(identity: Identity, uuid: Any, serial: Any) -> bool:
    """Compare with what a BMC says. Where there is nothing to compare it is not the same."""
    return identity.is_same(identity_from(uuid, serial)) is True
