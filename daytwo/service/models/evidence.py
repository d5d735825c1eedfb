"""What a node's agent collected for a repair, as people read it. `service.evidence` and `reads.repairs` make them."""

from __future__ import annotations

from datetime import datetime

from daytwo.domain.vocabulary import Frozen


class EvidencePart(Frozen):
    """One file of an archive, or why it is not in it."""

    name: str
    bytes: int
    truncated: bool
    error: str


class EvidenceView(Frozen):
    """What a node's agent collected for a repair. `size` 0: nothing, and `error` says why."""

    id: str
    at: datetime
    expires_at: datetime
    sha256: str
    size: int
    parts: tuple[EvidencePart, ...]
    error: str


class EvidenceFile(EvidenceView):
    """The same with its archive (.tar.gz), in base64. It is a node's word: open it as you would a stranger's file."""

    archive: str
