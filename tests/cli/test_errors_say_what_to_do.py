"""An error of a decision says what was found, why that does not do, and the command to try next."""

from __future__ import annotations

import pytest

from daytwo.domain.policy import Person
from daytwo.store.engine import Store
from daytwo.store.tables import ClusterRow, NodeRow, RepairRow
from tests.builders import NOW
from tests.cli.conftest import ME, Cli
from tests.rows import REPAIR, a_definition, a_policy, a_repair

APPROVE = ("repairs", "approve", REPAIR, "--revision")
HOLD = ("nodes", "hold", "gpu-07", "--reason", "bench")
RELEASE = ("nodes", "release", "gpu-07", "--reason", "over")


@pytest.fixture
def lead(fleet: Store, cli: Cli) -> Cli:
    """The commands of somebody with a role."""
    definition = a_definition(policy=a_policy(people=(Person(name="me", roles=("lead",), identities=(ME,)),)))
    with fleet.write() as session:
        session.get_one(ClusterRow, "east").definition = definition.model_dump(mode="json")
    return cli


def lines(err: str) -> list[str]:
    found = err.splitlines()
    assert [line.split(":")[0].strip() for line in found] == ["Error", "Why", "Next"]
    return found


def test_an_old_revision_says_which_one_stands(cli: Cli) -> None:
    error, why, following = lines(cli(*APPROVE, "1").err)
    assert "has changed since revision 1: it is at revision 2" in error
    assert "what stands is revision 2" in why
    assert following.endswith(f"daytwo repairs show {REPAIR}")


def test_a_revision_that_is_not_there_yet_is_no_mistyped_id(cli: Cli) -> None:
    _, why, following = lines(cli(*APPROVE, "3").err)
    assert "The newest revision is 2" in why
    assert following.endswith(f"daytwo repairs show {REPAIR}")


def test_a_repair_that_is_over_says_so(cli: Cli, fleet: Store) -> None:
    with fleet.write() as session:
        session.merge(a_repair(state="dismissed", open_key=None, outcome="known"))
    done = cli(*APPROVE, "2")
    error, why, following = lines(done.err)
    assert (done.code, "is over: dismissed (known)" in error, "has ended" in why) == (5, True, True)
    assert following.endswith("daytwo repairs list --node east/gpu-07")


def test_a_request_id_that_is_taken_names_the_decision_that_has_it(cli: Cli) -> None:
    cli(*APPROVE, "2", "--request-id", "ticket-4711")
    done = cli("repairs", "hold", REPAIR, "--revision", "2", "--request-id", "ticket-4711")
    error, why, _ = lines(done.err)
    assert (done.code, f"(approve {REPAIR} revision 2)" in error, "One request id" in why) == (5, True, True)


def test_a_node_that_is_held_says_by_whom_and_how_that_ends(lead: Cli) -> None:
    lead(*HOLD)
    done = lead(*HOLD)
    error, why, following = lines(done.err)
    assert (done.code, f"gpu-07 is held by {ME} already, since" in error, ": bench" in error) == (5, True, True)
    assert ("held once" in why, "daytwo nodes release east/gpu-07" in following) == (True, True)


def test_a_node_that_is_not_held_cannot_be_released(lead: Cli) -> None:
    done = lead(*RELEASE)
    error, why, following = lines(done.err)
    assert (done.code, error) == (5, "Error: gpu-07 is not held")
    assert ("Only a node that somebody holds" in why, "daytwo nodes show east/gpu-07" in following) == (True, True)


def test_whoever_releases_a_node_whose_repair_is_held_is_told_the_right_command(lead: Cli, fleet: Store) -> None:
    with fleet.write() as session:
        session.get_one(RepairRow, REPAIR).state = "held"
    assert f"daytwo repairs release {REPAIR} --revision 2" in lead(*RELEASE).err


@pytest.mark.parametrize(
    ("held", "says"), [(None, f"Next: daytwo repairs show {REPAIR}"), ("cli:lea", "daytwo nodes release east/gpu-07")]
)
def test_a_repair_that_cannot_be_asked_for_says_what_is_in_its_way(
    lead: Cli, fleet: Store, held: str | None, says: str
) -> None:
    with fleet.write() as session:
        node = session.get_one(NodeRow, ("east", "gpu-07"))
        node.held_by, node.held_at = held, NOW
    done = lead("nodes", "repair", "gpu-07", "--action", "reboot", "--reason", "x")
    assert (done.code, says in lines(done.err)[2]) == (5, True)


def test_a_freeze_of_a_bare_node_names_the_command_for_it(cli: Cli) -> None:
    done = cli("freeze", "gpu-07", "--reason", "x")
    _, why, following = lines(done.err)
    assert (done.code, "`cluster/node`" in why) == (3, True)
    assert following.endswith("daytwo freeze east/gpu-07 --reason ...")


def test_a_thaw_of_what_is_not_frozen_says_what_is(cli: Cli) -> None:
    cli("freeze", "east", "--reason", "storm")
    done = cli("thaw", "--reason", "x")
    error, why, following = lines(done.err)
    assert (done.code, "nothing is frozen in '*'; frozen is east" in error) == (3, True)
    assert ("exactly one scope" in why, following.endswith("daytwo freeze --list")) == (True, True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("nodes", "quiesce", "gpu-07", "--for", "2h", "--reason", "x"), ("--for", "found '2h'", "at most 1h")),
        (("nodes", "quiesce", "gpu-07", "--for", "soon", "--reason", "x"), ("--for", "found 'soon'", "90s, 2h or 7d")),
        (
            ("repairs", "dismiss", REPAIR, "--revision", "2", "--reason", "x", "--snooze", "99d"),
            ("--snooze", "found '99d'", "at most 90d"),
        ),
        ((*APPROVE, "2", "--timeout", "60"), ("--timeout", "found '60'", "a number and s, m, h or d")),
        (("repairs", "watch", REPAIR, "--timeout", "1w"), ("--timeout", "found '1w'", "a number and s, m, h or d")),
    ],
)
def test_a_length_of_time_that_is_none_names_what_was_typed(
    cli: Cli, words: tuple[str, ...], says: tuple[str, ...]
) -> None:
    done = cli(*words)
    error = lines(done.err)[0]
    assert (done.code, [word for word in says if word not in error]) == (2, [])
