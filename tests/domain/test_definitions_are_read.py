"""A cluster definition from YAML: what is read, and how each slip is named."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daytwo.domain.errors import BadInput
from daytwo.domain.load_definition import DefinitionError, check_definition, load_definitions
from daytwo.domain.vocabulary import Action, ClusterKind, Mode

GOOD = """\
name: east
kind: slurm
groups:
  - nodes: [login-1]
    role: login
  - nodes:
      - gpu-[001-016]
    pool: h200
    gpus: 8
    domains: [rack-1]
    survives_reboot: {/raid: true}
policy:
  approval:
    people:
      - {name: Alice, roles: [lead], identities: ["cli:alice"]}
  faults:
    xid-79: {mode: off}
    xid-119: {action: reboot}
hardware: {driver: command, program: [/usr/local/sbin/power]}
"""


def lines_of(text: str) -> list[str]:
    with pytest.raises(DefinitionError) as error:
        load_definitions(text, "east.yaml")
    return str(error.value).splitlines()


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


def test_a_good_definition_is_read() -> None:
    definition = load_definitions(GOOD, "east.yaml")
    assert (definition.name, definition.kind, definition.groups[1].gpus) == ("east", ClusterKind.SLURM, 8)
    assert definition.policy.faults["xid-119"].action is Action.REBOOT


def test_off_is_a_word_and_not_a_boolean() -> None:
    assert load_definitions(GOOD, "east.yaml").policy.faults["xid-79"].mode is Mode.OFF


def test_a_good_definition_has_nothing_to_warn_of() -> None:
    assert check_definition(load_definitions(GOOD, "east.yaml")) == ()


SLIPS = [
    (
        "gpus: 8",
        "gpu: 8",
        "east.yaml:9: groups[1].gpu: found a field that is not known, allowed: gpus (did you mean that?)",
    ),
    ("kind: slurm", "kind: slrm", "east.yaml:2: kind: found 'slrm', allowed: slurm or simulated"),
    ("kind: slurm\n", "", "east.yaml:1: kind: found nothing, allowed: a value: the field is required"),
    ("name: east", "name: East_1", "east.yaml:1: name: found 'East_1', allowed: Lower-case letters"),
    ("gpus: 8", "gpus: -1", "east.yaml:9: groups[1].gpus: found -1, allowed: greater than or equal to 0"),
    ("gpus: 8", "gpus: eight", "east.yaml:9: groups[1].gpus: found 'eight', allowed: a whole number"),
    ("gpus: 8", "gpus: 8\n    gpus: 4", "east.yaml:10: groups[1].gpus: found the key again, first on line 9"),
    ("gpu-[001-016]", "gpu-[016-001]", "east.yaml:6: groups[1].nodes: found 016-001 in 'gpu-[016-001]', allowed: "),
    ("[login-1]", "[]", "east.yaml:4: groups[0].nodes: found an empty group, allowed: at least one node"),
    ("[login-1]", "[gpu-003]", "east.yaml:6: groups[1].nodes: found gpu-003, which is in groups[0] already"),
    ("[login-1]", "[a, a]", "east.yaml:4: groups[0].nodes: found a, which is in groups[0] already"),
    ("[login-1]", "[gpu-[1-2]]", "east.yaml:4: found '[' inside [ ], allowed: a range in quotes"),
    ("    pool: h200", "\tpool: h200", "east.yaml:8: found a tab, allowed: spaces"),
    ("role: login", "role: logn", "east.yaml:5: groups[0].role: found 'logn', allowed: 'worker', 'login'"),
    (
        "xid-79",
        "gpu-of-bus",
        "east.yaml:17: policy.faults.gpu-of-bus: found 'gpu-of-bus', a fault that is not known, allowed: gpu-off-bus ",
    ),
    (
        "xid-79",
        "xid-6333",
        "east.yaml:17: policy.faults.xid-6333: found 'xid-6333', a fault that is not known, allowed: xid-63 (did you",
    ),
    ("action: reboot", "action: rebot", "east.yaml:18: policy.faults.xid-119.action: found 'rebot', allowed: "),
    ("action: reboot", "ladder: [reboot, verify]", "east.yaml:18: policy.faults.xid-119: found "),
    ("mode: off", "moode: off", "policy.faults.xid-79.moode: found a field that is not known, allowed: mode (did you"),
    (
        "  approval:",
        "  breaker: {nodes: 1}\n  approval:",
        "east.yaml:13: policy.breaker.nodes: found 1, allowed: greater",
    ),
    (
        "    people:",
        "    roles: {op: [rebot]}\n    people:",
        "approval.roles.op[0]: found 'rebot', allowed: reboot (did you",
    ),
    (
        "  approval:",
        "  windows: [{name: nights, begins: 25:00, ends: 06:00}]\n  approval:",
        "east.yaml:13: policy.windows[0].begins: found '25:00', allowed: When it opens, as 22:00.",
    ),
    (
        "  approval:",
        "  windows:\n    - {name: n, begins: 22:00, ends: 06:00,\n       timezone: Mars/Base}\n  approval:",
        "east.yaml:15: policy.windows[0].timezone: found 'Mars/Base', allowed: a name such as Europe/Berlin",
    ),
    (
        "  approval:",
        "  windows: [{name: n, begins: 22:00, ends: 06:00, days: [friday]}]\n  approval:",
        "east.yaml:13: policy.windows[0].days[0]: found 'friday', allowed: 'mon', 'tue'",
    ),
    ("roles: [lead], ", "", "east.yaml:15: policy.approval.people[0].roles: found nothing, allowed: a value"),
    ("[rack-1]", "&racks [rack-1]\n    pool: *racks", "found the alias *racks, allowed: values written out"),
    ("name: east", "name: !!python/object:os.system x", "found the tag tag:yaml.org,2002:python/object:os.system"),
    ("name: east", "name: 2026-11-30T10:00:00Z", "east.yaml:1: name: found '2026-11-30T10:00:00Z', allowed: Lower"),
    ("name: east", "? [a]\n: b\nname: east", "east.yaml:1: found a key that is not a word, allowed: a word"),
    (
        "kind: slurm",
        "kind: slurm\n---\na: b",
        "east.yaml:3: found a second document after '---', allowed: one YAML document",
    ),
    ("kind: slurm", "kind: kubernetes", "east.yaml:2: kind: found 'kubernetes', allowed: slurm or simulated"),
    ("[rack-1]", "[rack-1", "found a list that is not closed, or lacks a comma, allowed: [a, b]"),
    ("{/raid: true}", "/raid", "groups[1].survives_reboot: found '/raid', allowed: fields, each as `name: value`"),
    ("roles: [lead]", "roles: [leed]", "people[0].roles[0]: found 'leed', allowed: lead (did you mean that?)"),
    ("cli:alice", "alice", "people[0].identities[0]: found 'alice', allowed: cli:<Unix user>, slack:"),
    (
        "    people:",
        "    groups: [operator, leed]\n    people:",
        "east.yaml:14: policy.approval.groups[1]: found 'leed', allowed: lead (did you mean that?)",
    ),
    (
        "    people:",
        "    roles: {boss: ['*'], lead: ['*']}\n    beyond_workers: [bos]\n    people:",
        "east.yaml:15: policy.approval.beyond_workers[0]: found 'bos', allowed: boss (did you mean that?)",
    ),
    (
        "hardware:",
        "reboot_by: command\nhardware:",
        "east.yaml:19: reboot_by: found 'command', allowed: scheduler or bmc, or `hardware` with `reboot` among",
    ),
    (
        "hardware:",
        "bmcs: [{nodes: [login-1], address: 'https://{node}-bmc', user: a, password: 'env:B'}]\nhardware:",
        "east.yaml:20: hardware: found it beside bmcs, allowed: one of the two",
    ),
]


@pytest.mark.parametrize(("old", "new", "line"), SLIPS, ids=[line.split("found ")[1][:40] for _, _, line in SLIPS])
def test_a_slip_is_named_by_file_line_field_and_what_is_allowed(old: str, new: str, line: str) -> None:
    assert any(line in found for found in lines_of(changed(old, new))), lines_of(changed(old, new))


@pytest.mark.parametrize("text", ["", "- a", "word", "null", "[1, 2]", "name: [", "{", "\x00", "a: \ud800"])
def test_what_is_no_definition_at_all_is_bad_input(text: str) -> None:
    assert lines_of(text)[0].startswith("east.yaml:1: ")


def test_all_slips_are_told_at_once_in_the_order_of_the_file() -> None:
    text = changed("gpus: 8", "gpu: 8").replace("name: east", "name: E").replace("mode: off", "mode: of")
    assert [line.split(":")[1] for line in lines_of(text)] == ["1", "9", "17"]


def test_a_node_in_two_groups_is_told_once() -> None:
    assert len(lines_of(changed("[login-1]", "[gpu-003]"))) == 1


def test_a_file_full_of_slips_is_told_in_part() -> None:
    text = GOOD + "".join(f"field{n}: 1\n" for n in range(60))
    assert lines_of(text)[-1] == "east.yaml: and 10 more"


def test_a_definition_error_is_bad_input() -> None:
    assert issubclass(DefinitionError, BadInput)


def test_a_huge_file_is_refused_unread() -> None:
    assert lines_of("a" * 2_000_001) == ["east.yaml:1: found 2000001 characters, allowed: at most 2000000"]


@pytest.mark.parametrize(
    ("old", "new", "warning"),
    [
        ("    gpus: 8\n", "", "groups[1].gpus: nothing"),
        ("    domains: [rack-1]\n", "", "groups[1].domains: none"),
        ("    survives_reboot: {/raid: true}\n", "", "groups[1].survives_reboot: none"),
        ("kind: slurm", "kind: simulated", "simulated_socket: nothing"),
        (', identities: ["cli:alice"]', "", "Alice has no identities"),
        ("    people:", "    unverified_may: [reboot]\n    people:", "reboot interrupts work"),
        (
            "    people:",
            "    two_person: [reboot]\n    root_is_lead: false\n    people:",
            "reboot needs two persons, but 1",
        ),
        ("{mode: off}", "{mode: auto, action: remove}", "xid-79.mode: auto, but remove always asks"),
        ("{mode: off}", "{verify: [dcgm-3]}", "dcgm-3 cannot be run yet"),
        (
            "{mode: off}",
            "{verify: [quiet-lgo]}",
            "faults.xid-79.verify: quiet-lgo is no test that is known; allowed is ",
        ),
        (
            "  faults:",
            "  classes: {link: {verify: [dcgm-3]}}\n  faults:",
            "classes.link.verify: dcgm-3 cannot be run yet",
        ),
        (
            "xid-119: {action: reboot}",
            "xid-210: {action: reboot}",
            "xid-210: an Xid that the catalogue lacks; it has xid-",
        ),
        ("cli:alice", "slack:U1", "Alice has no cli: identity, and this version lets in no other"),
        (
            "hardware: {driver: command, program: [/usr/local/sbin/power]}\n",
            "",
            "power-cycle: no driver does it, so ladders go past it; allowed is `bmcs`, or a program in `hardware`",
        ),
        (
            "{mode: off}",
            "{action: reset-gpu}",
            "policy.faults.xid-79: reset-gpu is asked for, but done by no driver of this version, so it is skipped",
        ),
        (
            "hardware: {driver: command, program: [/usr/local/sbin/power]}\n",
            "bmcs: [{nodes: ['gpu-[015-024]'], address: 'https://{node}-bmc', user: u, password: 'env:P'}]\n",
            "bmcs[0].nodes: gpu-017, gpu-018, gpu-019, gpu-020, gpu-021 and 3 more, in no group",
        ),
        ("{mode: off}", "{action: remove, ladder: [verify, reboot]}", "remove is above its ladder"),
    ],
)
def test_what_is_allowed_and_surprises_is_warned_of(old: str, new: str, warning: str) -> None:
    warnings = check_definition(load_definitions(changed(old, new), "east.yaml"))
    assert len(warnings) == 1
    assert warning in warnings[0]


def test_nobody_who_could_approve_is_warned_of() -> None:
    text = GOOD.split("policy:")[0] + "policy: {approval: {root_is_lead: false}}\n"
    assert "nobody can approve anything" in check_definition(load_definitions(text, "east.yaml"))[1]


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet=st.sampled_from(list("abnames:[]{}-,&*!|>'\"#%@\\ \t\n019.~?")), max_size=60))
def test_whatever_is_in_the_file_the_error_is_bad_input(text: str) -> None:
    with pytest.raises(BadInput):
        load_definitions(text, "east.yaml")
