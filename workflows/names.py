"""Names that stand in Temporal histories, signals and searches. They are part of the interface: never rename one."""

from __future__ import annotations

from typing import Final

from temporalio.common import SearchAttributeKey

NODE_REPAIR: Final = "node-repair"

# The update carries only the id of a decision row. The signals are for people in the Temporal UI.
DECIDE: Final = "decide"
LOOK_AGAIN: Final = "look-again"
CLAIMABLE: Final = ("approve", "dismiss", "hold")
STATE_QUERY: Final = "state"
PROPOSAL_QUERY: Final = "proposal"

CLUSTER: Final = SearchAttributeKey.for_keyword("DaytwoCluster")
NODE: Final = SearchAttributeKey.for_keyword("DaytwoNode")
STATE: Final = SearchAttributeKey.for_keyword("DaytwoState")
ACTION: Final = SearchAttributeKey.for_keyword("DaytwoAction")
FAULT: Final = SearchAttributeKey.for_keyword("DaytwoFault")
REPAIR: Final = SearchAttributeKey.for_keyword("DaytwoRepair")
REVISION: Final = SearchAttributeKey.for_int("DaytwoRevision")
SEARCH_ATTRIBUTES: Final = (CLUSTER, NODE, STATE, ACTION, FAULT, REPAIR, REVISION)


def workflow_id(cluster: str, node: str) -> str:
    """The id of the one repair that may be open on a node: the lock."""
    return f"repair:{cluster}:{node}"
