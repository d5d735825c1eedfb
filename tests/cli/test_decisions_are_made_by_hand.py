"""approve, dismiss, watch: what people decide, and what they are told."""

from __future__ import annotations

import getpass
import os
import pty
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import select

from daytwo.domain.policy import Person
from daytwo.domain.repair_states import HELD_FROM
from daytwo.store.engine import Store
from daytwo.store.tables import ClusterRow, DecisionRow, FreezeRow, IntentRow, LeaseRow, RepairRow
from tests.builders import NOW
from tests.cli.conftest import Cli
from tests.rows import REPAIR, a_definition, a_node, a_policy, a_repair, an_event, keep
from tests.serving import Repairer

ROOT = Path(__file__).parents[2]
ME = f"cli:{getpass.getuser()}"
APPROVE = ("repairs", "approve", REPAIR)


def decisions(store: Store) -> list[DecisionRow]:
    with store.read() as session:
        return list(session.exec(select(DecisionRow)).all())


def test_an_approval_waits_until_it_is_accepted(cli: Cli, fleet: Store) -> None:
    done = cli(*APPROVE, "--revision", "2", "--moment", "when-idle", "--reason", "job is dead")
    assert (done.code, done.out) == (0, f"accepted: approve {REPAIR} revision 2: reboot when its jobs have ended\n")
    row = decisions(fleet)[0]
    assert (row.kind, row.moment, row.reason, row.action) == ("approve", "when-idle", "job is dead", None)


@pytest.mark.parametrize(("proposed", "given"), [("now", ()), ("when-idle", ()), ("when-idle", ("--moment", "now"))])
def test_an_approval_is_for_the_proposed_moment_unless_it_names_another(
    cli: Cli, fleet: Store, proposed: str, given: tuple[str, ...]
) -> None:
    with fleet.write() as session:
        repair = session.get_one(RepairRow, REPAIR)
        repair.proposal = {**(repair.proposal or {}), "moment": proposed}
    for _ in range(2):
        cli(*APPROVE, "--revision", "2", "--request-id", "ticket-4711", *given)
    assert [row.moment for row in decisions(fleet)] == ["now" if given else proposed]


def test_another_action_can_be_approved_with_a_reason_and_is_named(cli: Cli, fleet: Store) -> None:
    done = cli(*APPROVE, "--revision", "2", "--action", "power-cycle", "--reason", "it hangs")
    assert decisions(fleet)[0].action == "power-cycle"
    assert done.out == f"accepted: approve {REPAIR} revision 2: power-cycle\n"
    assert "approve power-cycle revision 2 by" in cli("repairs", "show", REPAIR).out


REMOVE = (*APPROVE, "--revision", "2", "--action", "remove", "--reason", "go")


def test_an_action_that_nobody_proposed_and_that_is_hard_to_undo_needs_a_yes(cli: Cli, fleet: Store) -> None:
    done = cli(*REMOVE)
    assert (done.code, decisions(fleet)) == (2, [])
    assert "Missing option '--yes': remove is not what is proposed (reboot): the node is taken out for good" in done.err


def test_with_a_yes_it_is_approved_and_the_answer_says_what_it_means(cli: Cli, fleet: Store) -> None:
    done = cli(*REMOVE, "--yes")
    assert (done.code, decisions(fleet)[0].action) == (0, "remove")
    assert "It means: the node is taken out for good and stays drained" in done.err


@pytest.mark.parametrize(("answer", "made"), [("y\n", 1), ("n\n", 0)])
def test_on_a_terminal_it_is_asked_whether_that_is_meant(socket: Path, fleet: Store, answer: str, made: int) -> None:
    _, shown = on_terminal(socket, *REMOVE, answer=answer)
    assert ("Is that meant?" in shown, len(decisions(fleet))) == (True, made)


def test_an_action_that_is_proposed_needs_no_further_yes(cli: Cli, fleet: Store) -> None:
    with fleet.write() as session:
        repair = session.get_one(RepairRow, REPAIR)
        repair.proposal = {**(repair.proposal or {}), "action": "remove"}
    assert cli(*REMOVE).code == 0


def test_another_action_without_a_reason_is_not_approved(cli: Cli, fleet: Store) -> None:
    done = cli(*APPROVE, "--revision", "2", "--action", "power-cycle")
    assert (done.code, decisions(fleet)) == (2, [])
    assert "reason: found nothing; to approve power-cycle where reboot is proposed needs a sentence" in done.err


def test_the_proposed_action_may_be_named_without_a_reason(cli: Cli) -> None:
    assert cli(*APPROVE, "--revision", "2", "--action", "reboot").code == 0


def test_a_first_of_two_approvals_ends_well_and_says_what_is_missing(cli: Cli, repairer: Repairer) -> None:
    repairer.status, repairer.why = "counted", "reboot needs a second person besides Lea"
    done = cli(*APPROVE, "--revision", "2")
    assert (done.code, "needs a second person" in done.out) == (0, True)
    assert "Nothing is done until somebody else approves too" in done.err


def test_what_a_repair_waits_for_is_shown(cli: Cli, fleet: Store) -> None:
    with fleet.write() as session:
        session.get_one(RepairRow, REPAIR).waiting_for = "needs a second person"
    assert "needs a second person" in cli("repairs", "list").out
    assert "Waits: needs a second person" in cli("repairs", "show", REPAIR).out


@pytest.mark.parametrize(("status", "code"), [("refused", 4), ("void", 5)])
def test_a_decision_that_does_not_hold_says_why(cli: Cli, repairer: Repairer, status: str, code: int) -> None:
    repairer.status, repairer.why = status, "cluster east is frozen"
    done = cli(*APPROVE, "--revision", "2")
    assert (done.code, done.out) == (code, "")
    assert f"{status}: approve {REPAIR} revision 2 (cluster east is frozen)" in done.err


def test_a_decision_that_nobody_takes_times_out_and_is_kept(cli: Cli, repairer: Repairer, fleet: Store) -> None:
    repairer.status = None
    done = cli(*APPROVE, "--revision", "2", "--timeout", "1s")
    assert (done.code, decisions(fleet)[0].status) == (6, "pending")
    assert "will be delivered. Its repair has not answered; it is asked again" in done.err


@pytest.mark.parametrize(
    ("fields", "says"),
    [({"missing_since": NOW}, "It waits: its workflow is gone"), ({"waiting_for": "a budget"}, "It waits: a budget")],
)
def test_a_decision_that_nobody_takes_says_what_is_known_to_be_in_its_way(
    cli: Cli, repairer: Repairer, fleet: Store, fields: dict[str, Any], says: str
) -> None:
    repairer.status = None
    with fleet.write() as session:
        session.get_one(RepairRow, REPAIR).sqlmodel_update(fields)
    assert says in cli(*APPROVE, "--revision", "2", "--timeout", "1s").err


def test_a_decision_that_waits_for_a_part_that_is_away_names_it(cli: Cli, repairer: Repairer, fleet: Store) -> None:
    repairer.status = None
    keep(fleet, LeaseRow(name="reconcile", holder="here:1", expires_at=NOW, stepped_at=NOW))
    assert "will be delivered. Away: controller" in cli(*APPROVE, "--revision", "2", "--timeout", "1s").err


def test_an_approval_of_a_frozen_node_is_recorded_and_not_waited_for(
    cli: Cli, repairer: Repairer, fleet: Store
) -> None:
    repairer.status = None
    keep(fleet, FreezeRow(scope="east", reason="storm", actor="cli:lea", at=NOW))
    with fleet.write() as session:
        session.get_one(RepairRow, REPAIR).state = "approved"
    done = cli(*APPROVE, "--revision", "2", "--timeout", "30s")
    said = f"recorded: approve {REPAIR} revision 2: reboot; waits: frozen by cli:lea: storm, until it is thawed\n"
    assert (done.code, done.out) == (0, said)


def test_a_hold_that_its_repair_does_not_take_says_so(cli: Cli, repairer: Repairer, fleet: Store) -> None:
    repairer.status = None
    with fleet.write() as session:
        session.get_one(RepairRow, REPAIR).sqlmodel_update({"state": "acting", "waiting_for": "reboot is under way"})
    done = cli("repairs", "hold", REPAIR, "--revision", "2", "--timeout", "1s")
    assert "a repair that is acting does not take it: it takes no decision. You are told if" in done.err


def test_help_names_the_states_that_take_a_hold(cli: Cli) -> None:
    said = cli("repairs", "hold", "--help").out
    assert [state for state in HELD_FROM if state not in said] == []


def test_the_same_request_id_is_one_decision(cli: Cli, fleet: Store) -> None:
    for _ in range(2):
        cli(*APPROVE, "--revision", "2", "--request-id", "ticket-4711")
    assert len(decisions(fleet)) == 1


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("repairs", "approve", "r-nowhere", "--revision", "2"), 3, "there is no repair 'r-nowhere'"),
        ((*APPROVE, "--revision", "1"), 5, "at revision 2, proposed, asks for reboot"),
        ((*APPROVE, "--revision", "2", "--action", "hammer"), 2, "action: found 'hammer'"),
        ((*APPROVE, "--revision", "3"), 3, f"there is no revision 3 of repair {REPAIR}: it is at revision 2"),
        ((*APPROVE, "--revision", "two"), 2, "found 'two'; allowed is a whole number from 0"),
        (APPROVE, 2, "--revision"),
        ((*APPROVE, "--yes"), 2, "--revision"),
        (("repairs", "dismiss", REPAIR, "--revision", "2"), 2, "Missing option '--reason'. Say why"),
        (("repairs", "approve", "r-nowhere", "--revision", "2"), 3, "Next: daytwo repairs list"),
        (("repairs", "dismiss", REPAIR, "--revision", "2", "--reason", " "), 2, "reason: found nothing"),
        (("repairs", "dismiss", REPAIR, "--revision", "2", "--reason", "x", "--snooze", "1y"), 2, "2h or 7d"),
        (("repairs", "show", "r-nowhere"), 3, "Next: daytwo repairs list"),
        (("repairs", "watch", "r-nowhere"), 3, "r-nowhere"),
        (("nodes", "show", "gpu-99"), 3, "Next: daytwo nodes list"),
        (("nodes", "token", "gpu-99"), 3, "gpu-99"),
        (("faults", "show", "xid-nothing"), 3, "Next: daytwo faults list"),
        (("repairs", "list", "--cluster", "west"), 3, "there is no cluster 'west'"),
        (("freeze", "west", "--reason", "x"), 3, "there is no cluster 'west'"),
        (("freeze",), 2, "--reason"),
        (("freeze", "west", "--reason", "x"), 3, "Next: daytwo clusters list"),
        (("freeze", "east/gpu-99", "--reason", "x"), 3, "Next: daytwo nodes list"),
        (("thaw", "--reason", "x"), 3, "nothing is frozen"),
        (("thaw", "--reason", "x"), 3, "Why:  A thaw ends the freezes of exactly one scope"),
        (("findings", "list", "--fault", "xid-790x"), 3, "did you mean 'xid-79'?"),
        (("repairs", "list", "--state", "helt"), 2, "state: found 'helt'"),
    ],
)
def test_what_goes_wrong_has_its_own_exit_code(cli: Cli, words: tuple[str, ...], code: int, says: str) -> None:
    done = cli(*words)
    assert (done.code, done.out) == (code, "")
    assert says in done.err


def test_an_error_is_what_why_and_next(cli: Cli) -> None:
    lines = cli(*APPROVE, "--revision", "1").err.splitlines()
    assert [line.split()[0] for line in lines] == ["Error:", "Why:", "Next:"]
    assert lines[2].endswith(f"daytwo repairs show {REPAIR}")


def test_a_void_decision_says_what_the_repair_takes(cli: Cli, repairer: Repairer) -> None:
    repairer.status, repairer.why = "void", "a repair that is proposed does not take return-after-tests"
    err = cli("repairs", "return", REPAIR, "--revision", "2").err
    assert f"void: return {REPAIR} revision 2 (a repair that is proposed does not take return)" in err
    assert "It is proposed and takes approve, dismiss, hold." in err


def test_an_approval_that_is_not_taken_says_what_it_waits_for(cli: Cli, repairer: Repairer, fleet: Store) -> None:
    repairer.status = None
    with fleet.write() as session:
        session.get_one(RepairRow, REPAIR).waiting_for = "cluster east is frozen"
    err = cli(*APPROVE, "--revision", "2", "--timeout", "1s").err
    assert "It waits: cluster east is frozen." in err


@pytest.mark.parametrize(
    ("acts", "says"),
    [
        ((), "This repair has put nothing on the node"),
        (("reserve", "drain"), "What daytwo put on the node is being lifted"),
        (
            ("reserve", "drain", "undrain", "unreserve"),
            "What daytwo put on the node is lifted: it takes new work again",
        ),
    ],
    ids=["nothing was put", "not lifted yet", "lifted"],
)
def test_a_dismissal_says_what_becomes_of_the_marks(cli: Cli, fleet: Store, acts: tuple[str, ...], says: str) -> None:
    of = {"repair_id": REPAIR, "cluster": "east", "node": "gpu-07", "driver": "slurm", "state": "proven"}
    for number, kind in enumerate(acts):
        at = NOW + timedelta(seconds=number)
        keep(fleet, IntentRow(id=f"i-{kind}", kind=kind, target="gpu-07", created_at=at, updated_at=at, **of))
    done = cli("repairs", "dismiss", REPAIR, "--revision", "2", "--reason", "known")
    assert says in done.err
    assert "Nobody is asked about the same fault again for as long as the policy snoozes" in done.err


def test_a_dismissal_of_a_persons_wish_promises_no_quiet(cli: Cli, fleet: Store) -> None:
    with fleet.write() as session:
        session.get_one(RepairRow, REPAIR).fault = "asked"
    err = cli("repairs", "dismiss", REPAIR, "--revision", "2", "--reason", "known").err
    assert ("Nobody is asked" in err, "whoever asks again is heard" in err) == (False, True)


def test_a_dismissal_after_something_was_done_says_that_work_stays_off(cli: Cli, fleet: Store) -> None:
    with fleet.write() as session:
        session.get_one(RepairRow, REPAIR).disturbed = True
    done = cli("repairs", "dismiss", REPAIR, "--revision", "2", "--reason", "known")
    assert ("new work stays off it" in done.err, "takes new work again" in done.err) == (True, False)


def test_a_timeline_is_told_in_words(cli: Cli, fleet: Store) -> None:
    keep(fleet, an_event(1), an_event(2, event="approved", to_state="approved", text="approved"))
    keep(fleet, an_event(3, event="revised", data={"revision": 2}))
    out = cli("repairs", "show", REPAIR).out
    assert [words in out for words in ("Z  proposed  by", "Z  approved  by", "revised to revision 2")] == [True] * 3


def test_a_timeline_says_what_its_text_says_once(cli: Cli, fleet: Store) -> None:
    text = "the approved moment has come and the budget allows it"
    keep(fleet, an_event(1, event="moment-came", from_state="waiting", to_state="draining", text=text))
    assert f"Z  {text} → draining  by daytwo\n" in cli("repairs", "show", REPAIR).out


@pytest.mark.parametrize("event", ["approved", "held", "dismissed"])
def test_a_timeline_does_not_say_the_same_twice(cli: Cli, fleet: Store, event: str) -> None:
    keep(fleet, an_event(1, event=event, to_state=event, text=event))
    line = next(line for line in cli("repairs", "show", REPAIR).out.splitlines() if "  by daytwo" in line)
    assert line.count(event.replace("-", " ")) == 1
    assert "→" not in line


def test_stamps_are_told_in_the_order_of_a_repair(cli: Cli, fleet: Store) -> None:
    at = "2026-11-30T14:00:00+00:00"
    with fleet.write() as session:
        session.get_one(RepairRow, REPAIR).stamps = {"returned": at, "approved": at, "detected": at}
    shown = cli("repairs", "show", REPAIR).out
    assert shown.index("detected:") < shown.index("approved:") < shown.index("returned:")


def test_a_dismissal_carries_reason_and_snooze(cli: Cli, fleet: Store) -> None:
    done = cli("repairs", "dismiss", REPAIR, "--revision", "2", "--reason", "known", "--snooze", "7d")
    row = decisions(fleet)[0]
    assert (done.code, row.kind, row.reason, row.snooze_seconds) == (0, "dismiss", "known", 7 * 86400)


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("hold", "hold"),
        ("release", "release"),
        ("retry", "retry"),
        ("return", "return-after-tests"),
        ("remove", "remove"),
        ("hand-over", "hand-over"),
    ],
)
def test_every_kind_of_decision_has_a_command(cli: Cli, fleet: Store, command: str, kind: str) -> None:
    done = cli("repairs", command, REPAIR, "--revision", "2", "--reason", "seen")
    assert (done.code, [row.kind for row in decisions(fleet)]) == (0, [kind])


@pytest.mark.parametrize(("state", "code"), [("succeeded", 0), ("dismissed", 1), ("removed", 1), ("auto-resolved", 1)])
def test_watching_ends_with_the_repair(cli: Cli, fleet: Store, state: str, code: int) -> None:
    with fleet.write() as session:
        session.merge(a_repair(state=state, open_key=None, outcome="as said"))
    keep(fleet, an_event(1), an_event(2, event="acted", to_state="verifying"))
    done = cli("repairs", "watch", REPAIR)
    assert done.code == code
    assert ("acted → verifying" in done.out, done.out.splitlines()[-1]) == (True, f"{state}: as said")


def test_watching_an_open_repair_times_out(cli: Cli) -> None:
    done = cli("repairs", "watch", REPAIR, "--timeout", "1s")
    assert done.code == 6
    assert "It waits for a person (proposed)" in done.err


def test_a_freeze_and_its_thaw(cli: Cli) -> None:
    assert "storm" in cli("freeze", "east", "--reason", "storm").out
    assert cli("thaw", "east", "--reason", "over").code == 0
    assert cli("freeze", "--list", "-o", "name").out == ""


def test_a_second_freeze_says_who_froze_it_and_when(cli: Cli) -> None:
    cli("freeze", "east", "--reason", "storm")
    again = cli("freeze", "east", "--reason", "smoke")
    assert (again.code, f"storm; also {ME}: smoke" in again.out) == (0, True)
    assert re.search(rf"It was frozen \d+s ago already, by {ME}; that freeze stands", again.err)
    assert len(cli("freeze", "--list", "-o", "name").out.splitlines()) == 1


def test_the_audit_chain_is_verified(cli: Cli, fleet: Store) -> None:
    cli("freeze", "--reason", "storm")
    assert cli("audit", "verify").code == 0
    with fleet.write() as session:
        session.connection().exec_driver_sql("UPDATE audit SET actor = 'cli:nobody'")
    broken = cli("audit", "verify")
    assert (broken.code, broken.out) == (1, "The audit chain is BROKEN at row 1: row 1 was changed\n")


# On a terminal


def on_terminal(socket: Path, *words: str, answer: str = "", **environment: str) -> tuple[int, str]:
    main, child = pty.openpty()
    command = [sys.executable, "-m", "daytwo.cli.main", "--socket", str(socket), *words]
    env = {**os.environ, "TERM": "xterm", **environment}
    with subprocess.Popen(command, cwd=ROOT, stdin=child, stdout=child, stderr=child, env=env) as process:
        os.close(child)
        os.write(main, answer.encode())
        shown = b"".join(iter(lambda: read(main), b""))
    os.close(main)
    return process.returncode, shown.decode()


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end has closed: Linux says EIO
        return b""


def test_without_a_revision_the_proposal_is_shown_and_asked_about(socket: Path, fleet: Store) -> None:
    code, shown = on_terminal(socket, *APPROVE, answer="y\n")
    assert (code, decisions(fleet)[0].revision) == (0, 2)
    assert f"Approve (reboot) on east/gpu-07: revision 2 of {REPAIR}?" in shown


def test_saying_no_decides_nothing(socket: Path, fleet: Store) -> None:
    code, shown = on_terminal(socket, *APPROVE, answer="n\n")
    assert (code, decisions(fleet), "Nothing was decided." in shown) == (1, [], True)


@pytest.mark.parametrize(("variable", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_colour_is_for_terminals_that_want_it(socket: Path, variable: dict[str, str], coloured: bool) -> None:
    _, shown = on_terminal(socket, "nodes", "list", **variable)
    assert ("\x1b[" in shown, "✔ healthy" in shown) == (coloured, True)


def test_a_person_asks_for_a_repair_and_is_told_where_it_is(cli: Cli, fleet: Store) -> None:
    definition = a_definition(policy=a_policy(people=(Person(name="me", roles=("lead",), identities=(ME,)),)))
    with fleet.write() as session:
        session.get_one(ClusterRow, "east").definition = definition.model_dump(mode="json")
        session.add(a_node("gpu-08"))
    done = cli("nodes", "repair", "gpu-08", "--action", "reboot", "--reason", "new firmware")
    assert (done.code, done.out.partition("  ")[2]) == (0, "reboot of east/gpu-08\n")
    assert "Next: daytwo repairs show r-" in done.err


def test_a_repair_that_is_asked_for_needs_a_reason(cli: Cli) -> None:
    assert cli("nodes", "repair", "gpu-07", "--action", "reboot").code == 2
