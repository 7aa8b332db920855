"""Check that forwarding tables are those of a fabric."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from seatrial.errors import SeatrialError
from seatrial.fabric.measured_paths import forwarding_of
from seatrial.fabric.records import Fabric
from seatrial.fabric.routes import Graph, Routes
from seatrial.names import node_set
from seatrial.parsers.fabric.dump_fts import Tables

FITS = 0.95
"""Share of the paths between leafs that forwarding tables must lead to their end."""

_PATHS = 1000
_MOST_NAMES = 8


@dataclass(frozen=True)
class Fit:
    """The fit of forwarding tables to a fabric.

    `led` is the share of the paths between leafs that they lead to their end, `length`
    the mean number of links that a path may cross. `problems` are the differences.
    """

    led: float
    length: float
    problems: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """Describe the differences; '' without any."""
        if self.led == 1.0 and not self.problems:
            return ""
        paths = f"the tables lead {100 * self.led:.3g} % of all paths to their end"
        return "; ".join((paths, *self.problems))

    def require(self, where: str) -> None:
        """Raise SeatrialError if too many paths are not led to their end."""
        if self.led < FITS:
            raise SeatrialError(
                f"{where}: {self.words}. Expected the tables of the fabric that the "
                "run kept: run dump_fts beside the discovery."
            )


def forwarded(fabric: Fabric, graph: Graph, tables: Tables, hca: str = "") -> Routes:
    """Return the routes of forwarding tables on one rail of a fabric."""
    return Routes.forwarded(graph, forwarding_of(fabric, tables, hca))


def fit_of(fabric: Fabric, routes: Routes, tables: Tables, hca: str = "") -> Fit:
    """Compare tables with the fabric; `routes` are those of the tables."""
    own = forwarding_of(fabric, tables, hca)
    led, length = walked(routes)
    return Fit(led, length, tuple(_problems(fabric, routes.graph, tables, own)))


def _problems(
    fabric: Fabric,
    graph: Graph,
    tables: Tables,
    own: Mapping[str, Mapping[str, str]],
) -> list[str]:
    """List tables that are missing or of others, and ports without a link."""
    problems = []
    without = [name for name in graph.switches if name not in own]
    if without:
        problems.append(f"no table of {_named(without)}")
    known = {one.guid for one in fabric.devices if one.kind == "switch"}
    others = [guid for guid in tables if guid not in known]
    if others:
        problems.append(f"tables of switches that are not there: {_named(others)}")
    linked = {(end.device, end.port) for one in fabric.links for end in (one.a, one.b)}
    used = {(name, port) for name, rows in own.items() for port in rows.values()}
    if loose := sorted(used - linked):
        listed = [f"{name} port {port}" for name, port in loose[:3]]
        more = f" and {len(loose) - 3} more" if loose[3:] else ""
        problems.append(f"ports without a link: {', '.join(listed)}{more}")
    return problems


def _named(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if names[_MOST_NAMES:] else ""
    return f"{node_set(names[:_MOST_NAMES])}{more}"


def walked(routes: Routes) -> tuple[float, float]:
    """Return the share of paths between leafs that reach their end, and their length.

    Of 1,000 paths; the length is the number of links that a path may cross.
    """
    graph, dice = routes.graph, np.random.default_rng(1)
    hosts = len(graph.hosts)
    sources = dice.integers(hosts, size=_PATHS)
    destinations = (sources + dice.integers(1, max(hosts, 2), size=_PATHS)) % hosts
    crossings = routes.crossings(sources, destinations)
    count = np.bincount(crossings.path, minlength=_PATHS)
    far = graph.leaf[sources] != graph.leaf[destinations]
    # The last link between switches must end at the leaf of the destination.
    ends = graph.ends[crossings.arc // 2, 1 - crossings.arc % 2] - hosts
    there = np.zeros(_PATHS, dtype=bool)
    there[crossings.path[ends == graph.leaf[destinations[crossings.path]]]] = True
    led = float(there[far].mean()) if far.any() else 1.0
    return led, float(count.mean())
