"""The catalogue as it is shipped: every entry is complete, and says of each fault what the rules demand."""

from __future__ import annotations

import dataclasses
import pickle
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from daytwo.faults import catalogue as package
from daytwo.faults.catalogue import UnknownFault, catalogue
from daytwo.faults.model import FLOOR, Action, Clears, Fault, FaultClass, Mode, VerifyTest

ROOT = Path(__file__).parents[2]
FILES = sorted(Path(package.__file__).parent.glob("*.toml"))
FAULTS = catalogue().all()

XIDS = (13, 31, 43, 45, 48, 63, 64, 74, 79, 94, 95, 109, 119, 120, 140, 154)
OTHERS = {
    "gpu-off-bus",
    "thermal-throttle",
    "recovery-action",
    "nvml-unreadable",
    "slurm-drained",
    "slurm-drained-by-person",
    "slurm-down",
    "agent-silent",
    "unknown-code",
}

every_fault = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)


def ids_where(**wanted: object) -> set[str]:
    return {fault.id for fault in FAULTS if all(getattr(fault, name) == value for name, value in wanted.items())}


def test_the_catalogue_holds_what_it_promises() -> None:
    assert {f"xid-{xid}" for xid in XIDS} | OTHERS <= {fault.id for fault in FAULTS}


@every_fault
def test_an_entry_says_what_it_is_and_where_that_was_learnt(fault: Fault) -> None:
    assert all((fault.title, fault.meaning, fault.source))
    assert fault.xid is None or fault.id == f"xid-{fault.xid}"


@every_fault
def test_an_entry_asks_for_the_floor_and_for_known_tests(fault: Fault) -> None:
    assert fault.verify[: len(FLOOR)] == FLOOR
    assert set(fault.verify) <= set(VerifyTest)
    assert len(set(fault.verify)) == len(fault.verify)


@every_fault
def test_nothing_is_automatic_and_nothing_destructive_comes_first(fault: Fault) -> None:
    assert fault.mode in (Mode.RECORD, Mode.RECOMMEND)
    assert fault.first_action not in (Action.REMOVE, Action.FAILOVER, Action.REPROVISION)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_family_holds_what_its_file_holds_and_has_a_runbook(file: Path) -> None:
    entries = tomllib.loads(file.read_text(encoding="utf-8"))["faults"]
    runbook = ROOT / "docs" / "runbooks" / f"{file.stem}.md"
    assert [fault.id for fault in FAULTS if fault.family == file.stem] == list(entries)
    assert "## What a person checks" in runbook.read_text(encoding="utf-8")


def test_a_node_is_contained_unasked_only_where_new_work_would_fail() -> None:
    lost = {"xid-79", "gpu-off-bus"}
    memory, firmware = {"xid-48", "xid-95", "xid-140"}, {"xid-119", "xid-120"}
    asked = {"xid-154", "recovery-action"}
    assert ids_where(new_work_fails=True) == lost | memory | firmware | asked | {"nvml-unreadable"}


def test_only_faults_that_need_nobody_now_are_merely_recorded() -> None:
    applications = {"xid-13", "xid-31", "xid-43", "xid-45", "xid-94"}
    seen = {"xid-63", "thermal-throttle", "slurm-drained-by-person", "agent-missed-records"}
    seen |= {"ecc-corrected-rate", "row-remap-exhausted", "foreign-act", "marks-lost", "rack-outliers"}
    assert ids_where(mode=Mode.RECORD) == applications | seen
    assert ids_where(fault_class=FaultClass.APPLICATION) == applications


def test_an_xid_45_that_stands_alone_is_recorded_by_a_rule_that_is_dated() -> None:
    rule = catalogue().get("xid-45")
    dated = re.search(r"Rule of \d{4}-\d\d$", rule.source)
    assert (rule.mode, rule.first_action, dated is not None) == (Mode.RECORD, Action.TELL_OWNER, True)


@pytest.mark.parametrize(
    ("clears", "ids"),
    [
        (Clears.BOOT_AND_TESTS, {"xid-79", "xid-64", "gpu-off-bus", "driver-changed"}),
        (Clears.QUIET_FOR, {"xid-13", "xid-31", "xid-43", "xid-45"}),
        (Clears.PERSON, {"unknown-code"}),
        (
            Clears.PART_SWAPPED,
            {"ecc-sram-threshold", "row-remap-failed", "row-remap-exhausted", "page-retirement-limit"},
        ),
    ],
)
def test_what_ends_a_fault_is_as_the_rules_demand(clears: Clears, ids: set[str]) -> None:
    assert ids_where(clears=clears) == ids


def test_no_other_xid_ends_by_falling_silent() -> None:
    xids = [fault for fault in FAULTS if fault.xid and fault.mode is not Mode.RECORD and fault.id != "xid-154"]
    assert {fault.clears for fault in xids} == {Clears.RESET, Clears.BOOT_AND_TESTS}


@pytest.mark.parametrize(
    ("fault", "action"),
    [
        ("xid-79", Action.REBOOT),
        ("gpu-off-bus", Action.REBOOT),
        ("xid-48", Action.RESET_GPU),
        ("xid-13", Action.TELL_OWNER),
        ("slurm-drained", Action.VERIFY),
        ("agent-silent", Action.INSPECT),
        ("unknown-code", Action.INSPECT),
        ("xid-154", None),
    ],
)
def test_the_first_action_is_the_catalogues_advice(fault: str, action: Action | None) -> None:
    assert catalogue().get(fault).first_action is action


def test_a_lost_gpu_is_never_debounced() -> None:
    assert catalogue().get("xid-79").debounce_seconds == catalogue().get("gpu-off-bus").debounce_seconds == 0


def test_an_xid_without_an_entry_is_the_unknown_code_under_its_own_id() -> None:
    fault = catalogue().get("xid-999")
    assert (fault.id, fault.xid) == ("xid-999", 999)
    assert dataclasses.replace(fault, id="unknown-code", xid=None, title="") == dataclasses.replace(
        catalogue().get("unknown-code"), title=""
    )


@pytest.mark.parametrize("fault_id", ["", "xid-", "xid-079", "xid-1000000", "xid-٧٩", "Xid-79", "gpu-on-fire"])
def test_an_id_that_means_nothing_is_refused_by_name(fault_id: str) -> None:
    with pytest.raises(UnknownFault, match="allowed: xid-<number>, agent-silent"):
        catalogue().get(fault_id)


def test_the_catalogue_is_read_once_and_cannot_be_changed() -> None:
    assert catalogue() is catalogue()
    with pytest.raises(dataclasses.FrozenInstanceError):
        catalogue()._faults = {}


def test_an_entry_travels_between_processes() -> None:
    assert pickle.loads(pickle.dumps(FAULTS)) == FAULTS


def test_reading_faults_loads_nothing_but_the_standard_library() -> None:
    program = (
        "import sys; before = set(sys.modules); import daytwo.faults.signals, daytwo.faults.recovery;"
        "import daytwo.faults.catalogue as c; c.catalogue();"
        "loaded = {name.partition('.')[0] for name in set(sys.modules) - before};"
        "print(sorted(loaded - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['daytwo']"


def test_the_floor_runs_now_and_every_other_test_is_only_wanted() -> None:
    assert {test for test in VerifyTest if not test.wanted} == set(FLOOR)
