"""Parts of the fabric that explain slow pairs: an explanation, never a verdict.

The judge convicts pairs, nodes and leafs by their numbers. If the run kept its fabric
and the routes are known, this names the part that the slow paths have in common.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from seatrial.errors import SeatrialError
from seatrial.fabric.locate import Part, Suspect, incidence, located
from seatrial.fabric.measured_paths import (
    CHECKS,
    Cables,
    bandwidths,
    column_of,
    forwarding_of,
    graph_of,
    part_text,
    paths_of,
)
from seatrial.fabric.routes import Routes
from seatrial.judge.findings import Finding
from seatrial.judge.located_part import LocatedPart
from seatrial.parsers.errors import ParseError
from seatrial.parsers.fabric.dump_fts import Tables, parse_dump_fts
from seatrial.runs.closed_run import Run
from seatrial.runs.kept_fabric import KeptFabric, kept_fabric

_MOST_CROSSINGS = 800_000
"""Links that measured paths cross, together: 5 s, 300 MiB."""

_FITS = 0.95
"""Share of the paths between leafs that forwarding tables must lead through."""


class Located(NamedTuple):
    """The located parts, the findings with their explanations, and notes."""

    parts: tuple[LocatedPart, ...]
    findings: list[Finding]
    notes: tuple[str, ...] = ()


def located_parts(runs: Sequence[Run], findings: Sequence[Finding]) -> Located:
    """Name the parts that explain slow pairs of the last run that kept its routes.

    Nothing is named if all pairs pass, or if routes are only a guess.
    """
    slow = [
        finding
        for finding in findings
        if finding.check in CHECKS and finding.verdict in ("fail", "undecided")
    ]
    if not slow:
        return Located((), [*findings])
    try:
        for run in reversed(runs):
            kept = kept_fabric(run)
            if kept and (kept.routes or kept.declaration.fabric_routing):
                return _located(run, kept, findings)
    except SeatrialError as error:
        return Located((), [*findings], (f"slow pairs: {error}",))
    return Located((), [*findings])


def _located(run: Run, kept: KeptFabric, findings: Sequence[Finding]) -> Located:
    """Locate on each rail; SeatrialError if the routes are damaged or do not fit."""
    tables: Tables = {}
    if not kept.declaration.fabric_routing:
        try:
            tables = parse_dump_fts(kept.routes_text())
        except ParseError as error:
            raise SeatrialError(f"{kept.routes}: {error}") from error
    cables: Cables = {
        frozenset((one.a, one.b)): one
        for one in (kept.plan.cables if kept.plan else ())
    }
    hcas = {one.hca for one in kept.fabric.devices if one.kind == "host"}
    parts, explained = list[LocatedPart](), [*findings]
    for hca in sorted(hcas) if len(hcas) > 1 else [""]:
        graph = graph_of(kept.fabric, hca)
        if tables:
            forwarding = forwarding_of(kept.fabric, tables, hca)
            routes = Routes.forwarded(graph, forwarding)
        else:
            routes = Routes.planned(graph, adaptive=True)
        share, arcs = _walk(routes)
        if share < _FITS:
            raise SeatrialError(
                f"{kept.routes}: the tables lead {100 * share:.3g} % of all paths to "
                "their end; expected those of the fabric that the run kept"
            )
        rows = bandwidths(run.measurements, hca, int(_MOST_CROSSINGS / arcs))
        if rows.is_empty():
            continue
        measured = paths_of(routes, rows)
        for suspect in located(graph, measured):
            part = _part(routes, suspect, cables, measured.residual.size)
            parts.append(part)
            explained = [*_explained(explained, routes, suspect.parts[0], part, hca)]
    return Located(tuple(parts), explained)


def _walk(routes: Routes) -> tuple[float, float]:
    """Return the share of paths between leafs that reach their end, and their length.

    Of 1,000 paths; the length is the number of links that a path may cross.
    """
    graph, dice = routes.graph, np.random.default_rng(1)
    hosts = len(graph.hosts)
    sources = dice.integers(hosts, size=1000)
    destinations = (sources + dice.integers(1, max(hosts, 2), size=1000)) % hosts
    crossings = routes.crossings(sources, destinations)
    count = np.bincount(crossings.path, minlength=1000)
    far = graph.leaf[sources] != graph.leaf[destinations]
    # The last link between switches must end at the leaf of the destination.
    ends = graph.ends[crossings.arc // 2, 1 - crossings.arc % 2] - hosts
    there = np.zeros(1000, dtype=bool)
    there[crossings.path[ends == graph.leaf[destinations[crossings.path]]]] = True
    share = float(there[far].mean()) if far.any() else 1.0
    return share, float(count.mean())


def _part(
    routes: Routes, suspect: Suspect, cables: Cables, measured: int
) -> LocatedPart:
    graph, first = routes.graph, suspect.parts[0]
    ends: tuple[tuple[str, str], ...] = ()
    device = ""
    if first.kind == "switch":
        device = graph.switches[first.number]
    else:
        link = graph.links[first.number]
        ends = tuple((end.device, end.port) for end in (link.a, link.b))
    if first.kind == "node":
        device = graph.hosts[int(graph.ends[first.number].min())]
    return LocatedPart(
        part_text(graph, first, cables),
        first.kind,
        device,
        ends,
        suspect.slower,
        suspect.paths,
        measured,
        suspect.p,
        tuple(part_text(graph, part, cables) for part in suspect.parts[1:]),
    )


def _explained(
    findings: Sequence[Finding],
    routes: Routes,
    part: Part,
    named: LocatedPart,
    hca: str,
) -> Iterator[Finding]:
    """Yield the findings; failing ones that the part explains say so."""
    number = {name: place for place, name in enumerate(routes.graph.hosts)}
    pairs = {
        place: tuple(number[name] for name in finding.node.split(" - "))
        for place, finding in enumerate(findings)
        if _is_slow(finding, hca) and {*finding.node.split(" - ")} <= {*number}
    }
    pairs = {place: ends for place, ends in pairs.items() if len(ends) == 2}
    crossing = {*_crossing(routes, part, [*pairs.values()])}
    across = {place for index, place in enumerate(pairs) if index in crossing}
    touched = {name for name, _ in named.ends} | {named.device}
    for place, finding in enumerate(findings):
        leafs = {name.removeprefix("leaf ") for name in finding.node.split(" - ")}
        own = _is_slow(finding, hca) and place not in pairs and leafs & touched
        if place in across or own:
            reason = f"{finding.reason}; explained by {named.name}"
            yield replace(finding, reason=reason)
        else:
            yield finding


def _is_slow(finding: Finding, hca: str) -> bool:
    """Return True if a bandwidth of a place fails, on this rail."""
    fails = finding.verdict == "fail" and finding.check in CHECKS
    rail = finding.place.removeprefix(finding.node).strip(" ()")
    return (
        fails
        and finding.metric.startswith("bw")
        and finding.place != ""
        and (not hca or rail in ("", hca) or rail.startswith(f"{hca}:"))
    )


def _crossing(
    routes: Routes, part: Part, pairs: Sequence[tuple[int, ...]]
) -> Iterator[int]:
    """Yield the pairs, by number, with a path across a part in one direction."""
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    if not pairs:
        return
    for one, other in ((0, 1), (1, 0)):
        crossings = routes.crossings(ends[:, one], ends[:, other])
        marks = incidence(routes.graph, crossings, len(pairs))
        own = marks[:, [column_of(routes.graph, part)]]
        yield from own.nonzero()[0].tolist()
