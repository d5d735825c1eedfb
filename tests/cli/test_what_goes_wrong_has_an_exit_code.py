"""What is not found, not allowed or not understood: an exit code, what, why and the next command."""

from __future__ import annotations

import pytest

from tests.cli.conftest import APPROVE, Cli
from tests.rows import REPAIR


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
