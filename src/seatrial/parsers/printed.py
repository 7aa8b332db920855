"""Numbers as programs print them, and whether two prints can be of one number.

Many programs print a number twice: a rate beside its time, or a summary below the
details. Where both prints differ by more than their rounding, one of them is damaged.
"""

import math
import re

from seatrial.parsers.errors import ParseError

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_COUNT = re.compile(r"[0-9]{1,18}")
OPERATION = 2.0**-53
"""The relative error of one operation in double precision."""


def read_number(name: str, line: int, text: str, least: float, below: float) -> float:
    """Read a decimal number; ParseError unless it is in [`least`, `below`)."""
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not least <= value < below:
        raise ParseError(
            line,
            f"{name} is {text or 'missing'}, "
            f"expected a number of at least {least:g} and below {below:g}",
        )
    return value


def read_positive(name: str, line: int, text: str, below: float) -> float:
    """Read a decimal number; ParseError unless it is above 0 and below `below`."""
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not 0 < value < below:
        raise ParseError(
            line,
            f"{name} is {text or 'missing'}, "
            f"expected a positive number below {below:g}",
        )
    return value


def read_count(name: str, line: int, text: str) -> int:
    """Read a whole number of at least 0; ParseError if it is none."""
    if not _COUNT.fullmatch(text):
        raise ParseError(line, f"{name} is {text or 'missing'}, expected a count")
    return int(text)


def half_digit(text: str) -> float:
    """Give half a unit of the last digit of a printed number: '1.25' -> 0.005."""
    if "e" in text or "E" in text:
        mantissa, _, exponent = text.lower().partition("e")
        return half_digit(mantissa) * 10.0 ** int(exponent)
    point = text.find(".")
    return 0.5 * 10.0 ** (point + 1 - len(text)) if point >= 0 else 0.5


def half_digit_of(value: float, digits: int) -> float:
    """Give half a unit of the last digit of a number that C printed with %.<digits>g.

    %g drops trailing zeros, so the text does not show how precise it is.
    """
    if value == 0:
        return 0.0
    return 0.5 * 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)


def is_same(one: float, other: float, rounding: float, *, operations: int = 16) -> bool:
    """Return True if two prints can be of one number.

    `rounding` is how far printing moved both, in all. `operations` in double precision
    lie behind them, in the program and here; each is exact to a part of 2^-53.
    """
    arithmetic = operations * OPERATION * max(abs(one), abs(other))
    return abs(one - other) <= rounding + arithmetic


def is_at_most(one: float, other: float, rounding: float) -> bool:
    """Return True if one number can be no more than another, as `is_same`."""
    return one <= other or is_same(one, other, rounding)
