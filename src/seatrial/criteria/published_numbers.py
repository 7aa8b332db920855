"""Published numbers, each with its place in the paper."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta, Struct

from seatrial.errors import SeatrialError
from seatrial.model.metrics import METRICS, Direction, Metric
from seatrial.model.yaml_file import Count, Text

Kind = Literal["absolute", "ratio", "bound", "shape", "model"]
"""A measured value; a ratio of two; an upper bound; a curve in words; a result of a
formula."""

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


_Texts = Annotated[tuple[Text, ...], Meta(min_length=1, description="a list of texts")]
_Experiment = Annotated[
    str, Meta(pattern=r"^E\d\d(-\d\d)?$", description="one such as E01 or E08-11")
]
_Value = Annotated[
    Count | Annotated[float, Meta(gt=0, le=sys.float_info.max)],
    Meta(description="a number above 0"),
]


class Paper(Struct, frozen=True, forbid_unknown_fields=True):
    """A paper."""

    authors: _Texts
    title: Text
    venue: Text
    year: Count
    note: Text | None = None


class Statement(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A number as a file states it.

    `value` and `unit` are None of a shape; a ratio is in "1" or "%", all else in the
    unit of the metric. It is at one `size_bytes`, or at a `size` in words. `derived`
    names the formula by which it follows from others (`seatrial.model.derived`);
    `operands` are their names: first that of the new, or of the system, then that of
    the old, or of the baseline. `sentence` quotes the paper. With a `conflict` it
    contradicts something else there.
    """

    place: Text
    metric: Text
    what: Text
    kind: Kind
    experiment: _Experiment | None = None
    value: _Value | None = None
    unit: Text | None = None
    qualifier: Qualifier | None = None
    size_bytes: Count | None = None
    size: Text | None = None
    parameters: dict[Text, Text | Count] = {}
    derived: Text | None = None
    operands: _Texts = ()
    sentence: Text | None = None
    note: Text | None = None
    conflict: Text | None = None


class GeneralStatement(Statement, frozen=True):
    """A statement about several systems, or none."""

    systems: _Texts = ()


class Comparison(Statement, frozen=True, kw_only=True):
    """A statement that compares systems with baselines."""

    systems: _Texts
    baselines: _Texts


class Number(GeneralStatement, frozen=True, kw_only=True):
    """A statement of a paper about a system, several, or none; or a comparison."""

    name: str
    paper: str
    baselines: tuple[str, ...] = ()

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


class Setup(Struct, frozen=True, forbid_unknown_fields=True):
    """The parts of a system; None where its paper says nothing."""

    node: Text | None
    bus: Text | None
    adapter: Text | None
    firmware: Text | None
    driver: Text | None
    switch: Text | None
    os: Text | None
    mpi: Text | None
    settings: Text | None


@dataclass(frozen=True)
class PublishedSystem:
    """A system of a paper."""

    name: str
    paper: str
    description: str
    setup: Setup
    numbers: Mapping[str, Number]


def paper_metrics() -> dict[str, Metric]:
    """Return all metrics that a published number may have."""
    return METRICS | PAPER_METRICS
