"""Records of a run that are no cases: samples, measurements, delivered nodes."""

from dataclasses import dataclass, field, fields
from typing import Any

from seatrial.model.cases import Case, CaseResult
from seatrial.model.metrics import Direction

OF_REFRAME: dict[str, CaseResult] = {"pass": "pass", "skip": "skip", "xfail": "skip"}
"""Results by those of ReFrame (`xfail`: a known defect); any other result is `fail`."""


@dataclass(frozen=True)
class Sample:
    """One number as a check reports it, before it knows its run.

    `metric` is the name of a `Metric`, which has unit and direction; `n` is how many
    repetitions stand behind `statistic`. Place: `node` for a number of one node, with
    `socket` for one of its sockets (as the kernel counts packages), `source` and
    `destination` for a pair, none for the whole allocation; `hca` is the adapter or
    interface used, where it is known. `parameters` tell apart numbers of one
    metric and size within a case (a queue's depth); numbers that are held to limits
    have none. `round` counts the rounds of a sweep; `start_time` is UTC seconds since
    the epoch, where the number has one of its own.
    """

    metric: str
    value: float
    size_bytes: int | None = None
    statistic: str = "mean"
    n: int = 1
    node: str | None = None
    socket: int | None = None
    source: str | None = None
    destination: str | None = None
    hca: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    round: int | None = None
    start_time: float | None = None


@dataclass(frozen=True)
class Measurement:
    """One number with everything that identifies it: a row of measurements.parquet.

    `nodes` are the names of the allocation, separated by spaces: one text is stored
    once per case, not once per row. `replay` and `attempt`: see `Case`.
    """

    run: str
    session: str
    block: str
    repeat: int
    system: str
    partition: str
    environment: str
    check: str
    case: str
    parameters: str
    job_id: str | None
    nodes: str
    node: str | None
    socket: int | None
    source: str | None
    destination: str | None
    hca: str | None
    round: int | None
    metric: str
    size_bytes: int | None
    statistic: str
    n: int
    value: float
    unit: str
    direction: Direction
    start_time: float | None
    replay: bool = False
    attempt: int = 1


_NUMBERS: dict[Any, type] = {bool: bool, float: float, int: int}
_NUMBERS |= {float | None: float, int | None: int}
COLUMNS = {
    column.name: _NUMBERS.get(column.type, str) for column in fields(Measurement)
}
"""Names and types of the columns of measurements.parquet."""


@dataclass(frozen=True)
class Node:
    """A delivered node: what the inventory promises and Ansible found (`facts`)."""

    name: str
    facts: dict[str, Any] = field(default_factory=dict)


def as_dict(record: Sample | Case | Measurement | Node) -> dict[str, Any]:
    """Convert a record to plain data for JSON or Parquet."""
    plain = {**vars(record)}  # asdict() copies what is inside: minutes for a million
    if isinstance(record, Case):
        for name in ("node_events", "waited_for"):
            plain[name] = [vars(event) for event in getattr(record, name)]
    return plain
