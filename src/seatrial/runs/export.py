"""Closed runs for other programs: CSV, Parquet, and OpenMetrics text.

OpenMetrics 1.0: https://prometheus.io/docs/specs/om/open_metrics_spec/
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Literal

import polars as pl

from seatrial.errors import SeatrialError
from seatrial.names import node_set
from seatrial.runs.closed_run import read_manifests
from seatrial.runs.measurement_table import SCHEMA
from seatrial.runs.query import started
from seatrial.runs.row_groups import BLOCK_ROWS, FEW_ROWS, write_blocks
from seatrial.runs.stored_table import StoredTable, stored_table

Form = Literal["csv", "parquet", "openmetrics"]

_LABELS = (
    "system",
    "run",
    "campaign",
    "session",
    "repeat",
    "attempt",
    "partition",
    "environment",
    "check",
    "case",
    "parameters",
    "node",
    "socket",
    "source",
    "destination",
    "hca",
    "round",
    "size_bytes",
    "statistic",
    "replay",
)
"""Labels that tell samples of one metric apart. The allocation is left out: a label of
500 names would be most of the text, and the case has its number of nodes."""

_EXPORTED = pl.Schema({**SCHEMA, "campaign": pl.String})
_BLOCK_ROWS = 1 << 12

_UNITS = {"%": "percent", "1": "ratio"}
_ESCAPES = {"\\": r"\\", '"': r"\"", "\n": r"\n"}


def export(paths: Sequence[Path], form: Form, stream: BinaryIO) -> None:
    """Verify runs, and write their measurements with a column `campaign`.

    Raises SeatrialError if a run is damaged, or if there are two of one id.
    """
    runs = [stored_table(path) for path in read_manifests(paths)]
    if form == "openmetrics":
        for line in _openmetrics(runs):
            stream.write(f"{line}\n".encode())
    elif form == "parquet":
        write_blocks(stream, _blocks(runs), _EXPORTED)
    else:
        stream.write(pl.DataFrame(schema=_EXPORTED).write_csv().encode())
        for block in _blocks(runs):
            rows = block.with_columns(_folded(block["nodes"]))
            stream.write(rows.write_csv(include_header=False).encode())


def _blocks(runs: Iterable[StoredTable]) -> Iterator[pl.DataFrame]:
    """Yield all measurements; a block is small, as each row names all nodes."""
    for run in runs:
        for block in run.rows.collect_batches(
            chunk_size=BLOCK_ROWS, maintain_order=True
        ):
            for rows in block.iter_slices(_BLOCK_ROWS):
                whole = _with_campaign(run, rows.lazy())
                yield whole.cast(_EXPORTED).select(_EXPORTED.names()).collect()


def _folded(nodes: pl.Series) -> pl.Series:
    """Return allocations as Slurm writes them: a thousand names are a line each."""
    texts = nodes.cast(pl.String)
    sets = {text: node_set(text.split()) for text in texts.unique().drop_nulls()}
    return texts.replace(sets)


def _with_campaign(run: StoredTable, rows: pl.LazyFrame) -> pl.LazyFrame:
    """Add the campaign; a number without a time of its own gets the run's start."""
    campaign = pl.lit(run.manifest.get("campaign"), pl.String).alias("campaign")
    start = started(run.path, run.manifest).timestamp()
    return rows.with_columns(campaign, pl.col("start_time").fill_null(start))


def _openmetrics(runs: Sequence[StoredTable]) -> Iterator[str]:
    """Yield the lines of OpenMetrics text: a gauge for every metric and unit.

    Its name ends in the suite's unit: `seatrial_bw_MB_per_s`. Every sample has the time
    of its measurement. One metric at a time is in memory, of a sweep that of a session.
    """
    counts = _metrics(runs)
    for family, (metric, unit) in _families(counts).items():
        yield from (f"# TYPE {family} gauge", f"# UNIT {family} {_suffix(unit)}")
        rows = _rows(runs, metric, unit)
        large = counts[metric, unit] > FEW_ROWS
        for part in _by_session(rows) if large else [rows]:
            ordered = part.sort("start_time", maintain_order=True)
            yield from _samples(family, ordered.collect())
    yield "# EOF"


def _suffix(unit: str) -> str:
    return _UNITS.get(unit) or _name(unit.replace("/", "_per_"))


def _families(metrics: Iterable[tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Return metric and unit of each family; SeatrialError if two share a name."""
    families: dict[str, tuple[str, str]] = {}
    for metric, unit in metrics:
        family = f"seatrial_{_name(metric)}_{_suffix(unit)}"
        if families.setdefault(family, (metric, unit)) != (metric, unit):
            other = " in ".join(families[family])
            raise SeatrialError(
                f"{metric} in {unit} and {other} would both be called {family} in "
                "OpenMetrics; export them as csv or parquet"
            )
    return families


def _metrics(runs: Iterable[StoredTable]) -> dict[tuple[str, str], int]:
    """Count the rows of each metric and unit, sorted."""
    every = pl.concat(run.rows.select("metric", "unit") for run in runs)
    counts = every.group_by("metric", "unit").len().collect(engine="streaming")
    return {(metric, unit): rows for metric, unit, rows in sorted(counts.rows())}


def _rows(runs: Iterable[StoredTable], metric: str, unit: str) -> pl.LazyFrame:
    """Return the rows of a metric."""
    own = (pl.col("metric") == metric) & (pl.col("unit") == unit)
    names = [name for name in (*_LABELS, "start_time", "value") if name in SCHEMA]
    return pl.concat(
        _with_campaign(run, run.rows.filter(own).select(names)) for run in runs
    )


def _by_session(rows: pl.LazyFrame) -> Iterator[pl.LazyFrame]:
    """Yield the rows of each session in their order: its labels are its own."""
    first = rows.group_by("run", "session").agg(pl.col("start_time").min())
    order = first.sort("start_time", "run", "session").collect(engine="streaming")
    for run, session in order.select(pl.col("run", "session").cast(pl.String)).rows():
        yield rows.filter(pl.col("run") == run, pl.col("session") == session)


def _samples(family: str, rows: pl.DataFrame) -> Iterator[str]:
    """Yield samples, those with the same labels together, as the format requires.

    Samples with the same labels and time are numbered. Texts are made of some rows at
    a time, as they take ten times the memory of the rows.
    """
    labels = pl.struct(
        pl.col([name for name in _LABELS if name not in ("parameters", "replay")]),
        _text("parameters"),
        _text("replay"),
    )
    moment = (pl.col("start_time") * 1000).round().cast(pl.Int64)
    keys = rows.select(moment=moment, labels=labels.hash(1)).with_row_index("row")
    keys = keys.with_columns(
        occurrence=pl.int_range(1, pl.len() + 1).over("labels", "moment")
    )
    row = pl.col("row")
    keys = keys.sort(
        row.min().over("labels"), row.min().over("labels", "occurrence"), "row"
    )
    for part in keys.iter_slices(BLOCK_ROWS):
        block = rows[part["row"]].with_columns(part.select("moment", "occurrence"))
        yield from block.select(_line(family)).to_series()


def _text(label: str) -> pl.Expr:
    """Return the text of a label; null if the sample has no such label."""
    if label == "replay":
        return pl.when(pl.col(label)).then(pl.lit("true")).alias(label)
    text = pl.col(label).cast(pl.String)
    return pl.when(~text.is_in(["", "{}"])).then(text)


def _line(family: str) -> pl.Expr:
    """Return the line of a sample."""
    number, moment = pl.col("occurrence"), pl.col("moment")
    texts = {label: _text(label) for label in _LABELS}
    texts["occurrence"] = pl.when(number > 1).then(number.cast(pl.String))
    pairs = []
    for label, text in texts.items():
        for character, escaped in _ESCAPES.items():
            text = text.str.replace_all(character, escaped, literal=True)
        pairs.append(pl.format(f'{label}="{{}}"', text))
    return pl.concat_str(
        pl.lit(family + "{"),
        pl.concat_str(pairs, separator=",", ignore_nulls=True),
        pl.lit("} "),
        pl.col("value"),
        pl.lit(" "),
        moment // 1000,
        pl.lit("."),
        (moment % 1000).cast(pl.String).str.zfill(3),
    )


def _name(text: str) -> str:
    return re.sub(r"\W", "_", text, flags=re.ASCII)
