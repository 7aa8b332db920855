"""Sections and summary of the file hpccoutf.txt, of exactly one run.

HPL is checked for every run: its residual proves that the machine computes right.
"""

import re
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError
from seatrial.parsers.printed import (
    Range,
    exactly,
    printed,
    printed_short,
    read_count,
    read_number,
    read_positive,
)

_FAILURES = (
    "FAILED",
    "(failed)",
    "Failed ",
    "BYPASS",
    "without checking",
    "ERROR",
    "Error ",
    "ALARM",
    "ILLEGAL",
    "Skip.",
    "Cannot open",
)
_BANNER = re.compile("\nThis is the DARPA/DOE HPC Challenge Benchmark version ")
_EDGE = re.compile(r"\n(Begin|End) of (\w+) section\.(?=\n)")
_END = re.compile("\nEnd of HPC Challenge tests\\.(?=\n)")
_ENTRY = re.compile(r"(\w+)=(\S+)")
_REST_OF_NUMBER = re.compile(r"\s*[-+]?(?:\.?[0-9]|[eE][-+][0-9])")

THRESHOLD = 16.0
"""Upper bound of a scaled residual."""

ABSURD = {"us": 1e9, "GB/s": 1e6, "Gflop/s": 1e9, "Tflop/s": 1e6, "GUP/s": 1e6}
_HPL_ROW = re.compile(
    r"\nW[RC]\S+ +([0-9]+) +([0-9]+) +([0-9]+) +([0-9]+) +(\S+) +(\S+)(?=\n)"
)
_HPL_RESIDUAL = re.compile(r"\n\|\|Ax-b\|\|_oo/\S+= +(\S+) \.+ PASSED(?=\n)")


class MissingError(ParseError):
    """A number, or what proves it, is not in the file: others may well be."""


class HpccFile:
    """One run of HPCC: its sections by their names, and the numbers of its summary."""

    def __init__(self, text: str) -> None:
        """Check that the text is one run without a failure; ParseError otherwise."""
        self._text = f"\n{text}"
        over = _END.search(self._text)
        for word in _FAILURES:
            if (at := self._text.find(word, 0, over.end() if over else None)) >= 0:
                line = self._text[self._text.rfind("\n", 0, at) + 1 :].split("\n", 1)[0]
                raise ParseError(self._number(at), f"check failed: {line.strip()!r}")
        self._sections = self._find_sections()
        self._summary = self._read_summary()

    def all(
        self, section: str, pattern: re.Pattern[str]
    ) -> list[tuple[int, re.Match[str]]]:
        """Find all lines of a section that match, with their numbers."""
        start, end = self._section(section)
        matches = pattern.finditer(self._text, start, end)
        return [(self._number(match.start() + 1), match) for match in matches]

    def one(
        self, section: str, pattern: re.Pattern[str], name: str
    ) -> tuple[int, re.Match[str]]:
        """Find the only line of a section with `name`.

        Raises MissingError if there is none, ParseError if there are more.
        """
        matches = self.all(section, pattern)
        reason = f"{len(matches)} lines of {section} with {name}, expected one"
        if not matches:
            raise MissingError(self._number(self._section(section)[1]), reason)
        if len(matches) > 1:
            raise ParseError(matches[1][0], reason)
        return matches[0]

    def line(self, name: str) -> int:
        """Return the line of a number in the summary, or the summary's first line."""
        if name in self._summary:
            return self._summary[name][0]
        return self._number(self._section("Summary")[0])

    def shown(self, name: str) -> str:
        """Return what the summary says; MissingError if it does not have that name."""
        if name not in self._summary:
            raise MissingError(self.line(name), f"{name} is missing")
        return self._summary[name][1]

    def expect(self, name: str, value: int) -> None:
        """Raise ParseError unless the summary has this whole number."""
        if (shown := self.shown(name)) != str(value):
            raise ParseError(self.line(name), f"{name} is {shown}, expected {value}")

    def count(self, name: str) -> int:
        """Read a whole number of the summary."""
        return read_count(name, self.line(name), self.shown(name))

    def number(self, name: str, below: float = 1e30) -> float:
        """Read a number of the summary that is at least 0."""
        return read_number(name, self.line(name), self.shown(name), 0, below)

    def positive(self, name: str, below: float = 1e30) -> float:
        """Read a positive number of the summary; MissingError for a test not run."""
        if self.shown(name) == "-1":
            raise MissingError(self.line(name), f"{name} is -1: HPCC did not run it")
        return read_positive(name, self.line(name), self.shown(name), below)

    def range(self, name: str) -> Range:
        """Return the range of a number, all of which the summary prints by %g."""
        return printed_short(self.number(name))

    def confirm(self, name: str, other: Range, line: int) -> None:
        """Raise ParseError unless `other`, from `line`, can be that of the summary."""
        if not self.range(name).meets(other):
            reason = f"but line {line} says {other.middle:.6g}"
            raise ParseError(self.line(name), f"{name} is {self.shown(name)}, {reason}")

    def _number(self, at: int) -> int:
        return self._text.count("\n", 0, at) or 1

    def _section(self, name: str) -> tuple[int, int]:
        if name not in self._sections:
            raise MissingError(self._number(len(self._text)), f"no section {name}")
        return self._sections[name]

    def _find_sections(self) -> dict[str, tuple[int, int]]:
        sections: dict[str, tuple[int, int]] = {}
        name, start, last = "", 0, 0
        for match in _EDGE.finditer(self._text):
            last = self._number(match.start() + 1)
            if match[1] == "Begin":
                if name:
                    raise ParseError(last, f"section {match[2]} begins within {name}")
                if match[2] in sections:
                    reason = f"section {match[2]} a second time, expected one run"
                    raise ParseError(last, reason)
                name, start = match[2], match.end()
            elif match[2] != name:
                raise ParseError(last, f"the end of {match[2]}, which did not begin")
            else:
                sections[name] = (start, match.start() + 1)
                name = ""
        if name:
            raise ParseError(last, f"section {name} is cut off")
        banners = [self._number(m.start() + 1) for m in _BANNER.finditer(self._text)]
        if len(banners) != 1:
            where = banners[1] if banners else 0
            raise ParseError(where, f"{len(banners)} runs of HPCC, expected one")
        if "Summary" not in sections or not _END.search(self._text, last):
            whole = self._number(len(self._text.rstrip("\n")))
            raise ParseError(whole, "the file is cut off, expected all tests")
        return sections

    def _read_summary(self) -> dict[str, tuple[int, str]]:
        """Read all numbers; a foreign line is passed over if it is no rest of one."""
        start, end = self._section("Summary")
        summary: dict[str, tuple[int, str]] = {}
        lines = self._text[start + 1 : end - 1].split("\n")
        for number, line in enumerate(lines, start=self._number(start) + 1):
            match = _ENTRY.fullmatch(line)
            if match is None and _REST_OF_NUMBER.match(line):
                raise ParseError(number, f"{line!r}, expected name=value")
            if match is None:
                continue
            if match[1] in summary:
                raise ParseError(number, f"{match[1]} a second time")
            summary[match[1]] = (number, match[2])
        return summary


@dataclass(frozen=True)
class _HplRow:
    """A run of HPL with one set of parameters: N, NB, P and Q."""

    line: int
    problem: tuple[int, ...]
    time: Range
    gflops: Range


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


def _read_row(line: int, match: re.Match[str]) -> _HplRow:
    problem = tuple(map(int, match.groups()[:4]))
    read_number("the time of HPL", line, match[5], 0, 1e9)
    read_positive("the rate of HPL", line, match[6], ABSURD["Gflop/s"])
    return _HplRow(line, problem, printed(match[5]), printed(match[6]))
