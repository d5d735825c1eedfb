"""docs/security.md names a test for each claim, and each is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/security.md").read_text()
CLAIMS = [line for line in TEXT.partition("## Claims")[2].partition("\n## ")[0].splitlines() if line.startswith("| ")]
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)))


@pytest.mark.parametrize(("file", "name"), NAMED, ids=lambda part: part)
def test_a_test_that_a_claim_names_exists(file: str, name: str) -> None:
    assert re.search(rf"^(async )?def {name}\(", (ROOT / file).read_text(), re.MULTILINE)


def test_every_claim_names_a_test() -> None:
    rows = [line for line in CLAIMS if not line.startswith("| Claim |")]
    assert len(rows) > 40
    assert [row for row in rows if "`tests/" not in row] == []
