"""What all activities share: the store, the adapters, the ledger, the notifier, and the time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from sqlmodel import Session

from daytwo import repairs
from daytwo.adapters import Adapters, Cluster, scheduler_driver
from daytwo.domain.cases import entry_of
from daytwo.domain.exchange import RepairRef
from daytwo.domain.proposal import Proposal
from daytwo.domain.seams import Act, Notifier
from daytwo.domain.vocabulary import FaultClass, Mark
from daytwo.faults.catalogue import catalogue
from daytwo.intents import Ledger
from daytwo.store.engine import Store

R = TypeVar("R")


def utc_now() -> datetime:
    """The time, UTC and aware."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class World:
    """One per worker process."""

    store: Store
    adapters: Adapters
    ledger: Ledger
    notifier: Notifier
    now: Callable[[], datetime] = field(default=utc_now)

    async def read(self, question: Callable[[Session], R]) -> R:
        """Ask the store, in a thread."""

        def ask() -> R:
            with self.store.read() as session:
                return question(session)

        return await asyncio.to_thread(ask)

    async def write(self, change: Callable[[Session], R]) -> R:
        """Change the store in one transaction, in a thread; `change` is called again where it collided with another."""
        return await asyncio.to_thread(self.store.change, change)

    async def say_waiting(self, ref: RepairRef, why: str) -> None:
        """Let people see what a repair waits for; written only when it changes."""
        if await self.waiting(ref) != why[: repairs.LONGEST_WAIT]:
            await self.write(lambda session: repairs.note_waiting(session, ref.repair_id, why))

    async def waiting(self, ref: RepairRef) -> str:
        """What people see that a repair waits for."""
        return await self.read(lambda session: repairs.waiting_for(session, ref.repair_id))

    async def cluster(self, ref: RepairRef) -> Cluster:
        """The repair's cluster as it is declared now."""
        return await asyncio.to_thread(self.adapters.cluster, ref.cluster)

    async def carry_out(self, ref: RepairRef, stage: str, acts: tuple[Act, ...]) -> str:
        """Carry acts on the scheduler out in their order; returns what proves the last one."""
        proof = ""
        for act in acts:
            key = intent_key(ref.repair_id, stage, act)
            proof = (await self.ledger.carry_out(key, scheduler_driver(ref.cluster), act)).proof
        return proof


def intent_key(repair_id: str, stage: str, act: Act) -> str:
    """The id of an intent: the same step of the same repair is the same row."""
    target = "" if act.target == act.node else f"/{act.target}"
    return f"{repair_id}/{stage}/{act.kind}{target}"


def class_of(proposal: Proposal | None) -> FaultClass | None:
    """The class of the fault that a proposal is about."""
    return entry_of(catalogue(), proposal.fault).fault_class if proposal else None


def mark_of(ref: RepairRef, text: str = "under repair") -> Mark:
    """What stands on the node for this repair."""
    return Mark(repair_id=ref.repair_id, text=text)
