"""Output of HPL (`xhpl`), by versions 1.0 to 2.3 and by programs derived from it.

Versions differ in widths and decimals: 2.0 prints a rate as 3.343e+00 and a residual as
0.0039687, 2.3 as 1.7599e+00 and 3.96873343e-03, and the start and end of the solver.
Version 1.0 prints three residuals. Programs of vendors print lines of progress, and
some a rate per device behind that of the row, in brackets.

HPL ends with status 0 after a failed residual, and after tests that it skipped because
memory was short. A threshold below 0 makes it check nothing. So the lines that prove a
result are all required, and the residual is compared with the threshold here.
"""

import re
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError
from seatrial.parsers.hpcc_file import ABSURD, THRESHOLD
from seatrial.parsers.printed import exactly, printed, read_number, read_positive

_ROW = re.compile(
    r"W[RC]\S+ +([0-9]+) +([0-9]+) +([0-9]+) +([0-9]+) +([0-9]+\.[0-9]{2})"
    r" +([0-9]\.[0-9]{2,}e[+-][0-9]{2,})(?: +\( *\S+ *\))? *"
)
_LIKE_ROW = re.compile(r"W[RC][0-9]")
_RESIDUAL = re.compile(r"\|\|Ax-b\|\|_oo ?/ ?\([^=]*\) ?= *(\S+) \.+ (\S+) *")
_LIKE_RESIDUAL = re.compile(r"\|\|Ax-b\|\|_oo ?/ ?\(.*=")
_ERROR = re.compile(r"HPL ERROR from process")
_COUNTS = (
    (re.compile(r"Finished +([0-9]+) tests with the following results:"), 1),
    (re.compile(r" +([0-9]+) tests completed and passed residual checks,"), 1),
    (re.compile(r" +([0-9]+) tests completed and failed residual checks,"), 0),
    (re.compile(r" +([0-9]+) tests skipped because of illegal input values\."), 0),
)
_END = "End of Tests."
_LONGEST_S = 1e9


@dataclass(frozen=True)
class HplRun:
    """A run of HPL whose residual passed: its time, rate and largest scaled residual.

    `rows` and `columns` are those of the grid of ranks (P x Q).
    """

    n: int
    block: int
    rows: int
    columns: int
    seconds: float
    gflops: float
    residual: float


def parse_hpl(text: str, n: int, block: int, grid: tuple[int, int]) -> HplRun:
    """Read the output of one problem: order, block and grid that HPL.dat asked for.

    Raises ParseError unless there is exactly one row, of that problem, whose rate and
    time agree with its operations; every residual passed and is below 16; and all of
    HPL's counts say one test, completed, passed, none failed or skipped.
    """
    lines = text.split("\n")
    _refuse_errors(lines)
    row_line, run = _read_row(lines)
    found = (run.n, run.block, run.rows, run.columns)
    if found != (n, block, *grid):
        raise ParseError(row_line, f"N, NB, P, Q are {found}, not {(n, block, *grid)}")
    operations = exactly(n * n * (2 / 3 * n + 3 / 2) / 1e9)
    words = lines[row_line - 1].split()
    by_time = printed(words[5]) * printed(words[6])
    if not by_time.meets(operations):
        reason = f"{run.gflops:g} Gflop/s for {run.seconds:g} s are not the operations"
        raise ParseError(row_line, f"{reason} of N = {n}")
    residual = _read_residuals(lines, row_line)
    _verify_counts(lines, row_line)
    return HplRun(*found, run.seconds, run.gflops, residual)


def _refuse_errors(lines: list[str]) -> None:
    """Raise ParseError with the text of HPL's first error."""
    for number, line in enumerate(lines, start=1):
        if _ERROR.match(line):
            said = " ".join(lines[number : number + 2]).strip(" <>")
            raise ParseError(number, f"HPL says: {said or line.strip()}")


def _read_row(lines: list[str]) -> tuple[int, HplRun]:
    rows = [at for at, line in enumerate(lines, start=1) if _LIKE_ROW.match(line)]
    if len(rows) != 1:
        where = rows[1] if rows else len(lines)
        raise ParseError(where, f"{len(rows)} results of HPL, expected one")
    (at,) = rows
    match = _ROW.fullmatch(lines[at - 1])
    if match is None or at == len(lines):
        raise ParseError(at, f"{lines[at - 1].strip()!r} is no whole row of HPL")
    n, block, grid_rows, columns = (int(match[group]) for group in range(1, 5))
    seconds = read_number("the time of HPL", at, match[5], 0, _LONGEST_S)
    gflops = read_positive("the rate of HPL", at, match[6], ABSURD["Gflop/s"])
    return at, HplRun(n, block, grid_rows, columns, seconds, gflops, 0.0)


def _read_residuals(lines: list[str], after: int) -> float:
    """Return the largest residual; ParseError unless all passed, behind the row."""
    largest = -1.0
    for number, line in enumerate(lines, start=1):
        if not _LIKE_RESIDUAL.match(line):
            continue
        match = _RESIDUAL.fullmatch(line)
        if match is None or number <= after or number == len(lines):
            raise ParseError(number, f"{line.strip()!r} is no residual of the row")
        if match[2] != "PASSED":
            raise ParseError(number, f"the residual {match[1]} is {match[2]}")
        name = "the residual of HPL"
        residual = read_number(name, number, match[1], 0, THRESHOLD)
        largest = max(largest, residual)
    if largest < 0:
        raise ParseError(after, "no residual: HPL has not checked its result")
    return largest


def _verify_counts(lines: list[str], after: int) -> None:
    """Raise ParseError unless HPL counts one test, which passed, and ends."""
    at = after
    for pattern, expected in _COUNTS:
        matches = [
            (number, match)
            for number, line in enumerate(lines, start=1)
            if (match := pattern.fullmatch(line.rstrip()))
        ]
        if len(matches) != 1:
            shown = pattern.pattern.rpartition(") ")[2].replace("\\", "")
            reason = f"{len(matches)} lines {shown!r}, expected one"
            raise ParseError(at, reason)
        number, match = matches[0]
        if int(match[1]) != expected or number <= at:
            raise ParseError(number, f"{match[0].strip()!r}, expected {expected}")
        at = number
    if _END not in (line.strip() for line in lines[at:-1]):
        raise ParseError(len(lines), f"the output is cut off, expected {_END!r}")
