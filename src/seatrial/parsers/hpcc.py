"""The file hpccoutf.txt of the HPC Challenge benchmark.

Rates are 10^9 per second, times us. Latency uses 8 B, bandwidth 2,000,000 B; ring
bandwidth is per process. HPCC falls back on an input of its own, and still says
Success=1, if it cannot use hpccinf.txt: so the problem it solved is checked too.
"""

import math
import re
from collections.abc import Sequence

from seatrial.parsers.errors import ParseError

_BEGIN = "Begin of Summary section."
_END = "End of Summary section."
_ENTRY = re.compile(r"(\w+)=(\S+)")
_RESIDUAL = re.compile(r"\|\|Ax-b\|\|.*=\s*(\S+)\s+\.*\s*(PASSED|FAILED)")


def parse_hpcc(
    text: str, names: Sequence[str], processes: int, hpl_n: int
) -> dict[str, float]:
    """Read `names` from the summary, after proving that the run was the wanted one.

    Raises ParseError unless there is exactly one complete summary, Success=1, the
    expected process count and HPL size, an HPL residual that PASSED and no check
    that FAILED, and a finite positive number for each name (HPCC writes -1 for a
    test that it did not run).
    """
    lines = text.splitlines()
    _verify_residuals(lines)
    summary, start = _summary(lines)
    for name, expected in (
        ("Success", 1),
        ("CommWorldProcs", processes),
        ("HPL_N", hpl_n),
    ):
        line, found = summary.get(name, (start, "nothing"))
        if found != str(expected):
            raise ParseError(line, f"{name} is {found}, expected {expected}")
    return {name: _number(name, *summary.get(name, (start, ""))) for name in names}


def _verify_residuals(lines: Sequence[str]) -> None:
    passed = 0
    for number, line in enumerate(lines, start=1):
        match = _RESIDUAL.match(line)
        if match and match[2] == "PASSED":
            _number("HPL residual", number, match[1])
            passed += 1
        elif match or "FAILED" in line:
            raise ParseError(number, f"check failed: {line.strip()!r}")
    if not passed:
        raise ParseError(len(lines), "no HPL residual that PASSED")


def _summary(lines: Sequence[str]) -> tuple[dict[str, tuple[int, str]], int]:
    """Give every `name=value` of the summary with its line, and where it begins."""
    begins = [i for i, line in enumerate(lines, 1) if line.strip() == _BEGIN]
    if len(begins) != 1:
        where = begins[-1] if begins else len(lines)
        raise ParseError(where, f"{len(begins)} summary sections, expected one")
    summary: dict[str, tuple[int, str]] = {}
    for number, line in enumerate(lines[begins[0] :], start=begins[0] + 1):
        if line.strip() == _END:
            return summary, begins[0]
        match = _ENTRY.fullmatch(line.strip())
        if match is None:
            raise ParseError(number, f"{line.strip()!r}, expected name=value")
        summary[match[1]] = (number, match[2])
    raise ParseError(len(lines), f"the summary is cut off, expected {_END!r}")


def _number(name: str, line: int, found: str) -> float:
    try:
        value = float(found)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value <= 0:
        raise ParseError(
            line, f"{name} is {found or 'missing'}, expected a positive number"
        )
    return value
