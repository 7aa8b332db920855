"""Output of `fixedwork --json`: how much fixed work each core of a node gets done."""

from dataclasses import dataclass
from typing import Literal

from seatrial.parsers.rows import Row, Setting, parse_rows, require

_FLOPS = 24
"""Operations of one iteration: benchmarks/node/common/work.h."""

_DIGITS = 1e-12
"""Relative error of a few sums of doubles that are printed with 15 digits."""


@dataclass(frozen=True)
class FixedworkRow(Row):
    """One core. Times in us are those of `n` quanta, rates are quanta per second.

    `first_per_s` and `last_per_s` are the rates in the first and the last quarter of
    its `seconds`. `cpu` is where it ended, if it is not `bound`.
    """

    host: Setting[str]
    time_ms: Setting[int]
    bound: Setting[Literal["yes", "no"]]
    cpu: int
    seconds: float
    cpu_seconds: float
    gflops: float
    first_per_s: float
    last_per_s: float
    min_us: float
    p50_us: float
    p99_us: float
    max_us: float
    mean_us: float
    n: int
    validation: Setting[Literal["pass", "off"]]

    def verify(self) -> None:
        """Raise ValueError if the numbers contradict each other."""
        in_order = 0 < self.min_us <= self.p50_us <= self.p99_us <= self.max_us
        require(in_order, "min_us, p50_us, p99_us, max_us are out of order")
        require(self.n > 0 and self.iterations > 0, "no work")
        error = (self.n + 4) * _DIGITS
        gflop = self.n * self.iterations * _FLOPS / 1e9
        for name, value, expected in (
            ("mean_us", self.mean_us, 1e6 * self.seconds / self.n),
            ("gflops", self.gflops, gflop / self.seconds),
        ):
            is_near = abs(value - expected) <= error * expected
            require(is_near, f"{name} is {value}, by n and seconds it is {expected}")
        has_work = self.first_per_s > 0 and self.last_per_s > 0
        require(has_work, "no work in a quarter of it")


def parse_fixedwork(text: str) -> list[FixedworkRow]:
    """Read the rows of all cores of one run; ParseError if it is not whole."""
    return parse_rows(text, "fixedwork", FixedworkRow)
