"""Is a node fit to return? A table for each test; unknown is never a pass, and nothing at all is a failure."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from daytwo.domain.machines import Identity
from daytwo.domain.policy import FaultRule, Policy
from daytwo.domain.policy import Verify as VerifyPolicy
from daytwo.domain.verification import ACCEPT, Evidence, TestResult, Verification, judge, plan
from daytwo.domain.vocabulary import Mode
from daytwo.faults.model import FLOOR, VerifyTest
from tests.builders import NOW, node_facts

T = VerifyTest
FLOOR_NAMES = tuple(test.value for test in FLOOR)
UUIDS = ("GPU-1", "GPU-2")
IT = Identity(UUID("4c4c4544-0042-3510-8051-b4c04f4a3132"), "S1")
OTHER = Identity(UUID("4c4c4544-0042-3510-8051-b4c04f4a3199"), "S2")


def gpu(index: int, **fields: Any) -> dict[str, Any]:
    good = {"index": index, "uuid": f"GPU-{index}", "pci": f"0000:{index:02x}:00", "ok": True, "error": None}
    good |= {"recovery_action": 0, "remap_pending": False, "remap_failed": False, "hw_slowdown": False}
    return good | {"unsupported": []} | fields


def gpus(*each: dict[str, Any], **fields: Any) -> dict[str, Any]:
    found = list(each) or [gpu(1), gpu(2)]
    return {"gpus": found, "expected": 2, "seen": len(found), "driver": "595.45.04", "error": None} | fields


def kernel(*xids: tuple[int, float], **fields: Any) -> dict[str, Any]:
    seen = [{"xid": xid, "pci": "0000:01:00", "kernel_sequence": 7, "age_seconds": age} for xid, age in xids]
    return {
        "boot_id": "b2",
        "uptime_seconds": 700.0,
        "last_kernel_sequence": 9,
        "readable": True,
        "xids": seen,
    } | fields


def evidence(**fields: Any) -> Evidence:
    values: dict[str, Any] = {
        "wanted": FLOOR_NAMES,
        "gpus": gpus(),
        "kernel": kernel(),
        "facts": node_facts(gpus=2, gpus_configured=2),
        "expected_gpus": 2,
        "known_uuids": UUIDS,
        "boot_id_before": "b1",
        "boot_id_now": "b2",
        "boot_expected": True,
        "acted_at": NOW - timedelta(seconds=900),
        "now": NOW,
        "fault": "xid-79",
        "entities": ("GPU-1",),
        "identity_before": IT,
        "identity_now": IT,
    }
    return Evidence(**values | fields)


def result(test: VerifyTest, **fields: Any) -> TestResult:
    judged = judge(evidence(**fields))
    return next(each for each in judged.results if each.name == test)


def outcome(judged: Verification) -> tuple[bool, bool, bool]:
    return judged.passed, bool(judged.still_faulty), judged.wait_seconds > 0


def test_a_node_that_is_as_it_should_be_passes() -> None:
    judged = judge(evidence())
    assert judged.passed
    assert judged.summary == "9 of 9 tests for xid-79 passed"


def test_no_test_at_all_is_a_failure() -> None:
    assert outcome(judge(evidence(wanted=()))) == (False, False, False)


def test_tests_that_cannot_be_run_are_no_pass_by_themselves() -> None:
    assert not judge(evidence(wanted=("dcgm-3",))).passed


def test_a_node_returns_with_what_was_not_tested_said() -> None:
    judged = judge(evidence(wanted=(*FLOOR_NAMES, "nvbandwidth", "our-burn-in")))
    assert judged.passed
    assert judged.untested == ("nvbandwidth", "our-burn-in")
    assert judged.summary.endswith("returned untested: nvbandwidth, our-burn-in")


def test_an_agent_that_does_not_answer_is_unknown_and_not_faulty() -> None:
    judged = judge(evidence(gpus=None, kernel=None, boot_id_now=None))
    assert outcome(judged) == (False, False, False)


BOOTS = [
    ({}, "passed"),
    ({"boot_id_now": "b1", "kernel": kernel(boot_id="b1")}, "failed"),
    ({"boot_id_now": None}, "unknown"),
    ({"boot_id_before": None}, "unknown"),
    ({"kernel": kernel(boot_id="b3")}, "unknown"),
    ({"boot_id_before": None, "boot_expected": False}, "passed"),
    ({"boot_id_before": "b2", "boot_expected": False}, "passed"),
    ({"boot_id_before": "b2", "same_boot_ok": True}, "passed"),
    ({"boot_id_now": None, "boot_expected": False}, "unknown"),
]


@pytest.mark.parametrize(("fields", "expected"), BOOTS, ids=range(len(BOOTS)))
def test_the_agent_answers_from_the_boot_that_the_act_led_to(fields: dict[str, Any], expected: str) -> None:
    assert result(T.BOOT_ID, **fields).result == expected


def test_a_boot_that_did_not_happen_is_no_proof_of_the_fault() -> None:
    judged = judge(evidence(boot_id_now="b1", kernel=kernel(boot_id="b1")))
    assert outcome(judged) == (False, False, False)


COUNTS = [
    ({}, "passed"),
    ({"gpus": gpus(gpu(1))}, "failed"),
    ({"gpus": gpus(gpu(1), gpu(2, ok=False, error="lost"))}, "failed"),
    ({"gpus": gpus(gpu(1), gpu(2), gpu(3))}, "failed"),
    ({"gpus": {"gpus": [], "error": None}}, "failed"),
    ({"gpus": gpus(error="Driver/library version mismatch")}, "failed"),
    ({"gpus": None}, "unknown"),
    ({"gpus": {"nonsense": 1}}, "unknown"),
    ({"expected_gpus": None}, "passed"),
    ({"expected_gpus": None, "known_uuids": ()}, "passed"),
    ({"expected_gpus": None, "known_uuids": (), "gpus": gpus(expected=None)}, "unknown"),
    ({"expected_gpus": 0, "known_uuids": (), "gpus": {"gpus": [], "error": "no library"}}, "passed"),
]


@pytest.mark.parametrize(("fields", "expected"), COUNTS, ids=range(len(COUNTS)))
def test_as_many_gpus_answer_as_there_should_be(fields: dict[str, Any], expected: str) -> None:
    assert result(T.GPU_COUNT, **fields).result == expected


SWAPPED = f"missing: GPU-2; in their place: GPU-9; {ACCEPT}"
TAKEN_OUT = f"missing: GPU-2; in their place: none; {ACCEPT}"
NEVER_KNOWN = f"which GPUs the node had before is not known; these answer: GPU-1, GPU-2; {ACCEPT}"


@pytest.mark.parametrize(
    ("fields", "expected", "text"),
    [
        ({}, "passed", "the GPUs of before"),
        ({"gpus": gpus(gpu(1), gpu(2, uuid="GPU-9"))}, "failed", SWAPPED),
        ({"gpus": gpus(gpu(1), gpu(2, ok=False))}, "failed", "missing: GPU-2"),
        ({"gpus": gpus(gpu(1)), "expected_gpus": 1}, "failed", TAKEN_OUT),
        ({"known_uuids": ()}, "unknown", NEVER_KNOWN),
        ({"known_uuids": (), "expected_gpus": 0, "gpus": {"gpus": []}}, "passed", "the GPUs of before"),
        ({"gpus": None}, "unknown", "the GPUs were not read"),
    ],
    ids=["the same", "swapped", "lost", "taken out", "never seen", "none expected", "not read"],
)
def test_the_gpus_are_those_of_before(fields: dict[str, Any], expected: str, text: str) -> None:
    found = result(T.GPU_UUIDS, **fields)
    assert (found.result, found.text) == (expected, text)


READINGS = [
    (T.RECOVERY_ACTION_ZERO, {"recovery_action": 0}, "passed"),
    (T.RECOVERY_ACTION_ZERO, {"recovery_action": 1}, "failed"),
    (T.RECOVERY_ACTION_ZERO, {"recovery_action": None}, "unknown"),
    (T.RECOVERY_ACTION_ZERO, {"recovery_action": None, "unsupported": ["recovery_action"]}, "passed"),
    (T.NO_PENDING_REMAP, {"remap_pending": True}, "failed"),
    (T.NO_PENDING_REMAP, {"remap_failed": True}, "failed"),
    (T.NO_PENDING_REMAP, {"remap_pending": None}, "unknown"),
    (T.NO_PENDING_REMAP, {"remap_pending": None, "unsupported": ["remap_pending"]}, "passed"),
    (T.NO_PENDING_REMAP, {"remap_failed": True, "remap_pending": None}, "failed"),
]


@pytest.mark.parametrize(("test", "reading", "expected"), READINGS, ids=range(len(READINGS)))
def test_every_reading_of_every_gpu_must_be_good(test: VerifyTest, reading: dict[str, Any], expected: str) -> None:
    assert result(test, gpus=gpus(gpu(1), gpu(2, **reading))).result == expected


@pytest.mark.parametrize("test", [T.RECOVERY_ACTION_ZERO, T.NO_PENDING_REMAP])
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"gpus": None}, "unknown"),
        ({"gpus": {"gpus": []}}, "failed"),
        ({"gpus": {"gpus": []}, "expected_gpus": None, "known_uuids": ()}, "unknown"),
        ({"gpus": {"gpus": []}, "expected_gpus": 0}, "passed"),
    ],
    ids=["not read", "none answers", "nobody knows how many", "none expected"],
)
def test_no_reading_is_no_good_reading(test: VerifyTest, fields: dict[str, Any], expected: str) -> None:
    assert result(test, **fields).result == expected


XIDS = [
    (kernel(), "passed"),
    (kernel((79, 10.0)), "failed"),
    (kernel((4711, 10.0)), "failed"),
    (kernel((13, 10.0), (45, 20.0)), "passed"),
    (kernel((79, 701.0)), "passed"),
    (kernel((79, 10.0), uptime_seconds=10_000.0), "failed"),
    (kernel((79, 899.0), uptime_seconds=10_000.0), "failed"),
    (kernel((79, 901.0), uptime_seconds=10_000.0), "passed"),
    (kernel(readable=False), "unknown"),
    (kernel(uptime_seconds=None), "unknown"),
    ({"readable": "perhaps"}, "unknown"),
    (None, "unknown"),
]


@pytest.mark.parametrize(("answer", "expected"), XIDS, ids=range(len(XIDS)))
def test_no_xid_that_asks_somebody_came_since_the_act(answer: Any, expected: str) -> None:
    assert result(T.NO_NEW_XID, kernel=answer).result == expected


def test_which_xids_count_is_the_sites() -> None:
    policy = Policy(faults={"xid-79": FaultRule(mode=Mode.RECORD), "xid-13": FaultRule(mode=Mode.RECOMMEND)})
    assert judge(evidence(kernel=kernel((79, 10.0))), policy).passed
    assert judge(evidence(kernel=kernel((13, 10.0))), policy).still_faulty == ("no-new-xid",)


@pytest.mark.parametrize(
    ("uptime", "acted_seconds_ago", "wait"),
    [(100.0, 900, 500.0), (5000.0, 200, 400.0), (600.0, 900, 0.0), (5000.0, 600, 0.0)],
    ids=["since the boot", "since the act", "just booted long enough", "just acted long enough"],
)
def test_the_log_must_be_quiet_for_long_enough(uptime: float, acted_seconds_ago: int, wait: float) -> None:
    acted_at = NOW - timedelta(seconds=acted_seconds_ago)
    judged = judge(evidence(kernel=kernel(uptime_seconds=uptime), acted_at=acted_at))
    assert judged.wait_seconds == wait
    assert judged.passed is (wait == 0)


def test_while_it_waits_nothing_is_faulty() -> None:
    judged = judge(evidence(kernel=kernel(uptime_seconds=100.0)))
    assert outcome(judged) == (False, False, True)
    assert "unknown: no-new-xid (wait)" in judged.summary


def test_a_failed_test_does_not_wait() -> None:
    judged = judge(evidence(kernel=kernel(uptime_seconds=100.0), gpus=gpus(gpu(1))))
    assert outcome(judged) == (False, True, False)


def test_without_an_act_the_quiet_time_is_the_last_ten_minutes() -> None:
    long_up = {"boot_expected": False, "acted_at": None}
    assert judge(evidence(kernel=kernel((79, 601.0), uptime_seconds=9e6), **long_up)).passed
    assert not judge(evidence(kernel=kernel((79, 599.0), uptime_seconds=9e6), **long_up)).passed


def test_how_long_it_must_be_quiet_is_the_sites() -> None:
    policy = Policy(verify=VerifyPolicy(quiet_seconds=5))
    assert judge(evidence(kernel=kernel(uptime_seconds=6.0)), policy).passed


GRES = [
    (node_facts(gpus=2, gpus_configured=2), "passed"),
    (node_facts(gpus=1, gpus_configured=2), "failed"),
    (node_facts(gpus=None, gpus_configured=2), "unknown"),
    (node_facts(gpus=None, gpus_configured=None), "unknown"),
    (node_facts(gpus=2, gpus_configured=2, responding=False), "unknown"),
    (None, "unknown"),
]


@pytest.mark.parametrize(("facts", "expected"), GRES, ids=range(len(GRES)))
def test_the_scheduler_sees_the_gpus_that_it_should(facts: Any, expected: str) -> None:
    assert result(T.SLURM_GRES, facts=facts).result == expected


def test_a_node_without_gpus_needs_none_in_the_scheduler() -> None:
    facts = node_facts(gpus=None, gpus_configured=None)
    fields = {"facts": facts, "expected_gpus": 0, "known_uuids": (), "gpus": {"gpus": []}}
    assert result(T.SLURM_GRES, **fields).result == "passed"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "passed"),
        ({"gpus": gpus(driver=None)}, "unknown"),
        ({"gpus": gpus(error="mismatch")}, "failed"),
        ({"gpus": None}, "unknown"),
        ({"gpus": {"gpus": []}, "expected_gpus": 0}, "passed"),
    ],
    ids=["read", "not read", "mismatch", "no answer", "no GPU"],
)
def test_the_driver_is_there(fields: dict[str, Any], expected: str) -> None:
    assert result(T.DRIVER, **fields).result == expected


def test_a_node_that_comes_back_without_a_device_still_has_its_fault() -> None:
    judged = judge(evidence(gpus=gpus(gpu(1))))
    assert judged.still_faulty == ("gpu-count", "gpu-uuids")
    assert "failed: gpu-count (1 of 2 GPUs answer)" in judged.summary


@pytest.mark.parametrize(
    ("tests", "needs"),
    [
        (FLOOR_NAMES, (True, True, True)),
        (("gpu-count",), (True, False, False)),
        (("no-new-xid",), (False, True, False)),
        (("boot-id",), (False, True, False)),
        (("slurm-gres",), (False, False, True)),
        (("dcgm-3",), (False, False, False)),
    ],
)
def test_only_what_is_needed_is_asked(tests: tuple[str, ...], needs: tuple[bool, bool, bool]) -> None:
    planned = plan(tests)
    assert (planned.needs_gpus, planned.needs_kernel, planned.needs_facts) == needs


def test_a_gpu_that_was_lost_with_the_fault_is_missed_where_no_count_is_declared() -> None:
    judged = judge(evidence(gpus=gpus(gpu(1), expected=None), expected_gpus=None))
    assert judged.still_faulty == ("gpu-count", "gpu-uuids")


def test_what_the_agent_has_learnt_counts_where_no_count_is_declared() -> None:
    assert result(T.GPU_COUNT, gpus=gpus(gpu(1)), expected_gpus=None, known_uuids=("GPU-1",)).text == (
        "1 of 2 GPUs answer"
    )


def test_a_swapped_gpu_is_for_a_person_and_for_no_rung_of_a_ladder() -> None:
    judged = judge(evidence(gpus=gpus(gpu(1), gpu(2, uuid="GPU-9"))))
    assert (judged.passed, judged.still_faulty) == (False, ())
    assert "`daytwo repairs return` accepts it" in judged.summary


@pytest.mark.parametrize(("answers", "passed"), [("GPU-9", True), ("GPU-8", False)])
def test_a_swapped_gpu_passes_once_a_person_has_read_of_it_and_no_other_does(answers: str, passed: bool) -> None:
    judged = judge(evidence(gpus=gpus(gpu(1), gpu(2, uuid=answers)), accepted=(SWAPPED,)))
    assert judged.passed is passed


def test_what_a_person_accepts_of_a_machine_excuses_no_fault() -> None:
    told = judge(evidence(gpus=gpus(gpu(1)))).results
    assert not judge(evidence(gpus=gpus(gpu(1)), accepted=tuple(each.text for each in told))).passed


MACHINES = [
    ({}, "passed"),
    ({"identity_now": OTHER}, "failed"),
    ({"identity_now": Identity(None, "S1")}, "passed"),
    ({"identity_now": Identity(None, "S2")}, "failed"),
    ({"identity_now": Identity(None, None)}, "unknown"),
    ({"identity_before": Identity(None, None)}, "untested"),
    ({"answered_in": ("b2", "b2")}, "passed"),
    ({"answered_in": ("b2", "b3")}, "unknown"),
]


@pytest.mark.parametrize(("fields", "expected"), MACHINES, ids=range(len(MACHINES)))
def test_who_answers_is_the_machine_that_the_node_was(fields: dict[str, Any], expected: str) -> None:
    assert result(T.SAME_MACHINE, **fields).result == expected


def test_another_machine_that_answers_needs_help_whatever_else_it_says() -> None:
    judged = judge(evidence(identity_now=OTHER, gpus=gpus(gpu(1))))
    assert (judged.passed, judged.still_faulty) == (False, ())
    assert f"expected {IT}; {OTHER} answered" in judged.summary


def test_a_machine_that_was_swapped_passes_once_a_person_has_read_of_it() -> None:
    told = result(T.SAME_MACHINE, identity_now=OTHER).text
    assert judge(evidence(identity_now=OTHER, accepted=(told,))).passed


def test_a_proposal_of_an_earlier_version_asks_for_no_test_of_the_machine() -> None:
    wanted = tuple(name for name in FLOOR_NAMES if name != T.SAME_MACHINE)
    nobody = Identity(None, None)
    assert judge(evidence(wanted=wanted, identity_before=nobody, identity_now=nobody)).passed
