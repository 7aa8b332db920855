"""Records of nights: what was measured, and what is decided from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

Days = NDArray[np.datetime64]


class Metric(msgspec.Struct, frozen=True):
    """One number of one case, as the judge names it."""

    check: str
    case: str
    environment: str
    partition: str
    metric: str
    statistic: str
    unit: str
    higher_is_better: bool

    def __str__(self) -> str:
        return f"{self.case} {self.metric} ({self.environment})"


@dataclass(frozen=True)
class Visits:
    """Measured values of each night.

    `nights` (nights,) ascend; each has a run. `values` (nights, nodes, metrics) are
    medians over the allocations of a night, in the unit of the metric, NaN where a node
    was not measured, which is never a fault. `classes` has the class of each node.
    `configurations` (nights, nodes) are indexes of `configured`, -1 where a node was
    not visited. `repaired` (nights, nodes) marks the first visit after a repair.
    `groups` are parts that nodes share: 'leaf l03' -> nodes.
    """

    nights: Days
    runs: tuple[str, ...]
    nodes: tuple[str, ...]
    classes: tuple[str, ...]
    metrics: tuple[Metric, ...]
    values: NDArray[np.floating[Any]]
    configurations: NDArray[np.int64]
    configured: tuple[Mapping[str, str], ...]
    repaired: NDArray[np.bool_]
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def first(self, nights: int) -> "Visits":
        """Return the first nights."""
        cut = slice(nights)
        return Visits(
            self.nights[cut],
            self.runs[cut],
            self.nodes,
            self.classes,
            self.metrics,
            self.values[cut],
            self.configurations[cut],
            self.configured,
            self.repaired[cut],
            self.groups,
        )


@dataclass(frozen=True)
class Loss:
    """The level of a metric before and after, in its unit; `share` > 0 is worse."""

    metric: Metric
    before: float
    after: float
    share: float


@dataclass(frozen=True)
class Change:
    """A change of the configuration of some nodes within the onset of an alarm.

    `differs` says if the nodes that changed lost more than those that did not; None if
    too few of either are there to tell.
    """

    key: str
    was: str
    now: str
    nodes: tuple[str, ...]
    differs: bool | None


Kind = Literal["node", "machine", "common", "explained"]


@dataclass(frozen=True)
class Alarm:
    """A confirmed loss, once for each onset.

    `name` is the night with the place: '2026-11-25-cn03'. `kind`: of one node, of all
    nodes of a class, of several nodes with a common cause, or explained by a change of
    the configuration. `night` is that of the confirmation, `onset` the first and the
    last night at which the loss may have begun. `evidence` is an e-value, 0 if the
    limits of one night found the loss: then `faults` say what. `shared` is what the
    nodes of a common cause share, '' if that is unknown. `closed` is the night at which
    it ended by the third good night in a row, None while it lasts.
    """

    name: str
    kind: Kind
    nodes: tuple[str, ...]
    night: np.datetime64
    onset: tuple[np.datetime64, np.datetime64]
    losses: tuple[Loss, ...] = ()
    evidence: float = 0.0
    changes: tuple[Change, ...] = ()
    shared: str = ""
    faults: tuple[str, ...] = ()
    closed: np.datetime64 | None = None


@dataclass(frozen=True)
class Watched:
    """A suspect that is measured every night, since a night; `visits` since then."""

    node: str
    since: np.datetime64
    visits: int
    evidence: float


@dataclass(frozen=True)
class Learning:
    """A node whose baseline is too short to find a change: it has `visits`."""

    node: str
    visits: int
    needed: int


@dataclass(frozen=True)
class Note:
    """An improvement, which is no alarm."""

    night: np.datetime64
    node: str
    text: str


@dataclass(frozen=True)
class Decision:
    """Alarms, suspects and notes after the last night."""

    alarms: tuple[Alarm, ...]
    watched: tuple[Watched, ...]
    learning: tuple[Learning, ...]
    notes: tuple[Note, ...]
