"""A node that names another driver than before has been changed by somebody, and nobody has tested it since."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway.conftest import Agent, Records


def with_driver(version: str | None) -> dict[str, Any]:
    return {"gpus": [], "driver": version}


@pytest.mark.parametrize(
    ("versions", "found"),
    [
        (("570.86", "570.86"), []),
        (("570.86", "580.65"), ["driver-changed"]),
        (("570.86", None, "580.65"), ["driver-changed"]),
        (("570.86", None, "570.86"), []),
        ((None, "570.86"), []),
    ],
)
def test_another_version_of_the_driver_is_a_finding(
    agent: Agent, records: Records, versions: tuple[str | None, ...], found: list[str]
) -> None:
    for version in versions:
        agent.pulse(inventory=with_driver(version))
    assert [finding.fault for finding in records.findings()] == found


def test_the_finding_names_both_versions(agent: Agent, records: Records) -> None:
    agent.pulse(inventory=with_driver("570.86"))
    agent.pulse(inventory=with_driver("580.65"))
    assert records.findings()[0].detail == {"before": "570.86", "after": "580.65"}


def test_a_pulse_without_an_inventory_changes_nothing(agent: Agent, records: Records) -> None:
    agent.pulse(inventory=with_driver("570.86"))
    agent.pulse(inventory=None)
    assert records.findings() == []
