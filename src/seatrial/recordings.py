"""Recorded output of checks: folders as a run keeps them below raw/, and their cases.

A recording is a folder with `seatrial.json`, which says whose output it is, and with
the files of the job: `rfm_job.out`, `rfm_job.err`, `seatrial.job`, and what the check
keeps.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from seatrial.errors import SeatrialError

NO_MEASUREMENT = "replay of recorded output: no measurement"
"""What is said of a replay, wherever its results are shown."""

INTERRUPTED = ".interrupted-"
"""What follows the name of a session in that of a folder with a try that was cut off;
such output is kept as evidence, and is no recording."""

COMPRESSED = ".gz"
"""What follows the name of a raw file that was so big that it is compressed."""

JOB_FILE = "seatrial.job"
RECORD_FILE = "seatrial.json"
OUTPUT_FILE = "rfm_job.out"
ERROR_FILE = "rfm_job.err"
SCRIPT_FILE = "rfm_job.sh"


@dataclass(frozen=True)
class Recording:
    """The recorded output of one case.

    `parameters` and `environment` are those of the case, `num_nodes` the nodes that it
    asked for (None in recordings that do not say), `job_id` that of its job.
    """

    folder: Path
    check: str
    parameters: dict[str, Any]
    environment: str
    num_nodes: int | None
    job_id: str | None

    def status(self) -> int:
        """Give the exit status of the program; 1 if the job was ended before it."""
        return int(read_job(self.folder).get("status", 1))

    def files(self) -> list[Path]:
        """List what the job left, besides its script and its standard output."""
        apart = {RECORD_FILE, OUTPUT_FILE, ERROR_FILE, SCRIPT_FILE}
        return sorted(
            file
            for file in self.folder.iterdir()
            if file.name.removesuffix(COMPRESSED) not in apart
        )


def kept_file(folder: Path, name: str) -> Path | None:
    """Find a raw file of a case, as it is or compressed."""
    found = (folder / name, folder / f"{name}{COMPRESSED}")
    return next((file for file in found if file.is_file()), None)


def read_job(folder: Path) -> dict[str, str]:
    """Read what a job script wrote; nothing if the job never started."""
    file = folder / JOB_FILE
    if not file.is_file():
        return {}
    pairs = (line.partition("=") for line in file.read_text().splitlines())
    return {key: value for key, _, value in pairs}


@cache
def recordings(folder: Path) -> tuple[Recording, ...]:
    """List the recordings below a folder, pairs-2 before pairs-10.

    Raises SeatrialError if there is none, or one that cannot be read.
    """
    files = (
        file
        for file in folder.rglob(RECORD_FILE)
        if kept_file(file.parent, OUTPUT_FILE) is not None
        and not any(INTERRUPTED in part for part in file.parts)
    )
    found = tuple(_recording(file) for file in sorted(files, key=_natural))
    if not found:
        raise SeatrialError(
            f"{folder}: no recordings there; expected folders with {RECORD_FILE} and "
            f"{OUTPUT_FILE}, as a run keeps them below raw/"
        )
    return found


def find_recording(
    folder: Path,
    check: str,
    parameters: Mapping[str, Any],
    environment: str,
    session: str = "",
) -> Recording | None:
    """Find the recording of a case below a folder; None if there is none.

    Of several, the one counts that lies in a folder called like the session, for
    example links-2. Where none does, it is the second of them: the number at the end of
    a session counts repeats. Without a session it is the first.
    """
    wanted = (check, _plain(parameters), environment)
    found = [
        each
        for each in recordings(folder)
        if (each.check, each.parameters, each.environment) == wanted
    ]
    of_the_session = [each for each in found if session in each.folder.parts]
    if of_the_session:
        return of_the_session[0]
    number = int(re.sub(r".*?(\d*)$", r"\1", session) or 1)
    return found[number - 1] if len(found) >= number else None


def beside(folder: Path, name: str) -> Path | None:
    """Find a file of the run in whose folder, or part of it, recordings are."""
    return next(
        (
            place / name
            for place in (folder, *folder.parents[:2])
            if (place / name).is_file()
        ),
        None,
    )


def _recording(file: Path) -> Recording:
    """Read the first line, which has all but the samples: those may be millions."""
    try:
        with file.open(encoding="utf-8") as lines:
            first = lines.readline().rstrip()
            text = first + "]}" if first.endswith("[") else first + lines.read()
        record = json.loads(text)
        return Recording(
            folder=file.parent,
            check=record["check"],
            parameters=record["parameters"],
            environment=record["environment"],
            num_nodes=record.get("num_nodes"),
            job_id=record.get("job_id"),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SeatrialError(f"{file}: not a record of a case: {error!r}") from error


def _plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Give parameters as JSON holds them."""
    plain: dict[str, Any] = json.loads(json.dumps(parameters))
    return plain


def _natural(path: Path) -> list[tuple[str, int]]:
    found = re.findall(r"(\D*)(\d*)", str(path))
    return [(other, int(digits or 0)) for other, digits in found]
