"""A share on the command line, which is the same for every command that takes one."""

from typing import Any

import click


class Share(click.ParamType[float]):
    """A number between 0 and 1, or as a percentage: 0.95, 95%."""

    name = "share"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Read it."""
        text = str(value).strip()
        try:
            share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            share = 0.0
        if not 0 < share < 1:
            self.fail(f"{value!r}: expected a share between 0 and 1: 0.05, or 5%")
        return share
