"""Output of our own `mr_cost --json`."""

from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from seatrial.parsers.errors import ParseError
from seatrial.parsers.least_squares import fitted_line
from seatrial.parsers.rows import (
    Row,
    Setting,
    Signed,
    Times,
    check_sizes,
    parse_rows,
    require,
)

State = Literal["warm", "cold", "untouched"]


@dataclass(frozen=True)
class MrCostRow(Times, Row):
    """One state of the memory and size of a region.

    Times in us are of ibv_reg_mr, `dereg_..` of ibv_dereg_mr; each contains a reading
    of the clock, which takes `clock_us`. `huge_bytes` of the region were on huge pages.
    `fixed_us` and `us_per_page` are a line through the medians of all sizes of the
    state, over pages of `page_bytes`; None of a single size.
    """

    device: Setting[str]
    state: State
    huge_pages: Setting[Literal["off", "transparent", "reserved"]]
    size_bytes: int
    huge_bytes: int
    page_bytes: Setting[int]
    clock_us: Setting[float]
    dereg_min_us: float
    dereg_p50_us: float
    dereg_p99_us: float
    dereg_max_us: float
    dereg_mean_us: float
    fixed_us: Signed | None
    us_per_page: Signed | None
    dereg_fixed_us: Signed | None
    dereg_us_per_page: Signed | None

    def verify(self) -> None:
        """Raise ValueError if the numbers contradict each other."""
        self.verify_times()
        of_dereg = (self.dereg_min_us, self.dereg_p50_us, self.dereg_p99_us)
        require(
            [*of_dereg, self.dereg_max_us] == sorted([*of_dereg, self.dereg_max_us]),
            "times of ibv_dereg_mr are out of order",
        )
        require(
            self.dereg_min_us <= self.dereg_mean_us <= self.dereg_max_us,
            "dereg_mean_us is not between minimum and maximum",
        )
        require(self.dereg_p50_us > 0, "dereg_p50_us is not positive")
        require(self.n <= self.iterations, f"{self.n} samples of {self.iterations}")
        require(self.page_bytes > 0, "page_bytes is 0")
        require(self.huge_bytes <= 2 * self.size_bytes, "more huge pages than memory")


def parse_mr_cost(text: str) -> list[MrCostRow]:
    """Read all rows of one run of mr_cost: by state of the memory, and size.

    Raises ParseError as `parse_rows`, and if sizes differ or lines do not follow from
    the medians.
    """
    rows = parse_rows(text, "mr_cost", MrCostRow)
    states = [(state, list(of)) for state, of in groupby(rows, lambda row: row.state)]
    if len({state for state, _ in states}) != len(states):
        raise ParseError(0, "a state comes back after another")
    sizes = [row.size_bytes for row in states[0][1]]
    check_sizes(sizes)
    for state, of_state in states:
        if [row.size_bytes for row in of_state] != sizes:
            raise ParseError(0, f"sizes of {state} are not those of {states[0][0]}")
        _check_line(state, of_state, "")
        _check_line(state, of_state, "dereg_")
    return rows


def _check_line(state: State, rows: list[MrCostRow], prefix: str) -> None:
    """Raise ParseError unless the printed line is that through the medians."""
    names = (f"{prefix}us_per_page", f"{prefix}fixed_us")
    if len(rows) == 1:
        if any(getattr(rows[0], name) is not None for name in names):
            raise ParseError(0, f"{state}: a line through one size")
        return
    pages = [row.size_bytes / row.page_bytes for row in rows]
    line = fitted_line(pages, [getattr(row, f"{prefix}p50_us") for row in rows])
    for row in rows:
        for name, expected, slack in (
            (names[0], line.slope, line.slope_slack),
            (names[1], line.intercept, line.intercept_slack),
        ):
            value = getattr(row, name)
            if value is None or abs(value - expected) > slack:
                raise ParseError(0, f"{state}: {name} {value}, expected {expected}")
