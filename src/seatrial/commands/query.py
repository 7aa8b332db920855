"""`seatrial query`: measurements of all runs, by filters or SQL."""

import itertools
import json
import math
import signal
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from seatrial.commands import _options as options
from seatrial.commands._runs import run_path
from seatrial.errors import SeatrialError
from seatrial.output import echo, reader_is_gone, write_data
from seatrial.paths import home, results_dir

if TYPE_CHECKING:
    from rich.table import Table

_IN_TABLE = (
    "run",
    "case",
    "environment",
    "node",
    "source",
    "destination",
    "metric",
    "size_bytes",
    "statistic",
    "n",
    "value",
    "unit",
)
_MOST_ROWS = 1000
_AT_ONCE = 10_000


class Size(click.ParamType[int]):
    """A message size: 8B, 1MiB."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Parse a size to bytes."""
        from seatrial.model.units import parse_size

        try:
            return parse_size(value)
        except ValueError as error:
            self.fail(str(error))


@click.command()
@click.argument("runs", type=options.RUN, nargs=-1, metavar="[RUN]...")
@options.repeated(
    "--system", "systems", type=options.SYSTEM, help="Runs of this system."
)
@options.campaigns
@options.since
@options.until
@click.option("--replays", is_flag=True, help="Include replays of recorded output.")
@options.repeated("--check")
@options.repeated("--metric")
@options.repeated("--size", "size_bytes", type=Size(), help="8B, 4MiB.")
@options.repeated("--node", "nodes", help="Numbers of a node or its pairs.")
@options.repeated("--partition")
@options.repeated("--environment")
@options.repeated("--statistic", help="mean, p50, p99 and so on.")
@click.option("--where", metavar="EXPR", help="More conditions, as SQL.")
@options.count("--limit", help="Largest number of rows.")
@click.option("--sql", help="One SELECT over measurements, cases and runs.")
@options.form(
    "Format of the output; table has selected columns, csv and json have all."
)
def query(
    runs: tuple[str, ...],
    systems: tuple[str, ...],
    campaigns: tuple[str, ...],
    since: datetime | None,
    until: datetime | None,
    replays: bool,
    where: str | None,
    limit: int | None,
    sql: str | None,
    form: str,
    nodes: tuple[str, ...],
    **columns: tuple[str | int, ...],
) -> None:
    """Print measurements of closed runs, by filters or by SQL (DuckDB's).

    RUN is the path of a run, its id, SYSTEM/latest or latest; default: all runs. A
    filter given twice accepts both values. Replays of recorded output are left out. In
    SQL, quote "check" and "case"; `DESCRIBE measurements` lists the columns.

    Nothing is written, and no checksum is compared: `seatrial verify` does that.

    Exit status: 0, 2 usage, or a run that cannot be read.

    Example: seatrial query --system lab --metric latency --size 8B --since 2026-11-01
    """
    from seatrial.runs.closed_run import read_manifests
    from seatrial.runs.query import choose, database, execute, fetch, select

    filters = {name: values for name, values in columns.items() if values}
    if sql is not None and (filters or nodes or where):
        raise SeatrialError(
            "--sql selects the rows itself; expected no other filters than RUN, "
            "--system, --campaign, --since, --until and --replays"
        )
    chosen = choose(
        read_manifests(_paths(runs, systems)),
        systems=systems,
        campaigns=campaigns,
        since=since,
        until=until,
        replays=True,
    )
    manifests = chosen if replays else choose(chosen)
    most = limit or (_MOST_ROWS if form == "table" else None)
    statement, parameters = (
        (sql, [])
        if sql is not None
        else select(filters, nodes, where, most and most + 1)
    )
    click.get_current_context().with_resource(_interruptible())
    connection = database(manifests, replays=replays)
    names, cursor = execute(connection, statement, parameters)
    units = _Units(names)
    _print(names, units.count(_rows(cursor, most)), form, whole=sql is not None)
    if not limit and form == "table" and fetch(cursor, 1):
        echo(f"only the first {most} rows: --limit, or --format csv", err=True)
    _print_hints(units, len(manifests), len(chosen) - len(manifests))


def _print_hints(units: "_Units", runs: int, left_out: int) -> None:
    """Print to standard error what the rows of some runs do not show."""
    from seatrial.model.units import counted

    if not units.rows and not reader_is_gone():
        echo(f"no such rows in {counted(runs, 'run')}", err=True)
    if left_out:
        are = "is" if left_out == 1 else "are"
        hint = f"{counted(left_out, 'replay')} {are} left out: --replays includes them"
        echo(hint, err=True)
    for text in units.mixed():
        echo(text, err=True)


def _print(
    names: Sequence[str], rows: Iterator[tuple[Any, ...]], form: str, *, whole: bool
) -> None:
    """Print rows; a table has all columns only if `whole`."""
    if form == "csv":
        _print_csv(names, rows)
    elif form == "json":
        _print_json(names, rows)
    else:
        from seatrial.console import Terminal

        shown = names if whole else [name for name in _IN_TABLE if name in names]
        Terminal().print(_table(names, shown, rows))


@contextmanager
def _interruptible() -> Iterator[None]:
    """End the process at once on Ctrl-C, which DuckDB ignores while it computes."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _paths(runs: Sequence[str], systems: Sequence[str]) -> list[Path]:
    if runs:
        return [run_path(run) for run in runs]
    from seatrial.runs.closed_run import closed_runs

    results = results_dir(home())
    return [
        run for system in systems or (None,) for run in closed_runs(results, system)
    ]


def _rows(cursor: Any, most: int | None) -> Iterator[tuple[Any, ...]]:
    from seatrial.runs.query import fetch

    left = most
    while left is None or left > 0:
        rows = fetch(cursor, _AT_ONCE if left is None else min(left, _AT_ONCE))
        if not rows or reader_is_gone():
            return
        yield from rows
        left = None if left is None else left - len(rows)


class _Units:
    """Collects the units of printed rows, to warn of metrics in several units."""

    def __init__(self, names: Sequence[str]) -> None:
        self.rows = 0
        self.of: defaultdict[Any, set[Any]] = defaultdict(set)
        self.places = [
            names.index(name) for name in ("metric", "unit") if name in names
        ]

    def count(self, rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        for row in rows:
            self.rows += 1
            if len(self.places) == 2:
                metric, unit = self.places
                self.of[row[metric]].add(row[unit])
            yield row

    def mixed(self) -> Iterator[str]:
        for metric, units in self.of.items():
            if len(units) > 1:
                yield f"{metric} is in several units here: {', '.join(sorted(units))}"


def _table(
    names: Sequence[str], shown: Sequence[str], rows: Iterator[tuple[Any, ...]]
) -> "Table":
    from seatrial.console import folding_table

    table = folding_table(*shown)
    places = [names.index(name) for name in shown]
    for row in rows:
        table.add_row(*(_cell(row[place]) for place in places))
    return table


def _cell(value: Any) -> str:
    from seatrial.model.units import rounded

    if isinstance(value, float):
        return rounded(value, 6)
    return "" if value is None else str(value)


def _print_csv(names: Sequence[str], rows: Iterator[tuple[Any, ...]]) -> None:
    from seatrial.model.csv_text import csv_rows

    part: list[Sequence[Any]] = [names]
    while part:
        write_data(csv_rows(part))
        part = list(itertools.islice(rows, _AT_ONCE))


def _print_json(names: Sequence[str], rows: Iterator[tuple[Any, ...]]) -> None:
    separator = "["
    for row in rows:
        values = (_json_value(value) for value in row)
        record = dict(zip(names, values, strict=True))
        write_data(f"{separator}\n{json.dumps(record, default=str)}")
        separator = ","
    write_data("[]\n" if separator == "[" else "\n]\n")


def _json_value(value: Any) -> Any:
    """Return None for NaN and infinity, which JSON lacks."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
