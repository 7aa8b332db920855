"""Closed runs for other programs: CSV, Parquet, and OpenMetrics text.

OpenMetrics 1.0: https://prometheus.io/docs/specs/om/open_metrics_spec/
"""

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal

import polars as pl

from seatrial.errors import SeatrialError
from seatrial.runs.closed_run import Run, load_run, read_manifests
from seatrial.runs.measurement_table import SCHEMA
from seatrial.runs.query import started
from seatrial.runs.row_groups import write_blocks

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

_EXPORTED = pl.Schema({**SCHEMA, "nodes": pl.String, "campaign": pl.String})
_BLOCK_ROWS = 1 << 12

_UNITS = {"%": "percent", "1": "ratio"}
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def export(paths: Sequence[Path], form: Form, stream: BinaryIO) -> None:
    """Verify runs, and write their measurements with a column `campaign`.

    Raises SeatrialError if a run is damaged, or if there are two of one id.
    """
    runs = [load_run(path) for path in read_manifests(paths)]
    if form == "openmetrics":
        whole = (_with_campaign(run, run.measurements) for run in runs)
        stream.write(openmetrics(pl.concat(whole)).encode())
    elif form == "parquet":
        write_blocks(stream, _blocks(runs), _EXPORTED)
    else:
        stream.write(pl.DataFrame(schema=_EXPORTED).write_csv().encode())
        for block in _blocks(runs):
            stream.write(block.write_csv(include_header=False).encode())


def _blocks(runs: Iterable[Run]) -> Iterator[pl.DataFrame]:
    """Return all measurements; a block is small, as each row names all nodes."""
    for run in runs:
        for rows in run.measurements.iter_slices(_BLOCK_ROWS):
            yield _with_campaign(run, rows).cast(_EXPORTED).select(_EXPORTED.names())


def _with_campaign(run: Run, rows: pl.DataFrame) -> pl.DataFrame:
    """Add the campaign; a number without a time of its own gets the run's start."""
    campaign = pl.lit(run.manifest.get("campaign"), pl.String).alias("campaign")
    start = started(run.path, run.manifest).timestamp()
    return rows.with_columns(campaign, pl.col("start_time").fill_null(start))


def openmetrics(frame: pl.DataFrame) -> str:
    """Write measurements as OpenMetrics text: a gauge for every metric and unit.

    Its name ends in the suite's unit: `seatrial_bw_MB_per_s`. Every sample has the time
    of its measurement.
    """
    lines: list[str] = []
    families: dict[str, tuple[str, str]] = {}
    frame = frame.sort("metric", "unit", "start_time", maintain_order=True)
    for key, rows in frame.group_by("metric", "unit", maintain_order=True):
        metric, unit = str(key[0]), str(key[1])
        suffix = _UNITS.get(unit) or _name(unit.replace("/", "_per_"))
        family = f"seatrial_{_name(metric)}_{suffix}"
        if families.setdefault(family, (metric, unit)) != (metric, unit):
            other = " in ".join(families[family])
            raise SeatrialError(
                f"{metric} in {unit} and {other} would both be called {family} in "
                "OpenMetrics; export them as csv or parquet"
            )
        lines += [f"# TYPE {family} gauge", f"# UNIT {family} {suffix}"]
        lines += _samples(family, rows)
    return "\n".join([*lines, "# EOF", ""])


def _samples(family: str, rows: pl.DataFrame) -> Iterator[str]:
    """Write samples, those with the same labels together, as the format requires.

    Samples with the same labels and time are numbered.
    """
    by_labels: dict[str, list[str]] = defaultdict(list)
    counts: Counter[tuple[str, str]] = Counter()
    for row in rows.iter_rows(named=True):
        texts = ((label, _text(row[label])) for label in _LABELS)
        labels = ",".join(f'{label}="{text}"' for label, text in texts if text)
        moment = f"{row['start_time']:.3f}"
        counts[labels, moment] += 1
        number = counts[labels, moment]
        if number > 1:
            labels += f',occurrence="{number}"'
        by_labels[labels].append(f"{family}{{{labels}}} {row['value']!r} {moment}")
    return itertools.chain.from_iterable(by_labels.values())


def _text(value: Any) -> str:
    if value is None or value is False or value == "{}":
        return ""
    return "true" if value is True else str(value).translate(_ESCAPES)


def _name(text: str) -> str:
    return re.sub(r"\W", "_", text, flags=re.ASCII)
