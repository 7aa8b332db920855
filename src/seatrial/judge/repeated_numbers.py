"""Refuse numbers that are there twice: a copied or renamed session, run or job.

The names of sessions, runs and jobs do not matter: content tells a copy. Equal values
alone prove one only if they are many and different; programs round their output.
"""

import polars as pl

from seatrial.errors import SeatrialError
from seatrial.judge.sampling import TIME, UNIT
from seatrial.model.cases import CaseKey
from seatrial.model.units import counted
from seatrial.runs.row_groups import BLOCK_ROWS

LEAST_TELLING = 20
"""Distinct values of one allocation or session whose repetition is no chance.

Only values of five digits or more count. With a spread of 0.1 % one repeats by chance
with a probability of at most 0.3, twenty with 3e-11.
"""

_COARSE = 4
"""Significant digits of a value that may well repeat."""

_CASE = CaseKey._fields
_JOB = (*UNIT, *_CASE)
_TELLING = ("us", "ns", "s", "MB/s", "GB/s", "Gbit/s", "Gflop/s", "msg/s", "Mop/s")
"""Units of measured times and rates; counts and shares repeat on a sound machine."""


def require_distinct(rows: pl.LazyFrame) -> None:
    """Raise SeatrialError if an allocation, or a whole session, is there twice.

    The count of distinct values is right up to `LEAST_TELLING`.
    """
    columns = rows.select(*_JOB, "unit", "value", TIME)
    blocks = columns.collect_batches(chunk_size=BLOCK_ROWS, maintain_order=True)
    jobs_of_blocks = [*map(_of_block, blocks)]
    if not jobs_of_blocks:
        return
    jobs = (
        pl.concat(jobs_of_blocks)
        .group_by(_JOB, maintain_order=True)
        .agg(
            pl.col("hash").sum(),
            pl.col("fine").explode(empty_as_null=False).n_unique().alias("distinct"),
            pl.col("start").min(),
            pl.col("rows").sum(),
        )
        .filter(pl.col("rows") > 0)
    )
    _check(jobs.filter(pl.col("distinct") >= LEAST_TELLING), [*_CASE, "hash", "rows"])
    timed = jobs.filter(pl.col("start") > 0, pl.col("job_id").is_not_null())
    _check(timed, [*_CASE, "job_id", "start", "hash"])
    sessions = jobs.group_by("run", "session", maintain_order=True).agg(
        hash=pl.struct(*_CASE, "hash").hash(1).sum(),
        distinct=pl.col("distinct").sum(),
        rows=pl.col("rows").sum(),
    )
    told = sessions.filter(pl.col("distinct") >= LEAST_TELLING)
    _check(told, ["hash", "rows"])


def _of_block(rows: pl.DataFrame) -> pl.DataFrame:
    """Sum up the numbers of each job in a block; `fine` are some distinct values."""
    telling = pl.col("unit").is_in(_TELLING)
    value = pl.col("value").filter(telling)
    fine = value.filter(value.round_sig_figs(_COARSE) != value)
    return rows.group_by(_JOB, maintain_order=True).agg(
        hash=value.hash(1).sum(),
        fine=fine.unique().head(LEAST_TELLING),
        start=pl.col(TIME).filter(telling).min(),
        rows=telling.sum(),
    )


def _check(parts: pl.DataFrame, key: list[str]) -> None:
    twice = parts.filter(pl.struct(key).is_duplicated())
    if twice.is_empty():
        return
    first = twice.row(0, named=True)
    same = twice.filter(pl.all_horizontal(pl.col(k).eq_missing(first[k]) for k in key))
    names = [
        f"{run}/{session}" for run, session in same.select("run", "session").rows()
    ]
    raise SeatrialError(
        f"{' and '.join(names[:2])} hold the same {counted(first['rows'], 'number')}; "
        "expected sessions with numbers of their own; judge the original without its "
        "copy"
    )
