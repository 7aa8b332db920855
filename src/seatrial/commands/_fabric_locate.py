"""`seatrial fabric locate`: read runs, a fabric and its routes; print suspects."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from seatrial import paths
from seatrial.console import Terminal, folding_table
from seatrial.errors import SeatrialError
from seatrial.fabric.counters import errors_of_links, grown, read_reading
from seatrial.fabric.declaration import parse_declaration
from seatrial.fabric.locate import MeasuredPaths, Suspect, located
from seatrial.fabric.measured_paths import bandwidths, graph_of, paths_of
from seatrial.fabric.part_names import HIDDEN, Cables, part_text, parts_text
from seatrial.fabric.plan import load_plan
from seatrial.fabric.records import Fabric, read_fabric
from seatrial.fabric.routes import Graph, Routes
from seatrial.fabric.table_fit import fit_of, forwarded
from seatrial.fabric.telling_pairs import Pairs, telling_rounds
from seatrial.output import complain
from seatrial.parsers.errors import ParseError
from seatrial.parsers.fabric.dump_fts import parse_dump_fts
from seatrial.paths import DISCOVERED_FILE, FABRIC_FILE, PLAN_FILE, ROUTES_FILE
from seatrial.runs.closed_run import SYSTEM_FOLDER, find_run
from seatrial.runs.stored_table import stored_table

COLUMNS = (
    *("part", "slower_percent", "paths", "p", "gain"),
    *("one_of", "telling_pairs"),
)
"""Columns of suspects."""


@dataclass(frozen=True)
class Answer:
    """The suspects of runs, and the routes on which they were found.

    `measured` is the number of measured paths. `telling` are the routes of pairs that
    are to tell parts apart. `cables` are the planned ones, by their ends.
    """

    graph: Graph
    telling: Routes
    suspects: list[Suspect]
    measured: int
    cables: Cables

    def name(self, suspect: Suspect) -> str:
        """Return a part, or the parts that it is one of."""
        return parts_text(self.graph, suspect.parts, self.cables)

    def members(self, suspect: Suspect) -> list[str]:
        """Return the parts that it is one of, with their chances; none of a single."""
        if suspect.is_single:
            return []
        return [
            f"{part_text(self.graph, part, self.cables)} ({100 * likely:.3g} %)"
            for part, likely in zip(suspect.parts, suspect.likely, strict=True)
        ]

    def rounds(self) -> dict[int, list[Pairs]]:
        """Return by suspect the rounds of pairs that tell which of its parts it is."""
        return {
            place: telling_rounds(self.telling, suspect.parts)
            for place, suspect in enumerate(self.suspects)
            if not suspect.is_single
        }

    def pairs_text(self) -> str:
        """Return these pairs as `PairSweep.pairs` reads them, each pair once."""
        rounds = [pairs for own in self.rounds().values() for pairs in own]
        known: set[frozenset[str]] = set()
        lines = []
        for number, pairs in enumerate(rounds, 1):
            new = [pair for pair in pairs if frozenset(pair) not in known]
            known |= {frozenset(pair) for pair in new}
            lines += [f"{a} {b} {number}\n" for a, b in new]
        return "".join(lines)


@dataclass(frozen=True)
class Routing:
    """How the user describes the routing.

    `file` has forwarding tables, None if they are those of the run, if it kept any;
    `adaptive`: switches choose among shortest paths, also if the run declares it. `hca`
    is the rail, '' for the only one. `fixed` are runs without adaptive routing.
    """

    file: Path | None
    adaptive: bool
    hca: str
    fixed: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Known:
    """The routes of a fabric: `adaptive` ones, and those of tables, as far as known."""

    graph: Graph
    adaptive: Routes | None
    tables: Routes | None

    @property
    def usual(self) -> Routes:
        """Return the routes of runs that nothing else is said of."""
        return self.adaptive or self.tables or Routes.planned(self.graph)

    @property
    def fixed(self) -> Routes:
        """Return the routes without adaptive routing; SeatrialError if not known."""
        if self.adaptive is None or self.tables is None:
            raise SeatrialError(
                "--fixed: expected --adaptive, and --routes with the output of "
                "dump_fts: without adaptive routing, messages follow the tables"
            )
        return self.tables


def located_in(
    runs: Sequence[str],
    fabric_file: Path | None,
    routing: Routing,
    counters: tuple[Path, Path] | None,
) -> Answer:
    """Locate the cause of slow pairs of runs; SeatrialError if the files do not fit.

    The fabric, its plan, its declaration and its tables are those that the first run
    kept.
    """
    folders = [find_run(paths.home(), run) for run in dict.fromkeys(runs)]
    fixed = [find_run(paths.home(), run) for run in dict.fromkeys(routing.fixed)]
    if both := {*folders} & {*fixed}:
        raise SeatrialError(f"{min(both)}: expected with or without --fixed, got both")
    path = folders[0]
    kept = path / SYSTEM_FOLDER
    if fabric_file is None and not (kept / DISCOVERED_FILE).is_file():
        raise SeatrialError(
            f"{path}: this run kept no fabric; expected one of `seatrial fabric "
            "discover`. Name it with --fabric."
        )
    fabric = read_fabric(fabric_file or kept / DISCOVERED_FILE)
    planned = kept / PLAN_FILE
    cables = load_plan(planned).cables if planned.is_file() else ()
    known = _known(fabric, routing, kept)
    measured = [_measured(folders, known.usual, routing.hca)]
    if fixed:
        measured.append(_measured(fixed, known.fixed, routing.hca))
    errors = None
    if counters:
        before, after = map(read_reading, counters)
        counts = errors_of_links(known.graph.links, grown(before, after))
        errors = np.array(counts)
    return Answer(
        known.graph,
        known.tables or known.usual,
        located(known.graph, measured, errors),
        sum(one.residual.size for one in measured),
        {frozenset((cable.a, cable.b)): cable for cable in cables},
    )


def _known(fabric: Fabric, routing: Routing, kept: Path) -> _Known:
    """Return the routes that the user gives, or that the run kept.

    Warns if they are a guess, or if tables do not quite fit. SeatrialError if tables
    are damaged, or are not those of the fabric.
    """
    graph = graph_of(fabric, routing.hca)
    adaptive = routing.adaptive or (routing.file is None and _is_adaptive(kept))
    file = routing.file or kept / ROUTES_FILE
    tables = None
    if routing.file or file.is_file():
        text = file.read_text("utf-8", errors="replace")
        try:
            parsed = parse_dump_fts(text)
        except ParseError as error:
            raise SeatrialError(f"{file}: {error}") from error
        tables = forwarded(fabric, graph, parsed, routing.hca)
        fit = fit_of(fabric, tables, parsed, routing.hca)
        fit.require(str(file))
        if fit.words:
            complain(f"{file}: {fit.words}. A named part may be wrong.")
    elif not adaptive:
        complain("routes are a guess, and a named part may be wrong: give --routes")
    spread = Routes.planned(graph, adaptive=True) if adaptive else None
    return _Known(graph, spread, tables)


def _is_adaptive(kept: Path) -> bool:
    """Return True if the run kept a declaration of adaptive routing."""
    file = kept / FABRIC_FILE
    if not file.is_file():
        return False
    return parse_declaration(file, file.read_bytes()).fabric_routing == "adaptive"


def _measured(folders: Sequence[Path], routes: Routes, hca: str) -> MeasuredPaths:
    return paths_of(routes, pl.concat(_bandwidths(path, hca) for path in folders))


def _bandwidths(path: Path, hca: str) -> pl.DataFrame:
    """Return the bandwidths of a run's sweeps; SeatrialError if it has none.

    Sessions of several runs have the path of their run before their names.
    """
    run = pl.concat_str(pl.lit(f"{path}/"), pl.col("session"))
    rows = bandwidths(stored_table(path).rows, hca).with_columns(session=run)
    if rows.is_empty():
        raise SeatrialError(
            f"{path}: no bandwidth of pairs; expected a run with PairSweep"
        )
    return rows


def rows_of(answer: Answer) -> list[dict[str, Any]]:
    """Return the suspects as records."""
    rounds = answer.rounds()
    return [
        {
            "part": answer.name(suspect),
            "slower_percent": round(100 * suspect.slower, 2),
            "paths": suspect.paths,
            "p": suspect.p,
            "gain": round(suspect.gain, 2),
            "one_of": "; ".join(answer.members(suspect)),
            "telling_pairs": sum(map(len, rounds.get(place, ()))),
        }
        for place, suspect in enumerate(answer.suspects)
    ]


def print_suspects(answer: Answer) -> None:
    """Print a table of the suspects, or that there is none."""
    console = Terminal()
    if not answer.suspects:
        console.print(f"no part explains slow paths; {answer.measured} were measured")
        return
    table = folding_table("part", "slower by", "paths", "p", "note")
    for row, suspect in zip(rows_of(answer), answer.suspects, strict=True):
        note = ""
        if not suspect.is_single:
            count = row["telling_pairs"]
            note = f"{count} pairs tell which: --pairs" if count else HIDDEN
        table.add_row(
            row["part"],
            f"{row['slower_percent']} %",
            f"{suspect.paths} of {answer.measured}",
            f"{suspect.p:.2g}",
            note,
        )
    console.print(table)
