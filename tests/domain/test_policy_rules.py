"""What holds for a fault, where it was written, and that each default says why."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from daytwo.domain import policy as module
from daytwo.domain.definition import BmcAccess, ClusterDefinition, CommandHardware, NodeGroup, SlurmAccess
from daytwo.domain.ladders import LADDERS
from daytwo.domain.policy import FaultRule, Origin, Policy, schema
from daytwo.domain.reference import DEFINITION, POLICY, main, policy_page
from daytwo.domain.vocabulary import Action, Fault, FaultClass, Frozen, Mode
from daytwo.domain.windows import Window
from daytwo.faults.catalogue import catalogue

ROOT = Path(__file__).parents[2]
XID_48 = catalogue().get("xid-48")
RECORD, AUTO, OFF = FaultRule(mode=Mode.RECORD), FaultRule(mode=Mode.AUTO), FaultRule(mode=Mode.OFF)


@pytest.mark.parametrize(
    ("policy", "mode", "origin"),
    [
        (Policy(), Mode.RECOMMEND, Origin.CATALOGUE),
        (Policy(default=RECORD), Mode.RECORD, Origin.DEFAULT),
        (Policy(default=RECORD, classes={FaultClass.BOARD: AUTO}), Mode.AUTO, Origin.CLASS_RULE),
        (Policy(classes={FaultClass.LINK: AUTO}), Mode.RECOMMEND, Origin.CATALOGUE),
        (Policy(classes={FaultClass.BOARD: AUTO}, faults={"xid-48": OFF}), Mode.OFF, Origin.FAULT_RULE),
        (Policy(faults={"xid-48": FaultRule(contain=False)}, default=AUTO), Mode.AUTO, Origin.DEFAULT),
        (Policy(faults={"xid-79": OFF}), Mode.RECOMMEND, Origin.CATALOGUE),
    ],
)
def test_the_nearest_rule_that_says_something_holds(policy: Policy, mode: Mode, origin: Origin) -> None:
    rule = policy.rule_for(XID_48)
    assert (rule.mode, rule.origins["mode"]) == (mode, origin)


@pytest.mark.parametrize("fault", catalogue().all(), ids=lambda fault: fault.id)
def test_every_fault_of_the_catalogue_has_a_whole_rule(fault: Fault) -> None:
    rule = Policy().rule_for(fault)
    assert rule.ladder[0] is rule.action
    assert set(rule.origins) == {"mode", "action", "ladder", "debounce_seconds", "contain", "verify", "clears"}


@pytest.mark.parametrize(
    ("rule", "action", "ladder"),
    [
        (
            FaultRule(action=Action.REBOOT),
            Action.REBOOT,
            (Action.REBOOT, Action.POWER_CYCLE, Action.FAILOVER, Action.REMOVE),
        ),
        (FaultRule(ladder=(Action.REBOOT, Action.REMOVE)), Action.REBOOT, (Action.REBOOT, Action.REMOVE)),
        (FaultRule(ladder=(Action.VERIFY, Action.RESET_GPU)), Action.RESET_GPU, (Action.RESET_GPU,)),
        (
            FaultRule(action=Action.VERIFY, ladder=(Action.RESET_GPU, Action.REMOVE)),
            Action.VERIFY,
            (Action.VERIFY, Action.RESET_GPU, Action.REMOVE),
        ),
    ],
    ids=["an action", "a ladder without the catalogue's action", "a ladder with it", "both"],
)
def test_a_site_says_what_is_tried_and_what_after_that(
    rule: FaultRule, action: Action, ladder: tuple[Action, ...]
) -> None:
    effective = Policy(faults={"xid-48": rule}).rule_for(XID_48)
    assert (effective.action, effective.ladder) == (action, ladder)


def test_a_fault_without_its_own_action_starts_at_the_foot_of_its_ladder() -> None:
    fault = catalogue().get("recovery-action")
    assert Policy().rule_for(fault).action is LADDERS[fault.fault_class][0]


@pytest.mark.parametrize("ladder", [(), (Action.REBOOT, Action.RESET_GPU)])
def test_a_ladder_must_climb(ladder: tuple[Action, ...]) -> None:
    with pytest.raises(ValidationError, match="take away more"):
        FaultRule(ladder=ladder)


def test_the_default_modes_are_those_of_fleet_practice() -> None:
    recorded = {
        "xid-13",
        "xid-31",
        "xid-43",
        "xid-45",
        "xid-63",
        "xid-94",
        "thermal-throttle",
        "slurm-drained-by-person",
    }
    modes = {fault.id: Policy().rule_for(fault).mode for fault in catalogue().all()}
    assert {fault for fault, mode in modes.items() if mode is Mode.RECORD} >= recorded
    assert Mode.AUTO not in modes.values()


MODELS: list[type[BaseModel]] = [*DEFINITION, *POLICY]
FIELDS = [(model, name) for model in MODELS for name in model.model_fields]


@pytest.mark.parametrize(
    ("model", "name"), FIELDS, ids=lambda value: value if isinstance(value, str) else value.__name__
)
def test_every_field_is_described(model: type[BaseModel], name: str) -> None:
    assert (model.model_fields[name].description or "").endswith(".")


# Fields that hold what a site has, not what was decided for it; and the groups, whose fields each have a source.
OWN = {"name", "roles", "people", "identities", "faults", "classes", "default"}
DECIDED = [
    (model, name)
    for model, name in FIELDS
    if model in POLICY and name not in OWN and not isinstance(model.model_fields[name].default, Frozen)
]


@pytest.mark.parametrize(
    ("model", "name"), DECIDED, ids=lambda value: value if isinstance(value, str) else value.__name__
)
def test_every_default_has_a_source(model: type[BaseModel], name: str) -> None:
    assert "Source: " in (model.model_fields[name].description or "")


def test_no_model_of_the_policy_is_left_out_of_its_page() -> None:
    models = {model for model in Frozen.__subclasses__() if model.__module__.startswith(f"{module.__name__}.")}
    assert models | {Window} == {*POLICY, module.EffectiveRule}
    assert set(DEFINITION) == {BmcAccess, ClusterDefinition, CommandHardware, NodeGroup, SlurmAccess}


def test_the_page_is_that_of_the_models() -> None:
    assert (ROOT / "docs/policy.md").read_text() == policy_page()


def test_the_schema_is_published() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "daytwo.domain.policy"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert json.loads(printed.stdout) == schema()


def test_a_page_that_is_not_one_is_named(capsys: Any) -> None:
    assert main(["poems"]) == 2
    assert capsys.readouterr().err == "page: found poems, allowed: policy, node-states\n"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("attempts.per_day", 1),
        ("attempts.per_week", 2),
        ("budget.acting_share", 0.02),
        ("budget.acting_nodes", 10),
        ("budget.containing_share", 0.05),
        ("budget.containing_nodes", 25),
        ("breaker.nodes", 3),
        ("breaker.window_seconds", 300),
        ("approval.valid_seconds", 24 * 3600),
        ("reminders.critical_seconds", 5 * 60),
        ("reminders.next_group_seconds", 10 * 60),
        ("reminders.critical_again_seconds", 60 * 60),
        ("reminders.degraded_seconds", 24 * 3600),
        ("reminders.cosmetic_seconds", 7 * 24 * 3600),
        ("drain.timeout_seconds", 30 * 60),
        ("verify.quiet_seconds", 10 * 60),
        ("timing.settle_seconds", 1.5),
        ("timing.settle_at_most_seconds", 5),
        ("timing.auto_resolve_seconds", 5 * 60),
        ("timing.boot_seconds", 40 * 60),
    ],
)
def test_the_defaults_are_those_of_fleet_practice(path: str, value: float) -> None:
    group, field = path.split(".")
    assert getattr(getattr(Policy(), group), field) == value


@pytest.mark.parametrize("action", [Action.REPROVISION, Action.FAILOVER, Action.REMOVE])
def test_an_operator_may_not_approve_what_cannot_be_taken_back(action: Action) -> None:
    approval = Policy().approval
    assert action not in approval.roles["operator"]
    assert action in approval.never_automatic
