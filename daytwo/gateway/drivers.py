"""Tells from a node's pulses that its GPU driver was changed. Part of the pulse."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from daytwo.domain.tests_first import DRIVER_CHANGED
from daytwo.domain.vocabulary import FindingStatus
from daytwo.gateway.models import Inventory, Pulse
from daytwo.intake import NODE, Observation
from daytwo.store.tables import NodeRow

KNOWN_DRIVER: Final = "known_driver"
"""The last version that the node named: while a driver is being changed it has none."""


def known_driver(node: NodeRow) -> str | None:
    """The version of the node's driver that was heard last."""
    inventory = node.inventory
    return inventory.get("driver") or inventory.get(KNOWN_DRIVER)


def remembered(node: NodeRow, now: Inventory) -> dict[str, str]:
    """What to keep beside an inventory that names no driver."""
    known = known_driver(node)
    return {KNOWN_DRIVER: known} if known and now.driver is None else {}


def driver_changed(node: NodeRow, said: Pulse, now: datetime) -> list[Observation]:
    """What there is to observe where the node names another driver than before. Call it before the pulse is kept."""
    before, after = known_driver(node), said.inventory.driver if said.inventory else None
    if not before or not after or before == after:
        return []
    return [
        Observation(
            cluster=node.cluster,
            node=node.name,
            fault=DRIVER_CHANGED,
            entity=NODE,
            status=FindingStatus.FIRING,
            first_seen=now,
            last_seen=now,
            source="agent",
            evidence=(f"driver {before} -> {after}",),
            detail={"before": before, "after": after},
        )
    ]
