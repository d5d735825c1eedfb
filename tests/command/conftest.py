"""A machine behind a program: the example of the docs before a fake ipmitool, or a program of the test's own."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from daytwo.domain.definition import CommandHardware as Definition
from daytwo.domain.seams import Act, ActKind, NodeFacts, Ownership
from daytwo.domain.vocabulary import Mark
from daytwo.hardware.command import CommandHardware
from daytwo.hardware.redfish_memory import Memory
from daytwo.hardware.watching import Watching, unwatched
from daytwo.store.engine import Store
from daytwo.store.tables import NodeRow

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "ipmi-power.py"
PASSWORD = "correct-horse-battery"
REPAIR = "r-20261130-030000-aaaaa"
NODE = "gpu-001"
SINCE = datetime.now(UTC)
UUID = "4c4c4544-0042-3510-8052-b4c04f4d3732"


@dataclass
class Marks:
    """The scheduler as far as the driver asks it: whose the node is."""

    ownership: Ownership = Ownership.OURS
    busy: bool = False

    async def node(self, node: str) -> NodeFacts:
        return NodeFacts(
            node=node,
            states=("IDLE", "DRAIN"),
            reason="told",
            ownership=self.ownership,
            mark_repair_id=REPAIR,
            busy=self.busy,
            at=datetime.now(UTC),
        )


@dataclass
class Machine:
    """All that a test may turn: the machine behind ipmitool, the marks, what the agent said, the driver."""

    folder: Path
    store: Store
    program: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)
    marks: Marks = field(default_factory=Marks)
    kind: ActKind = ActKind.POWER_CYCLE
    watching: Watching = unwatched

    @property
    def hardware(self) -> CommandHardware:
        definition = Definition(
            driver="command", program=self.program, secrets={"password": f"file:{self.folder}/password"}, **self.options
        )
        memory = Memory(self.store, "east", datetime.now(UTC))
        marks: Any = self.marks  # what it asks of a scheduler
        return CommandHardware(definition, marks, memory, watching=self.watching)

    @property
    def act(self) -> Act:
        said = {"boot_id": "boot-1", "identity": {"system_uuid": UUID}, "identity_at": SINCE.isoformat()}
        mark = Mark(repair_id=REPAIR, text="test")
        return Act(kind=self.kind, cluster="east", node=NODE, target=NODE, mark=mark, baseline=said)

    def is_now(self, **changed: Any) -> None:
        """Change the machine behind ipmitool."""
        path = self.folder / "machine.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))

    def agent_says(self, boot_id: str) -> None:
        with self.store.write() as session:
            now = datetime.now(UTC)
            session.merge(NodeRow(cluster="east", name=NODE, state_since=now, boot_id=boot_id, last_heard_at=now))

    def orders(self) -> int:
        return int(json.loads((self.folder / "machine.json").read_text())["cycles"])

    async def come_up(self) -> None:
        self.is_now(power="on")

    async def another_marks_the_node(self) -> None:
        self.marks.ownership = Ownership.FOREIGN

    async def becomes_busy(self) -> None:
        self.marks.busy = True

    async def is_another_machine(self) -> None:
        self.is_now(uuid="99999999-0042-3510-8052-b4c04f4d3732")

    def saying(self, *lines: str) -> Machine:
        """The same with a program of these lines of Python; `asked` is what it was asked."""
        path = self.folder / "program.py"
        head = ("import json, os, subprocess, sys, time", "asked = json.load(sys.stdin)")
        path.write_text("\n".join((*head, *lines)))
        self.program = (sys.executable, str(path))
        return self


@pytest.fixture
def store_url(tmp_path: Path, migrated_file: Path) -> str:
    """One kind of database: nothing is kept here but what the agent said."""
    shutil.copyfile(migrated_file, tmp_path / "daytwo.db")
    return f"sqlite:///{tmp_path}/daytwo.db"


@pytest.fixture
def machine(tmp_path: Path, store: Store) -> Machine:
    """The example script, with the fake ipmitool before all others on its path."""
    shutil.copy(Path(__file__).with_name("ipmitool"), tmp_path)
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    state = {"power": "on", "after": "on", "down": False, "logs": True, "uuid": UUID, "password": PASSWORD}
    (tmp_path / "machine.json").write_text(json.dumps({**state, "cycles": 0, "events": ["Log area cleared"]}))
    run = f"PATH={tmp_path}:$PATH exec {sys.executable} {EXAMPLE} gpu-001-bmc"
    return Machine(tmp_path, store, ("/bin/sh", "-c", run))


@pytest.fixture
def hardware_world(machine: Machine) -> Machine:
    return machine
