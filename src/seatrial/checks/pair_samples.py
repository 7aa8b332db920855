"""Samples of the pairs of a sweep, as blocks of a table: there are millions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from seatrial.parsers.errors import ParseError
from seatrial.parsers.pairsweep_rows import PairKey, PairRow

if TYPE_CHECKING:
    import polars as pl

_PAIRS = 1 << 13
"""Pairs of a block: five samples or more of each."""


class _Number(NamedTuple):
    """A number of a pair: the fields of its row, and the columns of its sample."""

    metric: str
    value: str
    statistic: str
    size_bytes: int | None = None
    n: str = ""
    back: bool = False


_LATENCY = (
    _Number("latency", "latency_p50_us", "p50", 8, "latency_n"),
    _Number("latency", "latency_p99_us", "p99", 8, "latency_n"),
)
_BW = (
    _Number("bw", "bw_mb_per_s", "mean", 1 << 20, "bw_n"),
    _Number("bw", "bw_back_mb_per_s", "mean", 1 << 20, "bw_n", back=True),
)
_SPREAD = _Number("start_spread", "start_spread_us", "max")
_PLACE = ("source", "destination", "hca", "round", "start_time")
_FIELDS = (*_PLACE, "latency_n", "bw_n", *(n.value for n in (*_LATENCY, *_BW, _SPREAD)))


def pair_blocks(
    rows: Iterable[PairRow], quiet: Mapping[PairKey, PairRow]
) -> Iterator["pl.DataFrame"]:
    """Yield latency, bandwidth of both directions and start spread of every pair.

    Where a pair was tested again alone, that number counts, and the first one gets the
    prefix `crowded_`. Raises ParseError for a pair that was not verified.
    """
    left = iter(rows)
    while some := list(islice(left, _PAIRS)):
        for row in some:
            if row.validation != "pass":
                raise ParseError(0, f"{row.source} {row.destination}: not verified")
        yield _block(some, quiet)


def _block(rows: Sequence[PairRow], quiet: Mapping[PairKey, PairRow]) -> "pl.DataFrame":
    """Return the samples of some pairs, those of each pair after each other."""
    import polars as pl

    from seatrial.runs.sample_table import SCHEMA

    again = {at: quiet[row.key] for at, row in enumerate(rows) if row.key in quiet}
    first = _fields(range(len(rows)), rows)
    first = first.with_columns(crowded=pl.col("pair").is_in([*again]))
    alone = _fields(again.keys(), again.values()).with_columns(crowded=False)
    parts = [_samples(first, number) for number in (*_LATENCY, *_BW)]
    parts += [_samples(alone, number) for number in (*_LATENCY, *_BW)]
    parts.append(_samples(first.with_columns(crowded=False), _SPREAD))
    missing = pl.lit(None, pl.String).alias("node"), pl.lit(None, pl.Int64)
    table = pl.concat(parts).sort("pair", maintain_order=True)
    return table.with_columns(missing[0], socket=missing[1]).select(SCHEMA.keys())


def _fields(pairs: Iterable[int], rows: Iterable[PairRow]) -> "pl.DataFrame":
    """Return the fields of rows that have numbers, and the number of their pair."""
    import polars as pl

    kinds = {float: pl.Float64, int: pl.Int64, str: pl.String, str | None: pl.String}
    schema = {name: kinds[PairRow.__annotations__[name]] for name in _FIELDS}
    rows = list(rows)
    columns = {name: [getattr(row, name) for row in rows] for name in _FIELDS}
    return pl.DataFrame(columns, schema).with_columns(
        pair=pl.Series(pairs, dtype=pl.Int64)
    )


def _samples(pairs: "pl.DataFrame", number: _Number) -> "pl.DataFrame":
    """Return one sample of each pair."""
    import polars as pl

    prefix = pl.when("crowded").then(pl.lit("crowded_")).otherwise(pl.lit(""))
    ends = ("destination", "source") if number.back else ("source", "destination")
    return pairs.select(
        "pair",
        *("hca", "round", "start_time"),
        metric=pl.concat_str(prefix, pl.lit(number.metric)),
        value=pl.col(number.value),
        size_bytes=pl.lit(number.size_bytes, pl.Int64),
        statistic=pl.lit(number.statistic),
        n=pl.col(number.n) if number.n else pl.lit(1, pl.Int64),
        source=pl.col(ends[0]),
        destination=pl.col(ends[1]),
    )
