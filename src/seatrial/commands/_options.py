"""The option --format, which is the same for every command that prints a table."""

from collections.abc import Callable
from typing import Any

import click


def format_option(text: str, *more: str) -> Callable[[Any], Any]:
    """Make `--format table|json|csv`, or with `more` forms; `text` is its help."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(["table", "json", "csv", *more]),
        default="table",
        show_default=True,
        help=text,
    )
