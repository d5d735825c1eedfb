"""`daytwo repairs evidence` and what `repairs show` says of it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from daytwo.store.engine import Store
from daytwo.store.tables import EvidenceRow
from tests.builders import NOW
from tests.cli.conftest import Cli
from tests.rows import REPAIR, keep


def keep_some(fleet: Store) -> None:
    parts = [{"name": "kernel.log", "bytes": 3, "truncated": False, "error": ""}]
    parts += [{"name": "nvidia-smi.txt", "bytes": 0, "truncated": False, "error": "it hangs\x1b[31m"}]
    far = NOW + timedelta(days=36_500)
    row = {"repair_id": REPAIR, "cluster": "east", "node": "gpu-07", "at": NOW, "expires_at": far}
    keep(fleet, EvidenceRow(id=f"{REPAIR}/0/e", sha256="ab" * 32, size=3, data=b"tar", parts=parts, **row))


def test_the_archive_is_written_for_its_owner_only(cli: Cli, fleet: Store, tmp_path: Path) -> None:
    keep_some(fleet)
    ran = cli("repairs", "evidence", REPAIR, "--to", str(tmp_path / "e.tar.gz"))
    assert (ran.code, (tmp_path / "e.tar.gz").read_bytes()) == (0, b"tar"), ran.err
    assert (tmp_path / "e.tar.gz").stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_there_is_not_written_over(cli: Cli, fleet: Store, tmp_path: Path) -> None:
    keep_some(fleet)
    (tmp_path / "mine").write_text("mine")
    ran = cli("repairs", "evidence", REPAIR, "--to", str(tmp_path / "mine"))
    assert (ran.code, "allowed is a new file" in ran.err, (tmp_path / "mine").read_text()) == (2, True, "mine")


def test_show_says_what_was_collected_and_what_could_not_be(cli: Cli, fleet: Store) -> None:
    keep_some(fleet)
    out = cli("repairs", "show", REPAIR).out
    assert "3 bytes, sha256 abababababababab…" in out
    assert "nvidia-smi.txt: it hangs" in out
    assert "\x1b[31m" not in out


def test_without_evidence_the_next_command_is_named(cli: Cli) -> None:
    ran = cli("repairs", "evidence", REPAIR)
    assert (ran.code, f"daytwo repairs show {REPAIR}" in ran.err) == (3, True)
