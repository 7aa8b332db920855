"""The nights of a system before they happen: nodes, time, node-hours, false alarms."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median

from seatrial.campaign.cost import Cost
from seatrial.errors import SeatrialError
from seatrial.history.detector import LAG, LEAST
from seatrial.model.manifest import read_manifest
from seatrial.nightly.choice import FEWEST, a_night
from seatrial.nightly.settings import Settings
from seatrial.nightly.state import CAMPAIGN
from seatrial.nightly.tonight import risk_of_a_night
from seatrial.runs.closed_run import closed_runs, read_cases

_NIGHTS = 20
"""Newest nights from which time and node-hours are taken."""


@dataclass(frozen=True)
class Share:
    """The nodes of a class, and those that each night measures; 0 of a single node."""

    name: str
    nodes: int
    a_night: int


@dataclass(frozen=True)
class Usage:
    """Time of a night in minutes, and node-hours of each node that it measures.

    They are medians over the newest `nights`; with 0 nights they come from the times
    that the checks state, or from other campaigns.
    """

    nights: int
    minutes: float
    node_hours: float

    @property
    def source(self) -> str:
        """Return the source of the numbers in words."""
        if self.nights:
            return f"by the last {self.nights} nights"
        return "by the times that its checks state, since no night was recorded"


@dataclass(frozen=True)
class Forecast:
    """The nights of a system; `usage` is None if it is unknown.

    `opening` is the local time of the next night. `nothing` are reasons by check that
    cannot run.
    """

    system: str
    settings: Settings
    shares: tuple[Share, ...]
    usage: Usage | None
    opening: datetime
    nothing: Mapping[str, str]

    @property
    def measured(self) -> int:
        """The nodes that each night measures."""
        return sum(share.a_night for share in self.shares)

    @property
    def node_hours(self) -> float | None:
        """The node-hours that a night needs; None if they are unknown."""
        return None if self.usage is None else self.measured * self.usage.node_hours

    @property
    def risk(self) -> float:
        """The seller's risk of the limits of each night."""
        return risk_of_a_night(self.settings.rules.alarms_a_year)

    @property
    def learning(self) -> int:
        """The nights until the baselines of all nodes are learnt."""
        between = [math.ceil(s.nodes / s.a_night) for s in self.shares if s.a_night]
        return (LEAST + LAG) * max(between, default=0)

    @property
    def problems(self) -> list[str]:
        """Return a sentence for each reason why these nights cannot work."""
        file, window = self.settings.file, self.settings.window
        if not self.measured:
            least = f"expected one with {FEWEST} nodes: a pair needs two"
            return [f"{self.system}: no class can be measured; {least}"]
        if self.usage is None:
            why = "; ".join(f"{name}: {text}" for name, text in self.nothing.items())
            check = f"campaign {CAMPAIGN!r}: no check can run on {self.system}"
            return [f"{check}: {why}; install a program that it needs"]
        problems = []
        minutes = window.length.total_seconds() / 60
        if self.usage.minutes > minutes:
            problems.append(
                f"{file}: window: {window} has {minutes:.0f} minutes, a night takes "
                f"{math.ceil(self.usage.minutes)} ({self.usage.source}); expected a "
                "window of that length or more"
            )
        needed = self.measured * self.usage.node_hours
        if needed > self.settings.node_hours:
            every = self._affordable()
            longer = f", or every: {every} or more" if every else ""
            problems.append(
                f"{file}: node_hours: {self.settings.node_hours:g} do not pay for all "
                f"nodes within {self.settings.rules.every} nights: {self.measured} "
                f"nodes a night take {rounded_up(needed)} ({self.usage.source}); "
                f"expected node_hours: {rounded_up(needed)} or more{longer}"
            )
        return problems

    def _affordable(self) -> int | None:
        """Return the fewest nights in which the budget pays for all nodes; or None."""
        assert self.usage is not None
        most = self.settings.node_hours / self.usage.node_hours
        sizes = [share.nodes for share in self.shares if share.a_night]
        for every in range(self.settings.rules.every, max(sizes) + 1):
            if sum(a_night(nodes, every) for nodes in sizes) <= most:
                return every
        return None


def forecast(
    results: Path,
    system: str,
    settings: Settings,
    classes: Mapping[str, Sequence[str]],
    cost: Cost,
    now: datetime,
) -> Forecast:
    """Forecast the nights of a system.

    `classes` are its nodes by class, `cost` is that of the campaign on all nodes, `now`
    the local time. Raises SeatrialError if the results cannot be read.
    """
    sizes = {name: len(nodes) for name, nodes in classes.items()}
    every = settings.rules.every
    usage = usage_of(results, system, lambda: cost, sum(sizes.values()))
    return Forecast(
        system=system,
        settings=settings,
        shares=tuple(
            Share(name, size, a_night(size, every)) for name, size in sizes.items()
        ),
        usage=usage,
        opening=settings.window.next_opening(now),
        nothing=cost.nothing,
    )


def usage_of(
    results: Path, system: str, cost: Callable[[], Cost], nodes: int
) -> Usage | None:
    """Return the usage of a night: recorded, else stated; None if it is unknown.

    `cost` returns that of the campaign on all `nodes`, and is called only if needed.
    """
    return _recorded(results, system) or _stated(cost(), nodes)


def rounded_up(number: float) -> float:
    """Round up to two digits after the point, which is enough for a setting."""
    return math.ceil(number * 100) / 100


def _recorded(results: Path, system: str) -> Usage | None:
    """Return the usage of the newest nights; None before the first."""
    nights: list[tuple[float, float]] = []
    for path in reversed(closed_runs(results, system)):
        with suppress(SeatrialError):  # a damaged run has no numbers
            nights += _usage(path)
        if len(nights) == _NIGHTS:
            break
    if not nights:
        return None
    minutes, hours = zip(*nights, strict=True)
    return Usage(len(nights), median(minutes), median(hours))


def _usage(path: Path) -> list[tuple[float, float]]:
    """Return minutes, and node-hours of each node, of a run if it is of a night."""
    manifest = read_manifest(path)
    if manifest.get("campaign") != CAMPAIGN or manifest.get("replay"):
        return []
    cases = read_cases(path)
    nodes = {node for case in cases for node in case.nodes}
    seconds = sum((case.elapsed_s or 0.0) * len(case.nodes) for case in cases)
    if not seconds:
        return []
    began, ended = (
        datetime.fromisoformat(str(manifest[key])) for key in ("started", "ended")
    )
    return [((ended - began).total_seconds() / 60, seconds / 3600 / len(nodes))]


def _stated(cost: Cost, nodes: int) -> Usage | None:
    if not cost.jobs or cost.node_hours is None:
        return None
    return Usage(0, cost.wall_s / 60, cost.node_hours / nodes)
