"""A time on the command line, which is the same for every command that takes one."""

from datetime import UTC, datetime
from typing import Any

import click


class Moment(click.ParamType[datetime]):
    """A date, or a time as ISO 8601; in UTC unless it says otherwise."""

    name = "time"

    def convert(self, value: Any, param: Any, ctx: Any) -> datetime:
        """Read it; a date is its first moment."""
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r}: expected for example 2026-11-21 or 2026-11-21T06:30")
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
