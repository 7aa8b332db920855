"""Output of programs that only start MPI: how many ranks say that they are there.

`pairsweep --preflight` of our own, and `IMB-MPI1 Barrier` of the Intel MPI Benchmarks.
(`osu_init` is read by seatrial.parsers.osu.)
"""

import json
import re

from seatrial.parsers.errors import ParseError

_IMB = re.compile(r"^# #processes = (\d+)\s*$", re.MULTILINE)
_IMB_ROW = re.compile(r"^ +\d+(?: +\d+\.\d+){3}\s*$", re.MULTILINE)


def verify_started(text: str, program: str, ranks: int) -> None:
    """Raise ParseError unless exactly so many ranks have started, and ended."""
    if program == "pairsweep":
        found = [_greetings(text)]
    elif program == "IMB-MPI1":
        rows = len(_IMB_ROW.findall(text))
        found = [int(ranks) for ranks in _IMB.findall(text)] if rows == 1 else []
    else:
        raise ValueError(f"unknown program {program}")
    if found != [ranks]:
        shown = " and ".join(map(str, found)) or "no"
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
