"""Sections and summary of the file hpccoutf.txt, of exactly one run."""

import re

from seatrial.parsers.errors import ParseError
from seatrial.parsers.printed import read_count, read_number, read_positive
from seatrial.parsers.rounding import Range, printed_short

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
        found = self.all(section, pattern)
        reason = f"{len(found)} lines of {section} with {name}, expected one"
        if not found:
            raise MissingError(self._number(self._section(section)[1]), reason)
        if len(found) > 1:
            raise ParseError(found[1][0], reason)
        return found[0]

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
        if (found := self.shown(name)) != str(value):
            raise ParseError(self.line(name), f"{name} is {found}, expected {value}")

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
