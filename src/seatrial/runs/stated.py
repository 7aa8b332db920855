"""Statements of checks about themselves, from the ReFrame reports of the run."""

import gzip
import io
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import msgspec

from seatrial.errors import SeatrialError
from seatrial.limits import CASES_SIZE
from seatrial.model.manifest import decoded
from seatrial.plain_files import read_plain
from seatrial.runs.closed_run import Run
from seatrial.runs.raw_output import COMPRESSED


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
        with suppress(SeatrialError, OSError, EOFError):
            for attempt in _read(file).runs:
                for case in attempt.testcases:
                    statements.setdefault(case.check.split(" ", 1)[0], case)
    return statements


def _read(file: Path) -> _Report:
    content = read_plain(file, CASES_SIZE)
    if file.suffix == COMPRESSED:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as packed:
            content = packed.read(CASES_SIZE.most + 1)
        CASES_SIZE.check(len(content), file)
    return decoded(content, file, _Report, "a report of ReFrame")
