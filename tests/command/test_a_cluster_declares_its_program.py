"""A cluster with `hardware`: what it can do, and who does it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from daytwo.adapters import Adapters
from daytwo.domain import drivers
from daytwo.domain.definition import BmcAccess, ClusterDefinition, NodeGroup
from daytwo.domain.load_definition import DefinitionError, load_definitions
from daytwo.domain.seams import ActKind
from daytwo.domain.vocabulary import Action, ClusterKind
from daytwo.intake import declare
from daytwo.store.engine import Store

PROGRAM: dict[str, Any] = {"driver": "command", "program": ("/usr/local/bin/power",)}
FILE = """\
name: east
kind: slurm
groups:
  - nodes: [gpu-001]
hardware:
  driver: command
  program: [/etc/daytwo/ipmi-power.py, "{node}-bmc.example"]
  acts: [power-cycle, reboot]
  secrets: {password: "file:/etc/daytwo/bmc-password"}
reboot_by: command
"""


def cluster(**fields: Any) -> ClusterDefinition:
    groups = (NodeGroup(nodes=("gpu-001",)),)
    return ClusterDefinition.model_validate({"name": "east", "kind": ClusterKind.SLURM, "groups": groups} | fields)


def test_the_file_of_the_docs_is_read() -> None:
    hardware = load_definitions(FILE, "cluster.yaml").hardware
    assert hardware is not None
    assert (hardware.acts, hardware.question_seconds, hardware.act_seconds) == (("power-cycle", "reboot"), 10.0, 20.0)


@pytest.mark.parametrize(
    ("fields", "reboot", "power_cycle"),
    [
        ({}, 0, None),
        ({"hardware": PROGRAM}, 0, 1),
        ({"hardware": PROGRAM | {"acts": ("reboot", "power-cycle")}}, 0, 1),
        ({"hardware": PROGRAM | {"acts": ("reboot",)}, "reboot_by": "command"}, 1, None),
    ],
)
def test_each_act_has_its_driver(store: Store, fields: dict[str, Any], reboot: int, power_cycle: int | None) -> None:
    declare(store, cluster(**fields), now=datetime.now(UTC))
    found = Adapters(store).cluster("east")
    assert found.driver_for(ActKind.REBOOT) == f"hardware:east:{reboot}"
    assert found.driver_for(ActKind.POWER_CYCLE) == (None if power_cycle is None else f"hardware:east:{power_cycle}")
    assert (Action.POWER_CYCLE in found.able()) is (power_cycle is not None)


BMCS = (BmcAccess(nodes=("gpu-001",), address="https://{node}-bmc", user="daytwo", password="env:BMC"),)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"hardware": PROGRAM},
        {"hardware": PROGRAM | {"acts": ("reboot", "power-cycle")}, "reboot_by": "command"},
        {"bmcs": BMCS},
        {"kind": ClusterKind.SIMULATED, "simulated_socket": "/run/lab.sock"},
    ],
)
def test_what_a_checked_file_is_told_is_what_its_drivers_can_do(store: Store, fields: dict[str, Any]) -> None:
    declare(store, cluster(**fields), now=datetime.now(UTC))
    assert drivers.able(cluster(**fields)) == Adapters(store).cluster("east").able()


def test_a_cluster_has_one_way_to_power() -> None:
    with pytest.raises(ValueError, match="found it beside bmcs, allowed: one of the two"):
        cluster(bmcs=BMCS, hardware=PROGRAM)


@pytest.mark.parametrize(
    ("secrets", "said"),
    [
        (
            "password: hunter2",
            "hardware.secrets.password: found something that is no reference, allowed: file:/path or",
        ),
        ("password: 48151623", "hardware.secrets.password: found something that is no reference"),
        ("password: [hunter2]", "hardware.secrets.password: found something that is no reference"),
        ("'pass word': env:X", "hardware.secrets: found the name 'pass word', allowed: letters, digits and _"),
    ],
)
def test_what_may_be_a_secret_is_never_quoted(secrets: str, said: str) -> None:
    text = FILE.replace('password: "file:/etc/daytwo/bmc-password"', secrets)
    with pytest.raises(DefinitionError) as caught:
        load_definitions(text, "cluster.yaml")
    assert f"cluster.yaml:9: {said}" in str(caught.value)
    assert not any(secret in str(caught.value) for secret in ("hunter2", "48151623"))
