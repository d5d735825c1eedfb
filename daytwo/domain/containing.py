"""Whether new work is kept off a node before anybody answers. Pure; triage asks, for what it proposes and withholds."""

from __future__ import annotations

from collections.abc import Iterable

from daytwo.domain.cases import Case, rules_of
from daytwo.domain.circumstances import Circumstances
from daytwo.domain.proposal import NOT_CONTAINED
from daytwo.domain.vocabulary import NodeRole


def contains(here: Circumstances, cases: Iterable[Case]) -> tuple[bool, tuple[str, ...]]:
    """Whether to keep new work off unasked, and the rules that say so."""
    wanting = [case for case in cases if case.rule.contain]
    if not wanting:
        return False, ()
    for holds, text in _against(here):
        if holds:
            return False, (f"{NOT_CONTAINED}{text}",)
    return True, rules_of(wanting[:1], "contain")


def _against(here: Circumstances) -> tuple[tuple[bool, str], ...]:
    """The conditions under which a node is not contained, whatever its faults."""
    node, budget = here.situation, here.policy.budget
    most = max(1, min(int(budget.containing_share * node.pool_nodes), budget.containing_nodes))
    already = node.open_repair is not None and node.open_repair.contained
    full = not already and node.pool_contained >= most
    return (
        (not here.policy.contain_unasked, "the policy contains nothing unasked"),
        (node.role is not NodeRole.WORKER, f"it is a {node.role.value} node"),
        (node.facts is None, "the scheduler cannot be read"),
        (full, f"out in its pool: {node.pool_contained}; the budget contains {most} unasked"),
    )
