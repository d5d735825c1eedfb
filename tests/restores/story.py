"""What happens before a backup, between it and the restore, and the restore itself. A node for each way of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from sqlmodel import col, select

from daytwo.domain.vocabulary import DecisionKind, State
from daytwo.store import backups
from daytwo.store.tables import FreezeRow, RestoreRow
from tests.workflows.plane import Plane

LONG = 90.0


@dataclass
class Story:
    """The plane, its backup, and its nodes by what happened to them."""

    plane: Plane
    backup: Path
    nodes: dict[str, str] = field(default_factory=dict)
    restored: backups.Backup | None = None

    def __getitem__(self, what: str) -> str:
        return self.nodes[what]

    async def settled(self) -> None:
        """Wait until the store and Temporal agree again."""
        await self.plane.until(self._is_settled, "settled after the restore", LONG)

    def _is_settled(self) -> bool:
        with self.plane.store.read() as session:
            return session.exec(select(RestoreRow).where(col(RestoreRow.settled_at).is_(None))).first() is None

    def is_frozen(self) -> bool:
        with self.plane.store.read() as session:
            return session.exec(select(FreezeRow).where(col(FreezeRow.thawed_at).is_(None))).first() is not None


async def until_the_backup(plane: Plane, root: Path) -> Story:
    """Some repairs are proposed and one is under way; then the store is copied while everything goes on."""
    story = Story(plane, root / "backup.db")
    before = ("waits", "succeeds-later", "acts-later", "dismissed-later")
    breaking = (plane.broken("xid-79", never_comes_back=name == "acts-later") for name in before)
    found = await asyncio.gather(*breaking, _acting(plane))
    story.nodes = dict(zip((*before, "acts"), found, strict=True))
    await asyncio.gather(*(plane.proposed(story[name]) for name in before))
    await asyncio.to_thread(backups.take, plane.store, story.backup, actor="cli:ann", now=datetime.now(UTC))
    return story


async def until_the_restore(story: Story) -> None:
    """What the backup does not know."""
    plane = story.plane
    await asyncio.gather(
        _succeeds(plane, story["succeeds-later"]),
        _dismissed(plane, story["dismissed-later"]),
        _opened(story),
        _opened_and_ended(story),
        plane.in_state(story["acts"], State.NEEDS_HELP, seconds=LONG),
    )
    # Last, for what is under way in the end must not have come to an end of its own.
    await _acts(plane, story["acts-later"])


def put_back(story: Story) -> backups.Backup:
    """Restore the store from the backup."""
    plane = story.plane
    aside, now = plane.settings.state_dir / "aside.db", datetime.now(UTC)
    return backups.put_back(plane.settings.store_url, story.backup, aside=aside, actor="cli:ann", now=now)


async def _acting(plane: Plane) -> str:
    node = await plane.broken("xid-119", never_comes_back=True)
    await _acts(plane, node)
    return node


async def _acts(plane: Plane, node: str) -> None:
    await plane.approved(node)
    await plane.until(lambda: ("reboot", "sent") in plane.intents(node), f"{node} is booted", LONG)


async def _succeeds(plane: Plane, node: str) -> None:
    await plane.approved(node)
    await plane.in_state(node, State.SUCCEEDED, seconds=LONG)


async def _dismissed(plane: Plane, node: str) -> None:
    await plane.decide(node, DecisionKind.DISMISS, snooze_seconds=3600)
    await plane.in_state(node, State.DISMISSED)


async def _opened(story: Story) -> None:
    story.nodes["opened-later"] = await story.plane.broken("xid-79")
    await story.plane.proposed(story["opened-later"])


async def _opened_and_ended(story: Story) -> None:
    story.nodes["opened-and-ended-later"] = await story.plane.broken("xid-119")
    await _succeeds(story.plane, story["opened-and-ended-later"])
