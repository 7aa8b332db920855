"""Records of a trend: nights, and a point of each metric for every night."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from seatrial.report.trend.changes import Change


@dataclass(frozen=True)
class Choice:
    """The chosen checks, flat metrics and environments; () means all.

    Without checks and metrics: the metrics that have a criterion.
    """

    checks: Sequence[str] = ()
    metrics: Sequence[str] = ()
    environments: Sequence[str] = ()


@dataclass(frozen=True)
class Limit:
    """The limit of a criterion for a metric, in the metric's unit."""

    criterion: str
    kind: str
    value: float
    source: str


@dataclass(frozen=True)
class Night:
    """A run, and the changes since the previous one.

    `own_criteria`: the run kept its criteria; else those of today are used. `model`:
    its numbers are those of a model machine.
    """

    run: str
    campaign: str
    started: str
    partial: bool
    own_criteria: bool
    changes: tuple[Change, ...]
    model: bool = False


@dataclass(frozen=True)
class Point:
    """A metric in one run.

    `value` is the median over `allocations` (jobs) of the job's median over places;
    `low` and `high` are the least and the largest of these medians. All are None where
    there is no number; `gap` is the reason. `worst` is the median of the worst of
    several places. `limits` are those that held.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    allocations: int = 0
    worst: float | None = None
    worst_place: str = ""
    limits: tuple[Limit, ...] = ()
    gap: str = ""


class SeriesKey(NamedTuple):
    """Identity of a metric over runs.

    `num_nodes` is None for metrics of single nodes or pairs.
    """

    check: str
    case: str
    environment: str
    partition: str
    num_nodes: int | None
    metric: str
    statistic: str
    unit: str
    direction: str


@dataclass(frozen=True)
class Series:
    """A metric with a point for each night. `today`: limits of today."""

    key: SeriesKey
    points: tuple[Point, ...]
    today: tuple[Limit, ...]

    def misses(self, value: float | None, limits: Iterable[Limit]) -> tuple[Limit, ...]:
        """Return the limits that a value does not meet."""
        if value is None:
            return ()
        sign = 1 if self.key.direction == "higher" else -1
        return tuple(limit for limit in limits if sign * value < sign * limit.value)

    def beyond(self, night: int) -> bool:
        """Return True if a number of a night, or its worst place, is beyond a limit."""
        point = self.points[night]
        return any(self.misses(v, point.limits) for v in (point.value, point.worst))


@dataclass(frozen=True)
class Trend:
    """All chosen series of a system. `since`: changes after the last run."""

    system: str
    nights: tuple[Night, ...]
    series: tuple[Series, ...]
    since: tuple[Change, ...]
