"""Rows of our own benchmarks printed from exact numbers are never refused.

As test_parser_rounding_tables.py, with the arithmetic of benchmarks/ (common/stats.c,
common/pairs.c, mpi/mq/mq.c, mpi/logp/measure.c) and its `%.15g`.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_parser_nodesweep import sweep_of, text_of
from test_parser_rounding_tables import magnitudes, mean_of, same_every_time

from seatrial.parsers.balance import parse_balance
from seatrial.parsers.bufreuse import parse_bufreuse
from seatrial.parsers.errors import ParseError
from seatrial.parsers.halo2d import parse_halo2d
from seatrial.parsers.logp import parse_logp
from seatrial.parsers.match_queue import parse_match_queue
from seatrial.parsers.memlat import parse_memlat
from seatrial.parsers.mpair import parse_mpair
from seatrial.parsers.nodesweep import parse_nodesweep
from seatrial.parsers.rr64 import parse_rr64

DATA = Path(__file__).parent / "data"
SAMPLES = st.lists(magnitudes(1e-2, 1e7), min_size=1, max_size=20) | st.tuples(
    magnitudes(1e-2, 1e7), st.integers(1, 300)
).map(lambda drawn: [drawn[0]] * drawn[1])
"""Times in us, often all the same: their mean may then miss them by the last bit."""

Values = dict[str, Any]


def run_of(name: str, rows: list[Values], template: int = 1) -> str:
    """Print rows like one of a captured run, with other values."""
    lines = (DATA / name).read_text().splitlines()
    lines = [line for line in lines if line.startswith("{")]
    base = json.loads(lines[template])
    text = ""
    for number, values in enumerate(rows, start=1):
        row = base | {"row": number, "rows": len(rows)} | values
        cells = (f'"{key}": {shown(value)}' for key, value in row.items())
        text += f"{{{', '.join(cells)}}}\n"
    return text


def shown(value: Any) -> str:
    return f"{value:.15g}" if isinstance(value, float) else json.dumps(value)


def percentile(values: list[float], percent: float) -> float:
    position = percent / 100 * (len(values) - 1)
    below = int(position)
    above = min(below + 1, len(values) - 1)
    return values[below] + (position - below) * (values[above] - values[below])


def summary(samples: list[float], unit: str = "us") -> Values:
    """Summarise as stats_summarise does: the mean first, in the order of samples."""
    mean, values = mean_of(samples), sorted(samples)
    return {
        f"min_{unit}": values[0],
        f"p50_{unit}": percentile(values, 50),
        f"p99_{unit}": percentile(values, 99),
        f"max_{unit}": values[-1],
        f"mean_{unit}": mean,
        "n": len(values),
        "iterations": len(values),
    }


def check(
    parse: Callable[[str], Any], name: str, rows: list[Values], **beyond: float
) -> None:
    """Parse rows; refuse a last row with any value times this factor."""
    assert len(parse(run_of(name, rows))) == len(rows)
    for key, factor in beyond.items():
        changed = {key: rows[-1][key] * factor}
        with pytest.raises(ParseError):
            parse(run_of(name, [*rows[:-1], rows[-1] | changed]))


@same_every_time
@given(samples=SAMPLES, repetitions=st.lists(magnitudes(1e-2, 1e7), min_size=1))
def test_mean_of_samples(samples: list[float], repetitions: list[float]) -> None:
    times, means = summary(samples), sorted(repetitions)
    above = 1 + 1e-12 + times["max_us"] / times["mean_us"] - 1
    halo = times | {
        "time_median_us": percentile(means, 50),
        "time_min_us": means[0],
        "repetitions": 1,
    }
    check(parse_halo2d, "halo2d/mpich-4.0.2-np2.txt", [halo], mean_us=above)
    walks = summary([sample / 1e3 + 0.1 for sample in samples], "ns")
    above = walks["max_ns"] / walks["mean_ns"] + 1e-12
    check(parse_memlat, "memlat/0.1.0-off.txt", [walks], mean_ns=above)


@same_every_time
@given(
    pairs=st.integers(1, 3),
    samples=SAMPLES,
    size=st.sampled_from([1, 8, 4096, 4194304]),
    window=st.integers(1, 512),
)
def test_mpair(pairs: int, samples: list[float], size: int, window: int) -> None:
    times = summary(samples * pairs)
    per_us = float(window) * pairs / times["mean_us"]
    slowest = 0.0
    for sample in samples:
        slowest += sample / len(samples)
    row = times | {
        "pairs": pairs,
        "size_bytes": size,
        "window": window,
        "windows": len(samples),
        "mb_per_s": per_us * size,
        "msg_per_s": per_us * 1e6,
        "slowest_us": slowest,
    }
    if row["msg_per_s"] < 1e15 and row["mb_per_s"] < 1e15:
        rows = [row | {"pairs": 1} | {"np": 6}] if pairs == 1 else [row]
        check(
            *(parse_mpair, "mpair/openmpi-4.1.4-within-off.txt", rows),
            mb_per_s=1 + 1e-12,
            msg_per_s=1 - 1e-12,
            slowest_us=times["max_us"] / slowest + 1e-12,
        )


@same_every_time
@given(
    drawn=st.lists(magnitudes(1e-2, 1e7), min_size=8, max_size=8),
    size=st.sampled_from([2, 4096, 4194304]),
    window=st.integers(1, 512),
)
def test_ratios(drawn: list[float], size: int, window: int) -> None:
    def bandwidth(mean: float, median: float) -> float:
        return window / mean * size * mean / median

    row: Values = {"size_bytes": size, "window": window}
    row |= {"latency_within_us": drawn[0], "latency_between_us": drawn[1]}
    row["latency_ratio"] = drawn[1] / drawn[0]
    for name, (one, other) in zip(
        ("bw", "bibw", "multi_bw"),
        zip(drawn[2::2], drawn[3::2], strict=True),
        strict=True,
    ):
        row[f"{name}_within_mb_per_s"] = bandwidth(drawn[0], one)
        row[f"{name}_between_mb_per_s"] = bandwidth(drawn[1], other)
        row[f"{name}_ratio"] = other / one
    name = "balance/openmpi-4.1.4-off.txt"
    check(parse_balance, name, [row], bw_ratio=1 + 1e-12, latency_ratio=1 - 1e-12)
    regions = {
        **{"size_bytes": size, "one_p50_us": drawn[0]},
        **summary(drawn[1:2] * 20),
        **{"latency_ratio": drawn[1] / drawn[0], "bw_ratio": drawn[3] / drawn[4]},
        **{"bw_mb_per_s": drawn[3], "bw_one_mb_per_s": drawn[4]},
    }
    name = "rr64/openmpi-4.1.4-off.txt"
    check(parse_rr64, name, [regions], latency_ratio=1 + 1e-12, bw_ratio=1 - 1e-12)
    name = "bufreuse/mpich-4.0.2-off.txt"
    share = {"buffers_used": 20, "eager_limit_bytes": size}
    full = summary(drawn[5:6] * 50) | share | {"reuse_percent": 100, "ratio": 1.0}
    none = summary(drawn[6:7] * 50) | share | {"reuse_percent": 0}
    none["ratio"] = none["p50_us"] / full["p50_us"]
    rows = [each | {"size_bytes": size} for each in (full, none)]
    check(parse_bufreuse, name, rows, ratio=1 + 1e-12)


@same_every_time
@given(times=st.lists(magnitudes(1e-1, 1e4), min_size=2, max_size=15))
def test_slope_over_depths(times: list[float]) -> None:
    depths = [0.0, *(2.0**k for k in range(1, len(times)))]
    mean_x = mean_y = covariance = variance = 0.0
    for x, y in zip(depths, times, strict=True):
        mean_x += x / len(times)
        mean_y += y / len(times)
    for x, y in zip(depths, times, strict=True):
        covariance += (x - mean_x) * (y - mean_y)
        variance += (x - mean_x) * (x - mean_x)
    slope = 1e3 * (covariance / variance)
    rows = [
        summary([time] * 50)
        | {"depth": int(depth), "ratio": time / times[0], "slope_ns": slope}
        for depth, time in zip(depths, times, strict=True)
    ]

    def parse(text: str) -> Any:
        return parse_match_queue(text, "mq_unexp")

    name = "match_queue/mq_unexp-openmpi-4.1.4.txt"
    check(parse, name, rows, ratio=1 + 1e-12)
    spread = sum(times) * 1e3 / variance**0.5
    if abs(slope) > 1e-6 * spread:
        check(parse, name, rows, slope_ns=1 + 1e-6)


@same_every_time
@given(
    rtts=st.lists(magnitudes(1, 1e6), min_size=4, max_size=4),
    gap=magnitudes(1e-2, 1e4),
    half=st.sampled_from([1.0, 0.5, 1.5]),
    eps=st.integers(1, 50),
)
def test_logp(rtts: list[float], gap: float, half: float, eps: int) -> None:
    """Intervals are often exactly as wide as is asked for."""
    precision = float(eps) / 100.0
    rows = []
    for size, (p50, mean) in zip((0, 2), (rtts[:2], rtts[2:]), strict=True):
        empty_p50, empty_mean = rtts[0], rtts[1]
        values: Values = {"size_bytes": size, "eps_percent": eps}
        values |= {"l_us": empty_p50 / 2.0 - gap, "g_flood_us": gap}
        values |= {"rtt_p50_us": p50, "rtt_mean_us": mean}
        values |= {"os_mean_us": mean / 3, "or_mean_us": mean / 7}
        values["g_p50_us"] = p50 - empty_p50 + gap
        values["g_mean_us"] = mean - empty_mean + gap
        precise = True
        for name in ("os", "or", "rtt"):
            interval = half * precision * values[f"{name}_mean_us"]
            values[f"{name}_half_us"] = interval
            precise = precise and interval <= precision * values[f"{name}_mean_us"]
        rows.append(values | {"precise": "yes" if precise else "no"})
    name = "logp/mpich-4.0.2-send-irecv.txt"
    largest = max(*rtts, gap)
    beyond = {
        key: 1 + 1e-12 * largest / abs(rows[-1][key])
        for key in ("g_p50_us", "g_mean_us")
        if rows[-1][key]
    }
    check(parse_logp, name, rows, **beyond)
    wrong = [row | {"precise": "no"} for row in rows]
    if half == 0.5:
        with pytest.raises(ParseError, match="the intervals say otherwise"):
            parse_logp(run_of(name, wrong))


BETWEEN_DIGITS = st.tuples(st.integers(10**5, 10**6), st.integers(2, 300)).map(
    lambda drawn: [(drawn[0] + 0.5) / 1e5] * drawn[1]
)
"""Equal times whose sixth digit is rounded up or down by the last bit of the mean."""


@same_every_time
@given(samples=SAMPLES | BETWEEN_DIGITS)
def test_hpcc_of_nodesweep(samples: list[float]) -> None:
    """HPCC prints a mean over pairs, beside least and greatest, with 6 digits."""
    values = (min(samples), mean_of(samples), max(samples))
    names = ("min", "mean", "max")
    printed = {
        f"latency_{name}_us": float(f"{value:.6g}")
        for name, value in zip(names, values, strict=True)
    }
    text = text_of(
        [row | (printed if row["type"] == "hpcc" else {}) for row in sweep_of()]
    )
    parse_nodesweep(text)
    above = printed["latency_max_us"] * (1 + 3e-5)
    wrong = printed | {"latency_mean_us": above}
    text = text_of(
        [row | (wrong if row["type"] == "hpcc" else {}) for row in sweep_of()]
    )
    with pytest.raises(ParseError, match="out of order"):
        parse_nodesweep(text)
