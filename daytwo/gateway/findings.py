"""A node's changes come in: numbered records of one stream, each taken once. Called by the app, in a thread."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from daytwo.domain.errors import Stale
from daytwo.domain.vocabulary import FindingStatus
from daytwo.gateway.hearing import come_back_seconds, hear, server_time
from daytwo.gateway.identity import Identity
from daytwo.gateway.models import Findings, Record
from daytwo.intake import Effect, Observation, lock_node, observe_in
from daytwo.store.engine import Store
from daytwo.store.tables import NodeRow


class OldStream(Stale):
    """The node numbers its records in a stream that is no longer its own; `stream` is the one that is."""

    def __init__(self, found: int, stream: int) -> None:
        super().__init__(f"stream: found {found}, the newest is {stream}; ask for a new one with stream 0")
        self.stream = stream


def take_findings(
    store: Store, identity: Identity, said: Findings, *, now: datetime, pulse_seconds: float
) -> tuple[dict[str, Any], tuple[Effect, ...]]:
    """Record what the node says, in one transaction; return the answer and what each record did. Raises `OldStream`."""
    with store.write() as session:
        node = lock_node(session, identity.cluster, identity.node)
        _enter(node, said.stream)
        hear(session, node, boot_id=said.boot_id, clock=said.clock, now=now)
        seen = [_observation(node, record, said.clock, now) for record in said.records]
        effects = observe_in(session, seen, now=now)
        # A gap is not waited for: what an agent had to drop never comes.
        node.sequence = max([node.sequence, *(record.sequence for record in said.records)])
        wait = come_back_seconds(session, node, pulse_seconds=pulse_seconds)
        return {"stream": node.stream, "acknowledged": node.sequence, "come_back_seconds": wait}, effects


def _enter(node: NodeRow, stream: int) -> None:
    """Stream 0 begins a new one. A stream from before the store was restored is as foreign as an old one."""
    if stream == 0:
        node.stream, node.sequence = node.stream + 1, 0
    elif stream != node.stream:
        raise OldStream(stream, node.stream)


def _observation(node: NodeRow, record: Record, clock: float, now: datetime) -> Observation:
    return Observation(
        cluster=node.cluster,
        node=node.name,
        fault=record.fault,
        entity=record.entity,
        status=FindingStatus(record.status),
        first_seen=server_time(record.first_seen, clock=clock, now=now),
        last_seen=server_time(record.last_seen, clock=clock, now=now),
        source=record.source,
        count=record.count,
        boot_id=record.boot_id,
        kernel_sequence=record.kernel_sequence,
        stream=node.stream,
        sequence=record.sequence,
        evidence=tuple(record.evidence),
        detail=dict(record.detail),
    )
