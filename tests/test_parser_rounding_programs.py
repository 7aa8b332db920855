"""Rounded prints of exact values are never refused; changes beyond rounding are.

The outputs are those of LAMMPS, NPB and HPCC, with numbers that agree exactly, printed
in the formats of their sources: LAMMPS' finish.cpp (2016 to 2025), NPB's print_results
and timers (3.3, 3.4), HPCC's io.c and its tests (1.4, 1.5).
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from seatrial.parsers.errors import ParseError
from seatrial.parsers.hpcc import parse_hpcc
from seatrial.parsers.hpcc_metrics import GROUPS, METRICS
from seatrial.parsers.lammps import parse_lammps
from seatrial.parsers.npb import parse_npb
from seatrial.parsers.npb_problems import BENCHMARKS, problem_of
from seatrial.parsers.printed import half_digit

DATA = Path(__file__).parent / "data"
ATOMS, STEPS = 32000, (0, 20)
SECTIONS = ("Pair", "Neigh", "Comm", "Output", "Modify")


def repeated(examples: int) -> Callable[[Any], Any]:
    """So many examples, the same in every run."""
    return settings(derandomize=True, database=None, max_examples=examples)


def magnitudes(low: float, high: float) -> st.SearchStrategy[float]:
    """Positive numbers of every magnitude between two powers of ten."""
    return st.floats(low, high).map(lambda exponent: 10.0**exponent)


@dataclass(frozen=True)
class Lammps:
    """Exact times in s of a run; `parts` are the sections, the rest as the last one."""

    loop: float
    parts: tuple[float, ...]
    spread: float
    setup: float
    potential: float
    kinetic: float

    @property
    def text(self) -> str:
        rate = STEPS[-1] / self.loop
        unit, scale = ("k", 1e3) if rate * ATOMS < 1e7 else ("G", 1e9)
        rows = []
        for name, part in zip(SECTIONS, self.parts[:-1], strict=True):
            spread = part * self.spread
            times = (part - spread, part, part + spread)
            shown = " | ".join(f"{time:<10.5g}" for time in times)
            share = part / self.loop * 100
            rows.append(f"{name:8s}| {shown} |{0:6.1f} |{share:6.2f}")
        rest, share = self.parts[-1], self.parts[-1] / self.loop * 100
        wall = int(self.loop + self.setup)
        both = (self.potential, self.kinetic)
        energies = " ".join(f"{energy:12.8g}" for energy in (*both, sum(both)))
        fast = rate * ATOMS / scale
        lines = [
            "LAMMPS (29 Aug 2024)",
            "   Step         PotEng         KinEng         TotEng    ",
            *(f"{step:8d} {energies}" for step in STEPS),
            f"Loop time of {self.loop:g} on 4 procs for 20 steps with 32000 atoms",
            "",
            (
                f"Performance: {432 * rate:.3f} tau/day, {rate:.3f} timesteps/s, "
                f"{fast:.3f} {unit}atom-step/s"
            ),
            "99.3% CPU use with 4 MPI tasks x 1 OpenMP threads",
            "",
            "MPI task timing breakdown:",
            "Section |  min time  |  avg time  |  max time  |%varavg| %total",
            "-" * 63,
            *rows,
            f"Other   |            | {rest:<10.4g} |            |       |{share:6.2f}",
            "",
            "Neighbor list builds = 11",
            "Dangerous builds = 0",
            f"Total wall time: {wall // 3600}:{wall // 60 % 60:02d}:{wall % 60:02d}",
        ]
        return "\n".join(lines) + "\n"


@st.composite
def lammps_runs(draw: st.DrawFn) -> Lammps:
    """Runs of 0.01 s to some days, with shares of 10^-7 to nearly all."""
    loop = draw(magnitudes(-2, 5.5))
    weights = [draw(magnitudes(-7, 0)) for _ in range(6)]
    parts = tuple(loop * weight / math.fsum(weights) for weight in weights)
    return Lammps(
        loop=loop,
        parts=parts,
        spread=draw(st.sampled_from([0.0, 1e-6, 1e-3, 0.5])),
        setup=draw(st.floats(0, 3)),
        potential=draw(st.floats(-1e6, 1e6)),
        kinetic=draw(st.floats(1e-6, 1e6)),
    )


D1 = Lammps(0.301534, (0.05, 0.05, 0.04, 0.03, 0.018975, 0.112559), 0, 1, -5.0, 1.0)
"""A healthy machine whose share was refused: 37.33 %, but 37.34 by the prints."""


@repeated(150)
@given(run=lammps_runs())
@example(run=D1)
def test_rounded_prints_of_lammps_are_taken(run: Lammps) -> None:
    found = parse_lammps(run.text, 4, ATOMS, STEPS)
    assert found.loop_time_s == float(f"{run.loop:g}")
    assert found.sections["Comm"] == float(f"{run.parts[2]:.5g}")


def test_prints_of_the_refused_run_of_lammps_are_those_it_had() -> None:
    assert "Loop time of 0.301534 on" in D1.text
    assert "| 0.1126     |            |       | 37.33\n" in D1.text


@repeated(150)
@given(run=lammps_runs(), at=st.integers(0, 5), sign=st.sampled_from([-1, 1]))
def test_share_beyond_rounding_is_refused(run: Lammps, at: int, sign: int) -> None:
    """Twice of what rounding can do, since the print may be off by once of it."""
    lines = run.text.split("\n")
    row = lines.index("-" * 63) + 1 + at
    share = 100 * run.parts[at] / run.loop
    digits = 1e-3 if at == 5 else 1e-4
    beyond = 2 * (0.0051 + share * (digits / 2 + 5e-6))
    lines[row] = re.sub(
        r"[\d.]+$", lambda match: f"{float(match[0]) + sign * beyond:.4f}", lines[row]
    )
    with pytest.raises(ParseError):
        parse_lammps("\n".join(lines), 4, ATOMS, STEPS)


@repeated(150)
@given(run=lammps_runs(), sign=st.sampled_from([-1, 1]))
def test_rate_beyond_rounding_is_refused(run: Lammps, sign: int) -> None:
    rate = STEPS[-1] / run.loop
    changed = rate + sign * 2 * (0.0006 + rate * 5e-6)
    text = run.text.replace(f" {rate:.3f} timesteps", f" {changed:.4f} timesteps")
    assert text != run.text
    with pytest.raises(ParseError, match="timesteps/s"):
        parse_lammps(text, 4, ATOMS, STEPS)


@repeated(150)
@given(
    potential=st.floats(-1e6, 1e6),
    kinetic=st.floats(1e-6, 1e6),
    sign=st.sampled_from([-1, 1]),
)
def test_energies_of_fifteen_digits(
    potential: float, kinetic: float, sign: int
) -> None:
    """The style yaml prints %.15g: even a change in the last digits is refused."""
    text = (DATA / "lammps/2024.8-eam-np1-yaml.txt").read_text()
    keys = "'Step', 'PotEng', 'KinEng', 'TotEng', "
    text = re.sub(r"keywords: \[[^]]*\]", f"keywords: [{keys}]", text)
    start = text.index("  - [0,")
    end = text.index("...\n", start)

    def output(*energies: str) -> str:
        rows = [f"  - [{step}, {', '.join(energies)}, ]\n" for step in (0, 10, 20)]
        return f"{text[:start]}{''.join(rows)}{text[end:]}"

    total = potential + kinetic
    shown = [f"{energy:.15g}" for energy in (potential, kinetic, total)]
    assert parse_lammps(output(*shown), 1, ATOMS, (0, 10, 20)).thermo
    beyond = 2.1 * sum(map(half_digit, shown)) + 2e-15 * max(-potential, kinetic)
    changed = f"{total + sign * beyond:.17g}"
    with pytest.raises(ParseError, match="TotEng"):
        parse_lammps(output(*shown[:2], changed), 1, ATOMS, (0, 10, 20))


def single_precision(benchmark: str, n: int, points: int, iterations: int) -> float:
    """Count the operations of NPB 3.3 in single precision, as its Fortran does."""
    real = np.float32
    cube, edge, count = real(points), real(n), real(iterations)
    if benchmark == "BT":
        terms = real(3478.8) * cube - real(17655.7) * edge**2 + real(28023.7) * edge
    elif benchmark == "SP":
        terms = real(881.174) * cube - real(4683.91) * edge**2
        terms = terms + real(11484.5) * edge - real(19272.4)
    elif benchmark == "LU":
        terms = real(1984.77) * edge * edge * edge - real(10923.3) * edge**2
        terms = terms + real(27770.9) * edge - real(144010.0)
    else:
        log = np.log(cube)
        setup = real(14.8157) + real(7.19641) * log
        terms = cube * (setup + (real(5.23518) + real(7.21113) * log) * count)
        return float(terms)
    return float(count * terms)


@st.composite
def npb_results(draw: st.DrawFn) -> tuple[str, str, int, float, float]:
    """Benchmark, class, ranks, time in s and rate in Mop/s, of 0.01 s to ten days."""
    benchmark = draw(st.sampled_from(BENCHMARKS))
    problem_class = draw(st.sampled_from("SWABCDE"))
    problem = problem_of(benchmark, problem_class)
    operations = problem.operations
    if benchmark in ("BT", "FT", "LU", "SP") and draw(st.booleans()):
        points = math.prod(problem.size)
        numbers = (problem.size[0], points, problem.iterations)
        operations = single_precision(benchmark, *numbers)
    time_s = draw(magnitudes(-2, 6))
    rate = operations / 1e6 / time_s
    assume(0.005 <= rate < 999999999)
    return benchmark, problem_class, draw(st.integers(1, 20000)), time_s, rate


def npb_text(
    benchmark: str, problem_class: str, ranks: int, time_s: str, rate: str, each: str
) -> str:
    """Print a result as NPB 3.4 does; `each` is the rate of a process."""
    problem = problem_of(benchmark, problem_class)
    size = "x".join(f"{number:4d}" for number in problem.size)
    return f"""

 NAS Parallel Benchmarks 3.4 -- {benchmark} Benchmark

 {benchmark} Benchmark Completed.
 Class           =             {problem_class:>12s}
 Size            =  {size:>24s}
 Iterations      =             {problem.iterations:12d}
 Time in seconds =             {time_s:>12s}
 Total processes =             {ranks:12d}
 Active processes=             {ranks:12d}
 Mop/s total     =             {rate:>12s}
 Mop/s/process   =             {each:>12s}
 Operation type  =           floating point
 Verification    =               SUCCESSFUL
 Version         =                    3.4.1
 Compile date    =              21 Nov 2026

 Internet: npb@nas.nasa.gov
"""


@repeated(200)
@given(result=npb_results())
@example(result=("LU", "S", 1, 20459.68 * 50 / 0.006 / 1e6, 0.006))
def test_rounded_prints_of_npb_are_taken(
    result: tuple[str, str, int, float, float],
) -> None:
    benchmark, problem_class, ranks, time_s, rate = result
    if benchmark == "LU" and rate == 0.006:
        time_s = problem_of("LU", "S").operations / 1e6 / rate
    shown = (f"{time_s:.2f}", f"{rate:.2f}", "%.2f" % (rate / ranks))
    text = npb_text(benchmark, problem_class, ranks, *shown)
    run = parse_npb(text, benchmark, problem_class, ranks)
    assert (run.time_s, run.mops_total) == (float(shown[0]), float(shown[1]))


@pytest.mark.parametrize("benchmark", ["BT", "FT", "LU", "SP"])
@pytest.mark.parametrize("problem_class", "SWABCDEF")
def test_operations_in_single_precision(benchmark: str, problem_class: str) -> None:
    problem = problem_of(benchmark, problem_class)
    numbers = (problem.size[0], math.prod(problem.size), problem.iterations)
    single = single_precision(benchmark, *numbers)
    assert abs(single / problem.operations - 1) < 3 * 2.0**-24


def test_rate_that_only_single_precision_explains() -> None:
    """SP of class E: time and rate are cut by nearly half a digit, and count less."""
    problem = problem_of("SP", "E")
    mega = problem.operations / 1e6
    single = single_precision("SP", 1020, 1020**3, problem.iterations) / 1e6
    for cents in range(2_000_000, 2_100_000):
        time_s = (cents + math.copysign(0.4999, mega - single)) / 100
        shown = (f"{time_s:.2f}", f"{single / time_s:.2f}")
        half = math.copysign(0.005, mega - single)
        if (math.prod(float(text) + half for text in shown) - mega) * half < 0:
            text = npb_text("SP", "E", 1, *shown, shown[1])
            assert parse_npb(text, "SP", "E", 1).time_s == float(shown[0])
            return
    pytest.fail("no such time was found")


@repeated(200)
@given(result=npb_results(), sign=st.sampled_from([-1, 1]), of_total=st.booleans())
def test_rate_of_npb_beyond_rounding_is_refused(
    result: tuple[str, str, int, float, float], sign: int, of_total: bool
) -> None:
    benchmark, problem_class, ranks, time_s, rate = result
    assume(time_s > 0.1 and rate > 1)
    factor = 1 + sign * 2.1 * (0.005 / rate + 0.005 / time_s + 2e-6)
    each = rate / ranks
    if of_total:
        rate *= factor
    elif rate < 1e6:
        each += sign * 2.1 * (0.005 + 0.005 / ranks)
    else:
        return
    assume(rate > 0.01 and each > 0)
    shown = (f"{time_s:.2f}", f"{rate:.2f}", f"{each:.2f}")
    with pytest.raises(ParseError, match="Mop/s"):
        parse_npb(
            npb_text(benchmark, problem_class, ranks, *shown),
            *(benchmark, problem_class, ranks),
        )


@st.composite
def ranks_of_cg(draw: st.DrawFn) -> list[tuple[float, float]]:
    """Of each rank of CG, the time in computation and in communication, in s."""
    count = draw(st.sampled_from([1, 2, 4, 16, 64]))
    scale = draw(magnitudes(-3, 4))
    part = st.floats(0, 1).map(lambda share: share * scale)
    return [(draw(part), draw(part)) for _ in range(count)]


@repeated(150)
@given(ranks=ranks_of_cg())
def test_rounded_prints_of_timers_are_taken(ranks: list[tuple[float, float]]) -> None:
    """`totcomp` is the difference of two timers, which may be below 0 by rounding."""
    total = [compute + communicate for compute, communicate in ranks]
    computed = [
        whole - part[1] - 1e-12 for whole, part in zip(total, ranks, strict=True)
    ]
    communicated = [communicate for _, communicate in ranks]
    zero = [0.0] * len(ranks)
    columns = (total, zero, communicated, zero, computed, communicated)
    names = ("total", "conjg", "rcomm", "ncomm", "totcomp", "totcomm")
    rows = [
        f" timer {at:2d}({name:>8s}) :  {min(times):10.4f}  {max(times):10.4f}"
        f"  {sum(times) / len(times):10.4f}"
        for at, (name, times) in enumerate(zip(names, columns, strict=True), start=1)
    ]
    head = f" nprocs = {len(ranks):6d}           minimum     maximum     average"
    time_s = max(total)
    rate = problem_of("CG", "S").operations / 1e6 / time_s if time_s else 0
    assume(0.005 <= rate < 999999999)
    shown = (f"{time_s:.2f}", f"{rate:.2f}", "%.2f" % (rate / len(ranks)))
    text = npb_text("CG", "S", len(ranks), *shown)
    timed = f"{text}\n{head}\n{chr(10).join(rows)}\n\n"
    run = parse_npb(timed, "CG", "S", len(ranks), timers=True)
    mean_s = sum(communicated) / len(ranks)
    assert run.timers["totcomm"].mean_s == float(f"{mean_s:.4f}")
    apart = sum(total) / len(total) + 0.0004
    broken = timed.replace(rows[0], re.sub(r"\S+$", f"{apart:.4f}", rows[0]))
    with pytest.raises(ParseError):
        parse_npb(broken, "CG", "S", len(ranks), timers=True)


HPCC = (DATA / "hpcc/debian-1.5.0-np4.txt").read_text()
RATES = [name for name in METRICS if METRICS[name].line and METRICS[name].of != "size"]


def decimals_of(name: str) -> int:
    """Return the number of decimals of a section's numbers."""
    if name.startswith("MPI"):
        return 9 if "RandomAccess" in name else 3
    return 3 if name.endswith("PingPongBandwidth_GBytes") else 6


def with_summary(text: str, name: str, value: float) -> str:
    changed, count = re.subn(rf"(?m)^{name}=.*$", f"{name}={value:g}", text)
    assert count == 1
    return changed


def with_number(text: str, name: str, value: float) -> str:
    """Print a number of the summary, and once more in its section."""
    metric = METRICS[name]
    assert metric.line is not None
    start = text.index(f"\nBegin of {metric.section} section.")
    match = metric.line.search(text, start)
    assert match is not None
    begin, end = match.span(GROUPS.get(name, 1))
    shown = f"{value * metric.scale:.{decimals_of(name)}f}"
    return with_summary(text[:begin] + shown + text[end:], name, value)


def with_hpl(text: str, time_s: float, residual: float) -> str:
    n, norm, eps = 1000, 261.2345678, 2.0**-53
    gflops = n * n * (2 / 3 * n + 3 / 2) / time_s / 1e9
    scale = eps * (norm * norm + 0.499) * n
    for name, value in (
        *(("HPL_Tflops", gflops / 1e3), ("HPL_time", time_s), ("HPL_eps", eps)),
        *(("HPL_AnormI", norm), ("HPL_XnormI", norm), ("HPL_BnormI", 0.499)),
        ("HPL_RnormI", residual * scale),
    ):
        text = with_summary(text, name, value)
    row = f"{time_s:18.2f}     {gflops:18.3e}"
    text = re.sub(r"(?m)^(W[RC].* 2 +2) +\S+ +\S+$", rf"\g<1> {row}", text)
    return re.sub(r"=  +\S+ \.+ PASSED", f"= {residual:16.7f} ...... PASSED", text)


def with_ptrans(text: str, times: list[float]) -> str:
    worst = [500 * 500 * 8e-9 / max(times[: at + 1]) for at in range(5)]
    rows = iter(
        f"\nWALL   500   500  80  80   2   2 {time_s:8.2f} PASSED {rate:8.3f}  0.00"
        for time_s, rate in zip(times, worst, strict=True)
    )
    text = re.sub(r"\nWALL .*", lambda _: next(rows), text)
    text = with_summary(text, "PTRANS_time", times[-1])
    return with_summary(text, "PTRANS_GBs", worst[-1])


def with_updates(text: str, section: str, time_s: float) -> str:
    updates = int(re.findall(rf"(?m)^{section}_ExeUpdates=(\d+)$", text)[0])
    text = with_summary(text, f"{section}_time", time_s)
    return with_number(text, f"{section}_GUPs", 1e-9 * updates / time_s)


@repeated(60)
@given(
    values=st.lists(magnitudes(-3, 5), min_size=len(RATES), max_size=len(RATES)),
    times=st.lists(magnitudes(-4, 2), min_size=5, max_size=5),
    long_s=magnitudes(-2, 5),
    residual=magnitudes(-4, 1),
)
def test_rounded_prints_of_hpcc_are_taken(
    values: list[float], times: list[float], long_s: float, residual: float
) -> None:
    text = HPCC
    for name, value in zip(RATES, values, strict=True):
        text = with_number(text, name, value)
    text = with_ptrans(with_hpl(text, long_s, residual), times)
    for section in ("MPIRandomAccess", "MPIRandomAccess_LCG"):
        text = with_updates(text, section, long_s)
    shown = dict(re.findall(r"(?m)^(\w+)=(\S+)$", text))
    expected = {name: float(shown[name]) for name in METRICS}
    assert parse_hpcc(text, list(METRICS), 4, 1000) == expected


@repeated(100)
@given(
    name=st.sampled_from(RATES),
    value=magnitudes(-3, 5),
    sign=st.sampled_from([-1, 1]),
)
def test_number_of_hpcc_beyond_rounding_is_refused(
    name: str, value: float, sign: int
) -> None:
    assume(not name.endswith("RandomAccess_GUPs") or not name.startswith("MPI"))
    assume(not name.endswith("LCG_GUPs") or not name.startswith("MPI"))
    text = with_number(HPCC, name, value)
    half = 0.5 * 10.0 ** -decimals_of(name) / METRICS[name].scale
    changed = value + sign * 2.1 * (half + value * 5e-6)
    assume(changed > 0)
    text = with_summary(text, name, changed)
    with pytest.raises(ParseError, match=name):
        parse_hpcc(text, [name], 4, 1000)


def test_runs_of_hpl_with_the_same_rate_as_printed() -> None:
    """The summary has the faster one, which may be the second."""
    row = re.findall(r"(?m)^W[RC].*$", HPCC)[0]
    residual = re.findall(r"(?m)^\|\|Ax-b.*PASSED$", HPCC)[0]
    other = re.sub("   80 ", "  120 ", row)
    assert other != row
    first = f"{other}\n{residual}\n{row}"
    text = HPCC.replace(row, first, 1)
    assert parse_hpcc(text, ["HPL_Tflops"], 4, 1000) == {"HPL_Tflops": 0.00567014}
