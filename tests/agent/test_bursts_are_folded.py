from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from daytwo.agent.changes import MAX_COUNT, Change
from daytwo.agent.folding import AT_ONCE, Folding
from tests.agent.fakes import XID_79, Node


def change(second: float, *, fault: str = "xid-79", status: str = "firing", count: int = 1) -> Change:
    return Change(fault, "GPU-1", status, second, second, "kernel-log", "boot-1", count, evidence=(f"at {second}",))


def fold(seconds: list[float]) -> list[tuple[float, Change]]:
    """Feed a change at each second, stepping as the core does; return what came out and when."""
    folding, sent = Folding(), []
    for second in seconds:
        while (due := folding.next_due()) is not None and due <= second:
            sent += [(due, each) for each in folding.due(due)]
        if now := folding.add(change(second), second):
            sent.append((second, now))
    return sent + [(seconds[-1], each) for each in folding.flush()]


def test_five_of_a_burst_go_out_at_once_and_one_holds_the_rest() -> None:
    assert [each.count for _, each in fold([1.0] * 100)] == [1, 1, 1, 1, 1, 95]


def test_a_storm_goes_out_once_a_second() -> None:
    times = [at for at, _ in fold([step / 100 for step in range(1_000)])][AT_ONCE:-1]
    assert all(0.99 <= later - earlier <= 1.02 for earlier, later in pairwise(times))


@settings(deadline=None)
@given(st.lists(st.floats(0, 3_600), min_size=1, max_size=200).map(sorted))
def test_no_count_is_lost(seconds: list[float]) -> None:
    assert sum(each.count for _, each in fold(seconds)) == len(seconds)


@settings(deadline=None)
@given(st.lists(st.floats(0, 60), min_size=1, max_size=300).map(sorted))
def test_the_rate_holds_in_every_window(seconds: list[float]) -> None:
    times = [at for at, _ in fold(seconds)][:-1]
    windows = [(start, [at for at in times if start <= at < start + 10]) for start in times]
    assert all(len(inside) <= AT_ONCE + 10 for _, inside in windows)


def test_what_is_folded_says_when_it_began_and_keeps_the_newest_lines() -> None:
    last = fold([float(second) / 10 for second in range(20)])[-1][1]
    assert last.first_seen < 1.5 < last.last_seen == 1.9
    assert (last.evidence[-1], len(last.evidence)) == ("at 1.9", 5)


def test_the_last_status_wins_over_what_waits() -> None:
    folding = Folding()
    for status in ["firing", "cleared"] * 10 + ["cleared"]:
        folding.add(change(1.0, status=status), 1.0)
    assert [each.status for each in folding.flush()] == ["cleared"]


def test_two_faults_do_not_hold_each_other_back() -> None:
    folding = Folding()
    for _ in range(50):
        folding.add(change(1.0), 1.0)
    assert folding.add(change(1.0, fault="xid-48"), 1.0) is not None


def test_what_waits_comes_back_after_a_restart() -> None:
    folding, again = Folding(), Folding()
    for _ in range(50):
        folding.add(change(1.0), 1.0)
    again.restore(folding.to_json(), 5.0)
    assert again.flush() == folding.flush()


def test_repeats_that_syslog_folded_are_counted() -> None:
    node = Node()
    node.log.write(XID_79, repeated=7)
    node.run(1)
    assert node.gateway.records[0]["count"] == 7


def test_no_count_is_more_than_the_gateway_takes() -> None:
    assert change(1.0, count=5_000_000).numbered(1)["count"] == MAX_COUNT


def test_a_kernel_that_floods_leads_to_few_calls() -> None:
    node = Node()
    node.run(1)
    for _ in range(5_000):
        node.log.write(XID_79)
    node.run(10)
    assert len(node.gateway.records) <= 16
    assert sum(record["count"] for record in node.gateway.records) == 5_000
