"""Ranges of the numbers that a program may have had when it printed them rounded.

A print tells a number to half a unit of its last digit. What follows from several
prints lies in a range, too: ranges are added, multiplied and divided here, so that no
check needs a tolerance of its own. Two ranges that do not meet contradict each other.
"""

from dataclasses import dataclass

from seatrial.parsers.printed import OPERATION, half_digit, half_digit_of

_MOST_OPERATIONS = 2**20
"""Operations behind a print; a mean over the ranks takes one for every rank."""


@dataclass(frozen=True, slots=True)
class Range:
    """All numbers from `low` to `high`, both included."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """The number that was printed, where nothing was computed with it."""
        return (self.low + self.high) / 2

    def __add__(self, other: "Range") -> "Range":
        return Range(self.low + other.low, self.high + other.high)

    def __mul__(self, other: "Range") -> "Range":
        ends = [
            one * another
            for one in (self.low, self.high)
            for another in (other.low, other.high)
        ]
        return Range(min(ends), max(ends))

    def __truediv__(self, other: "Range") -> "Range":
        """Divide by a range of positive numbers."""
        return self * Range(1 / other.high, 1 / other.low)

    def meets(self, other: "Range") -> bool:
        """Return True if one number can be in both, but for the arithmetic."""
        return self.may_be_at_most(other) and other.may_be_at_most(self)

    def may_be_at_most(self, other: "Range") -> bool:
        """Return True if a number of this range can be at most one of the other."""
        slack = _MOST_OPERATIONS * OPERATION * max(abs(self.low), abs(other.high))
        return self.low <= other.high + slack


def exactly(value: float) -> Range:
    """Return the range of one number, which was not rounded."""
    return Range(value, value)


def printed(text: str) -> Range:
    """Return the range of a number printed by %f or %e, with all its digits."""
    value, half = float(text), half_digit(text)
    return Range(value - half, value + half)


def printed_fixed(value: float, decimals: int) -> Range:
    """Return the range of a number printed by %.<decimals>f, or Fortran's F."""
    half = 0.5 * 10.0**-decimals
    return Range(value - half, value + half)


def printed_short(value: float, digits: int = 6) -> Range:
    """Return the range of a number printed by %.<digits>g, without trailing zeros."""
    half = half_digit_of(value, digits)
    return Range(value - half, value + half)
