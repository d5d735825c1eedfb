"""From the definition to the driver that is chosen, and what an act carries to it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from daytwo.adapters import Adapters
from daytwo.domain.definition import BmcAccess, ClusterDefinition, NodeGroup
from daytwo.domain.load_definition import check_definition
from daytwo.domain.seams import ActKind
from daytwo.domain.vocabulary import ClusterKind
from daytwo.hardware.redfish import RedfishHardware
from daytwo.intake.declared import declare
from daytwo.store.engine import Store

BMC = BmcAccess(
    nodes=("gpu-[001-002]",), address="https://{node}-bmc.example", user="daytwo", password="file:/etc/daytwo/bmc"
)


def a_definition(**fields: Any) -> ClusterDefinition:
    values = {"kind": ClusterKind.SLURM, "groups": (NodeGroup(nodes=("gpu-[001-004]",)),), "bmcs": (BMC,)}
    return ClusterDefinition(name="east", **values | fields)


@pytest.mark.parametrize(
    ("fields", "kind", "driver"),
    [
        ({}, ActKind.REBOOT, "hardware:east:0"),
        ({}, ActKind.POWER_CYCLE, "hardware:east:1"),
        ({"reboot_by": "bmc"}, ActKind.REBOOT, "hardware:east:1"),
        ({"bmcs": ()}, ActKind.REBOOT, "hardware:east:0"),
        ({"bmcs": ()}, ActKind.POWER_CYCLE, None),
        ({}, ActKind.RESET_GPU, None),
    ],
)
def test_bmcs_cycle_power_and_reboot_where_the_site_wants_it(
    store: Store, fields: dict[str, Any], kind: ActKind, driver: str | None
) -> None:
    declare(store, a_definition(**fields), now=datetime.now(UTC))
    assert Adapters(store).cluster("east").driver_for(kind) == driver


def test_the_driver_is_the_target_of_its_intents(store: Store) -> None:
    declare(store, a_definition(), now=datetime.now(UTC))
    assert isinstance(Adapters(store)["hardware:east:1"], RedfishHardware)


def test_what_is_stored_of_a_cluster_is_the_reference(store: Store) -> None:
    row = declare(store, a_definition(), now=datetime.now(UTC))
    assert row.definition["bmcs"][0]["password"] == "file:/etc/daytwo/bmc"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"bmcs": (BMC.model_copy(update={"verify": False}),)}, "bmcs[0].verify: false"),
        ({"bmcs": (), "reboot_by": "bmc"}, "reboot_by: bmc, but there are no bmcs"),
    ],
)
def test_a_surprising_definition_is_pointed_out(fields: dict[str, Any], sentence: str) -> None:
    assert sentence in " ".join(check_definition(a_definition(**fields)))
