"""Statements of checks about themselves, from the ReFrame reports of the run."""

from collections.abc import Collection
from contextlib import suppress
from itertools import chain

import msgspec

from seatrial.errors import SeatrialError
from seatrial.limits import CASES_SIZE
from seatrial.model.manifest import decoded
from seatrial.plain_files import read_plain
from seatrial.runs.closed_run import Run
from seatrial.runs.raw_output import plain_content


class Stated(msgspec.Struct, frozen=True):
    """A check's statements; defaults where ReFrame did not record them.

    `experiments` are the numbers of the experiments that it repeats; `scaled`: its
    problem grows with the nodes.
    """

    check: str = msgspec.field(name="display_name")
    experiments: tuple[str, ...] = ()
    scaled: bool | None = None


class _Try(msgspec.Struct):
    testcases: tuple[Stated, ...] = ()


class _Report(msgspec.Struct):
    runs: tuple[_Try, ...] = ()


def stated(run: Run, checks: Collection[str]) -> dict[str, Stated]:
    """Return the statements of some checks by name, as far as they were reported.

    Unreadable reports are skipped: numbers and verdicts do not need them.
    """
    statements: dict[str, Stated] = {}
    for file in sorted(run.path.glob("raw/*/report*.json*")):
        if statements.keys() >= {*checks}:
            break
        with suppress(SeatrialError):
            packed = read_plain(file, CASES_SIZE)
            content = plain_content(file, packed, CASES_SIZE)
            report = decoded(content, file, _Report, "a report of ReFrame")
            for case in chain.from_iterable(part.testcases for part in report.runs):
                statements.setdefault(case.check.split(" ", 1)[0], case)
    return statements
