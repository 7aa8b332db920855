"""The file hpccoutf.txt of the HPC Challenge benchmark, version 1.5.

Its sections show each test in detail, its summary all numbers once more: a number is
taken only if both agree. The summary's Success=1 proves less than it says (src/hpcc.c
and its sections, HPCC 1.5.0), so this is checked too:

- HPCC makes up an input of its own if it cannot use hpccinf.txt, and appends to an
  hpccoutf.txt that is there already.
- Wrong contents of a message in LatencyBandwidth are only printed, as `ERROR`. (Ranks
  other than 0 print them to standard error, which is not in the file.)
- HPL and PTRANS run on P x Q processes, MPIFFT on as many as its vector allows: the
  others idle.
- A threshold of any size makes HPL, PTRANS and DGEMM pass. Here it is 16.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError
from seatrial.parsers.hpcc_file import HpccFile
from seatrial.parsers.hpcc_metrics import GROUPS, METRICS, HpccMetric
from seatrial.parsers.numbers import (
    agree,
    half_digit,
    half_digit_of,
    read_count,
    read_number,
    read_positive,
)

THRESHOLD = 16.0
"""What a scaled residual must be below."""

_ABSURD = {"us": 1e9, "GB/s": 1e6, "Gflop/s": 1e9, "Tflop/s": 1e6, "GUP/s": 1e6}
_ERRORS_ALLOWED = 0.01  # of all updates of RandomAccess, by its rules
_EPSILON = 2.0**-53
_HPL_ROW = re.compile(
    r"\nW[RC]\S+ +([0-9]+) +([0-9]+) +([0-9]+) +([0-9]+) +(\S+) +(\S+)(?=\n)"
)
_HPL_RESIDUAL = re.compile(r"\n\|\|Ax-b\|\|_oo/\S+= +(\S+) \.+ PASSED(?=\n)")
_PTRANS_ROW = re.compile(
    r"\nWALL +([0-9]+) +([0-9]+) +([0-9]+) +([0-9]+) +([0-9]+) +([0-9]+)"
    r" +(\S+) PASSED +(\S+) +(\S+)(?=\n)"
)
_FOUND = re.compile(r"\nFound (\S+) errors in (\S+) locations \(passed\)\.(?=\n)")
_NODES = re.compile(r"\nNode\(s\) with error (\S+)(?=\n)")
_SCALED = re.compile(r"\nScaled residual: (\S+)(?=\n)")
_VALID = re.compile(r"\nSolution Validates: avg error less than (\S+) on all")
_MAX_ERROR = re.compile(r"\nVector size: +([0-9]+)\n(?:[^\n]*\n){4}max\S+ +(\S+)(?=\n)")
_CONDITIONS = re.compile(
    r"\n The latency   measurements were done with +([0-9]+) bytes"
    r"\n The bandwidth measurements were done with +([0-9]+) bytes"
    r"\n The ring communication was done in both directions on ([0-9]+) processes(?=\n)"
)
_MESSAGES = ("8", "2000000")


def parse_hpcc(
    text: str,
    names: Sequence[str],
    processes: int,
    hpl_n: int,
    hpl_nb: int | None = None,
    grid: tuple[int, int] | None = None,
) -> dict[str, float]:
    """Give the numbers `names` of METRICS, after proving that they are right.

    The caller says what hpccinf.txt asked for: N, and if it matters NB and the grid
    (P, Q), which must have room for all processes. Raises ParseError unless the file
    holds exactly one complete run with that problem on that many processes, every
    check of it passed, and each number is finite, positive, not absurd, and the same
    in its section as in the summary (-1: HPCC did not run that test). ValueError for
    a name that is not in METRICS.
    """
    if unknown := set(names) - METRICS.keys():
        raise ValueError(f"not among the numbers of HPCC: {sorted(unknown)}")
    run = HpccFile(text)
    run.expect("Success", 1)
    run.expect("CommWorldProcs", processes)
    run.expect("HPL_N", hpl_n)
    if hpl_nb is not None:
        run.expect("HPL_NB", hpl_nb)
    if grid is not None:
        run.expect("HPL_nprow", grid[0])
        run.expect("HPL_npcol", grid[1])
    working = run.count("HPL_nprow") * run.count("HPL_npcol")
    if working != processes:
        reason = f"HPL ran on {working} processes, expected {processes}"
        raise ParseError(run.line("HPL_npcol"), reason)
    _verify_hpl(run)
    for section in sorted({METRICS[name].section for name in names} - {"HPL"}):
        _verify_section(run, section, processes)
    return {name: _value(run, name, METRICS[name]) for name in names}


def _value(run: HpccFile, name: str, metric: HpccMetric) -> float:
    """Give a number of the summary, confirmed by its section."""
    if metric.of == "size":
        if metric.line is not None:
            line, match = run.one(metric.section, metric.line, name)
            run.expect(name, read_count(name, line, match[1]))
        return float(run.count(name))
    value = run.positive(name, _ABSURD[metric.unit])
    if metric.line is not None:
        line, match = run.one(metric.section, metric.line, name)
        shown = match[GROUPS.get(name, 1)]
        other = read_positive(name, line, shown, metric.scale * _ABSURD[metric.unit])
        rounding = half_digit(shown) / metric.scale
        run.confirm(name, value, other / metric.scale, line, rounding)
    return value


def _verify_section(run: HpccFile, section: str, processes: int) -> None:
    """Raise ParseError unless a section says that all its checks passed."""
    if section.startswith(("Star", "Single")):
        line, match = run.one(section, _NODES, "the nodes with error")
        if match[1] != "0":
            raise ParseError(line, f"{match[1]} nodes with error in {section}")
    if section == "PTRANS":
        _verify_ptrans(run)
    elif section.startswith("MPIRandomAccess"):
        _verify_random_access(run, section)
    elif section == "StarSTREAM":
        run.one(section, _VALID, "a solution that validates")
    elif section.endswith("DGEMM"):
        for line, match in run.all(section, _SCALED):
            read_number("the residual of DGEMM", line, match[1], 0, THRESHOLD)
        elements = run.count("HPL_N") ** 2 // processes // 3
        run.expect("DGEMM_N", int(math.sqrt(elements + 0.25) - 0.5))
    elif section.endswith("FFT"):
        _verify_fft(run, section, processes)
    elif section == "LatencyBandwidth":
        if processes == 1:
            raise ParseError(run.line("CommWorldProcs"), "one process has no latency")
        line, match = run.one(section, _CONDITIONS, "its conditions")
        if match.groups() != (*_MESSAGES, str(processes)):
            found = " B, ".join(match.groups())
            raise ParseError(line, f"measured with {found} processes")


def _verify_hpl(run: HpccFile) -> None:
    """Raise ParseError unless HPL's rate, time and residual prove each other."""
    rows = [_HplRow.read(*found) for found in run.all("HPL", _HPL_ROW)]
    residuals = run.all("HPL", _HPL_RESIDUAL)
    if not rows or len(residuals) != len(rows):
        where = residuals[-1][0] if residuals else run.line("HPL_Tflops")
        reason = f"{len(residuals)} residuals that PASSED of {len(rows)} runs of HPL"
        raise ParseError(where, reason)
    scaled = [
        read_number("the residual of HPL", line, match[1], 0, THRESHOLD)
        for line, match in residuals
    ]
    n, time_s = run.count("HPL_N"), run.positive("HPL_time")
    gflops = 1e3 * run.positive("HPL_Tflops", _ABSURD["Tflop/s"])
    best, residual = max(
        zip(rows, scaled, strict=True), key=lambda pair: pair[0].gflops
    )
    problem = tuple(run.count(f"HPL_{key}") for key in ("N", "NB", "nprow", "npcol"))
    if best.problem != problem:
        reason = f"the best run of HPL has N, NB, P, Q {best.problem}, not {problem}"
        raise ParseError(best.line, reason)
    tflops = gflops / 1e3
    run.confirm(
        "HPL_Tflops", tflops, best.gflops / 1e3, best.line, best.gflops_rounding / 1e3
    )
    run.confirm("HPL_time", time_s, best.time_s, best.line, 0.005)
    by_time = n * n * (2 / 3 * n + 3 / 2) / time_s / 1e12
    rounding = by_time * half_digit_of(time_s, 6) / time_s
    run.confirm("HPL_Tflops", tflops, by_time, run.line("HPL_time"), rounding)
    norm = run.positive("HPL_AnormI") * run.positive("HPL_XnormI")
    by_norms = run.number("HPL_RnormI") / (
        run.positive("HPL_eps") * (norm + run.number("HPL_BnormI")) * n
    )
    if not agree(residual, by_norms, 5e-8 + 5e-5 * by_norms):
        reason = f"the residual of HPL is {residual:g}, by its norms {by_norms:.6g}"
        raise ParseError(run.line("HPL_RnormI"), reason)


@dataclass(frozen=True)
class _HplRow:
    """A run of HPL with one set of parameters: N, NB, P and Q."""

    line: int
    problem: tuple[int, ...]
    time_s: float
    gflops: float
    gflops_rounding: float

    @staticmethod
    def read(line: int, match: re.Match[str]) -> "_HplRow":
        problem = tuple(int(match[group]) for group in (1, 2, 3, 4))
        time_s = read_number("the time of HPL", line, match[5], 0, 1e9)
        gflops = read_positive("the rate of HPL", line, match[6], _ABSURD["Gflop/s"])
        return _HplRow(line, problem, time_s, gflops, half_digit(match[6]))


def _verify_ptrans(run: HpccFile) -> None:
    """Raise ParseError unless five runs of every size prove PTRANS' rate.

    A row's rate is the smallest so far of its five; the summary has the best of all
    fifth rows, and the time of that one alone.
    """
    gb_per_s = run.positive("PTRANS_GBs", _ABSURD["GB/s"])
    time_s = run.positive("PTRANS_time")
    found = run.all("PTRANS", _PTRANS_ROW)
    if not found or len(found) % 5:
        where = found[-1][0] if found else run.line("PTRANS_GBs")
        raise ParseError(where, f"{len(found)} runs of PTRANS that PASSED, not 5 each")
    for line, match in found:
        read_number("the residual of PTRANS", line, match[9], 0, THRESHOLD)
        read_positive("the rate of PTRANS", line, match[8], _ABSURD["GB/s"])
    line, last = max(found[4::5], key=lambda pair: float(pair[1][8]))
    run.confirm("PTRANS_GBs", gb_per_s, float(last[8]), line, half_digit(last[8]))
    for name, group in (("n", 2), ("nb", 4), ("nprow", 5), ("npcol", 6)):
        run.expect(f"PTRANS_{name}", int(last[group]))
    by_time = 8e-9 * int(last[1]) * int(last[2]) / time_s
    if gb_per_s > by_time * (1 + 1e-5):
        reason = f"PTRANS_GBs is {gb_per_s}, more than {by_time:.6g} by PTRANS_time"
        raise ParseError(run.line("PTRANS_GBs"), reason)


def _verify_random_access(run: HpccFile, section: str) -> None:
    """Raise ParseError unless the table was right and the rate is updates by time."""
    line, match = run.one(section, _FOUND, "the errors found")
    errors, words = (read_count("RandomAccess", line, match[i]) for i in (1, 2))
    run.expect(f"{section}_Errors", errors)
    run.expect(f"{section}_N", words)
    fraction = run.number(f"{section}_ErrorsFraction", _ERRORS_ALLOWED * (1 + 1e-6))
    run.confirm(f"{section}_ErrorsFraction", fraction, errors / words, line, 0.0)
    time_s = run.positive(f"{section}_time")
    rate = run.positive(f"{section}_GUPs", _ABSURD["GUP/s"])
    by_time = run.count(f"{section}_ExeUpdates") / time_s / 1e9
    rounding = by_time * half_digit_of(time_s, 6) / time_s
    run.confirm(f"{section}_GUPs", rate, by_time, run.line(f"{section}_time"), rounding)


def _verify_fft(run: HpccFile, section: str, processes: int) -> None:
    """Raise ParseError unless the transform and its inverse gave the input back."""
    found = run.all(section, _MAX_ERROR)
    if not found and section != "SingleFFT":
        raise ParseError(run.line("FFT_N"), f"no error shown in {section}")
    for line, match in found:
        size = read_positive("the size of FFT", line, match[1], 2**63)
        error = read_number("the error of FFT", line, match[2], 0, 1)
        if error / math.log(max(size, 2)) / _EPSILON >= THRESHOLD:
            raise ParseError(line, f"the error of FFT is {error:g}, too large")
        if section == "MPIFFT":
            rounding = half_digit(match[2])
            shown = run.number("MPIFFT_maxErr")
            run.confirm("MPIFFT_maxErr", shown, error, line, rounding)
            run.expect("MPIFFT_Procs", processes)
