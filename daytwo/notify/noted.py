"""A notifier of which it is written down whether it can be reached."""

from __future__ import annotations

from daytwo import outages as parts
from daytwo.domain.errors import DaytwoError, Unreachable
from daytwo.domain.seams import Notifier
from daytwo.outages import Outages


class NotedNotifier:
    """Tells people through another `Notifier`. Whatever that raises is `Unreachable`: whoever tells tells again."""

    def __init__(self, through: Notifier, outages: Outages) -> None:
        self._through = through
        self._outages = outages

    async def tell(self, subject: str, text: str, *, urgent: bool, to: tuple[str, ...] = ()) -> None:
        """Send one message. Raises `Unreachable`."""
        async with self._outages.watching(parts.NOTIFIER):
            try:
                await self._through.tell(subject, text, urgent=urgent, to=to)
            except DaytwoError:
                raise
            except Exception as error:  # whatever a channel raises
                raise Unreachable(f"nobody could be told {subject!r}: {error}") from error
