"""However often and in whatever order records arrive, the same findings come of them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daytwo.domain.vocabulary import FindingStatus
from daytwo.intake import Observation
from daytwo.store.tables import NodeRow
from tests.intake.conftest import NOW, Intake

_NUMBERS = itertools.count()

RECORDS = st.lists(
    st.tuples(
        st.sampled_from(["slurm-drained", "xid-79", "xid-154"]),
        st.sampled_from(["GPU-1", "GPU-2"]),
        st.sampled_from(FindingStatus),
        st.integers(1, 3),
        st.sampled_from([None, "boot-1", "boot-2"]),
    ),
    min_size=1,
    max_size=8,
)
QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def numbered(records: Sequence[tuple[Any, ...]], node: str) -> list[Observation]:
    return [
        Observation(
            cluster="",
            node=node,
            fault=fault,
            entity=entity,
            status=status,
            first_seen=NOW,
            last_seen=NOW,
            source="test",
            count=count,
            boot_id=boot_id,
            kernel_sequence=boot_id and number,
            stream=1,
            sequence=number,
        )
        for number, (fault, entity, status, count, boot_id) in enumerate(records, 1)
    ]


def outcome(intake: Intake) -> list[tuple[Any, ...]]:
    return [
        (row.fault, row.entity, row.status, row.count, row.boot_id, row.last_stream, row.last_sequence)
        for row in intake.findings()
    ]


def fresh(intake: Intake) -> Intake:
    """A node that nothing was seen of yet."""
    name = f"node-{next(_NUMBERS)}"
    with intake.store.write() as session:
        session.add(NodeRow(cluster="east", name=name, state_since=NOW))
    return Intake(intake.store, node=name)


def sent(intake: Intake, batches: Sequence[Sequence[Observation]]) -> list[tuple[Any, ...]]:
    node = fresh(intake)
    for batch in batches:
        node.send(*(replace(each, cluster="east", node=node.node) for each in batch))
    return outcome(node)


@QUICK
@given(records=RECORDS)
def test_sent_twice_is_sent_once(intake: Intake, records: list[tuple[Any, ...]]) -> None:
    batch = numbered(records, "")
    assert sent(intake, [batch, batch]) == sent(intake, [batch])


@QUICK
@given(records=RECORDS, cut=st.integers(0, 8))
def test_in_two_batches_is_in_one(intake: Intake, records: list[tuple[Any, ...]], cut: int) -> None:
    batch = numbered(records, "")
    assert sent(intake, [batch[:cut], batch[cut:]]) == sent(intake, [batch])


@QUICK
@given(records=RECORDS, data=st.data())
def test_out_of_order_is_in_order(intake: Intake, records: list[tuple[Any, ...]], data: st.DataObject) -> None:
    batch = numbered(records, "")
    shuffled = data.draw(st.permutations(batch))
    assert sent(intake, [[each] for each in shuffled]) == sent(intake, [batch])
