"""`seatrial import`: convert records of plain ReFrame to runs."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from seatrial import paths
from seatrial.commands import _options as options
from seatrial.commands._rows import write_rows
from seatrial.model.metrics import Direction
from seatrial.output import complain, echo

if TYPE_CHECKING:
    from seatrial.runs.reframe_import import Imported

_DATE = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"])
_DIRECTIONS: dict[str, Direction] = {"higher": "higher", "lower": "lower"}


def _directions(
    _ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]
) -> dict[str, Direction]:
    directions = {}
    for text in values:
        metric, _, direction = text.rpartition("=")
        if not metric or direction not in _DIRECTIONS:
            raise click.BadParameter(f"{text!r}: expected METRIC=higher or =lower")
        directions[metric] = _DIRECTIONS[direction]
    return directions


@click.command("import")
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path)
)
@click.option("--system", help="Name of the system (default: ReFrame's).")
@options.repeated(
    "--unit", "units", metavar="UNIT", help="Accept this unknown unit; may be repeated."
)
@options.repeated(
    "--direction",
    "directions",
    callback=_directions,
    metavar="METRIC=higher|lower",
    help="Better values of a metric; may be repeated.",
)
@click.option("--since", type=_DATE, help="Only sessions from this time (UTC) on.")
@click.option("--until", type=_DATE, help="Only sessions before this time (UTC).")
@options.results
@options.form("Format of the list of imported runs.")
def import_(
    files: tuple[Path, ...],
    system: str | None,
    units: tuple[str, ...],
    directions: dict[str, Direction],
    since: datetime | None,
    until: datetime | None,
    results: Path | None,
    form: str,
) -> None:
    """Convert records of plain ReFrame to runs: run reports and results databases.

    FILE is a JSON report or a results.db (SQLite) of ReFrame 4.7 or later. Each of its
    sessions becomes one closed run; a session that was imported before is skipped. A
    metric keeps its name and unit; a name of Seatrial such as latency_8B becomes metric
    and message size, in Seatrial's unit. Higher values are better where the reference
    has only a lower bound, lower values where it has only an upper bound; otherwise the
    metric or the unit decides. Keep FILE: ReFrame's references stay in it, and the
    run's manifest has its checksum.

    Exit status: 0; 2 usage or environment, or an ambiguous FILE: then nothing is
    imported.

    Example: seatrial import ~/.reframe/reports/results.db --system lab
    """
    from seatrial.runs.reframe_import import Choice, import_reports

    folder = (results or paths.results_dir(paths.home())).resolve()
    choice = Choice(
        system=system,
        units=frozenset(units),
        directions=directions,
        since=since.replace(tzinfo=UTC).timestamp() if since else -math.inf,
        until=until.replace(tzinfo=UTC).timestamp() if until else math.inf,
    )
    rows = []
    for done in import_reports(files, folder, choice):
        run = f"{done.path.parent.name}/{done.path.name}"
        rows.append(
            {
                "run": run,
                "new": done.new,
                "cases": done.cases if done.new else None,
                "measurements": done.measurements if done.new else None,
            }
        )
        for note in _notes(done):
            complain(f"{run}: {note}")
    _print(rows, form)


def _notes(done: "Imported") -> Iterator[str]:
    if done.converted:
        yield f"converted: {', '.join(done.converted)}"
    if done.not_finite:
        yield (
            f"values that are no number (NaN, infinity): {done.not_finite} left out; "
            "their cases failed"
        )


def _print(rows: list[dict[str, Any]], form: str) -> None:
    from rich.table import Table

    from seatrial.console import Terminal

    if form != "table":
        write_rows(rows, form, ["run", "new", "cases", "measurements"])
        return
    table = Table("run", box=None, pad_edge=False)
    table.add_column("cases", justify="right")
    table.add_column("measurements", justify="right")
    for row in rows:
        numbers = (
            [str(row["cases"]), str(row["measurements"])]
            if row["new"]
            else ["", "there already"]
        )
        table.add_row(row["run"], *numbers)
    Terminal().print(table)
    new = sum(row["new"] for row in rows)
    echo(f"runs imported: {new}, there already: {len(rows) - new}")
