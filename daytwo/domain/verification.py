"""Is the node fit to return? Judges what its agent and its scheduler answered, by the tests that the proposal names.

The activity `verify` asks the agent what `plan` says and calls `judge` until nothing is left to wait for. Unknown is
never a pass, and no result at all is a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final, Literal

from daytwo.domain.agent_answers import Gpu, Gpus, Kernel, read_answer
from daytwo.domain.cases import entry_of
from daytwo.domain.machines import Identity
from daytwo.domain.policy import Policy
from daytwo.domain.seams import NodeFacts
from daytwo.domain.vocabulary import Frozen, Mode
from daytwo.faults.catalogue import catalogue
from daytwo.faults.model import VerifyTest

T = VerifyTest
Result = Literal["passed", "failed", "unknown", "untested"]

OF_GPUS: Final = frozenset({T.GPU_COUNT, T.GPU_UUIDS, T.RECOVERY_ACTION_ZERO, T.NO_PENDING_REMAP, T.DRIVER})
OF_KERNEL: Final = frozenset({T.NO_NEW_XID})
OF_FACTS: Final = frozenset({T.SLURM_GRES})
ACCEPTABLE: Final = frozenset({T.GPU_UUIDS, T.SAME_MACHINE})
"""What may differ for good where somebody has swapped a part: a person who has read of it may accept it."""
ACCEPT: Final = "if it was swapped on purpose, `daytwo repairs return` accepts it"
NOBODY: Final = Identity(None, None)


class Plan(Frozen):
    """What must be asked before the tests can be judged."""

    needs_gpus: bool
    needs_kernel: bool
    needs_facts: bool


class Evidence(Frozen):
    """What was answered, and what it is held against. `None` is not known.

    `gpus` and `kernel` are the agent's answers to `probe-gpus` and `probe-kernel`, both of the boot `boot_id_now`.
    `boot_expected`: the act boots the node. `same_boot_ok`: the boot of before is fine all the same. Without `acted_at`
    nothing was done to the node, and the time of quiet counts backwards from `now`. `identity_before` is who the node
    was before its fault, `identity_now` who answered, `answered_in` the boots of which these answers are. `accepted`
    are the texts of tests that a person has read, and wants the node back all the same.
    """

    wanted: tuple[str, ...]
    gpus: dict[str, Any] | None
    kernel: dict[str, Any] | None
    facts: NodeFacts | None
    expected_gpus: int | None
    known_uuids: tuple[str, ...]
    boot_id_before: str | None
    boot_id_now: str | None
    boot_expected: bool
    same_boot_ok: bool = False
    acted_at: datetime | None
    now: datetime
    fault: str
    entities: tuple[str, ...] = ()
    identity_before: Identity = NOBODY
    identity_now: Identity = NOBODY
    answered_in: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()


class TestResult(Frozen):
    """One test. `text` says what was found."""

    __test__ = False  # not a class of tests, whatever pytest makes of its name

    name: str
    result: Result
    text: str


class Verification(Frozen):
    """The outcome. `still_faulty` names the tests that show a fault; empty and not passed, a person must look.

    `untested` are tests that daytwo cannot run yet. `wait_seconds` is above 0 while the quiet time runs.
    """

    results: tuple[TestResult, ...]
    passed: bool
    still_faulty: tuple[str, ...]
    untested: tuple[str, ...]
    summary: str
    wait_seconds: float = 0.0


def plan(tests: Iterable[str]) -> Plan:
    """Say what must be asked for these tests."""
    names = set(tests)
    return Plan(
        needs_gpus=bool(names & OF_GPUS),
        needs_kernel=bool(names & (OF_KERNEL | {T.BOOT_ID})),
        needs_facts=bool(names & OF_FACTS),
    )


def judge(evidence: Evidence, policy: Policy | None = None) -> Verification:
    """Judge every test that was wanted. Never raises: an answer that cannot be read is unknown."""
    bench = _Bench(evidence, policy or Policy())
    results = tuple(bench.run(name) for name in dict.fromkeys(evidence.wanted))
    by_result = {kind: tuple(r.name for r in results if r.result == kind) for kind in ("failed", "unknown", "untested")}
    passed = any(r.result == "passed" for r in results) and not by_result["failed"] and not by_result["unknown"]
    still_faulty = tuple(name for name in by_result["failed"] if name not in bench.for_a_person)
    return Verification(
        results=results,
        passed=passed,
        still_faulty=() if T.SAME_MACHINE in (*by_result["failed"], *by_result["unknown"]) else still_faulty,
        untested=by_result["untested"],
        summary=_summary(results, by_result["untested"], evidence.fault),
        wait_seconds=0.0 if by_result["failed"] else bench.wait_seconds,
    )


def _summary(results: tuple[TestResult, ...], untested: tuple[str, ...], fault: str) -> str:
    ran = [r for r in results if r.result != "untested"]
    parts = [f"{sum(r.result == 'passed' for r in ran)} of {len(ran)} tests for {fault} passed"]
    parts += [f"{r.result}: {r.name} ({r.text})" for r in ran if r.result != "passed"]
    if untested:
        parts.append(f"returned untested: {', '.join(untested)}")
    return "; ".join(parts)


Said = tuple[Result, str]


class _Bench:
    """The tests, over one set of answers."""

    def __init__(self, evidence: Evidence, policy: Policy) -> None:
        self.evidence, self.policy = evidence, policy
        self.gpus = read_answer(Gpus, evidence.gpus)
        self.kernel = read_answer(Kernel, evidence.kernel)
        self.wait_seconds = 0.0
        self.for_a_person = {T.BOOT_ID, T.SAME_MACHINE}
        self._tests: dict[str, Callable[[], Said]] = {
            T.BOOT_ID: self._boot_id,
            T.GPU_COUNT: self._gpu_count,
            T.GPU_UUIDS: self._gpu_uuids,
            T.RECOVERY_ACTION_ZERO: self._recovery_action_zero,
            T.NO_PENDING_REMAP: self._no_pending_remap,
            T.NO_NEW_XID: self._no_new_xid,
            T.SLURM_GRES: self._slurm_gres,
            T.DRIVER: self._driver,
            T.SAME_MACHINE: self._same_machine,
        }

    def run(self, name: str) -> TestResult:
        test = self._tests.get(name)
        result, text = test() if test else ("untested", "daytwo cannot run it yet")
        if name in ACCEPTABLE and result in ("failed", "unknown") and text in self.evidence.accepted:
            result, text = "passed", f"accepted: {text}"
        return TestResult(name=name, result=result, text=text)

    def _boot_id(self) -> Said:
        before, now = self.evidence.boot_id_before, self.evidence.boot_id_now
        if now is None:
            return "unknown", "the agent has not said in which boot it runs"
        if other := self._other_boot(now):
            return "unknown", f"the answers are of two boots, {other} and {now}"
        if not self.evidence.boot_expected or self.evidence.same_boot_ok:
            return "passed", f"it runs in boot {now}"
        if before is None:
            return "unknown", "the boot before the act is not known"
        return ("failed", f"still in boot {now}") if now == before else ("passed", f"boot {before} became {now}")

    def _other_boot(self, now: str | None) -> str | None:
        """A boot that is not the one the node runs, and of which an answer is."""
        boots = (self.kernel.boot_id if self.kernel else None, *self.evidence.answered_in)
        return next((boot for boot in boots if boot not in (None, now)), None)

    def _expected(self) -> int | None:
        """How many GPUs there should be: as declared, else as many as were ever known, here or to the agent."""
        if self.evidence.expected_gpus is not None:
            return self.evidence.expected_gpus
        learnt = self.gpus.expected if self.gpus else None
        return max(len(self.evidence.known_uuids), learnt or 0) or learnt

    def _gpu_count(self) -> Said:
        if self.gpus is None:
            return "unknown", "the GPUs were not read"
        if self.gpus.error and self._expected() != 0:
            return "failed", self.gpus.error
        expected, answer = self._expected(), sum(gpu.ok for gpu in self.gpus.gpus)
        if expected is None:
            return "unknown", f"{answer} GPUs answer, and nobody has said how many there should be"
        return ("passed" if answer == expected else "failed"), f"{answer} of {expected} GPUs answer"

    def _gpu_uuids(self) -> Said:
        if self.gpus is None:
            return "unknown", "the GPUs were not read"
        known, there = set(self.evidence.known_uuids), {gpu.uuid or "?" for gpu in self.gpus.gpus if gpu.ok}
        if not known and self._expected() != 0:
            these = f"these answer: {', '.join(sorted(there)) or 'none'}"
            return "unknown", f"which GPUs the node had before is not known; {these}; {ACCEPT}"
        missing, new = sorted(known - there), sorted(there - known)
        if not missing:
            return "passed", "the GPUs of before"
        if len(there) < (self._expected() or 0):
            return "failed", f"missing: {', '.join(missing)}"
        # As many as there should be: no rung of a ladder brings back what somebody took out.
        self.for_a_person.add(T.GPU_UUIDS)
        return "failed", f"missing: {', '.join(missing)}; in their place: {', '.join(new) or 'none'}; {ACCEPT}"

    def _same_machine(self) -> Said:
        before, now, boot = self.evidence.identity_before, self.evidence.identity_now, self.evidence.boot_id_now
        if other := self._other_boot(boot):
            return "unknown", f"two machines may answer, in boots {other} and {boot}: expected {before}"
        if not before.is_known:
            return "untested", "the node has never said which machine it is"
        same = before.is_same(now)
        if same is None:
            return "unknown", f"expected {before}, and who answered did not say which machine it is: {now}"
        if same:
            return "passed", f"it is {now}"
        cloned = "if another machine has its token, `daytwo nodes token` makes that one worthless"
        return "failed", f"expected {before}; {now} answered; {cloned}; {ACCEPT}"

    def _recovery_action_zero(self) -> Said:
        return self._of_each_gpu(lambda gpu: (("recovery_action", gpu.recovery_action),), "asks for nothing")

    def _no_pending_remap(self) -> Said:
        return self._of_each_gpu(
            lambda gpu: (("remap_pending", gpu.remap_pending), ("remap_failed", gpu.remap_failed)), "no remap is due"
        )

    def _of_each_gpu(self, read: Callable[[Gpu], tuple[tuple[str, int | None], ...]], good: str) -> Said:
        """Every reading of every GPU must be there and 0. What a device does not have is not unknown."""
        if self.gpus is None or (not self.gpus.gpus and self._expected() is None):
            return "unknown", "the GPUs were not read"
        if not self.gpus.gpus and self._expected() != 0:
            return "failed", "no GPU answers"
        readings = [(gpu, name, value) for gpu in self.gpus.gpus for name, value in read(gpu)]
        bad = [f"GPU {gpu.index}: {name} {int(value)}" for gpu, name, value in readings if value]
        if bad:
            return "failed", ", ".join(bad)
        unread = [
            f"GPU {g.index}: {name}" for g, name, value in readings if value is None and name not in g.unsupported
        ]
        return ("unknown", f"not read: {', '.join(unread)}") if unread else ("passed", good)

    def _no_new_xid(self) -> Said:
        kernel = self.kernel
        if kernel is None or not kernel.readable or kernel.uptime_seconds is None:
            return "unknown", "the kernel log was not read"
        window = self._seconds_to_count(kernel.uptime_seconds)
        new = sorted({x.xid for x in kernel.xids if x.age_seconds <= window and self._asks(x.xid)})
        if new:
            return "failed", f"since then: {', '.join(f'Xid {xid}' for xid in new)}"
        self.wait_seconds = max(0.0, self.policy.verify.quiet_seconds - window)
        return ("unknown", "wait") if self.wait_seconds else ("passed", f"quiet for {int(window)} s")

    def _seconds_to_count(self, uptime: float) -> float:
        """How far back an Xid counts: to the act, and never beyond the boot."""
        if self.evidence.acted_at is None:
            return min(uptime, self.policy.verify.quiet_seconds)
        return max(0.0, min(uptime, (self.evidence.now - self.evidence.acted_at).total_seconds()))

    def _asks(self, xid: int) -> bool:
        return self.policy.rule_for(entry_of(catalogue(), f"xid-{xid}")).mode in (Mode.RECOMMEND, Mode.AUTO)

    def _slurm_gres(self) -> Said:
        facts = self.evidence.facts
        if facts is None or not facts.responding:
            return "unknown", "the scheduler has not heard of the node"
        if facts.gpus_configured is None and facts.gpus is None and not self._expected():
            return "passed", "the scheduler counts no GPUs here"
        if facts.gpus is None or facts.gpus_configured is None:
            return "unknown", "the scheduler does not say how many GPUs it sees"
        enough = facts.gpus >= facts.gpus_configured
        return ("passed" if enough else "failed"), f"{facts.gpus} of {facts.gpus_configured} configured GPUs"

    def _driver(self) -> Said:
        if self.gpus is None:
            return "unknown", "the GPUs were not read"
        if self.gpus.error and self._expected() != 0:
            return "failed", self.gpus.error
        if self.gpus.driver or self._expected() == 0:
            return "passed", self.gpus.driver or "no GPU, no driver"
        return "unknown", "the driver's version was not read"
