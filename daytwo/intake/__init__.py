"""The one way by which observations come in; the gateway, the watch loops and the silence loop call it.

Each function is one transaction: observation rows, the findings they change, and "this node is due". When it returns,
what it was given is durable. It never calls Temporal or a scheduler.
"""

from __future__ import annotations

from daytwo.intake.declared import declare, declare_in
from daytwo.intake.facts import facts_unknown, observe_facts
from daytwo.intake.findings import Effect
from daytwo.intake.observations import (
    CLUSTER_WIDE,
    NODE,
    Guard,
    Observation,
    lock_node,
    observe,
    observe_in,
)

__all__ = [
    "CLUSTER_WIDE",
    "NODE",
    "Effect",
    "Guard",
    "Observation",
    "declare",
    "declare_in",
    "facts_unknown",
    "lock_node",
    "observe",
    "observe_facts",
    "observe_in",
]
