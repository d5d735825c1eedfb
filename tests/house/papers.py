"""The papers of the repository, and the code in them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAPERS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").rglob("*.md")])
README = ROOT / "README.md"
FENCED = re.compile(r"^```(?P<kind>\w*)\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL)


def code_of(paper: Path, kind: str | None = None) -> str:
    """Fenced blocks (of one kind), and inline code when all kinds are wanted."""
    text = paper.read_text()
    pieces = [found["code"] for found in FENCED.finditer(text) if kind in (None, found["kind"])]
    inline = re.findall(r"`([^`\n]+)`", FENCED.sub("", text)) if kind is None else []
    return "\n".join([*pieces, *inline])
