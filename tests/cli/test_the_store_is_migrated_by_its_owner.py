"""`daytwo server migrate`, for processes that may not change tables."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from daytwo.store.engine import Store


def migrate(store_url: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "DAYTWO_STATE_DIR": str(folder), "DAYTWO_STORE_URL": store_url}
    command = [sys.executable, "-m", "daytwo.cli.main", "server", "migrate"]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


def test_the_tables_are_made_and_stay_as_they_are(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/daytwo.db"
    assert [migrate(url, tmp_path).returncode for _ in range(2)] == [0, 0]
    store = Store(url)
    assert store.has_tables()
    store.close()


def test_a_store_that_cannot_be_reached_is_named_without_its_password(tmp_path: Path) -> None:
    done = migrate("postgresql+psycopg://me:planted-secret@127.0.0.1:1/db?connect_timeout=2", tmp_path)
    assert (done.returncode, "planted-secret" in done.stdout + done.stderr) == (7, False)
