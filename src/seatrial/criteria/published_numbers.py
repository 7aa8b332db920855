"""Published numbers, each with its place in the paper."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from seatrial.errors import SeatrialError
from seatrial.model.metrics import METRICS, Direction, Metric

Kind = Literal["absolute", "ratio", "bound", "shape", "model"]
"""A value that was measured; one over another; what cannot be exceeded; how values
behave, in words; what a formula gives."""

Qualifier = Literal["about", "almost", "up to", "more than", "less than"]

PAPER_METRICS = {
    metric.name: metric
    for metric in (
        Metric("run_time", "s", "lower", "run time that a program reports"),
        Metric("communication_time", "s", "lower", "its part in MPI"),
        Metric("latency_difference", "us", "lower", "one latency minus another"),
        Metric("outstanding_reads", "count", "higher", "PCIe reads at once"),
        Metric("connections_per_nic", "count", "lower", "connections of a server"),
        Metric("signalling_rate", "Gbit/s", "higher", "of a port, coding included"),
        Metric("transfer_rate", "GT/s", "higher", "of a PCIe lane, coding included"),
    )
}
"""Metrics that only papers have, beside those of `seatrial.model.metrics`."""


@dataclass(frozen=True)
class Paper:
    """A paper; `name` is its key."""

    name: str
    authors: tuple[str, ...]
    title: str
    venue: str
    year: int
    note: str | None = None


@dataclass(frozen=True)
class Number:
    """One statement of a paper about a system, several, or none.

    A comparison is of `systems` with `baselines`. `value` and `unit` are None of a
    shape; a ratio is in "1" or "%", all else in the unit of the metric. It is at one
    `size_bytes`, or at a `size` in words. `derived` names the formula by which it
    follows from others (`seatrial.model.derived`); `operands` are their names: first
    that of the new, or of the system, then that of the old, or of the baseline.
    `sentence` quotes the paper. With a `conflict` it contradicts something else there.
    """

    name: str
    paper: str
    place: str
    metric: str
    what: str
    kind: Kind
    systems: tuple[str, ...] = ()
    baselines: tuple[str, ...] = ()
    experiment: str | None = None
    value: float | None = None
    unit: str | None = None
    qualifier: Qualifier | None = None
    size_bytes: int | None = None
    size: str | None = None
    parameters: Mapping[str, str | int] = field(
        default_factory=lambda: MappingProxyType({})
    )
    derived: str | None = None
    operands: tuple[str, ...] = ()
    sentence: str | None = None
    note: str | None = None
    conflict: str | None = None

    @property
    def direction(self) -> Direction:
        """Which values of its metric are better."""
        return paper_metrics()[self.metric].direction

    def located_operands(self) -> Iterator[tuple[str, str]]:
        """Return the system and the name of each operand.

        The first is a number of the system, the second one of the baseline, if any.
        """
        owners = self.systems[:1] + (self.baselines or self.systems)[:1]
        return zip(owners, self.operands, strict=False)

    def sound_value(self) -> float:
        """Return the value; SeatrialError if it has none, or is in conflict."""
        if self.value is None:
            raise SeatrialError(f"{self.paper}, {self.name}: a shape has no value")
        if self.conflict is not None:
            raise SeatrialError(
                f"{self.paper}, {self.name}: not to be relied on: {self.conflict}"
            )
        return self.value


@dataclass(frozen=True)
class PublishedSystem:
    """A system of a paper; what the paper does not say of its `setup` is None."""

    name: str
    paper: str
    description: str
    setup: Mapping[str, str | None]
    numbers: Mapping[str, Number]


def paper_metrics() -> dict[str, Metric]:
    """Return all metrics that a published number may have."""
    return METRICS | PAPER_METRICS
