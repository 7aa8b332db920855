"""HPL within a run of HPCC: rate, time and residual must prove each other.

Its residual proves that the machine computes right.
"""

import re
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError
from seatrial.parsers.hpcc_file import HpccFile
from seatrial.parsers.printed import read_number, read_positive
from seatrial.parsers.rounding import Range, exactly, printed

THRESHOLD = 16.0
"""What a scaled residual must be below."""

ABSURD = {"us": 1e9, "GB/s": 1e6, "Gflop/s": 1e9, "Tflop/s": 1e6, "GUP/s": 1e6}
_HPL_ROW = re.compile(
    r"\nW[RC]\S+ +([0-9]+) +([0-9]+) +([0-9]+) +([0-9]+) +(\S+) +(\S+)(?=\n)"
)
_HPL_RESIDUAL = re.compile(r"\n\|\|Ax-b\|\|_oo/\S+= +(\S+) \.+ PASSED(?=\n)")


def verify_hpl(run: HpccFile) -> None:
    """Raise ParseError unless HPL's rate, time and residual prove each other."""
    rows = [_read_row(*row) for row in run.all("HPL", _HPL_ROW)]
    residuals = run.all("HPL", _HPL_RESIDUAL)
    if not rows or len(residuals) != len(rows):
        where = residuals[-1][0] if residuals else run.line("HPL_Tflops")
        reason = f"{len(residuals)} residuals that PASSED of {len(rows)} runs of HPL"
        raise ParseError(where, reason)
    for line, match in residuals:
        read_number("the residual of HPL", line, match[1], 0, THRESHOLD)
    run.positive("HPL_Tflops", ABSURD["Tflop/s"])
    time_s = run.positive("HPL_time")
    problem = tuple(run.count(f"HPL_{key}") for key in ("N", "NB", "nprow", "npcol"))
    # Of rows with the same rate, as printed, the summary has one.
    best, (_, match) = min(
        zip(rows, residuals, strict=True),
        key=lambda pair: (
            -pair[0].gflops.middle,
            pair[0].problem != problem,
            abs(pair[0].time.middle - time_s),
        ),
    )
    if best.problem != problem:
        reason = f"the best run of HPL has N, NB, P, Q {best.problem}, not {problem}"
        raise ParseError(best.line, reason)
    run.confirm("HPL_Tflops", best.gflops / exactly(1e3), best.line)
    run.confirm("HPL_time", best.time, best.line)
    n = problem[0]
    operations = exactly(n * n * (2 / 3 * n + 3 / 2) / 1e12)
    run.confirm("HPL_Tflops", operations / run.range("HPL_time"), run.line("HPL_time"))
    run.positive("HPL_eps")
    norms = run.range("HPL_AnormI") * run.range("HPL_XnormI") + run.range("HPL_BnormI")
    scale = run.range("HPL_eps") * norms * exactly(n)
    if scale.low <= 0:
        raise ParseError(run.line("HPL_AnormI"), "the norms of HPL are 0")
    residual, by_norms = printed(match[1]), run.range("HPL_RnormI") / scale
    if not residual.meets(by_norms):
        norm = f"by its norms {by_norms.middle:.6g}"
        reason = f"the residual of HPL is {residual.middle:g}, {norm}"
        raise ParseError(run.line("HPL_RnormI"), reason)


@dataclass(frozen=True)
class _HplRow:
    """A run of HPL with one set of parameters: N, NB, P and Q."""

    line: int
    problem: tuple[int, ...]
    time: Range
    gflops: Range


def _read_row(line: int, match: re.Match[str]) -> _HplRow:
    problem = tuple(map(int, match.groups()[:4]))
    read_number("the time of HPL", line, match[5], 0, 1e9)
    read_positive("the rate of HPL", line, match[6], ABSURD["Gflop/s"])
    return _HplRow(line, problem, printed(match[5]), printed(match[6]))
