"""Many nodes that fall together: counted, and not asked about one by one."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from daytwo.domain.common_cause import count_trouble, pool_domain
from daytwo.domain.policy import Policy
from daytwo.domain.situation import DomainTrouble, Situation
from daytwo.domain.triage import triage
from daytwo.domain.verdicts import Propose, Verdict, Withhold
from daytwo.domain.vocabulary import FaultClass, Finding, FindingStatus
from daytwo.faults.catalogue import catalogue
from tests.builders import NOW, a_finding, a_situation

WINDOW = timedelta(minutes=5)


def class_of(fault: str) -> FaultClass:
    return catalogue().get(fault).fault_class


def minutes_ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def fell(*minutes: float, fault: str = "xid-79", **fields: object) -> dict[str, list[Finding]]:
    """One node for each number, that began to fire so many minutes ago."""
    return {f"n{i}": [a_finding(fault, first_seen=minutes_ago(m), **fields)] for i, m in enumerate(minutes)}


def count(nodes: dict[str, list[Finding]], domain: str = "rack-1") -> list[int]:
    troubles = count_trouble(nodes, dict.fromkeys(nodes, (domain,)), class_of, WINDOW, NOW)
    return [trouble.nodes for trouble in troubles]


@pytest.mark.parametrize(
    ("minutes", "counted"),
    [
        ((1, 2, 3), [3]),
        ((1, 3.5, 6), [3]),
        ((1, 4, 7, 10), [2]),
        ((1, 20), [1, 1]),
        ((60, 61, 62), [3]),
        ((-1,), []),
        ((), []),
    ],
    ids=["together", "just within", "a slow chain", "apart", "long ago, still firing", "in the future", "none"],
)
def test_nodes_count_that_began_within_the_window_of_each_other(minutes: tuple[float, ...], counted: list[int]) -> None:
    assert count(fell(*minutes)) == counted


def test_a_node_counts_once_however_many_gpus_it_lost() -> None:
    findings = [a_finding(entity=f"GPU-{n}", id=n, first_seen=minutes_ago(n)) for n in (1, 2, 3)]
    assert count({"n0": findings}) == [1]


def test_a_node_with_two_starts_counts_until_the_later_has_left_the_window() -> None:
    nodes = fell(4, 1)
    nodes["n0"].append(a_finding(entity="GPU-2", id=2, first_seen=minutes_ago(9)))
    assert count(nodes) == [2]


def test_what_has_cleared_is_not_counted() -> None:
    assert count(fell(1, 2, 3, status=FindingStatus.CLEARED)) == []


def test_classes_and_domains_are_counted_apart() -> None:
    nodes = {**fell(1, 2), "n9": [a_finding("slurm-drained", first_seen=minutes_ago(1))]}
    domains = {"n0": ("rack-1", "leaf-1"), "n1": ("leaf-1",), "n9": ("leaf-1",)}
    troubles = count_trouble(nodes, domains, class_of, WINDOW, NOW)
    assert [(t.domain, t.fault_class, t.nodes) for t in troubles] == [
        ("leaf-1", "board", 2),
        ("leaf-1", "scheduler", 1),
        ("rack-1", "board", 1),
    ]


def in_trouble(nodes: int, domain: str = "rack-1", fault_class: str = "board", **fields: object) -> Situation:
    trouble = DomainTrouble(domain=domain, fault_class=fault_class, nodes=nodes, **fields)
    return a_situation(a_finding(), trouble=(trouble,))


def judge(situation: Situation) -> Verdict:
    return triage(situation, Policy(), catalogue(), NOW)


def test_three_nodes_of_a_rack_are_one_cause_and_the_rack_is_named() -> None:
    verdict = judge(in_trouble(3))
    assert isinstance(verdict, Withhold)
    assert (verdict.cause, verdict.domain) == ("common-cause", "rack-1")


def test_a_node_on_which_new_work_would_fail_is_contained_all_the_same() -> None:
    verdict = judge(in_trouble(40))
    assert isinstance(verdict, Withhold)
    assert verdict.contain


@pytest.mark.parametrize(
    "situation",
    [
        in_trouble(2),
        in_trouble(3, domain="rack-2"),
        in_trouble(3, fault_class="link"),
        in_trouble(3, first_at=minutes_ago(30), last_at=minutes_ago(28)),
        in_trouble(5, domain=pool_domain("h200")),
    ],
    ids=["two nodes", "another rack", "another class", "began at another time", "few of a pool"],
)
def test_a_node_that_fell_for_itself_is_asked_about(situation: Situation) -> None:
    assert isinstance(judge(situation), Propose)


def test_a_part_of_a_pool_is_one_cause() -> None:
    assert isinstance(judge(in_trouble(6, domain=pool_domain("h200"))), Withhold)


def test_a_small_part_of_a_large_pool_is_not() -> None:
    situation = in_trouble(6, domain=pool_domain("h200")).model_copy(update={"pool_nodes": 1000})
    assert isinstance(judge(situation), Propose)


@pytest.mark.parametrize(("minutes", "kind"), [(59, "withhold"), (61, "propose")])
def test_after_an_hour_each_node_is_judged_as_it_is(minutes: float, kind: str) -> None:
    fallen = a_finding(first_seen=minutes_ago(minutes))
    trouble = DomainTrouble(
        domain="rack-1", fault_class="board", nodes=3, first_at=minutes_ago(minutes), last_at=minutes_ago(minutes)
    )
    assert judge(a_situation(fallen, trouble=(trouble,))).kind == kind


def test_a_fault_of_another_class_is_asked_about_in_the_middle_of_a_common_cause() -> None:
    situation = in_trouble(3, fault_class="scheduler").model_copy(
        update={"findings": (a_finding("slurm-drained", "node"), a_finding("xid-79", id=2))}
    )
    verdict = judge(situation)
    assert isinstance(verdict, Propose)
    assert verdict.advice.fault == "xid-79"
