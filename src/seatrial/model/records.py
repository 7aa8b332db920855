"""The records that travel from a check to the report: samples, cases, measurements."""

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from seatrial.model.metrics import METRICS, Direction

CaseResult = Literal["pass", "fail", "skip"]

OF_REFRAME: dict[str, CaseResult] = {"pass": "pass", "skip": "skip", "xfail": "skip"}
"""What becomes of ReFrame's results: a defect that is known decides nothing, and any
other result is `fail`."""


@dataclass(frozen=True)
class Sample:
    """One number as a check reports it, before it knows its run.

    `metric` is a key of `METRICS`, which gives unit and direction; `n` is how many
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
class NodeEvent:
    """A delivered node that became unavailable, as Slurm tells it.

    `state` is one of `drained`, `down`, `failed` and `not responding`. `reason` and
    `user` are those that Slurm keeps, '' where it has none; `time` is when the state
    began, in UTC seconds since the epoch.
    """

    node: str
    state: str
    reason: str
    user: str
    time: float


@dataclass(frozen=True)
class Case:
    """A check with its parameters, environment and nodes, as it went in one session.

    `result` is ReFrame's quick verdict; `phase` and `reason` say where and why it
    failed, or why it was skipped. `declared` are the flat names of the metrics that
    the check promises to report. Times are UTC seconds since the epoch. `replay` tells
    that its output was recorded before: it is no measurement. `attempt` counts the
    tries of a case in its session; each is a case of its own. `start_crashes` are
    the starts of programs in its job that died in MPI_Init, with the keys `step`,
    `try`, `reason`, `ranks`, `dead` (nodes of the dead ranks) and `nodes` (of all
    ranks); those with a try left were repeated. `node_events` are the delivered nodes
    that Slurm lost during the case, and those of its own nodes that Slurm found lost
    soon after it failed.
    """

    session: str
    repeat: int
    check: str
    case: str
    partition: str
    environment: str
    parameters: dict[str, Any]
    result: CaseResult
    phase: str | None = None
    reason: str | None = None
    job_id: str | None = None
    nodes: tuple[str, ...] = ()
    start_time: float | None = None
    elapsed_s: float | None = None
    payload_s: float | None = None
    raw: str | None = None
    declared: tuple[str, ...] = ()
    replay: bool = False
    attempt: int = 1
    start_crashes: tuple[dict[str, Any], ...] = ()
    node_events: tuple[NodeEvent, ...] = ()


@dataclass(frozen=True)
class Measurement:
    """One number with everything that identifies it: a row of measurements.parquet.

    `nodes` are the names of the allocation, separated by spaces: as one text they are
    stored once per case, whatever the number of rows. `replay` and `attempt`: see
    `Case`.
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


@dataclass(frozen=True)
class Node:
    """A delivered node: what the inventory promises and Ansible found (`facts`)."""

    name: str
    facts: dict[str, Any] = field(default_factory=dict)


def as_dict(record: Sample | Case | Measurement | Node) -> dict[str, Any]:
    """Turn a record into plain data for JSON or Parquet."""
    plain = {**vars(record)}  # asdict() copies what is inside: minutes for a million
    if isinstance(record, Case):
        plain["node_events"] = [vars(event) for event in record.node_events]
    return plain


def metric_of(sample: Sample) -> tuple[str, Direction]:
    """Give unit and direction of a sample; KeyError if its metric is unknown."""
    metric = METRICS[sample.metric]
    return metric.unit, metric.direction


def parameters_text(parameters: dict[str, Any]) -> str:
    """Write parameters as a measurement holds them."""
    return json.dumps(parameters, sort_keys=True)
