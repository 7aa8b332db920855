"""Output of mdtest 3.3, 4.0 and 4.1: rates of operations on files and folders."""

import re
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError

_LAUNCHED = re.compile(
    r"mdtest-(\S+) was launched with (\d+) total task\(s\) on (\d+) node\(s\)"
)
_ITEMS = re.compile(r"(\d+) tasks, (\d+) files/directories")
_SUMMARY = re.compile(r"SUMMARY rate(?: \(in ops/sec\))?: \(of (\d+) iterations\)")
_ROW = re.compile(r"   ((?:File|Directory|Tree) [a-z]+)\s*:?((?: +\d+\.\d{3}){4})\s*")
_END = re.compile(r"-- finished at .* --")
OPERATIONS = (
    *("File creation", "File stat", "File read", "File removal"),
    *("Directory creation", "Directory stat", "Directory removal"),
)


@dataclass(frozen=True)
class MdtestRun:
    """A run with one iteration: operations per second of all tasks together.

    `rates` has those of OPERATIONS, each of `items` files or folders over the time of
    the slowest task.
    """

    version: str
    nodes: int
    tasks: int
    items: int
    rates: dict[str, float]


def parse_mdtest(text: str) -> MdtestRun:
    """Read the output of one run; ParseError if an operation or the end is missing.

    Versions before 4 print the rates by the times of single tasks: the least of them is
    that of the slowest task, which later versions print alone.
    """
    launched, items, iterations, end = (
        _only(pattern, text) for pattern in (_LAUNCHED, _ITEMS, _SUMMARY, _END)
    )
    if iterations[1] != "1":
        raise ParseError(0, f"{iterations[1]} iterations, expected 1")
    if items[1] != launched[2]:
        raise ParseError(0, f"{items[1]} tasks, expected {launched[2]}")
    rates: dict[str, float] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _ROW.fullmatch(line):
            if match[1] in rates:
                raise ParseError(number, f"a second row of {match[1]}")
            most, least, mean, _ = map(float, match[2].split())
            if not 0 < least <= mean <= most:
                raise ParseError(number, f"{match[1]}: rates are out of order")
            rates[match[1]] = least
    if missing := [name for name in OPERATIONS if name not in rates]:
        raise ParseError(0, f"no row of {', '.join(missing)}")
    if not launched.start() < items.start() < iterations.start() < end.start():
        raise ParseError(0, "its parts are out of order")
    return MdtestRun(
        version=launched[1],
        nodes=int(launched[3]),
        tasks=int(launched[2]),
        items=int(items[2]),
        rates={name: rates[name] for name in OPERATIONS},
    )


def _only(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    """Return the one line that matches; ParseError if there is none, or a second."""
    found = [*re.finditer(rf"^{pattern.pattern}\s*$", text, re.MULTILINE)]
    if len(found) != 1:
        raise ParseError(0, f"{len(found)} lines like {pattern.pattern!r}, expected 1")
    return found[0]
