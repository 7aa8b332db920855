"""The window of a night: when its measurements may start, and when they must end."""

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Window:
    """From `start` to `end` of each day, in local time; it may cross midnight."""

    start: time
    end: time

    @property
    def length(self) -> timedelta:
        """The length of the window; 0 if it never opens."""
        day = date.min
        between = datetime.combine(day, self.end) - datetime.combine(day, self.start)
        return between % _DAY

    def night(self, now: datetime) -> date | None:
        """Return the night that is open at a local time: the day of its start.

        None outside the window.
        """
        for day in (now.date(), now.date() - _DAY):
            opening = datetime.combine(day, self.start)
            if opening <= now < opening + self.length:
                return day
        return None

    def closing(self, night: date) -> datetime:
        """Return the local time at which a night ends."""
        return datetime.combine(night, self.start) + self.length

    def next_opening(self, now: datetime) -> datetime:
        """Return the next local time after `now` at which a night begins."""
        opening = datetime.combine(now.date(), self.start)
        return opening if opening > now else opening + _DAY

    def __str__(self) -> str:
        return f"{self.start:%H:%M} to {self.end:%H:%M}"


def parse_time(text: str) -> time | None:
    """Parse a time of day, 00:00 to 23:59; None if it is none."""
    match = _TIME.fullmatch(text)
    return time(int(match[1]), int(match[2])) if match else None
