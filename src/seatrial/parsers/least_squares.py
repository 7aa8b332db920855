"""Lines by least squares, as our own programs print them."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, linear_regression

from seatrial.parsers.rows import tolerance


@dataclass(frozen=True)
class FittedLine:
    """A line through points, in the units of their ordinates.

    `slope_slack` and `intercept_slack` tell how far a printed line may be off.
    """

    slope: float
    intercept: float
    slope_slack: float
    intercept_slack: float


def fitted_line(x: Sequence[float], y: Sequence[float]) -> FittedLine:
    """Fit a line through two or more points.

    The slope is the sum of all ordinates, each times a weight. Each was rounded to its
    15 digits, and is a term of a sum over all points.
    """
    line = linear_regression(x, y)
    mean_x, mean_y = fmean(x), fmean(y)
    variance = sum((one - mean_x) ** 2 for one in x)
    part = tolerance(1, 2 * len(x))
    slack = part * abs(line.slope) + sum(
        part * (abs(value) + abs(mean_y)) * abs(one - mean_x) / variance
        for one, value in zip(x, y, strict=True)
    )
    of_zero = part * (abs(mean_y) + abs(line.slope * mean_x)) + slack * abs(mean_x)
    return FittedLine(line.slope, line.intercept, slack, of_zero)
