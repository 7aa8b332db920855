"""The rate of a link on the command line, as tc spells it."""

import re
from typing import Any

import click

_RATE = re.compile(r"(?=.*[1-9])\d+(\.\d+)?([kmgt]i?)?(bit|bps)", re.IGNORECASE)


class Rate(click.ParamType[str]):
    """A rate above 0 with its unit: 200mbit, 1.5gbit; tc's `bps` are bytes."""

    name = "rate"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        """Check it."""
        if not _RATE.fullmatch(str(value)):
            self.fail(f"{value!r}: expected a number above 0 and a unit: 200mbit")
        return str(value)
