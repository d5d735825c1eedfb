"""What there is to see of a plane under test: its rows, and the fleet itself, past daytwo."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import httpx
from sqlmodel import col, select
from temporalio.client import Client

from daytwo.domain.proposal import Proposal
from daytwo.lab.client import LabClient
from daytwo.lab.definition import CLUSTER
from daytwo.settings import Settings
from daytwo.store.engine import Store
from daytwo.store.tables import EvidenceRow, FindingRow, IntentRow, NodeRow, RepairEventRow, RepairRow


@dataclass
class Seen:
    """Handles on a plane, and the questions that tests ask of it."""

    store: Store
    client: Client
    settings: Settings
    lab: LabClient
    free: list[str]
    problems: list[BaseException] = field(default_factory=list)

    def repair(self, node: str) -> RepairRow | None:
        """The newest repair of a node."""
        with self.store.read() as session:
            mine = select(RepairRow).where(RepairRow.cluster == CLUSTER, RepairRow.node == node)
            return session.exec(mine.order_by(col(RepairRow.opened_at).desc())).first()

    def proposal(self, node: str) -> Proposal:
        """The proposal of the newest repair of a node, as people see it."""
        repair = self.repair(node)
        assert repair is not None
        return Proposal.model_validate(repair.proposal)

    def events(self, node: str) -> list[str]:
        """The timeline of the newest repair, as event names."""
        return [row.event for row in self._rows(node)]

    def _rows(self, node: str) -> list[RepairEventRow]:
        repair = self.repair(node)
        if repair is None:
            return []
        with self.store.read() as session:
            mine = select(RepairEventRow).where(RepairEventRow.repair_id == repair.id)
            return list(session.exec(mine.order_by(col(RepairEventRow.number))).all())

    def evidence(self, node: str) -> list[int]:
        """The sizes of the archives that were kept for the newest repair of a node."""
        repair = self.repair(node)
        assert repair is not None
        with self.store.read() as session:
            kept = select(EvidenceRow).where(EvidenceRow.repair_id == repair.id)
            return [row.size for row in session.exec(kept) if row.data]

    def node(self, name: str) -> NodeRow:
        """The row of a node."""
        with self.store.read() as session:
            return session.get_one(NodeRow, (CLUSTER, name))

    def findings(self, node: str) -> dict[str, str]:
        """Fault to status."""
        with self.store.read() as session:
            rows = session.exec(select(FindingRow).where(FindingRow.node == node)).all()
        return {row.fault: row.status for row in rows}

    def intents(self, node: str) -> list[tuple[str, str]]:
        """Kind and state of every intent of a node, oldest first."""
        with self.store.read() as session:
            rows = session.exec(
                select(IntentRow).where(IntentRow.node == node).order_by(col(IntentRow.created_at))
            ).all()
        return [(row.kind, row.state) for row in rows]

    def ask_lab(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Speak to the fleet itself, past daytwo."""
        transport = httpx.HTTPTransport(uds=str(self.settings.state_dir / "lab.sock"), verify=False)
        with httpx.Client(transport=transport, base_url="http://lab", timeout=10) as client:
            answer = client.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    def acts(self, node: str, kind: str) -> int:
        """How often the fleet itself was told by daytwo to do `kind` to a node, and did."""
        orders = [entry["order"] for entry in self.ask_lab("GET", "/acts/log") if entry["result"] == "done"]
        return sum(o["kind"] == kind and o["node"] == node and bool(o["repair_id"]) for o in orders)

    def scheduler_states(self, node: str) -> set[str]:
        """The scheduler's words for a node, from the fleet itself."""
        return set(self.ask_lab("GET", f"/nodes/{node}")["nodes"][0]["states"])

    def busiest(self) -> str | None:
        """A node that nobody has touched, with the job on it that has longest to run."""
        rows = [row for row in self.ask_lab("GET", "/jobs")["jobs"] if row["state"] == "RUNNING"]
        rows.sort(key=lambda row: row["elapsed_seconds"] - row["time_limit_seconds"])
        return next((node for row in rows for node in row["nodes"] if node in self.free), None)

    def story(self, node: str) -> str:
        """Everything that helps when a test fails."""
        repair = self.repair(node)
        lines = [f"repair {repair.model_dump() if repair else None}"]
        lines += [
            f"  {r.number} {r.event}: {r.from_state} -> {r.to_state} by {r.actor}: {r.text}" for r in self._rows(node)
        ]
        return "\n".join(
            [*lines, f"findings {self.findings(node)}", f"intents {self.intents(node)}", str(self.problems)]
        )
