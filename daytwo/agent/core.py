"""The agent of one node: one loop over injected seams (`daytwo.agent.seams`), without threads or I/O of its own.

    seams = Seams(log=…, gpus=…, link=…, collector=…, clock=…, say=…)
    agent = Agent(AgentSettings(node="n1", boot_id="…"), seams, Spool(MemoryJournal()))
    delay = agent.step()    call again after `delay` seconds of `clock`, or when a seam has something to collect
    agent.close()           at the end: what is folded is spooled

`step` never blocks. One object is one boot of one agent: a node that reboots, or whose agent restarts, gets a new
`Agent` with the same journal, and after a boot with a new `boot_id`. `daytwo.agent.main` drives one of these with
threads behind the seams; the simulated fleet drives many from one loop: its `Link.send` starts the request and its
`Link.collect` returns the `Reply` when it is there, its `Gpus.ask` and `collect` answer from the simulated board, its
`KernelLog.collect` hands out injected records (`LogRecord(parse_line(text), sequence, at, (sequence,))`).

The first step asks for a reading of the GPUs; kernel records wait up to 5 s for it, to name a GPU by its UUID.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from daytwo import __version__
from daytwo.agent.changes import Change
from daytwo.agent.checks.completeness import Completeness
from daytwo.agent.checks.counters import Counters
from daytwo.agent.checks.gpus import CHECKS, probe_result
from daytwo.agent.checks.levels import Levels
from daytwo.agent.checks.look import Look
from daytwo.agent.errands import Errands
from daytwo.agent.exchange import Exchange
from daytwo.agent.folding import Folding
from daytwo.agent.gpu_schedule import GpuSchedule
from daytwo.agent.inventory import Inventory
from daytwo.agent.kernel_signals import KernelSignals
from daytwo.agent.load import Loads
from daytwo.agent.pulse import Pulse
from daytwo.agent.requests import Requests
from daytwo.agent.seams import Call, Clock, Collector, Gpus, KernelLog, Link, LogRecord, Position
from daytwo.agent.spool import Spool
from daytwo.wire import CheckState

LONGEST_STEP: Final = 60.0
SAVE_POSITION_EVERY: Final = 60.0


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """What one agent is told. Times are seconds; `identity` is the machine's DMI identity as `daytwo.wire` has it.

    `expected_gpus` None: learnt. `accept_user_records` is for tests: it believes records that a process wrote.
    """

    node: str
    boot_id: str
    identity: dict[str, str] = field(default_factory=dict)
    expected_gpus: int | None = None
    pulse_seconds: float = 60.0
    gpu_poll_seconds: float = 60.0
    gpu_deadline_seconds: float = 20.0
    accept_user_records: bool = False


@dataclass(frozen=True, slots=True)
class Seams:
    """Everything the agent touches the world through. `say` takes one plain line for the operator."""

    log: KernelLog
    gpus: Gpus
    link: Link
    collector: Collector
    clock: Clock
    say: Callable[[str], None]


class Agent:
    """One agent in one boot of its node. The module's docstring says how it is driven."""

    def __init__(self, settings: AgentSettings, seams: Seams, spool: Spool) -> None:
        self._settings, self._seams, self._spool, self._clock = settings, seams, spool, seams.clock
        self._started_at, self._position_saved_at = self._clock.now(), self._clock.uptime()
        self._place: LogRecord | None = None
        self._known_until = 0.0
        self._unsaved = False
        self._call: Call | None = None
        self._spool_error = ""
        self._dropped_before = spool.dropped
        self._folding = Folding()
        self._folding.restore(spool.recall("folded", []), self._clock.uptime())
        self._inventory = Inventory(spool, settings.expected_gpus)
        self._loads = Loads()
        self._levels = Levels(boot_id=settings.boot_id, spool=spool, clock=self._clock, report=self._report)
        self._kernel = KernelSignals(
            boot_id=settings.boot_id,
            accept_user_records=settings.accept_user_records,
            spool=spool,
            clock=self._clock,
            inventory=self._inventory,
            levels=self._levels,
            report=self._report,
        )
        self._counters = Counters(boot_id=settings.boot_id, spool=spool, clock=self._clock)
        self._completeness = Completeness(self._levels, self._clock)
        self._schedule = GpuSchedule(settings.gpu_poll_seconds, self._clock.uptime())
        self._requests = Requests(boot_id=settings.boot_id, spool=spool, clock=self._clock)
        self._errands = Errands(
            boot_id=settings.boot_id,
            requests=self._requests,
            gpus=seams.gpus,
            collector=seams.collector,
            spool=spool,
            clock=self._clock,
        )
        self._look: Look | None = None
        self._pulse = Pulse()
        self._exchange = Exchange(spool, pulse_seconds=settings.pulse_seconds, say=seams.say)
        self._checks: dict[str, CheckState] = dict.fromkeys(("kernel-log", *CHECKS), "unknown")
        self._start_log()

    @property
    def checks(self) -> dict[str, CheckState]:
        """The state of each check, as the next pulse tells it."""
        return dict(self._checks)

    def step(self) -> float:
        """Do what there is to do; return the seconds until the next step, unless a seam has something earlier."""
        self._read_link()
        self._read_gpus()
        self._read_log()
        self._answer_kernel_probes()
        self._errands.step(self._readings)
        self._ask_gpus()
        self._release(self._folding.due(self._clock.uptime()))
        self._commit()
        self._speak()
        return self._delay()

    def close(self) -> None:
        """Spool what is folded. Nothing is sent any more."""
        self._release(self._folding.flush())
        self._unsaved = True
        self._commit()

    def _start_log(self) -> None:
        """Go on in the log; in another source than before only what is newer: its numbers are not comparable."""
        saved = self._spool.recall("position", {})
        same_boot = saved.get("boot_id") == self._settings.boot_id
        same_source = saved.get("source", self._source()) == self._source()
        self._known_until = saved.get("at", 0.0) if same_boot and not same_source else 0.0
        place: Position | None = tuple(saved["position"]) if saved and same_source else None
        self._seams.log.start(place, same_boot=same_boot)

    def _source(self) -> str:
        return self._seams.log.status().source

    def _report(self, change: Change) -> None:
        self._unsaved = True
        if ready := self._folding.add(change, self._clock.uptime()):
            self._release([ready])

    def _release(self, changes: list[Change]) -> None:
        if changes:
            self._unsaved = True
            self._spool.add(changes)

    def _read_link(self) -> None:
        reply = self._seams.link.collect()
        if reply is None or self._call is None:
            return
        call, self._call = self._call, None
        if self._exchange.on_reply(call, reply, self._clock.uptime()) and call.what == "pulse":
            self._requests.confirm(call.body["answers"])
            self._requests.take(reply.body.get("requests"), reply.body.get("withdrawn"))
            self._pulse.confirm(send_full=reply.body.get("send_full") is True)
            self._say_again(reply.body.get("firing"))

    def _say_again(self, firing: Any) -> None:
        """The store was put back to an earlier moment: say what it does not know, and read this boot's log anew."""
        if not isinstance(firing, list):
            return
        self._seams.say("the control plane has forgotten what it was told; it is told again")
        self._levels.adopt([tuple(pair) for pair in firing if _is_pair(pair)])
        self._spool.restart_stream()
        self._kernel.begin_again()
        self._seams.log.start(None, same_boot=True)

    def _read_gpus(self) -> None:
        report = self._seams.gpus.collect()
        if report is None:
            return
        asked_at, wanted_by = self._schedule.done(report, self._clock.uptime())
        if not report.trouble:
            self._levels.release(self._inventory.learn(report))
        self._loads.take(report, self._clock.uptime())
        if self._errands.is_quiet:
            return  # cut off; whoever asked for it is answered when the quiet has ended
        look = self._look = Look(report, self._inventory, self._levels, self._counters, asked_at)
        self._checks.update({name: check(look) for name, check in CHECKS.items()})
        self._counters.keep(report)
        self._requests.finish(wanted_by, probe_result(look))

    def _read_log(self) -> None:
        if not self._schedule.names_known(self._clock.uptime()):
            return
        for record in self._seams.log.collect():
            self._place = record
            if record.at > self._known_until:
                self._kernel.read(record)
        dropped = self._spool.dropped - self._dropped_before
        self._checks["kernel-log"] = self._completeness.look(self._seams.log.status(), dropped)

    def _answer_kernel_probes(self) -> None:
        wanted = self._requests.open("probe-kernel")
        if wanted and self._schedule.names_known(self._clock.uptime()):
            self._requests.finish(wanted, self._kernel.probe(self._seams.log.status()))

    def _readings(self) -> dict[str, Any]:
        """What the agent knows of its node, for evidence."""
        gpus = self._look.report.gpus if self._look else ()
        return {
            **self._settings.identity,
            "version": __version__,
            "boot_id": self._settings.boot_id,
            "checks": self._checks,
            "gpus": probe_result(self._look) if self._look else None,
            "memory": {gpu.uuid or str(gpu.index): dict(gpu.counts) for gpu in gpus},
            "kernel": self._kernel.probe(self._seams.log.status()),
        }

    def _ask_gpus(self) -> None:
        if self._errands.is_quiet:
            self._checks.update(dict.fromkeys(CHECKS, "off"))
            return
        uptime, wanted = self._clock.uptime(), self._requests.open("probe-gpus")
        if not self._schedule.may_ask(uptime, wanted):
            return
        deadline = self._settings.gpu_deadline_seconds
        if wanted:
            deadline = min(deadline, self._requests.seconds_left(wanted))
        self._schedule.asked(uptime, wanted)
        self._seams.gpus.ask(deadline)

    def _commit(self) -> None:
        """Write down the step: the place in the log and the records that came from there, together or not at all."""
        uptime = self._clock.uptime()
        if self._unsaved or uptime - self._position_saved_at >= SAVE_POSITION_EVERY:
            self._position_saved_at, self._unsaved = uptime, False
            self._remember_place()
        self._spool.commit()
        if self._spool.error != self._spool_error:
            self._spool_error = self._spool.error
            self._seams.say(self._spool_error or "the spool can be written again")

    def _remember_place(self) -> None:
        if self._place is not None:
            place = {"boot_id": self._settings.boot_id, "source": self._source(), "at": self._place.at}
            self._spool.remember("position", place | {"position": list(self._place.position)})
        self._spool.remember("folded", self._folding.to_json())
        self._kernel.remember()

    def _speak(self) -> None:
        uptime = self._clock.uptime()
        if self._requests.has_news or self._pulse.is_news(self._checks, self._told_inventory()):
            self._exchange.hurry(uptime)
        envelope = {"boot_id": self._settings.boot_id, "clock": self._clock.now()}
        call = self._exchange.next_call(uptime, envelope, self._pulse_body)
        if call is not None:
            self._call = call
            self._seams.link.send(call)

    def _pulse_body(self) -> dict[str, Any]:
        about = {"version": __version__, "started_at": self._started_at, "identity": self._settings.identity}
        about["kernel_log"] = self._source()
        return about | self._pulse.body(dict(self._checks), self._told_inventory(), self._requests.unsent())

    def _told_inventory(self) -> dict[str, Any] | None:
        return self._inventory.to_wire(self._loads.told(self._clock.uptime()))

    def _delay(self) -> float:
        uptime = self._clock.uptime()
        fold_due = self._folding.next_due()
        quiet = self._errands.wait(uptime)
        waits = [LONGEST_STEP, self._exchange.wait(uptime)]
        waits += [self._schedule.wait(uptime) if quiet is None else quiet]
        waits += [fold_due - uptime] if fold_due is not None else []
        return max(0.0, min(waits))


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(each, str) for each in value)
