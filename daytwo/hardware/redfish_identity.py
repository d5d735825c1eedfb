"""Is this the machine? What the node's agent read from its firmware must equal what the BMC says of the system.

Power off the wrong machine, and a job of somebody else dies (operations rule 5).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from daytwo.domain.errors import Refused
from daytwo.domain.seams import Act

MAX_AGE: Final = timedelta(days=30)
"""What an agent said longer ago may be of a board that was swapped since."""
NOBODY: Final = frozenset({UUID(int=0), UUID(int=2**128 - 1), UUID("03000200-0400-0500-0006-000700080009")})
"""UUIDs that firmware gives out for none."""
NO_SERIAL: Final = frozenset(
    {"", "0", "none", "n/a", "na", "unknown", "default string", "not specified", "system serial number"}
    | {"to be filled by o.e.m.", "0123456789", "123456789", "1234567890", "empty", "not available", "null"}
)


class Identity(NamedTuple):
    """Who a machine is, as far as its firmware knows."""

    uuid: UUID | None
    serial: str | None

    def __str__(self) -> str:
        return f"UUID {self.uuid or 'unknown'}, serial {self.serial or 'unknown'}"


def identity_of(act: Act, now: datetime) -> Identity:
    """Who the node is, as its agent said when the act was intended. Raises `Refused` if that is unknown or old."""
    said, at = act.baseline.get("identity") or {}, act.baseline.get("identity_at")
    identity = _identity(said.get("system_uuid"), said.get("serial"))
    if identity == Identity(None, None) or at is None:
        raise Refused(f"{act.node}: its agent never said which machine it is, so no BMC can be known as its own")
    if (age := now - datetime.fromisoformat(at)) > MAX_AGE:
        raise Refused(
            f"{act.node}: its agent said {age.days} days ago which machine it is; allowed are {MAX_AGE.days} days"
        )
    return identity


def same_machine(identity: Identity, uuid: Any, serial: Any) -> bool:
    """Compare with what a BMC says. The serial decides only where one side has no UUID: sleds may share a serial."""
    there = _identity(uuid, serial)
    if identity.uuid and there.uuid:
        return identity.uuid in (there.uuid, _other_order(there.uuid))
    return identity.serial is not None and identity.serial == there.serial


def _identity(uuid: Any, serial: Any) -> Identity:
    try:
        known: UUID | None = UUID(str(uuid))
    except ValueError:
        known = None
    text = str(serial or "").strip()
    return Identity(None if known in NOBODY else known, None if text.lower() in NO_SERIAL else text)


def _other_order(uuid: UUID) -> UUID:
    # SMBIOS stores the first three fields little-endian; half of the world's firmware shows them as they lie.
    return UUID(bytes=uuid.bytes_le)
