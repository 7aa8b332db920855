"""Sample runs of a sweep over all pairs of nodes, with faults planted in it.

Numbers are those of a fast network with a few percent of noise, the same on every
call. Rows are made column by column: a sweep of 1,000 nodes has 2.5 million.
"""

import random
from collections.abc import Collection, Sequence
from itertools import combinations
from math import exp
from pathlib import Path

import polars as pl
from criteria_samples import criteria, criterion
from samples import STARTED, sample_manifest

from seatrial.model.cases import Case
from seatrial.model.metrics import METRICS
from seatrial.runs.closed_run import Run
from seatrial.runs.measurement_table import SCHEMA

LATENCY_US = 1.9
BW_MB_PER_S = 12000.0
SWEEP = criteria(
    criterion("latency_8B", 2.5, check="PairSweep"),
    criterion("bw_1MiB", 10000.0, check="PairSweep"),
    criterion("pairs_answered", 50.0, check="PairSweep", model="every"),
)
Pair = tuple[str, str]


def names(count: int) -> list[str]:
    """Return host names without leading zeros: cn10 stands behind cn2."""
    return [f"cn{number}" for number in range(1, count + 1)]


def sample_sweep(
    nodes: Sequence[str],
    *,
    slow: Collection[str] = (),
    slow_pairs: Collection[Pair] = (),
    slow_to_send: Collection[str] = (),
    dead: Collection[str] = (),
    hung: Collection[Pair] = (),
    rails: Sequence[str | None] = (None,),
    slow_rails: Collection[tuple[str, str]] = (),
    environments: Sequence[str] = ("openmpi",),
    repeats: int = 4,
    seed: int = 1,
) -> Run:
    """Build a closed run of a sweep in memory.

    `slow` nodes have a fifth of the bandwidth and four times the latency, on one
    rail only in `slow_rails` (node, rail); those `slow_to_send` lack bandwidth in
    one direction. `dead` nodes were left out, `hung` pairs gave no number. Pairs
    that are slow were tested again alone.
    """
    cases: list[Case] = []
    frames: list[pl.DataFrame] = []
    for environment in environments:
        for repeat in range(1, repeats + 1):
            case = _case(nodes, environment, repeat, len(cases))
            cases.append(case)
            for number, rail in enumerate(rails):
                faulty = {*slow, *(node for node, where in slow_rails if where == rail)}
                pairs = _pairs(nodes, {*dead}, {*hung}, seed + 10 * repeat + number)
                pairs = _slowed(pairs, faulty, {*slow_pairs}, {*slow_to_send})
                frames += [_rows(case, rows, rail) for rows in _metrics(pairs)]
            frames.append(_rows(case, _answered(nodes, {*dead}, {*hung}), None))
    manifest = sample_manifest(nodes, None, cases, "sample")
    measurements = pl.concat(frames)
    return Run(Path("results"), manifest, tuple(cases), measurements.lazy())


def _case(nodes: Sequence[str], environment: str, repeat: int, index: int) -> Case:
    return Case(
        session=f"pairs-{repeat}",
        repeat=repeat,
        check="PairSweep",
        case="PairSweep",
        partition="sample:batch",
        environment=environment,
        parameters={},
        result="pass",
        job_id=str(100 + index),
        nodes=tuple(nodes),
        start_time=STARTED + 60 * index,
        elapsed_s=31.0,
        payload_s=30.0,
        raw=f"raw/pairs-{repeat}/PairSweep_{environment}",
        declared=tuple(each.metric for each in SWEEP.criteria),
    )


def _pairs(
    nodes: Sequence[str], dead: set[str], hung: set[Pair], seed: int
) -> pl.DataFrame:
    """Return the pairs that were measured, each once, with noise for three numbers."""
    alive = [node for node in nodes if node not in dead]
    pairs = [
        (b, a) if number % 3 == 0 else (a, b)
        for number, (a, b) in enumerate(combinations(alive, 2))
        if (a, b) not in hung and (b, a) not in hung
    ]
    noise = random.Random(seed)
    drawn = {
        name: [exp(noise.gauss(0.0, 0.01)) for _ in pairs]
        for name in ("time_noise", "there_noise", "back_noise")
    }
    ends = pl.DataFrame(
        pairs, {"source": pl.String, "destination": pl.String}, orient="row"
    )
    rounds = pl.int_range(pl.len()) // max(1, len(alive) // 2) + 1
    return ends.with_columns(pl.DataFrame(drawn), round=rounds)


def _slowed(
    pairs: pl.DataFrame, slow: set[str], slow_pairs: set[Pair], to_send: set[str]
) -> pl.DataFrame:
    """Add the numbers that a pair has alone."""
    ends = pl.concat_list("source", "destination")
    listed = [f"{a} {b}" for one in slow_pairs for a, b in (one, one[::-1])]
    both = pl.concat_str("source", "destination", separator=" ").is_in(listed)
    hit = ends.list.eval(pl.element().is_in([*slow])).list.any() | both
    there = hit | pl.col("source").is_in([*to_send])
    back = hit | pl.col("destination").is_in([*to_send])
    factor = {True: 4.0, False: 1.0}
    return pairs.with_columns(
        suspect=there | back,
        latency=LATENCY_US
        * pl.col("time_noise")
        * hit.replace_strict(factor, return_dtype=pl.Float64),
        there=BW_MB_PER_S / pl.col("there_noise") / pl.when(there).then(5).otherwise(1),
        back=BW_MB_PER_S / pl.col("back_noise") / pl.when(back).then(5).otherwise(1),
    )


def _metrics(pairs: pl.DataFrame) -> list[pl.DataFrame]:
    """Turn pairs into rows of each metric."""
    swapped = pairs.with_columns(source="destination", destination="source")
    again, again_swapped = (frame.filter("suspect") for frame in (pairs, swapped))
    return [
        _numbers(pairs, "latency", pl.col("latency"), 8, "p50", 1000),
        _numbers(pairs, "latency", 1.4 * pl.col("latency"), 8, "p99", 1000),
        _numbers(pairs, "bw", pl.col("there"), 1 << 20, "mean", 10),
        _numbers(swapped, "bw", pl.col("back"), 1 << 20, "mean", 10),
        _numbers(pairs, "start_spread", 3 * pl.col("time_noise"), None, "max", 1),
        _numbers(again, "crowded_latency", 1.5 * pl.col("latency"), 8, "p50", 1000),
        _numbers(again, "crowded_bw", 0.5 * pl.col("there"), 1 << 20, "mean", 10),
        _numbers(
            again_swapped, "crowded_bw", 0.5 * pl.col("back"), 1 << 20, "mean", 10
        ),
    ]


def _numbers(
    pairs: pl.DataFrame,
    metric: str,
    value: pl.Expr,
    size_bytes: int | None,
    statistic: str,
    n: int,
) -> pl.DataFrame:
    return pairs.select(
        "source",
        "destination",
        "round",
        value=value,
        metric=pl.lit(metric),
        size_bytes=pl.lit(size_bytes, pl.Int64),
        statistic=pl.lit(statistic),
        n=pl.lit(n, pl.Int64),
        node=pl.lit(None, pl.String),
    )


def _answered(nodes: Sequence[str], dead: set[str], hung: set[Pair]) -> pl.DataFrame:
    """Return the share of each node's pairs that could be measured."""
    most = len(nodes) - 1
    lost = {
        node: most
        if node in dead
        else len(dead) + sum(node in pair and not dead & {*pair} for pair in hung)
        for node in nodes
    }
    shares = [100 * (most - lost[node]) / most for node in nodes]
    return pl.DataFrame({"node": list(nodes), "value": shares}).with_columns(
        metric=pl.lit("pairs_answered"),
        size_bytes=pl.lit(None, pl.Int64),
        statistic=pl.lit("mean"),
        n=pl.lit(most, pl.Int64),
        source=pl.lit(None, pl.String),
        destination=pl.lit(None, pl.String),
        round=pl.lit(None, pl.Int64),
    )


def _rows(case: Case, numbers: pl.DataFrame, rail: str | None) -> pl.DataFrame:
    """Turn the numbers of one metric into rows of measurements.parquet."""
    metric = METRICS[numbers["metric"][0]] if numbers.height else METRICS["bw"]
    known = {
        "run": "20261121T063015Z-acceptance",
        "session": case.session,
        "block": "pairs",
        "repeat": case.repeat,
        "system": "sample",
        "partition": case.partition,
        "environment": case.environment,
        "check": case.check,
        "case": case.case,
        "parameters": "{}",
        "job_id": case.job_id,
        "hca": rail,
        "socket": None,
        "unit": metric.unit,
        "direction": metric.direction,
        "start_time": case.start_time,
        "replay": case.replay,
        "attempt": case.attempt,
        # The allocation is in the cases too; here it would take gigabytes.
        "nodes": None,
    }
    return numbers.with_columns(
        pl.lit(value, SCHEMA[name]).alias(name) for name, value in known.items()
    ).select(SCHEMA.keys())
