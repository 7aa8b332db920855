"""Tables printed from exact numbers are never refused; changed ones are.

Each test draws exact numbers, computes what the program computes, in its order and in
double precision, and prints them with the program's own formats. The arithmetic is that
of OSU 5.7 to 7.4 (util/osu_util_mpi.c, pt2pt/osu_mbw_mr.c), of the Intel MPI Benchmarks
2021 (src_c/IMB_output.c) and of perftest 24 (src/perftest_parameters.c).
"""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.parsers.errors import ParseError
from seatrial.parsers.imb import parse_imb, parse_imb_barrier, parse_imb_rate
from seatrial.parsers.osu import parse_osu
from seatrial.parsers.perftest import parse_perftest_bw, parse_perftest_lat

same_every_time = settings(
    derandomize=True, database=None, deadline=None, max_examples=200
)


def magnitudes(least: float, most: float) -> st.SearchStrategy[float]:
    """Numbers of any order of magnitude."""
    return st.floats(math.log10(least), math.log10(most)).map(lambda x: 10**x)


def decades(least: float, most: float) -> st.SearchStrategy[float]:
    """Numbers of any order of magnitude, many of them between two printed ones."""
    halves = st.integers(max(1, round(200 * least)), min(10**8, int(200 * most)))
    return magnitudes(least, most) | halves.map(lambda count: count / 200)


SIZES = st.integers(0, 22).map(lambda k: 1 << k)
TIMES = decades(0.01, 1e8)
"""In us. Below 5 ns, which no call of MPI takes, the programs print 0.00: no number."""
RANK_TIMES = st.lists(TIMES, min_size=1, max_size=40) | st.tuples(
    TIMES, st.integers(1, 300)
).map(lambda drawn: [drawn[0]] * drawn[1])
"""Times of ranks, often all the same: their mean may then miss them by the last bit."""
UP_OR_DOWN = st.sampled_from([1, -1])


def mean_of(values: list[float]) -> float:
    """Add in the order of the ranks, then divide, as all the programs do."""
    total = 0.0
    for value in values:
        total += value
    return total / len(values)


def refused(parse: Any, *arguments: Any, **options: Any) -> bool:
    try:
        parse(*arguments, **options)
    except ParseError:
        return True
    return False


def osu(title: str, columns: str, row: str) -> str:
    return f"# OSU MPI {title} Test v7.4\n# Size{columns}\n{row}\n"


def mbw_mr(size: int, mb_per_s: float, rate: float, width: int) -> str:
    header = f"# [ pairs: 2 ] [ window size: 64 ]\n{'# Size':10}{'MB/s':>{width}}"
    return (
        "# OSU MPI Multiple Bandwidth / Message Rate Test v7.4\n"
        f"{header}{'Messages/s':>{width}}\n"
        f"{size:<10d}{mb_per_s:{width}.2f}{rate:{width}.2f}\n"
    )


@same_every_time
@given(
    size=SIZES,
    mb_per_s=decades(0.006, 1e6),
    width=st.sampled_from([18, 20]),
    sign=UP_OR_DOWN,
)
def test_osu_message_rate(size: int, mb_per_s: float, width: int, sign: int) -> None:
    rate = 1e6 * mb_per_s / size
    text = mbw_mr(size, mb_per_s, rate, width)
    (row,) = parse_osu(text, "osu_mbw_mr", [size])
    assert (row.mb_per_s, row.msg_per_s) == (round(mb_per_s, 2), round(rate, 2))
    beyond = 0.01 + 0.01 * size / 1e6 + 0.005
    text = mbw_mr(size, mb_per_s + sign * beyond, rate, width)
    assert refused(parse_osu, text, "osu_mbw_mr", [size])


def collective(size: int, mean: float, least: float, most: float) -> str:
    columns = "Avg Latency(us)", "Min Latency(us)", "Max Latency(us)"
    header = "".join(f"{column:>18}" for column in columns) + f"{'Iterations':>12}"
    return (
        f"# OSU MPI Broadcast Latency Test v7.4\n{'# Size':10}{header}\n"
        f"{size:<10d}{mean:18.2f}{least:18.2f}{most:18.2f}{1000:12d}\n"
    )


@same_every_time
@given(size=SIZES, times=RANK_TIMES, sign=UP_OR_DOWN)
def test_osu_mean_of_all_ranks(size: int, times: list[float], sign: int) -> None:
    least, most = min(times), max(times)
    (row,) = parse_osu(
        collective(size, mean_of(times), least, most), "osu_bcast", [size], full=True
    )
    assert (row.min_us, row.max_us) == (round(least, 2), round(most, 2))
    mean = most + 0.025 if sign > 0 else least - 0.025
    text = collective(size, mean, least, most)
    assert refused(parse_osu, text, "osu_bcast", [size], full=True)


IMB_COLUMNS = {
    "PingPong": ("#bytes", "#repetitions", "t[usec]", "Mbytes/sec"),
    "Sendrecv": (
        *("#bytes", "#repetitions", "t_min[usec]", "t_max[usec]", "t_avg[usec]"),
        "Mbytes/sec",
    ),
    "Bcast": ("#bytes", "#repetitions", "t_min[usec]", "t_max[usec]", "t_avg[usec]"),
    "Uniband": ("#bytes", "#repetitions", "Mbytes/sec", "Msg/sec"),
    "Barrier": ("#repetitions", "t_min[usec]", "t_max[usec]", "t_avg[usec]"),
}
MESSAGES = {"PingPong": 1.0, "Sendrecv": 2.0}


def imb(benchmark: str, *cells: str) -> str:
    header = "".join(f"{name:>13}" for name in IMB_COLUMNS[benchmark])
    row = "".join(f"{cell:>13}" for cell in cells)
    return f"# Benchmarking {benchmark} \n# #processes = 2 \n{header}\n{row}\n\n"


def imb_bandwidth(benchmark: str, size: int, times: list[float], bw: float) -> str:
    least, most = min(times), max(times)
    shown = [most] if benchmark == "PingPong" else [least, most, mean_of(times)]
    return imb(benchmark, f"{size}", "1000", *(f"{x:.2f}" for x in (*shown, bw)))


@pytest.mark.parametrize("benchmark", MESSAGES)
@same_every_time
@given(size=SIZES, times=RANK_TIMES, sign=UP_OR_DOWN)
def test_imb_bandwidth(
    benchmark: str, size: int, times: list[float], sign: int
) -> None:
    most = max(times)
    mb_per_s = (MESSAGES[benchmark] * 1e6 * (1 / 1e6)) * size / most
    if mb_per_s >= 1e9:
        return
    text = imb_bandwidth(benchmark, size, times, mb_per_s)
    (row,) = parse_imb(text, benchmark, 2, [size])
    assert row.bandwidth_mb_per_s == round(mb_per_s, 2)
    printed = round(most, 2)
    if printed > 0.01:
        nearest = MESSAGES[benchmark] * size / (printed - sign * 0.005)
        text = imb_bandwidth(benchmark, size, times, abs(nearest + sign * 0.011))
        assert nearest < 0.011 or refused(parse_imb, text, benchmark, 2, [size])


def test_imb_time_that_is_printed_as_zero() -> None:
    """Such a time says that the bandwidth is at least 16 B in 5 ns: 3200 MB/s."""
    for mb_per_s, is_refused in (("3199.98", True), ("3200.00", False)):
        text = imb("Sendrecv", "8", "1000", "0.00", "0.00", "0.01", mb_per_s)
        assert refused(parse_imb, text, "Sendrecv", 2, [8]) == is_refused


@same_every_time
@given(times=RANK_TIMES, sign=UP_OR_DOWN)
def test_imb_mean_of_all_ranks(times: list[float], sign: int) -> None:
    least, most = min(times), max(times)
    cells = ("1000", f"{least:.2f}", f"{most:.2f}", f"{mean_of(times):.2f}")
    assert parse_imb(imb("Bcast", "8", *cells), "Bcast", 2, [8])[0].max_us
    assert parse_imb_barrier(imb("Barrier", *cells), 2).max_us == round(most, 2)
    mean = most + 0.025 if sign > 0 else least - 0.025
    text = imb("Bcast", "8", *cells[:3], f"{mean:.2f}")
    assert refused(parse_imb, text, "Bcast", 2, [8])


@same_every_time
@given(size=SIZES, time=decades(0.01, 1e7), window=st.sampled_from([64, 256]))
def test_imb_message_rate(size: int, time: float, window: int) -> None:
    rate = 1.0 * 1e6 * window * 1 / time
    mb_per_s = (1 / 1e6) * rate * size
    if not (0.5 < rate < 1e12 and mb_per_s < 1e9):
        return
    text = imb("Uniband", f"{size}", "50", f"{mb_per_s:.2f}", f"{rate:.0f}")
    (row,) = parse_imb_rate(text, "Uniband", 2, [size])
    assert row.mb_per_s == round(mb_per_s, 2)
    beyond = 0.01 + size / 1e6 + 0.005
    text = imb("Uniband", f"{size}", "50", f"{mb_per_s + beyond:.2f}", f"{rate:.0f}")
    assert refused(parse_imb_rate, text, "Uniband", 2, [size])


RULE = "-" * 87 + "\n"
UNITS = {"MiB/sec": 0x100000, "Gb/sec": 125000000}
MB = {"MiB/sec": 1.048576, "Gb/sec": 125.0}


def perftest_bw(row: str, unit: str) -> str:
    return (
        f"{RULE}                    RDMA_Write BW Test\n{RULE} #bytes     #iterations"
        f"    BW peak[{unit}]    BW average[{unit}]   MsgRate[Mpps]\n{row}\n{RULE}"
    )


@st.composite
def one_side(draw: st.DrawFn, size: int, factor: int) -> tuple[float, float, float]:
    """Peak, average and message rate that a side reports."""
    hertz = draw(magnitudes(1e6, 6e9))
    count = draw(st.integers(5, 20000))
    cycles = max(count, int(count * draw(magnitudes(1e-8, 1e-2)) * hertz))
    fastest = max(1, int(cycles // count * draw(st.sampled_from([1.0, 0.999, 0.3]))))
    average = (float(size) * count * hertz) / (float(cycles) * factor)
    rate = (float(count) * hertz) / (float(cycles) * 1000000)
    peak = float(size * int(hertz)) / float(fastest * factor)
    return draw(st.sampled_from([peak, 0.0])), average, rate


@same_every_time
@given(drawn=st.data(), size=SIZES, unit=st.sampled_from([*UNITS]), both=st.booleans())
def test_perftest_bandwidth(
    drawn: st.DataObject, size: int, unit: str, both: bool
) -> None:
    sides = [drawn.draw(one_side(size, UNITS[unit])) for _ in range(1 + both)]
    is_small = unit == "Gb/sec" and sides[0][1] < 0.1
    decimals = 6 if is_small else 2
    peaks, averages, rates = zip(*sides, strict=True)
    peak = sum(peaks) if all(peaks) else 0.0
    average, rate = sum(averages), sum(rates)
    if average < 10**-decimals or average > 1e8:
        return

    def row(peak: float, average: float, rate: float) -> str:
        digits = f"7.{decimals}f"
        shown = f"{peak:<{digits}}            {average:<{digits}}\t\t     {rate:<7.6f}"
        return perftest_bw(f" {size:<7d}    {1000:<10d}       {shown}", unit)

    text = row(peak, average, rate)
    (found,) = parse_perftest_bw(text, "RDMA_Write BW", [size])
    assert found.bandwidth_mb_per_s == round(average, decimals) * MB[unit]
    digit = 10.0**-decimals
    low = average * (1 - 2e-6) - 2.5 * digit
    if low > digit:
        text = row(low, average, rate)
        assert refused(parse_perftest_bw, text, "RDMA_Write BW", [size])
    beyond = 1.5 * digit * MB[unit] / size + 1.5e-6
    text = row(peak, average, rate + beyond)
    assert refused(parse_perftest_bw, text, "RDMA_Write BW", [size])


@same_every_time
@given(
    cycles=st.lists(st.integers(100, 10**9), min_size=4, max_size=60)
    | st.tuples(st.integers(100, 10**9), st.integers(4, 60)).map(
        lambda x: [x[0]] * x[1]
    ),
    mhz=st.sampled_from([25.0, 1000.0, 2000.0]) | magnitudes(1.0, 6000.0),
    factor=st.sampled_from([1, 2]),
    sign=UP_OR_DOWN,
)
def test_perftest_latency(
    cycles: list[int], mhz: float, factor: int, sign: int
) -> None:
    delta = sorted(cycles)
    count, quotient = len(delta) - 2, mhz * factor
    middle = delta[count // 2]
    if (count - 1) % 2:
        middle = (middle + delta[count // 2 - 1]) // 2
    mean = mean_of([sample / quotient for sample in delta[:count]])
    least, most = delta[0] / quotient, delta[count] / quotient
    if least < 0.005 or most >= 1e8:
        return
    tails = [delta[math.ceil(count * part)] / quotient for part in (0.99, 0.999)]

    def text(mean: float) -> str:
        times = (least, most, middle / quotient, mean, 0.0, *tails)
        cells = "        ".join(f"{time:<7.2f}" for time in times)
        names = ["t_min", "t_max", "t_typical", "t_avg", "t_stdev"]
        header = "    ".join(f"{name}[usec]" for name in names)
        tail = "99% percentile[usec]   99.9% percentile[usec] "
        return (
            f"{RULE}                    Send Latency Test\n{RULE} #bytes #iterations"
            f"    {header}   {tail}\n {2:<7d} {len(delta) + 1}          {cells}\n{RULE}"
        )

    (row,) = parse_perftest_lat(text(mean), "Send Latency", [2], len(delta) + 1)
    assert (row.min_us, row.mean_us) == (round(least, 2), round(mean, 2))
    wrong = most + 0.025 if sign > 0 else least - 0.025
    assert wrong < 0.005 or refused(
        parse_perftest_lat, text(wrong), "Send Latency", [2]
    )
