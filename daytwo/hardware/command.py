"""A program of the operators as hardware driver: JSON in, JSON out, exit codes. docs/hardware-command.md specifies it.

`daytwo.adapters` builds one for a cluster that declares `hardware: {driver: command}`. The program is never believed
further than it can be read: what it cannot say in the words of the specification is unknown.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple

from daytwo.domain.definition import CommandHardware as Definition
from daytwo.domain.errors import NotYet, Refused, UnknownAnswer
from daytwo.domain.seams import Act, ActKind, AlreadyDone, Look, NotOurs, Outcome, Preparation, Program, Scheduler
from daytwo.hardware.command_answers import Answer, Told, read
from daytwo.hardware.redfish_identity import identity_of, same_machine
from daytwo.hardware.redfish_memory import Memory
from daytwo.hardware.redfish_rules import not_marked
from daytwo.hardware.references import resolve
from daytwo.hardware.watching import Watching, unwatched
from daytwo.sending import Sender

VERSION: Final = 1
TRY_AGAIN_SECONDS: Final = 10.0

Question = Literal["baseline", "check", "act", "look"]


class _Asked(NamedTuple):
    """What came of a question: the answer, or `problem`, with what it means."""

    told: Told
    answer: Answer
    problem: str


class CommandHardware:
    """`Hardware` by an operator's program. Proof: its own word, or a new boot id of the agent, which goes before."""

    def __init__(
        self, definition: Definition, scheduler: Scheduler, memory: Memory, *, watching: Watching = unwatched
    ) -> None:
        self._definition, self._scheduler, self._memory = definition, scheduler, memory
        self._watching = watching
        self.settle_seconds: float = definition.settle_seconds

    def capabilities(self) -> frozenset[ActKind]:
        """What the definition says that the program can do."""
        return frozenset(ActKind(act) for act in self._definition.acts)

    async def baseline(self, act: Act) -> Act:
        """Add what the program tells of the machine now.

        Raises `Refused` where it refuses or would act on another machine, `NotYet` where it wants to be asked again,
        `UnknownAnswer` for what cannot be read.
        """
        asked = await self._ask("baseline", act)
        self._raise_unless_told(act, asked)
        if theirs := self._another_machine(act, asked.answer):
            raise Refused(theirs)
        known = {"command": asked.answer.baseline, "at": self._memory.now().isoformat()}
        return act.model_copy(update={"baseline": {**act.baseline, **known}})

    async def prepare(self, act: Act) -> Preparation:
        """Look whose the node and the machine are, and describe the order."""
        if theirs := not_marked(act, await self._scheduler.node(act.node)):
            return NotOurs(found=theirs)
        asked = await self._ask("check", act)
        if asked.told == "refused":
            return NotOurs(found=f"{act.node}: {asked.problem}")
        self._raise_unless_told(act, asked)
        if theirs := self._another_machine(act, asked.answer):
            return NotOurs(found=theirs)
        if asked.answer.outcome is Outcome.DONE:
            return AlreadyDone(proof=asked.answer.proof)
        if asked.answer.outcome in (Outcome.PENDING, Outcome.UNCLEAR):
            raise NotYet(
                f"{act.node}: the program says {asked.answer.outcome}: {asked.answer.proof}", TRY_AGAIN_SECONDS
            )
        return self._program("act", act, self._definition.act_seconds)

    async def look(self, act: Act) -> Look:
        """Say whether it happened. Raises `NotYet` where the program wants to be asked again, or hangs."""
        asked = await self._ask("look", act)
        if asked.told in ("try-again", "late"):
            raise NotYet(f"{act.node}: {asked.problem}", TRY_AGAIN_SECONDS)
        if asked.told != "told" or (theirs := self._another_machine(act, asked.answer)):
            found = asked.problem or theirs
            return Look(outcome=Outcome.UNCLEAR, proof=found, proof_type="command")
        heard = await asyncio.to_thread(self._memory.heard, act.node)
        return self._judge(act, asked.answer, heard.boot_id)

    def _judge(self, act: Act, answer: Answer, heard: str | None) -> Look:
        """The program's word, and the agent's: one that speaks from another boot saw the boot, whoever made it."""
        before = act.baseline.get("boot_id")
        booted = bool(before and heard and heard != before)
        proof = f"{answer.proof}; boot {before} became {heard}" if booted else answer.proof
        if answer.outcome is Outcome.NOT_DONE and booted:
            return Look(outcome=Outcome.UNCLEAR, proof=f"the program says not done: {proof}", proof_type="command")
        said = answer.outcome or Outcome.UNCLEAR
        done = said is Outcome.DONE or (booted and said is Outcome.UNCLEAR)
        outcome = Outcome.DONE if done else said
        return Look(outcome=outcome, proof=proof, proof_type="agent-boot-id" if done and booted else "command")

    async def _ask(self, question: Question, act: Act) -> _Asked:
        seconds = self._definition.question_seconds
        async with Sender(self._program(question, act, seconds), seconds) as child:
            asked = _Asked(*read(question, await child.go()))
        with suppress(UnknownAnswer):
            async with self._watching(act.node):
                if asked.told in ("late", "unknown"):
                    raise UnknownAnswer(asked.problem)
        return asked

    def _program(self, question: Question, act: Act, seconds: float) -> Program:
        secrets = {name: resolve(where, f"hardware: {name}") for name, where in self._definition.secrets.items()}
        now = self._memory.now()
        told: dict[str, Any] = {
            "version": VERSION,
            "question": question,
            "cluster": act.cluster,
            "node": act.node,
            "act": act.kind.value,
            "repair": act.mark.repair_id,
            "identity": act.baseline.get("identity") or {},
            "baseline": act.baseline.get("command") or {},
            "deadline": (now + timedelta(seconds=seconds)).timestamp(),
        }
        return Program(argv=self._definition.program, input=told, secrets=secrets, seconds=seconds)

    def _raise_unless_told(self, act: Act, asked: _Asked) -> None:
        problem = f"{act.node}: {asked.problem}"
        if asked.told == "refused":
            raise Refused(problem)
        if asked.told == "try-again":
            raise NotYet(problem, TRY_AGAIN_SECONDS)
        if asked.told != "told":
            raise UnknownAnswer(problem)

    def _another_machine(self, act: Act, answer: Answer) -> str:
        """Say that the program would act on another machine than the agent's, or ""."""
        if not self._definition.check_identity:
            return ""
        at = act.baseline.get("at")
        identity = identity_of(act, datetime.fromisoformat(at) if at else self._memory.now())
        if same_machine(identity, answer.identity.get("system_uuid"), answer.identity.get("serial")):
            return ""
        found = ", ".join(f"{name} {value}" for name, value in sorted(answer.identity.items())) or "no identity"
        return f"{act.node}: the program tells of {found}; its agent said {identity}"
