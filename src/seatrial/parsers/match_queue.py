"""Output of our own `mq_unexp --json` and `mq_posted --json`."""

from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from seatrial.model.derived import queue_usage_ratio
from seatrial.parsers.errors import ParseError
from seatrial.parsers.least_squares import fitted_line
from seatrial.parsers.rows import (
    PingPongRow,
    Setting,
    Signed,
    check_sizes,
    parse_rows,
    tolerance,
)


@dataclass(frozen=True)
class QueueRow(PingPongRow):
    """A size and depth of a run; times in us, half a round trip.

    The ping-pong's messages have `size_bytes`, the `depth` entries of the queue
    `entry_bytes` each. `ratio` is p50_us over that of the size's first depth;
    `slope_ns` is what an entry adds to p50_us, by least squares over all depths of the
    size, the same in all its rows; None of a single depth.
    """

    tags: Setting[Literal["same", "ordered", "random"]]
    entry_bytes: Setting[int]
    size_bytes: int
    depth: int
    ratio: float
    slope_ns: Signed | None


def parse_match_queue(text: str, program: str) -> list[QueueRow]:
    """Read all rows of one run of a program, by size and then by depth.

    Raises ParseError as `parse_rows`, and if ratios or slopes do not follow from rows.
    """
    rows = parse_rows(text, program, QueueRow)
    sizes = [(size, list(of)) for size, of in groupby(rows, lambda row: row.size_bytes)]
    check_sizes([size for size, _ in sizes])
    depths = [row.depth for row in sizes[0][1]]
    check_sizes(depths)
    for size, of_size in sizes:
        present = [row.depth for row in of_size]
        if present != depths:
            raise ParseError(0, f"size {size}: depths {present}, expected {depths}")
        _check_derived(size, of_size)
    return rows


def _check_derived(size: int, rows: list[QueueRow]) -> None:
    """Raise ParseError unless ratios and slope follow from the latencies of a size."""
    for row in rows:
        ratio = queue_usage_ratio(row.p50_us, rows[0].p50_us)
        _check(f"size {size}: ratio", row.ratio, ratio, tolerance(3) * ratio)
    if len(rows) > 1:
        line = fitted_line([row.depth for row in rows], [row.p50_us for row in rows])
        for row in rows:
            slope_ns, slack_ns = 1e3 * line.slope, 1e3 * line.slope_slack
            _check(f"size {size}: slope_ns", row.slope_ns, slope_ns, slack_ns)
    elif rows[0].slope_ns is not None:
        raise ParseError(0, f"size {size}: a slope of one depth")


def _check(what: str, value: float | None, expected: float, slack: float) -> None:
    if value is None or abs(value - expected) > slack:
        raise ParseError(0, f"{what} {value}, expected {expected}")
