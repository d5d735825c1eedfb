"""A definition becomes a cluster and its nodes; nothing that was known is lost by a new one."""

from __future__ import annotations

from typing import Any

import pytest

from daytwo.domain.definition import ClusterDefinition, NodeGroup
from daytwo.domain.errors import BadInput
from daytwo.domain.policy import Policy
from daytwo.domain.vocabulary import NodeRole
from daytwo.intake import declare
from daytwo.store.tables import ClusterRow, NodeRow
from tests.intake.conftest import NOW


def stored(intake: Any, name: str) -> NodeRow | None:
    with intake.store.read() as session:
        row: NodeRow | None = session.get(NodeRow, ("east", name))
        return row


def change(intake: Any, definition: ClusterDefinition, **fields: Any) -> ClusterRow:
    return declare(intake.store, definition.model_copy(update=fields), now=NOW)


def test_ranges_become_nodes(intake: Any) -> None:
    rows = [stored(intake, f"gpu-0{n}") for n in (1, 2, 3)]
    assert [row and (row.expected_gpus, row.due, row.state) for row in rows] == [(8, 1, "unknown")] * 3


def test_the_same_definition_changes_nothing(intake: Any, definition: ClusterDefinition) -> None:
    before = intake.row()
    assert change(intake, definition).policy_revision == 1
    assert intake.row() == before


def test_a_changed_policy_is_counted_and_judged_on_every_node(intake: Any, definition: ClusterDefinition) -> None:
    row = change(intake, definition, policy=Policy(contain_unasked=False))
    assert (row.policy_revision, row.definition["policy"]["contain_unasked"]) == (2, False)
    assert [stored(intake, f"gpu-0{n}").due for n in (1, 2, 3)] == [2, 2, 2]


def test_a_node_that_is_left_out_keeps_its_row(intake: Any, definition: ClusterDefinition) -> None:
    change(intake, definition, groups=(NodeGroup(nodes=("gpu-02",), gpus=4, role=NodeRole.LOGIN),))
    assert (stored(intake, "gpu-01").role, stored(intake, "gpu-01").expected_gpus) == ("worker", 8)
    assert (stored(intake, "gpu-02").role, stored(intake, "gpu-02").expected_gpus) == ("login", 4)


def test_a_node_of_another_cluster_is_refused(intake: Any, definition: ClusterDefinition) -> None:
    with pytest.raises(BadInput, match=r"groups: found node 'gpu-01', which cluster 'east' has"):
        change(intake, definition, name="west")
    with intake.store.read() as session:
        assert session.get(ClusterRow, "west") is None
