"""Windows: when acts may begin. Pure; the policy holds them, `take-right` and automatic approval ask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from pydantic import Field, field_validator

from daytwo.domain.vocabulary import Action, FaultClass, Frozen

CLOCK = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"


class Day(StrEnum):
    """A day of the week."""

    MON = "mon"
    TUE = "tue"
    WED = "wed"
    THU = "thu"
    FRI = "fri"
    SAT = "sat"
    SUN = "sun"


class Window(Frozen):
    """A time in the week in which acts may begin. Acts that no window is for may begin at any time."""

    name: str = Field(min_length=1, description="How it is named where something waits for it.")
    days: tuple[Day, ...] = Field(
        default=tuple(Day), min_length=1, description="The days on which it begins. Source: design 6."
    )
    begins: str = Field(pattern=CLOCK, description="When it opens, as 22:00. Source: design 6.")
    ends: str = Field(
        pattern=CLOCK,
        description="When it closes, as 06:00; the next day where that is not after `begins`. What has begun goes on. "
        "Source: design 6.",
    )
    timezone: str = Field(
        default="UTC",
        description="Whose clock that is, as Europe/Berlin. UTC: a clock without summer time. Source: judgement.",
    )
    actions: tuple[Action, ...] = Field(
        default=(), description="The actions that wait for it; none: all that touch a node. Source: design 6."
    )
    classes: tuple[FaultClass, ...] = Field(
        default=(), description="The classes of fault whose acts wait for it; none: all. Source: design 6."
    )

    @field_validator("timezone")
    @classmethod
    def _is_known(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (OSError, ValueError, LookupError) as error:
            raise ValueError(f"found {name!r}, allowed: a name such as Europe/Berlin") from error
        return name

    def is_for(self, action: Action, fault_class: FaultClass | None) -> bool:
        """True if this act waits for this window."""
        by_class = not self.classes or fault_class in self.classes
        return by_class and (action in self.actions or not self.actions)

    def openings(self, now: datetime) -> Iterator[tuple[datetime, datetime]]:
        """From and until when it is open, in UTC: yesterday's and those of the coming week."""
        today = now.astimezone(ZoneInfo(self.timezone)).date()
        for day in (today + timedelta(days=ahead) for ahead in range(-1, 8)):
            if tuple(Day)[day.weekday()] in self.days:
                yield self._at(day, self.begins), self._at(day + timedelta(days=self.ends <= self.begins), self.ends)

    def _at(self, day: date, clock: str) -> datetime:
        return datetime.combine(day, time.fromisoformat(clock), ZoneInfo(self.timezone)).astimezone(UTC)


class Closed(Frozen):
    """No window for an act is open; `name` opens next, at `opens_at`."""

    name: str
    opens_at: datetime

    @property
    def says(self) -> str:
        """What is waited for, in one sentence."""
        return f"waits for the window {self.name}, which opens {self.opens_at:%Y-%m-%d %H:%MZ}"


def closed(
    windows: Sequence[Window], action: Action, fault_class: FaultClass | None, *, now: datetime
) -> Closed | None:
    """Return what an act must wait for, or `None` where it may begin: a window is open, or none is for it."""
    mine = [window for window in windows if window.is_for(action, fault_class)]
    times = [(begins, ends, window.name) for window in mine for begins, ends in window.openings(now)]
    if not times or action.touches_nothing or any(begins <= now < ends for begins, ends, _ in times):
        return None
    opens_at, _, name = min(each for each in times if each[0] > now)
    return Closed(name=name, opens_at=opens_at)
