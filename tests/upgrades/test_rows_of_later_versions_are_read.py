"""While two versions run, each reads what the other has written: unknown fields are passed over."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from daytwo.domain.proposal import Proposal
from daytwo.domain.seams import Act, ActKind, NodeFacts
from daytwo.domain.vocabulary import Mark
from tests.builders import a_job, a_proposal, node_facts

ACT = Act(kind=ActKind.DRAIN, cluster="east", node="n", target="n", mark=Mark(repair_id="r", text="t"))
LATER = {"of_a_later_version": 1}


@pytest.mark.parametrize(
    ("model", "stored"),
    [
        (NodeFacts, node_facts().model_dump(mode="json")),
        (Act, ACT.model_dump(mode="json") | {"mark": {"repair_id": "r", "text": "t"} | LATER}),
        (Proposal, a_proposal().model_dump(mode="json") | {"workloads": [a_job().model_dump(mode="json") | LATER]}),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_what_is_kept_as_json_may_say_more(model: type[BaseModel], stored: dict[str, Any]) -> None:
    assert model.model_validate(stored | LATER)
