"""A share on the command line, which is the same for every command that takes one."""

from typing import Any

import click


class Share(click.ParamType[float]):
    """A number above `least` and below 1, or as a percentage: 0.95, 95%."""

    name = "share"

    def __init__(self, least: float = 0.0) -> None:
        self.least = least

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Read it."""
        text = str(value).strip()
        try:
            share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            share = 0.0
        if not self.least < share < 1:
            between = f"between {self.least:g} and 1"
            self.fail(f"{value!r}: expected a share {between}: 0.95, or 95%")
        return share
