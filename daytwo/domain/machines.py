"""Which machine a node is, and which GPUs it has when it is whole: what a repair must find again at its end. Pure.

The gateway keeps what was heard, the store hands it to triage, a proposal freezes it, the tests compare with it, and
hardware drivers compare it with what a BMC says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

from daytwo.domain.vocabulary import Lasting

KNOWN_GPUS: Final = "known_gpus"
"""In an inventory that is not whole: the UUIDs of the last one that was. None at all where none ever was."""
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

    @property
    def is_known(self) -> bool:
        """True if there is anything to compare."""
        return self.uuid is not None or self.serial is not None

    def is_same(self, other: Identity) -> bool | None:
        """Compare; `None` where the two have nothing in common to compare.

        The serial decides only where one side has no UUID: sleds may share a serial.
        """
        if self.uuid and other.uuid:
            return self.uuid in (other.uuid, _other_order(other.uuid))
        if self.serial and other.serial:
            return self.serial == other.serial
        return None


class Before(Lasting):
    """What a node was before its fault: the GPUs of its last whole inventory, and who the machine said it was."""

    gpus: tuple[str, ...] = ()
    expected_gpus: int | None = None
    system_uuid: str = ""
    serial: str = ""

    @property
    def identity(self) -> Identity:
        """Who the machine was."""
        return identity_from(self.system_uuid, self.serial)


def before_of(inventory: Mapping[str, Any], identity: Mapping[str, Any], expected_gpus: int | None) -> Before:
    """What a node is when it is whole, as its row tells it before a repair asks for parts back."""
    return Before(
        gpus=known_gpus(believed(inventory, expected_gpus)),
        expected_gpus=expected_gpus,
        system_uuid=str(identity.get("system_uuid") or ""),
        serial=str(identity.get("serial") or ""),
    )


def identity_from(uuid: Any, serial: Any) -> Identity:
    """Read what firmware says; what it says for "none" is none."""
    try:
        known: UUID | None = UUID(str(uuid))
    except ValueError:
        known = None
    text = str(serial or "").strip()
    return Identity(None if known in NOBODY else known, None if text.lower() in NO_SERIAL else text)


def known_gpus(inventory: Mapping[str, Any]) -> tuple[str, ...]:
    """The UUIDs of the last inventory that was whole; none where none was heard."""
    known = inventory.get(KNOWN_GPUS)
    return tuple(known) if known is not None else uuids(inventory)


def uuids(inventory: Mapping[str, Any]) -> tuple[str, ...]:
    """The UUIDs of the inventory that was heard last."""
    return tuple(gpu["uuid"] for gpu in inventory.get("gpus", ()) if gpu.get("uuid"))


def believed(inventory: Mapping[str, Any], expected_gpus: int | None) -> dict[str, Any]:
    """The inventory that counts as whole from now on: as many GPUs as before, and other ones, are swapped parts."""
    known, there = known_gpus(inventory), uuids(inventory)
    if len(there) < (expected_gpus or len(known)):
        return dict(inventory)
    return {name: value for name, value in inventory.items() if name != KNOWN_GPUS}


def _other_order(uuid: UUID) -> UUID:
    # SMBIOS stores the first three fields little-endian; half of the world's firmware shows them as they lie.
    return UUID(bytes=uuid.bytes_le)
