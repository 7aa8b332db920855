"""Output of programs that only start MPI.

`osu_init` and `osu_hello` of the OSU Micro-Benchmarks, 5.4 to 7.5; `pairsweep
--preflight` of our own; `IMB-MPI1 Barrier` of the Intel MPI Benchmarks.
"""

import json
import re
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError
from seatrial.parsers.printed import last_line

_TITLE = re.compile(r"# (OSU .*?)(?: v[0-9]\S*)?")
_INIT = re.compile(
    r"nprocs: ([0-9]+), min: ([0-9]{1,9}) ms, max: ([0-9]{1,9}) ms, "
    r"avg: ([0-9]{1,9}) ms"
)
_HELLO = re.compile(r"This is a test with ([0-9]+) processes")
_LONGEST_MS = 10**7


@dataclass(frozen=True)
class OsuInit:
    """Time of MPI_Init on the fastest and the slowest rank, and its mean.

    The program prints whole ms: parts are cut off.
    """

    min_ms: int
    max_ms: int
    avg_ms: int


def parse_osu_init(text: str, processes: int) -> OsuInit:
    """Read the line of osu_init.

    Raises ParseError if there is not exactly one below its title, if it is not of
    `processes` ranks, or if its numbers contradict each other or are absurd.
    """
    line, match = _one_line(text, "OSU MPI Init Test", _INIT, processes)
    result = OsuInit(int(match[2]), int(match[3]), int(match[4]))
    if not result.min_ms <= result.avg_ms <= result.max_ms:
        raise ParseError(line, f"{match[0]!r}: min, avg and max are out of order")
    if not 0 < result.max_ms < _LONGEST_MS:
        raise ParseError(line, f"{match[0]!r}: no time that MPI_Init can take")
    return result


def verify_osu_hello(text: str, processes: int) -> None:
    """Raise ParseError unless osu_hello ran on `processes` ranks; it has no number."""
    _one_line(text, "OSU MPI Hello World Test", _HELLO, processes)


def _one_line(
    text: str, title: str, pattern: re.Pattern[str], processes: int
) -> tuple[int, re.Match[str]]:
    """Return the one line of a program, below its title, with its number."""
    lines = text.split("\n")
    matches: list[tuple[int, re.Match[str]]] = []
    has_title = False
    for number, line in enumerate(lines, start=1):
        if named := _TITLE.fullmatch(line.rstrip()):
            if named[1] != title:
                raise ParseError(number, f"output of {named[1]!r}, expected {title!r}")
            has_title = True
        elif match := pattern.fullmatch(line.rstrip()):
            if not has_title or number == len(lines):
                raise ParseError(
                    number, f"{line!r}, expected a whole line below {title!r}"
                )
            if match[1] != str(processes):
                raise ParseError(number, f"{match[1]} processes, expected {processes}")
            matches.append((number, match))
    if len(matches) != 1 or text.count(title) != 1:
        raise ParseError(
            last_line(lines),
            f"{text.count(title)} titles {title!r} and {len(matches)} lines below, "
            "expected one of each",
        )
    return matches[0]


_IMB = re.compile(r"^# #processes = (\d+)\s*$", re.MULTILINE)
_IMB_ROW = re.compile(r"^ +\d+(?: +\d+\.\d+){3}\s*$", re.MULTILINE)


def verify_started(text: str, program: str, ranks: int) -> None:
    """Raise ParseError unless exactly `ranks` ranks have started, and ended."""
    if program == "pairsweep":
        counts = [_greetings(text)]
    elif program == "IMB-MPI1":
        rows = len(_IMB_ROW.findall(text))
        counts = [int(ranks) for ranks in _IMB.findall(text)] if rows == 1 else []
    else:
        raise ValueError(f"unknown program {program}")
    if counts != [ranks]:
        shown = " and ".join(map(str, counts)) or "no"
        raise ParseError(0, f"{program} started {shown} ranks, expected {ranks}")


def _greetings(text: str) -> int:
    """Count the ranks that have heard of all others."""
    stages = {"start": 0, "init": 0, "hello": 0}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.startswith("{"):
            continue
        try:
            row = json.loads(line)
            stages[row["stage"]] += row["type"] == "preflight"
        except (ValueError, TypeError, KeyError) as error:
            raise ParseError(number, f"no row of --preflight: {line[:60]!r}") from error
    if len(set(stages.values())) > 1:
        raise ParseError(0, f"ranks that are not at the end: {stages}")
    return stages["hello"]
