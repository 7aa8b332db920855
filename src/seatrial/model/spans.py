"""Spans of time in YAML files: `10 min`, `4 h`, `7 d`."""

import re
from typing import Annotated

from msgspec import Meta

_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_SPAN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(s|min|h|d)\s*")

Span = Annotated[
    str,
    Meta(
        pattern=r"^(?=.*[1-9])\s*\d+(\.\d+)?\s*(s|min|h|d)\s*$",
        description="a time above 0 with its unit: 90 s, 10 min, 4 h or 7 d",
    ),
]


def span_s(text: str) -> float:
    """Return the seconds of a span; ValueError if it is none."""
    match = _SPAN.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no time with a unit")
    return float(match[1]) * _SECONDS[match[2]]


def span_text(seconds: float) -> str:
    """Format seconds in the largest unit that keeps two digits: `10 min`, `1.5 h`."""
    for unit, size in (("d", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * size or (unit == "min" and seconds >= size):
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
