"""Power through BMCs, by Redfish: a graceful restart, a power cycle. Identity first, then everybody else's hands.

`daytwo.adapters` builds one for a cluster that declares `bmcs`, beside its scheduler's own driver. sushy is blocking,
so each conversation has a thread; a BMC that hangs holds one thread and is asked nothing else meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from daytwo.domain.definition import BmcAccess
from daytwo.domain.errors import NotYet, Refused, TryAgain, Unreachable
from daytwo.domain.node_ranges import expand_nodes
from daytwo.domain.seams import (
    Act,
    ActKind,
    AlreadyDone,
    HttpsRequest,
    Look,
    NotOurs,
    Outcome,
    Preparation,
    Scheduler,
)
from daytwo.hardware import redfish_rules as rules
from daytwo.hardware import redfish_system as bmc
from daytwo.hardware.redfish_identity import identity_of
from daytwo.hardware.redfish_memory import Memory
from daytwo.hardware.redfish_session import READ_SECONDS, Conversation, LoginRefused, Token, ca_file, errors_of
from daytwo.hardware.watching import Watching, unwatched

log = logging.getLogger(__name__)

SETTLE_SECONDS: Final = 30.0
"""A BMC that took an order resets within seconds; a task that it made of it is seen by itself."""
TALK_SECONDS: Final = 60.0
"""For a whole conversation of some ten questions."""
LEFT_OPEN_SECONDS: Final = 60.0
"""A session that nobody came back for in this time is ended. BMCs have few, and end them after half an hour."""
CAPABILITIES: Final = frozenset({ActKind.REBOOT, ActKind.POWER_CYCLE})
_THREADS: Final = ThreadPoolExecutor(16, thread_name_prefix="redfish")

R = TypeVar("R")


class RedfishHardware:
    """`Hardware` on the BMCs of one cluster. Proof: LastResetTime, the power seen off, a new boot id of the agent."""

    settle_seconds: float = SETTLE_SECONDS

    def __init__(
        self,
        bmcs: Iterable[BmcAccess],
        scheduler: Scheduler,
        memory: Memory,
        *,
        read_seconds: float = READ_SECONDS,
        talk_seconds: float = TALK_SECONDS,
        left_open_seconds: float = LEFT_OPEN_SECONDS,
        watching: Watching = unwatched,
    ) -> None:
        self._access: dict[str, BmcAccess] = {}
        for access in bmcs:
            for name in expand_nodes(access.nodes):
                self._access.setdefault(name, access)
        self._scheduler, self._memory, self._watching = scheduler, memory, watching
        self._read_seconds, self._talk_seconds = read_seconds, talk_seconds
        self._left_open = timedelta(seconds=left_open_seconds)
        self._tokens: dict[str, Token] = {}
        self._asked: dict[str, BmcAccess] = {}
        self._busy: set[str] = set()
        self._seen_off: set[str] = set()

    def capabilities(self) -> frozenset[ActKind]:
        """What Redfish can do. What a BMC allows is read from it before each act."""
        return CAPABILITIES

    async def baseline(self, act: Act) -> Act:
        """Add what the BMC tells of the machine now.

        Raises `Refused` if no BMC is known as this machine's, `NotYet` while it boots: what moves by itself proves
        nothing.
        """
        identity = identity_of(act, self._memory.now())
        state = await self._ask(
            act, lambda talk: rules.at_rest(act, bmc.state(bmc.find(talk, identity)), talk.bmc_time)
        )
        known = {"bmc": rules.known(state), "at": self._memory.now().isoformat()}
        return act.model_copy(update={"baseline": {**act.baseline, **known}})

    async def prepare(self, act: Act) -> Preparation:
        """Look whose the node and the machine are, and describe the reset. Raises `NotYet` while it boots and moves."""
        if theirs := rules.not_marked(act, await self._scheduler.node(act.node)):
            return NotOurs(found=theirs)
        return await self._ask(act, lambda talk: self._prepare(talk, act))

    async def look(self, act: Act) -> Look:
        """Say whether the machine was reset, and is up again as far as its BMC can see."""
        return await self._ask(act, lambda talk: self._look(talk, act))

    def _prepare(self, talk: Conversation, act: Act) -> Preparation:
        system = bmc.find(talk, identity_of(act, self._memory.now()))
        state = bmc.state(system)
        if rules.reset_since(act, state):
            return AlreadyDone(proof=f"{system.path} was reset at {state.last_reset}")
        theirs = rules.anothers_power(act, state) or bmc.located(talk, system) or bmc.tasks(talk)
        if theirs:
            return NotOurs(found=f"{act.node}, {talk.address}: {theirs}")
        rules.at_rest(act, state, talk.bmc_time)
        way = bmc.way(talk, system, act.kind)
        log.info("%s: %s by %s at %s%s", act.node, act.kind, way.reset_type, talk.address, way.target)
        return HttpsRequest(
            url=talk.address + way.target,
            body={"ResetType": way.reset_type},
            secret_headers=talk.headers,
            ca_file=ca_file(talk.access),
            verify=talk.access.verify,
        )

    def _look(self, talk: Conversation, act: Act) -> Look:
        state = bmc.state(bmc.find(talk, identity_of(act, datetime.fromisoformat(act.baseline["at"]))))
        key = f"{act.mark.repair_id}/{act.kind}/{act.baseline['at']}"
        if state.power != "On":
            self._seen_off.add(key)
        return rules.judge(
            act,
            state,
            at_work=bmc.tasks(talk),
            seen_off=key in self._seen_off,
            heard=self._memory.heard(act.node),
            now=self._memory.now(),
        )

    async def _ask(self, act: Act, question: Callable[[Conversation], R]) -> R:
        """Have one conversation with the node's BMC, in a thread."""
        access = self._access.get(act.node)
        if access is None:
            raise Refused(f"{act.node}: no entry of `bmcs` names it, so its power cannot be reached")
        address = access.address.replace("{node}", act.node).rstrip("/")
        if address in self._busy:
            raise NotYet(f"{address}: has not answered the question before this one", 5.0)
        self._busy.add(address)
        asked = asyncio.get_running_loop().run_in_executor(_THREADS, self._converse, address, access, question)
        asked.add_done_callback(lambda done: self._free(address, done))
        async with self._watching(act.node):
            return await self._in_time(address, asked)

    async def _in_time(self, address: str, asked: asyncio.Future[R]) -> R:
        try:
            async with asyncio.timeout(self._talk_seconds):
                return await asyncio.shield(asked)
        except TimeoutError:
            raise Unreachable(f"{address}: did not answer in {self._talk_seconds:.0f} s") from None

    def _free(self, address: str, done: asyncio.Future[R]) -> None:
        self._busy.discard(address)
        if not done.cancelled():
            done.exception()  # read, so that nobody complains where the asker has given up

    def _converse(self, address: str, access: BmcAccess, question: Callable[[Conversation], R]) -> R:
        self._memory.check(address)
        self._asked[address] = access
        talk, log_out = Conversation(address, access, self._tokens, self._read_seconds), True
        try:
            with errors_of(talk):
                talk.enter()
                self._memory.accepted(address)
                answer = question(talk)
                log_out = not _goes_on(answer)
                return answer
        except LoginRefused:
            self._memory.refused(address)
            raise NotYet(f"{address}: refused the login of {access.user} (HTTP 401); a pause follows", 60.0) from None
        except TryAgain:
            log_out = False  # the next try goes on with the session
            raise
        finally:
            talk.leave(log_out=log_out)
            self._end_left_open()

    def _end_left_open(self) -> None:
        """End sessions that nobody came back for: an act that was stopped at the last moment."""
        late = datetime.now(UTC) - self._left_open
        for address, token in list(self._tokens.items()):
            if token.at < late and address not in self._busy:
                # Where another BMC's password is gone its session ends by itself: not this conversation's trouble.
                with suppress(Refused):
                    Conversation(address, self._asked[address], self._tokens, self._read_seconds).leave(log_out=True)
                self._tokens.pop(address, None)


def _goes_on(answer: object) -> bool:
    """Say whether the same session is needed again at once: by the child that sends, or by the next look."""
    return isinstance(answer, HttpsRequest) or (isinstance(answer, Look) and answer.outcome is Outcome.PENDING)
