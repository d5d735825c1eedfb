"""A node's pulse: it lives, this is what it is, these are its answers; and what it is asked.

The app calls it, in a thread.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any, cast

from daytwo import node_requests
from daytwo.gateway.drivers import driver_changed, remembered
from daytwo.gateway.hearing import come_back_seconds, firing_of_a_node, hear
from daytwo.gateway.identity import Identity, retire_older
from daytwo.gateway.inventories import last_whole
from daytwo.gateway.models import Answer, Pulse
from daytwo.intake import lock_node, observe_in
from daytwo.store.engine import Store
from daytwo.store.tables import NodeRow
from daytwo.wire import Answer as WireAnswer

log = logging.getLogger(__name__)


def take_pulse(store: Store, identity: Identity, said: Pulse, *, now: datetime, pulse_seconds: float) -> dict[str, Any]:
    """Keep what the pulse says, in one transaction, and return the answer to it."""
    with store.write() as session:
        node = lock_node(session, identity.cluster, identity.node)
        retire_older(session, identity, now=now)
        hear(session, node, boot_id=said.boot_id, clock=said.clock, now=now)
        changed = driver_changed(node, said, now)
        if said.inventory is not None:
            inventory = said.inventory.model_dump(exclude_unset=True)
            node.inventory = inventory | remembered(node, said.inventory) | last_whole(session, node, inventory)
        _keep(node, said, now)
        observe_in(session, changed, now=now)
        refused = node_requests.answer(session, node, [_to_wire(each) for each in said.answers], now=now)
        if refused:
            log.warning("%s: answers refused: %s", node.name, ", ".join(refused))
        answer = {
            "requests": node_requests.offer(session, node, now=now),
            "withdrawn": node_requests.ended(session, node, now=now),
            "come_back_seconds": come_back_seconds(session, node, pulse_seconds=pulse_seconds),
            "send_full": said.checks is None and said.digest != node.checks_digest,
        }
        return answer if said.stream in (0, node.stream) else answer | {"firing": firing_of_a_node(session, node)}


def _keep(node: NodeRow, said: Pulse, now: datetime) -> None:
    node.agent_version, node.kernel_log = said.version, said.kernel_log
    if identity := said.identity.model_dump(exclude_none=True):
        node.identity, node.identity_at = identity, now
    if said.checks is not None:
        node.checks_digest = said.digest
        if node.checks != said.checks:
            node.checks = dict(said.checks)
            node.due += 1


def _to_wire(answer: Answer) -> WireAnswer:
    return cast(WireAnswer, answer.model_dump())
