"""How a repair shows in the Temporal UI: search attributes, and current details in Markdown."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeUpdate

with workflow.unsafe.imports_passed_through():
    from daytwo.domain.exchange import Run
    from daytwo.domain.message import as_markdown, clean_markdown
    from daytwo.domain.repair_states import RULES
    from daytwo.domain.vocabulary import State
    from workflows import names


def limit_of(state: State) -> timedelta | None:
    """How long the table lets a state last."""
    rule = RULES.get(state)
    return rule.limit if rule else None


def search_attributes(run: Run) -> list[SearchAttributeUpdate[Any]]:
    """What the repair can be found by."""
    found: list[SearchAttributeUpdate[Any]] = [
        names.CLUSTER.value_set(run.cluster),
        names.NODE.value_set(run.node),
        names.STATE.value_set(run.state),
        names.REPAIR.value_set(run.repair_id),
        names.REVISION.value_set(run.revision),
    ]
    if run.proposal is None:
        return found
    return [*found, names.ACTION.value_set(run.proposal.action), names.FAULT.value_set(run.proposal.fault)]


def markdown(run: Run) -> str:
    """The page that an operator sees: state, what is wrong, what is proposed, and how to answer."""
    rule = RULES.get(run.state)
    lines = [f"**{run.state}** · repair `{run.repair_id}` · revision {run.revision}", ""]
    lines += [rule.says if rule else "This repair has ended.", ""]
    if run.attention:
        lines += [f"**Needs help:** {clean_markdown(run.attention)}", ""]
    if run.note:
        lines += [f"*{clean_markdown(run.note)}*", ""]
    if run.proposal is not None:
        lines += [as_markdown(run.proposal, run.state, namespace=workflow.info().namespace)]
    return "\n".join(lines)
