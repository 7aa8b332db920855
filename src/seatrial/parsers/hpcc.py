"""The file hpccoutf.txt of the HPC Challenge benchmark, versions 1.4 and 1.5.

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

from seatrial.parsers.errors import ParseError
from seatrial.parsers.hpcc_file import (
    ABSURD,
    THRESHOLD,
    HpccFile,
    MissingError,
    verify_hpl,
)
from seatrial.parsers.hpcc_metrics import GROUPS, METRICS, HpccMetric
from seatrial.parsers.printed import (
    OPERATION,
    exactly,
    printed,
    read_count,
    read_number,
    read_positive,
)

_ERRORS_ALLOWED = 0.01  # of all updates of RandomAccess, by its rules
_PTRANS_ROW = re.compile(
    r"\nWALL +([0-9]+) +([0-9]+) +([0-9]+) +([0-9]+) +([0-9]+) +([0-9]+)"
    r" +(\S+) PASSED +(\S+) +(\S+)(?=\n)"
)
_FOUND = re.compile(r"\nFound (\S+) errors in (\S+) locations \(passed\)\.(?=\n)")
_NODES = re.compile(r"\nNode\(s\) with error (\S+)(?=\n)")
_SCALED = re.compile(r"\nScaled residual: (\S+)(?=\n)")
_VALID = re.compile(r"\nSolution Validates(?=: avg error less than \S+ on all|\n)")
_MAX_ERROR = re.compile(r"\nVector size: +([0-9]+)\n(?:[^\n]*\n){4}max\S+ +(\S+)(?=\n)")
_CONDITIONS = re.compile(
    r"\n The latency   measurements were done with +([0-9]+) bytes"
    r"\n The bandwidth measurements were done with +([0-9]+) bytes"
    r"\n The ring communication was done in both directions on ([0-9]+) processes(?=\n)"
)
_MESSAGES = ("8", "2000000")
_PTRANS_SIZES = (("n", 2), ("nb", 4), ("nprow", 5), ("npcol", 6))
"""Names of the summary, and their group in a row."""


def parse_hpcc(
    text: str,
    names: Sequence[str],
    processes: int,
    hpl_n: int,
    hpl_nb: int | None = None,
    grid: tuple[int, int] | None = None,
) -> dict[str, float]:
    """Return all of `names` as `parse_hpcc_partly`; ParseError if one is missing."""
    numbers, missing = parse_hpcc_partly(text, names, processes, hpl_n, hpl_nb, grid)
    for error in missing.values():
        raise error
    return numbers


def parse_hpcc_partly(
    text: str,
    names: Sequence[str],
    processes: int,
    hpl_n: int,
    hpl_nb: int | None = None,
    grid: tuple[int, int] | None = None,
) -> tuple[dict[str, float], dict[str, ParseError]]:
    """Return the numbers `names` of METRICS that are right, and why others are missing.

    The caller says what hpccinf.txt asked for: N, and if it matters NB and the grid
    (P, Q), which must have room for all processes. A number is missing if HPCC did not
    run that test (-1), or if the file lacks it or a line that proves it.

    Raises ParseError unless the file holds exactly one complete run with that problem
    on that many processes, no check of it failed, and each number that is there is
    finite, positive, not absurd, and the same in its section as in the summary; and if
    the lines of HPL are missing, which prove that the machine computes right.
    ValueError for a name that is not in METRICS.
    """
    if unknown := set(names) - METRICS.keys():
        raise ValueError(f"not among the numbers of HPCC: {sorted(unknown)}")
    run = HpccFile(text)
    _verify_problem(run, processes, hpl_n, hpl_nb, grid)
    verify_hpl(run)
    unproved: dict[str, MissingError] = {}
    for section in sorted({METRICS[name].section for name in names} - {"HPL"}):
        try:
            _verify_section(run, section, processes)
        except MissingError as error:
            unproved[section] = error
    numbers: dict[str, float] = {}
    missing: dict[str, ParseError] = {}
    for name in names:
        metric = METRICS[name]
        try:
            value = _value(run, name, metric)
        except MissingError as error:
            missing[name] = error
            continue
        if metric.section in unproved:
            missing[name] = unproved[metric.section]
        else:
            numbers[name] = value
    return numbers, missing


def _verify_problem(
    run: HpccFile,
    processes: int,
    hpl_n: int,
    hpl_nb: int | None,
    grid: tuple[int, int] | None,
) -> None:
    """Raise ParseError unless HPCC ran what it was asked for, on all processes."""
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


def _value(run: HpccFile, name: str, metric: HpccMetric) -> float:
    """Return a number of the summary, confirmed by its section."""
    if metric.of == "size":
        if metric.line is not None:
            line, match = run.one(metric.section, metric.line, name)
            run.expect(name, read_count(name, line, match[1]))
        return float(run.count(name))
    value = run.positive(name, ABSURD[metric.unit])
    if metric.line is not None:
        line, match = run.one(metric.section, metric.line, name)
        shown = match[GROUPS.get(name, 1)]
        read_number(name, line, shown, 0, metric.scale * ABSURD[metric.unit])
        run.confirm(name, printed(shown) / exactly(metric.scale), line)
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
            shown = " B, ".join(match.groups())
            raise ParseError(line, f"measured with {shown} processes")


def _verify_ptrans(run: HpccFile) -> None:
    """Raise ParseError unless five runs of every size prove PTRANS' rate.

    A row's rate is the smallest so far of its five; the summary has the best of all
    fifth rows, and the time of that one alone.
    """
    run.positive("PTRANS_GBs", ABSURD["GB/s"])
    run.positive("PTRANS_time")
    rows = run.all("PTRANS", _PTRANS_ROW)
    if not rows or len(rows) % 5:
        where = rows[-1][0] if rows else run.line("PTRANS_GBs")
        reason = f"{len(rows)} runs of PTRANS that PASSED, not 5 each"
        raise MissingError(where, reason)
    for line, match in rows:
        read_number("the residual of PTRANS", line, match[9], 0, THRESHOLD)
        read_number("the rate of PTRANS", line, match[8], 0, ABSURD["GB/s"])
    sizes = [(run.count(f"PTRANS_{name}"), group) for name, group in _PTRANS_SIZES]
    # Of sizes with the same rate, as printed, the summary has one.
    most = max(float(match[8]) for _, match in rows[4::5])
    line, last = max(
        (pair for pair in rows[4::5] if float(pair[1][8]) == most),
        key=lambda pair: all(int(pair[1][group]) == size for size, group in sizes),
    )
    run.confirm("PTRANS_GBs", printed(last[8]), line)
    for name, group in _PTRANS_SIZES:
        run.expect(f"PTRANS_{name}", int(last[group]))
    by_time = exactly(8e-9 * int(last[1]) * int(last[2])) / run.range("PTRANS_time")
    if not run.range("PTRANS_GBs").may_be_at_most(by_time):
        most_by_time = f"more than {by_time.middle:.6g} by PTRANS_time"
        reason = f"PTRANS_GBs is {run.shown('PTRANS_GBs')}, {most_by_time}"
        raise ParseError(run.line("PTRANS_GBs"), reason)


def _verify_random_access(run: HpccFile, section: str) -> None:
    """Raise ParseError unless the table was right and the rate is updates by time."""
    line, match = run.one(section, _FOUND, "the errors found")
    errors, words = (read_count("RandomAccess", line, match[i]) for i in (1, 2))
    run.expect(f"{section}_Errors", errors)
    run.expect(f"{section}_N", words)
    at_most = math.nextafter(_ERRORS_ALLOWED, 1)
    run.number(f"{section}_ErrorsFraction", at_most)
    run.confirm(f"{section}_ErrorsFraction", exactly(errors / words), line)
    run.positive(f"{section}_time")
    run.positive(f"{section}_GUPs", ABSURD["GUP/s"])
    updates = exactly(run.count(f"{section}_ExeUpdates") / 1e9)
    by_time = updates / run.range(f"{section}_time")
    run.confirm(f"{section}_GUPs", by_time, run.line(f"{section}_time"))


def _verify_fft(run: HpccFile, section: str, processes: int) -> None:
    """Raise ParseError unless the transform and its inverse gave the input back."""
    errors = run.all(section, _MAX_ERROR)
    if not errors and section != "SingleFFT":
        raise MissingError(run.line("FFT_N"), f"no error shown in {section}")
    for line, match in errors:
        size = read_positive("the size of FFT", line, match[1], 2**63)
        error = read_number("the error of FFT", line, match[2], 0, 1)
        if error / math.log(max(size, 2)) / OPERATION >= THRESHOLD:
            raise ParseError(line, f"the error of FFT is {error:g}, too large")
        if section == "MPIFFT":
            run.confirm("MPIFFT_maxErr", printed(match[2]), line)
            run.expect("MPIFFT_Procs", processes)
