"""The service of the CLI's tests, on one kind of database: what is shown does not depend on it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.serving import shared

__all__ = ["shared"]


@pytest.fixture
def store_url(tmp_path: Path, migrated_file: Path) -> str:
    shutil.copyfile(migrated_file, tmp_path / "daytwo.db")
    return f"sqlite:///{tmp_path}/daytwo.db"
