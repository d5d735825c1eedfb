"""The tables. Temporal is the truth for what is going on; these rows for what was seen, decided and done."""

from __future__ import annotations

from daytwo.store.tables.columns import UtcDateTime
from daytwo.store.tables.nodes import ClusterRow, NodeRequestRow, NodeRow, NodeTokenRow, NodeTransitionRow
from daytwo.store.tables.plane import (
    AuditHeadRow,
    AuditRow,
    FreezeRow,
    LeaseRow,
    OutageRow,
    PartRow,
    RestoreRow,
    SchemaVersionRow,
)
from daytwo.store.tables.repaired import (
    BmcRefusalRow,
    CheckResultRow,
    CheckRunRow,
    DecisionRow,
    EvidenceRow,
    IntentRow,
    RepairEventRow,
    RepairRow,
)
from daytwo.store.tables.seen import FindingRow, IncidentRow, ObservationRow

__all__ = [
    "AuditHeadRow",
    "AuditRow",
    "BmcRefusalRow",
    "CheckResultRow",
    "CheckRunRow",
    "ClusterRow",
    "DecisionRow",
    "EvidenceRow",
    "FindingRow",
    "FreezeRow",
    "IncidentRow",
    "IntentRow",
    "LeaseRow",
    "NodeRequestRow",
    "NodeRow",
    "NodeTokenRow",
    "NodeTransitionRow",
    "ObservationRow",
    "OutageRow",
    "PartRow",
    "RepairEventRow",
    "RepairRow",
    "RestoreRow",
    "SchemaVersionRow",
    "UtcDateTime",
]
