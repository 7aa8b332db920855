"""`seatrial fabric locate`: read a run, a fabric and its routes; print suspects."""

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
from seatrial.fabric.locate import Part, Suspect, located
from seatrial.fabric.measured_paths import (
    Cables,
    bandwidths,
    forwarding_of,
    graph_of,
    part_text,
    paths_of,
    telling_pairs,
)
from seatrial.fabric.plan import load_plan
from seatrial.fabric.records import Fabric, read_fabric
from seatrial.fabric.routes import Routes
from seatrial.parsers.errors import ParseError
from seatrial.parsers.fabric.dump_fts import parse_dump_fts
from seatrial.paths import DISCOVERED_FILE, PLAN_FILE
from seatrial.runs.closed_run import SYSTEM_FOLDER, find_run
from seatrial.runs.stored_table import stored_table

_PAIRS = 64
_MOST_ALIKE = 3

COLUMNS = (
    *("part", "slower_percent", "paths", "p", "gain"),
    *("not_told_from", "telling_pairs"),
)
"""Columns of suspects."""


@dataclass(frozen=True)
class Answer:
    """The suspects of a run, and the routes on which they were found.

    `measured` is the number of measured paths. `cables` are the planned ones, by their
    ends.
    """

    routes: Routes
    suspects: list[Suspect]
    measured: int
    cables: Cables

    def name(self, part: Part) -> str:
        """Return a part as a technician finds it."""
        return part_text(self.routes.graph, part, self.cables)

    def pairs(self) -> dict[int, list[tuple[str, str]]]:
        """Return by suspect the pairs that tell it from the next as likely part."""
        return {
            place: telling_pairs(self.routes, suspect.parts, _PAIRS)
            for place, suspect in enumerate(self.suspects)
            if len(suspect.parts) > 1
        }

    def pairs_text(self) -> str:
        """Return these pairs for `pairsweep --pairs`: a round for each suspect."""
        return "".join(
            f"{a} {b} {number}\n"
            for number, pairs in enumerate(self.pairs().values(), 1)
            for a, b in pairs
        )


@dataclass(frozen=True)
class Routing:
    """How the user describes the routing.

    `file` has forwarding tables, None if they are not known; `adaptive`: switches
    choose among shortest paths; `hca` is the rail, '' for the only one.
    """

    file: Path | None
    adaptive: bool
    hca: str

    def routes(self, fabric: Fabric) -> Routes:
        """Return the routes of a fabric; SeatrialError if the file is damaged."""
        graph = graph_of(fabric, self.hca)
        if self.file is None:
            return Routes.planned(graph, adaptive=self.adaptive)
        text = self.file.read_text("utf-8", errors="replace")
        try:
            tables = parse_dump_fts(text)
        except ParseError as error:
            raise SeatrialError(f"{self.file}: {error}") from error
        return Routes.forwarded(graph, forwarding_of(fabric, tables, self.hca))


def located_in(
    runs: Sequence[str],
    fabric_file: Path | None,
    routing: Routing,
    counters: tuple[Path, Path] | None,
) -> Answer:
    """Locate the cause of slow pairs of runs; SeatrialError if the files do not fit.

    The fabric and its plan are those that the first run kept.
    """
    folders = [find_run(paths.home(), run) for run in dict.fromkeys(runs)]
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
    routes = routing.routes(fabric)
    rows = pl.concat(_bandwidths(path, routing.hca) for path in folders)
    measured = paths_of(routes, rows)
    errors = None
    if counters:
        before, after = map(read_reading, counters)
        counts = errors_of_links(routes.graph.links, grown(before, after))
        errors = np.array(counts)
    return Answer(
        routes,
        located(routes.graph, measured, errors),
        measured.residual.size,
        {frozenset((cable.a, cable.b)): cable for cable in cables},
    )


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
    pairs = answer.pairs()
    return [
        {
            "part": answer.name(suspect.parts[0]),
            "slower_percent": round(100 * suspect.slower, 2),
            "paths": suspect.paths,
            "p": suspect.p,
            "gain": round(suspect.gain, 2),
            "not_told_from": "; ".join(map(answer.name, suspect.parts[1:])),
            "telling_pairs": len(pairs.get(place, ())),
        }
        for place, suspect in enumerate(answer.suspects)
    ]


def print_suspects(answer: Answer) -> None:
    """Print a table of the suspects, or that there is none."""
    console = Terminal()
    if not answer.suspects:
        console.print(f"no part explains slow paths; {answer.measured} were measured")
        return
    table = folding_table("part", "slower by", "paths", "p", "not told from")
    for row, suspect in zip(rows_of(answer), answer.suspects, strict=True):
        others = [answer.name(part) for part in suspect.parts[1:]]
        alike = [*others[:_MOST_ALIKE]]
        if others[_MOST_ALIKE:]:
            alike.append(f"and {len(others) - _MOST_ALIKE} more")
        if others:
            more = "; measure those of --pairs" if row["telling_pairs"] else ""
            alike.append(f"{row['telling_pairs']} pairs tell the first two apart{more}")
        table.add_row(
            row["part"],
            f"{row['slower_percent']} %",
            f"{suspect.paths} of {answer.measured}",
            f"{suspect.p:.2g}",
            "\n".join(alike),
        )
    console.print(table)
