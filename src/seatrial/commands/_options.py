"""Options and types of values that several commands share."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import click

_RATE = re.compile(r"(?=.*[1-9])\d+(\.\d+)?([kmgt]i?)?(bit|bps)", re.IGNORECASE)


def format_option(text: str, *more: str) -> Callable[[Any], Any]:
    """Return the option `--format table|json|csv`, or with `more` forms."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(["table", "json", "csv", *more]),
        default="table",
        show_default=True,
        help=text,
    )


note_option = click.option(
    "--note",
    "notes",
    multiple=True,
    metavar="TEXT",
    help="Write this text at the top of every page; may be repeated.",
)


class Moment(click.ParamType[datetime]):
    """A date, or a time as ISO 8601; in UTC by default."""

    name = "time"

    def convert(self, value: Any, param: Any, ctx: Any) -> datetime:
        """Parse a time; a date is its first moment."""
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r}: expected for example 2026-11-21 or 2026-11-21T06:30")
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


class Share(click.ParamType[float]):
    """A number above `least` and below 1, or as a percentage: 0.95, 95%."""

    name = "share"

    def __init__(self, least: float = 0.0) -> None:
        self.least = least

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Parse a share."""
        text = str(value).strip()
        try:
            share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            share = 0.0
        if not self.least < share < 1:
            between = f"between {self.least:g} and 1"
            self.fail(f"{value!r}: expected a share {between}: 0.95, or 95%")
        return share


class Rate(click.ParamType[str]):
    """A rate above 0 with its unit: 200mbit, 1.5gbit; tc's `bps` are bytes."""

    name = "rate"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        """Check a rate."""
        if not _RATE.fullmatch(str(value)):
            self.fail(f"{value!r}: expected a number above 0 and a unit: 200mbit")
        return str(value)
