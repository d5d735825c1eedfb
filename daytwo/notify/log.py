"""Tells people through the log and a file of notices, one JSON object a line: what a chat channel would have shown."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from datetime import UTC, datetime
from pathlib import Path

log = logging.getLogger(__name__)


class LogNotifier:
    """The `Notifier` that is always there. Notices are appended to `path`: `notices.jsonl` in the state folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def tell(self, subject: str, text: str, *, urgent: bool, to: tuple[str, ...] = ()) -> None:
        """Log one message and append it to the file. Raises `OSError` only when the file cannot be written."""
        log.log(logging.WARNING if urgent else logging.INFO, "%s\n%s", subject, text)
        notice = {"at": datetime.now(UTC).isoformat(), "subject": subject, "text": text, "urgent": urgent, "to": to}
        await asyncio.to_thread(self._append, json.dumps(notice, ensure_ascii=False) + "\n")

    def _append(self, line: str) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # One write in append mode: lines of several processes never mix.
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)
        try:
            os.write(file, line.encode())
        finally:
            os.close(file)
