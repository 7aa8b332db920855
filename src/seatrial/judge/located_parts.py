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
    bandwidths,
    column_of,
    graph_of,
    paths_of,
)
from seatrial.fabric.part_names import HIDDEN, Cables, part_text, parts_text
from seatrial.fabric.routes import Routes
from seatrial.fabric.table_fit import fit_of, forwarded, walked
from seatrial.fabric.telling_pairs import telling_rounds
from seatrial.judge.findings import Finding
from seatrial.judge.joint_runs import delivered_nodes, leafs_of
from seatrial.judge.located_part import LocatedPart, Member
from seatrial.judge.unknown_leafs import doubtful_nodes
from seatrial.parsers.errors import ParseError
from seatrial.parsers.fabric.dump_fts import Tables, parse_dump_fts
from seatrial.runs.closed_run import Run
from seatrial.runs.kept_fabric import KeptFabric

_MOST_CROSSINGS = 800_000
"""Links that measured paths cross, together: 5 s, 300 MiB."""


class Located(NamedTuple):
    """The located parts, the findings with their explanations, and notes."""

    parts: tuple[LocatedPart, ...]
    findings: list[Finding]
    notes: tuple[str, ...] = ()


def located_parts(runs: Sequence[Run], findings: Sequence[Finding]) -> Located:
    """Name the parts that explain slow pairs of the last run that kept its routes.

    Nothing is named if all pairs pass, or if routes are only a guess. A note has the
    nodes that may be sound, as no leafs are known.
    """
    leafs = leafs_of(delivered_nodes(runs))
    located = _located_parts(runs, findings)
    doubtful = doubtful_nodes(runs, leafs, findings)
    return located._replace(notes=(*located.notes, *doubtful))


def _located_parts(runs: Sequence[Run], findings: Sequence[Finding]) -> Located:
    slow = [
        finding
        for finding in findings
        if finding.check in CHECKS and finding.verdict in ("fail", "undecided")
    ]
    if not slow:
        return Located((), [*findings])
    try:
        for run in reversed(runs):
            kept = run.fabric
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
    parts, explained, notes = list[LocatedPart](), [*findings], list[str]()
    for hca in sorted(hcas) if len(hcas) > 1 else [""]:
        graph = graph_of(kept.fabric, hca)
        if tables:
            routes = forwarded(kept.fabric, graph, tables, hca)
            fit = fit_of(kept.fabric, routes, tables, hca)
            fit.require(str(kept.routes))
            length = fit.length
            if fit.words:
                notes.append(f"slow pairs: {kept.routes}: {fit.words}")
        else:
            routes = Routes.planned(graph, adaptive=True)
            _, length = walked(routes)
        rows = bandwidths(run.measurements, hca, int(_MOST_CROSSINGS / length))
        if rows.is_empty():
            continue
        measured = paths_of(routes, rows)
        for suspect in located(graph, [measured]):
            part = _part(routes, suspect, cables, measured.residual.size)
            parts.append(part)
            explained = [*_explained(explained, routes, suspect.parts, part, hca)]
    return Located(tuple(parts), explained, tuple(notes))


def _part(
    routes: Routes, suspect: Suspect, cables: Cables, measured: int
) -> LocatedPart:
    graph = routes.graph
    way_out = ""
    if not suspect.is_single:
        way_out = HIDDEN
        if telling_rounds(routes, suspect.parts, 1):
            way_out = "`seatrial fabric locate --pairs` writes pairs that tell which"
    return LocatedPart(
        parts_text(graph, suspect.parts, cables),
        tuple(
            _member(routes, part, cables, likely)
            for part, likely in zip(suspect.parts, suspect.likely, strict=True)
        ),
        suspect.slower,
        suspect.paths,
        measured,
        suspect.p,
        way_out,
    )


def _member(routes: Routes, part: Part, cables: Cables, likely: float) -> Member:
    graph = routes.graph
    ends: tuple[tuple[str, str], ...] = ()
    device = ""
    if part.kind == "switch":
        device = graph.switches[part.number]
    else:
        link = graph.links[part.number]
        ends = tuple((end.device, end.port) for end in (link.a, link.b))
    if part.kind == "node":
        device = graph.hosts[int(graph.ends[part.number].min())]
    return Member(part_text(graph, part, cables), part.kind, device, ends, likely)


def _explained(
    findings: Sequence[Finding],
    routes: Routes,
    parts: Sequence[Part],
    named: LocatedPart,
    hca: str,
) -> Iterator[Finding]:
    """Yield the findings; failing ones that one of the parts explains say so."""
    number = {name: place for place, name in enumerate(routes.graph.hosts)}
    pairs = {
        place: tuple(number[name] for name in finding.node.split(" - "))
        for place, finding in enumerate(findings)
        if _is_slow(finding, hca) and {*finding.node.split(" - ")} <= {*number}
    }
    pairs = {place: ends for place, ends in pairs.items() if len(ends) == 2}
    crossing = {*_crossing(routes, parts, [*pairs.values()])}
    across = {place for index, place in enumerate(pairs) if index in crossing}
    touched = {name for one in named.members for name, _ in one.ends}
    touched |= {one.device for one in named.members}
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
    routes: Routes, parts: Sequence[Part], pairs: Sequence[tuple[int, ...]]
) -> Iterator[int]:
    """Yield the pairs, by number, with a path across a part in one direction."""
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    if not pairs:
        return
    columns = [column_of(routes.graph, part) for part in parts]
    for one, other in ((0, 1), (1, 0)):
        crossings = routes.crossings(ends[:, one], ends[:, other])
        marks = incidence(routes.graph, crossings, len(pairs))
        yield from marks[:, columns].nonzero()[0].tolist()
