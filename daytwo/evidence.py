"""What agents collected for repairs before acts that would lose it: a row with the archive, its hash and its end.

The gateway keeps what comes (`keep`), activities ask for it (`activities.evidence`), the service hands it out, and
`daytwo.controller.pruning` deletes what is old. An archive is a node's word: it is never opened here, and never longer
than `LARGEST_ARCHIVE`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from datetime import datetime, timedelta
from typing import Any, Final

from sqlmodel import Session, col, select

from daytwo.domain.policy import Policy
from daytwo.store.tables import ClusterRow, EvidenceRow, NodeRequestRow

KIND: Final = "collect-evidence"
LARGEST_ARCHIVE: Final = 192 * 1024
"""More than an agent makes, and no more than fits into a message of a node."""
MOST_PARTS: Final = 16
ERROR_CHARS: Final = 300


def keep(session: Session, request: NodeRequestRow, result: dict[str, Any], now: datetime) -> dict[str, Any]:
    """Keep an agent's answer to a request and return what is left of it for the request's own row."""
    archive, error = _archive(result)
    _write(session, request, now, archive=archive, parts=_parts(result.get("parts")), error=error)
    return {name: value for name, value in result.items() if name != "archive"}


def note_missing(session: Session, request: NodeRequestRow, why: str, now: datetime) -> None:
    """Say in the record that there is none, and why. What was kept for this request stays."""
    if session.get(EvidenceRow, request.id) is None:
        _write(session, request, now, archive=None, parts=[], error=why)


def of_repair(session: Session, repair_id: str) -> list[EvidenceRow]:
    """All evidence of a repair, oldest first."""
    mine = select(EvidenceRow).where(EvidenceRow.repair_id == repair_id)
    return list(session.exec(mine.order_by(col(EvidenceRow.at), col(EvidenceRow.id))))


def _write(
    session: Session,
    request: NodeRequestRow,
    now: datetime,
    *,
    archive: bytes | None,
    parts: list[dict[str, Any]],
    error: str,
) -> None:
    row = EvidenceRow(
        id=request.id,
        repair_id=request.repair_id or "",
        cluster=request.cluster,
        node=request.node,
        at=now,
        expires_at=now + timedelta(days=_policy(session, request.cluster).evidence.keep_days),
        sha256=hashlib.sha256(archive).hexdigest() if archive else "",
        size=len(archive or b""),
        parts=parts,
        data=archive,
        error=error[:ERROR_CHARS],
    )
    session.merge(row)


def _policy(session: Session, cluster: str) -> Policy:
    row = session.get(ClusterRow, cluster)
    return Policy.model_validate(row.definition.get("policy", {})) if row else Policy()


def _archive(result: dict[str, Any]) -> tuple[bytes | None, str]:
    """The archive of an answer, or what is wrong with it."""
    try:
        archive = base64.b64decode(result.get("archive") or "", validate=True)
    except (binascii.Error, TypeError, ValueError):
        return None, "the node's answer holds no archive"
    if not 0 < len(archive) <= LARGEST_ARCHIVE:
        return None, f"the node's archive has {len(archive)} bytes, allowed are 1 to {LARGEST_ARCHIVE}"
    if hashlib.sha256(archive).hexdigest() != result.get("sha256"):
        return None, "the node's archive is not the one whose hash it names"
    return archive, ""


def _parts(said: Any) -> list[dict[str, Any]]:
    """What the node says is in it, as far as it can be read."""
    parts = [part for part in said if isinstance(part, dict)] if isinstance(said, list) else []
    return [_part(part) for part in parts[:MOST_PARTS]]


def _part(said: dict[str, Any]) -> dict[str, Any]:
    size = said.get("bytes")
    return {
        "name": str(said.get("name", ""))[:64],
        "bytes": size if isinstance(size, int) else 0,
        "truncated": said.get("truncated") is True,
        "error": str(said.get("error", ""))[:ERROR_CHARS],
    }
