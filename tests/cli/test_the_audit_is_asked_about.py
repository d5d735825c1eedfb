"""`daytwo audit list --subject`: every name of a thing finds what was done to it, and a slip is no empty list."""

from __future__ import annotations

import pytest

from daytwo.store import audit
from daytwo.store.engine import Store
from daytwo.store.tables import NodeRow
from tests.builders import NOW
from tests.cli.conftest import Cli
from tests.rows import REPAIR, a_node, a_repair, keep


@pytest.fixture
def written(fleet: Store, cli: Cli) -> Cli:
    """Acts on the node, on a repair of it, on another node, and on the cluster."""
    keep(fleet, a_node("gpu-08"), a_repair("r-08", node="gpu-08", open_key="east/gpu-08"))
    with fleet.write() as session:
        for act, subject in (
            ("hold-node", "east/gpu-07"),
            ("send-reboot", REPAIR),
            ("send-drain", "r-08"),
            ("apply-cluster", "east"),
            ("freeze", "*"),
            ("remove-cluster", "gone"),
        ):
            audit.append(session, "cli:lea", act, subject, now=NOW)
    return cli


@pytest.mark.parametrize(
    ("subject", "acts"),
    [
        ("gpu-07", ["send-reboot", "hold-node"]),
        ("east/gpu-07", ["send-reboot", "hold-node"]),
        (REPAIR, ["send-reboot"]),
        ("gpu-08", ["send-drain"]),
        ("east", ["apply-cluster"]),
        ("*", ["freeze"]),
        ("gone", ["remove-cluster"]),
    ],
)
def test_a_subject_is_found_by_every_name_that_it_has(written: Cli, subject: str, acts: list[str]) -> None:
    lines = written("audit", "list", "--subject", subject).out.splitlines()[1:]
    assert [line.split()[4] for line in lines] == acts


def test_a_node_that_is_declared_no_more_is_found_by_its_repairs(written: Cli, fleet: Store) -> None:
    with fleet.write() as session:
        session.delete(session.get_one(NodeRow, ("east", "gpu-07")))
    assert "hold-node" in written("audit", "list", "--subject", "gpu-07").out


def test_something_that_was_never_there_is_not_found(written: Cli) -> None:
    done = written("audit", "list", "--subject", "gpu-99")
    assert (done.code, done.out) == (3, "")
    assert "there is no node, repair, cluster or scope 'gpu-99'" in done.err
    assert "daytwo nodes list" in done.err


def test_something_to_which_nothing_was_done_is_an_empty_list(fleet: Store, cli: Cli) -> None:
    done = cli("audit", "list", "--subject", "gpu-07")
    assert (done.code, done.out, done.err) == (0, "", "None.\n")


def test_a_name_that_two_clusters_have_is_asked_for_in_full(written: Cli, fleet: Store) -> None:
    keep(fleet, a_node("gpu-07", cluster="west"))
    done = written("audit", "list", "--subject", "gpu-07")
    assert (done.code, "east/gpu-07, west/gpu-07" in done.err) == (2, True)


def test_the_audit_chain_is_verified(cli: Cli, fleet: Store) -> None:
    cli("freeze", "--reason", "storm")
    assert cli("audit", "verify").code == 0
    with fleet.write() as session:
        session.connection().exec_driver_sql("UPDATE audit SET actor = 'cli:nobody'")
    broken = cli("audit", "verify")
    assert (broken.code, broken.out) == (1, "The audit chain is BROKEN at row 1: row 1 was changed\n")
