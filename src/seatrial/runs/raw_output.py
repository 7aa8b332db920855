"""Recorded output of checks: folders as a run keeps them below raw/, and their cases.

A recording is a folder with `seatrial.json`, which says whose output it is, and with
the files of the job: `rfm_job.out`, `rfm_job.err`, `seatrial.job`, and what the check
keeps.
"""

import gzip
import hashlib
import io
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from seatrial.errors import SeatrialError
from seatrial.limits import RAW_SIZE
from seatrial.model.manifest import MANIFEST, read_manifest
from seatrial.names import natural_key
from seatrial.plain_files import open_plain, read_plain

NO_MEASUREMENT = "replay of recorded output: no measurement"
"""Shown with all results of a replay."""

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


_MOST_NODES = 1_000_000


@dataclass(frozen=True)
class Source:
    """The folder that recordings are in, with the checksums of its run, if it is one.

    Whatever is replayed is read through it: plain files only, and what was recorded.
    """

    root: Path
    checksums: Mapping[str, str] | None

    def read(self, file: Path) -> bytes:
        """Read a file.

        Raises SeatrialError if it is a link or no plain file, is too large, or is not
        what the manifest of the run says.
        """
        content = read_plain(file, RAW_SIZE)
        if self.checksums is not None:
            expected = self.checksums.get(str(file.relative_to(self.root)))
            if hashlib.sha256(content).hexdigest() != expected:
                raise SeatrialError(
                    f"{file}: not what {self.root / MANIFEST} says; `seatrial verify "
                    f"{self.root}` lists all differences"
                )
        return content


@cache
def source_of(folder: Path) -> Source:
    """Find the run that recordings are part of; SeatrialError if it is damaged."""
    manifest = beside(folder, MANIFEST)
    if manifest is None:
        return Source(folder, None)
    return Source(manifest.parent, read_manifest(manifest.parent)["checksums"])


class _Record(msgspec.Struct):
    """What seatrial.json says of a case, as far as a replay takes it."""

    check: str
    parameters: dict[str, Any]
    environment: str
    num_nodes: Annotated[int, Meta(ge=1, le=_MOST_NODES)] | None = None
    job_id: str | None = None


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
    source: Source | None = field(default=None, compare=False, repr=False)

    def status(self) -> int:
        """Return the exit status of the program; 1 if the job was ended before it."""
        file = self.folder / JOB_FILE
        if not os.path.lexists(file):
            return 1
        text = parsed_job(self._read(file).decode(errors="replace")).get("status", "1")
        if not re.fullmatch(r"[0-9]{1,3}", text):
            raise SeatrialError(f"{file}: status is {text!r}; expected 0 to 255")
        return int(text)

    def files(self) -> Iterator[tuple[Path, bytes]]:
        """Read what the job left, besides its script and what it printed.

        Gives the place of each file below the folder of its job, and its content,
        decompressed. Raises SeatrialError as `Source.read`, if there are two for one
        place, or if they are too large.
        """
        apart = {RECORD_FILE, OUTPUT_FILE, ERROR_FILE, SCRIPT_FILE}
        seen: set[Path] = set()
        left = RAW_SIZE.most
        for file in _plain_files(self.folder):
            place = file.relative_to(self.folder)
            if place.suffix == COMPRESSED:
                place = place.with_suffix("")
            if str(place) in apart:
                continue
            if place in seen:
                raise SeatrialError(f"{file}: there twice, compressed and as it is")
            seen.add(place)
            content = self._content(file, left)
            left -= len(content)
            yield place, content

    def printed(self, name: str) -> bytes:
        """Read what the job printed: `OUTPUT_FILE` or `ERROR_FILE`; b'' if nothing."""
        file = kept_file(self.folder, name)
        return b"" if file is None else self._content(file, RAW_SIZE.most)

    def _content(self, file: Path, most: int) -> bytes:
        content = self._read(file)
        if file.suffix == COMPRESSED:
            try:
                content = gzip.GzipFile(fileobj=io.BytesIO(content)).read(most + 1)
            except (OSError, EOFError, zlib.error) as error:
                raise SeatrialError(f"{file}: damaged: {error}") from error
        if len(content) > most:
            raise RAW_SIZE.exceeded(file)
        return content

    def _read(self, file: Path) -> bytes:
        return (self.source or Source(self.folder, None)).read(file)


def _plain_files(folder: Path) -> Iterator[Path]:
    """List all files below a folder; SeatrialError at a link to a folder."""
    for parent, folders, files in os.walk(folder):
        folders.sort()
        for name in folders:
            if Path(parent, name).is_symlink():
                raise SeatrialError(f"{Path(parent, name)}: a link; expected none")
        for name in sorted(files):
            yield Path(parent, name)


def kept_file(folder: Path, name: str) -> Path | None:
    """Find a raw file of a case, as it is or compressed."""
    found = (folder / name, folder / f"{name}{COMPRESSED}")
    return next((file for file in found if file.is_file()), None)


def read_job(folder: Path) -> dict[str, str]:
    """Read what a job script wrote; nothing if the job never started."""
    file = folder / JOB_FILE
    if not file.is_file():
        return {}
    return parsed_job(file.read_text(errors="replace"))


def parsed_job(text: str) -> dict[str, str]:
    """Parse what a job script wrote."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {key: value for key, _, value in pairs}


@cache
def recordings(folder: Path) -> tuple[Recording, ...]:
    """List the recordings below a folder, pairs-2 before pairs-10.

    Raises SeatrialError if there is none, or one that cannot be read.
    """
    source = source_of(folder)
    files = (
        file
        for file in folder.rglob(RECORD_FILE)
        if kept_file(file.parent, OUTPUT_FILE) is not None
        and not any(INTERRUPTED in part for part in file.parts)
    )
    found = tuple(
        _recording(file, source)
        for file in sorted(files, key=lambda f: natural_key(str(f)))
    )
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


def _recording(file: Path, source: Source) -> Recording:
    """Read the first line, which has all but the samples: those may be millions."""
    try:
        with open_plain(file) as lines:
            first = lines.readline(RAW_SIZE.most).rstrip()
            text = first + b"]}" if first.endswith(b"[") else first + lines.read()
        record = msgspec.json.decode(text, type=_Record)
    except (ValueError, RecursionError) as error:
        raise SeatrialError(f"{file}: not a record of a case: {error}") from error
    return Recording(
        folder=file.parent,
        check=record.check,
        parameters=record.parameters,
        environment=record.environment,
        num_nodes=record.num_nodes,
        job_id=record.job_id,
        source=source,
    )


def _plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as JSON holds them."""
    plain: dict[str, Any] = json.loads(json.dumps(parameters))
    return plain
