"""Recorded output of checks: folders as a run keeps them below raw/, and their cases.

A recording is a folder with `seatrial.json`, the record of its case, and the files of
the job: `rfm_job.out`, `rfm_job.err`, `seatrial.job`, and those that the check keeps.
"""

import gzip
import hashlib
import io
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from seatrial.errors import SeatrialError
from seatrial.limits import RAW_SIZE, Limit
from seatrial.model.manifest import MANIFEST, read_manifest
from seatrial.names import natural_key
from seatrial.plain_files import open_plain, read_plain

NO_MEASUREMENT = "replay of recorded output: no measurement"
"""Shown with all results of a replay."""

INTERRUPTED = ".interrupted-"
"""Suffix of the folder of an interrupted session: kept as evidence, no recording."""

COMPRESSED = ".gz"
"""Suffix of a compressed raw file."""

JOB_FILE = "seatrial.job"
PACK_FILE = "seatrial.pack"
"""Of a case that shares a job of Slurm: `taken`, `job`, `begin`, `end`, `status`."""
RECORD_FILE = "seatrial.json"
SAMPLES_FILE = "seatrial.parquet"
OUTPUT_FILE = "rfm_job.out"
ERROR_FILE = "rfm_job.err"
SCRIPT_FILE = "rfm_job.sh"

_MOST_NODES = 1_000_000
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Source:
    """The folder of recordings, with the checksums of its run if it is one.

    A replay reads all files through it: plain files only, and as recorded.
    """

    root: Path
    checksums: Mapping[str, str] | None

    def read(self, file: Path) -> bytes:
        """Read a file.

        Raises SeatrialError if it is a link or no plain file, is too large, or differs
        from the manifest of the run.
        """
        content = read_plain(file, RAW_SIZE)
        self._check(file, hashlib.sha256(content).hexdigest())
        return content

    def chunks(self, file: Path, left: int) -> Iterator[bytes]:
        """Read a file in parts, decompressed; it may be larger than memory.

        Raises SeatrialError as `read`, after the last part if it differs from the
        manifest, if it is damaged, or has more bytes than are `left` of `RAW_SIZE`.
        """
        with open_plain(file) as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            self._check(file, digest)
            stream.seek(0)
            is_packed = file.suffix == COMPRESSED
            plain = gzip.GzipFile(fileobj=stream) if is_packed else stream
            try:
                while chunk := plain.read(_CHUNK):
                    left -= len(chunk)
                    if left < 0:
                        raise RAW_SIZE.exceeded(file)
                    yield chunk
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise SeatrialError(f"{file}: damaged: {error}") from error

    def _check(self, file: Path, digest: str) -> None:
        """Raise SeatrialError if the SHA-256 of a file is not that of the manifest."""
        if self.checksums is None:
            return
        if digest != self.checksums.get(str(file.relative_to(self.root))):
            raise SeatrialError(
                f"{file}: not what {self.root / MANIFEST} says; `seatrial verify "
                f"{self.root}` lists all differences"
            )


@cache
def source_of(folder: Path) -> Source:
    """Find the run that recordings are part of; SeatrialError if it is damaged."""
    manifest = beside(folder, MANIFEST)
    if manifest is None:
        return Source(folder, None)
    return Source(manifest.parent, read_manifest(manifest.parent)["checksums"])


class _Record(msgspec.Struct):
    """The parts of seatrial.json that a replay reads."""

    check: str
    parameters: dict[str, Any]
    environment: str
    num_nodes: Annotated[int, Meta(ge=1, le=_MOST_NODES)] | None = None
    whole_class: bool | None = None
    job_id: str | None = None


class Recording(_Record, kw_only=True):
    """The recorded output of one case.

    `num_nodes` is the number of nodes that it requested, and `whole_class` says that
    these are all of their class; None if not recorded.
    """

    folder: Path
    source: Source

    def status(self) -> int:
        """Return the exit status of the program; 1 if the job ended before it."""
        file = self.folder / JOB_FILE
        if not os.path.lexists(file):
            return 1
        job = _parse_job(self.source.read(file).decode(errors="replace"))
        text = job.get("status", "1")
        if not re.fullmatch(r"[0-9]{1,3}", text):
            raise SeatrialError(f"{file}: status is {text!r}; expected 0 to 255")
        return int(text)

    def files(self) -> Iterator[tuple[Path, Iterator[bytes]]]:
        """Read the files of the job, except its script and its output.

        Yields the path of each file below the folder of its job, and the parts of its
        content, to be read before the next file. Raises SeatrialError as
        `Source.chunks`, if two have the same path, or if they are too large in all.
        """
        apart = {RECORD_FILE, SAMPLES_FILE, OUTPUT_FILE, ERROR_FILE, SCRIPT_FILE}
        seen: set[Path] = set()
        left = RAW_SIZE.most
        for file in _plain_files(self.folder):
            path = file.relative_to(self.folder)
            if path.suffix == COMPRESSED:
                path = path.with_suffix("")
            if str(path) in apart:
                continue
            if path in seen:
                raise SeatrialError(f"{file}: there twice, compressed and as it is")
            seen.add(path)
            size = 0

            def counted(file: Path = file, left: int = left) -> Iterator[bytes]:
                nonlocal size
                for chunk in self.source.chunks(file, left):
                    size += len(chunk)
                    yield chunk

            yield path, counted()
            left -= size

    def printed(self, name: str) -> bytes:
        """Read `OUTPUT_FILE` or `ERROR_FILE` of the job; b'' without one."""
        file = kept_file(self.folder, name)
        return b"" if file is None else plain_content(file, self.source.read(file))


def _plain_files(folder: Path) -> Iterator[Path]:
    """Yield all files below a folder; SeatrialError at a link to a folder."""
    for parent, folders, files in os.walk(folder):
        folders.sort()
        for name in folders:
            if Path(parent, name).is_symlink():
                raise SeatrialError(f"{Path(parent, name)}: a link; expected none")
        for name in sorted(files):
            yield Path(parent, name)


def plain_content(file: Path, content: bytes, limit: Limit = RAW_SIZE) -> bytes:
    """Return the content of a raw file, decompressed.

    Raises SeatrialError if it is damaged, or larger than the limit.
    """
    if file.suffix == COMPRESSED:
        try:
            content = gzip.GzipFile(fileobj=io.BytesIO(content)).read(limit.most + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise SeatrialError(f"{file}: damaged: {error}") from error
    if len(content) > limit.most:
        raise limit.exceeded(file)
    return content


def kept_file(folder: Path, name: str) -> Path | None:
    """Find a raw file of a case, as it is or compressed."""
    files = (folder / name, folder / f"{name}{COMPRESSED}")
    return next((file for file in files if file.is_file()), None)


def read_job(folder: Path) -> dict[str, str]:
    """Read the values that a job script wrote; none if the job never started."""
    return _values_of(folder / JOB_FILE)


def read_pack(folder: Path) -> dict[str, str]:
    """Read what a shared job wrote about a case; nothing if it has its own job."""
    return _values_of(folder / PACK_FILE)


def _values_of(file: Path) -> dict[str, str]:
    return _parse_job(file.read_text(errors="replace")) if file.is_file() else {}


def _parse_job(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines())
    return {key: value for key, _, value in pairs}


@cache
def recordings(folder: Path) -> tuple[Recording, ...]:
    """Return the recordings below a folder, pairs-2 before pairs-10.

    Raises SeatrialError if there is none, or one that cannot be read.
    """
    source = source_of(folder)
    files = (
        file
        for file in folder.rglob(RECORD_FILE)
        if kept_file(file.parent, OUTPUT_FILE) is not None
        and not any(INTERRUPTED in part for part in file.parts)
    )
    ordered = sorted(files, key=lambda file: natural_key(str(file)))
    if not ordered:
        raise SeatrialError(
            f"{folder}: no recordings there; expected folders with {RECORD_FILE} and "
            f"{OUTPUT_FILE}, as a run keeps them below raw/"
        )
    return tuple(_recording(file, source) for file in ordered)


def find_recording(
    folder: Path,
    check: str,
    parameters: Mapping[str, Any],
    environment: str,
    session: str = "",
) -> Recording | None:
    """Find the recording of a case below a folder; None without one.

    Of several, take the one in a folder with the name of the session, such as links-2;
    if none is, the second of them: the number at the end of a session counts repeats.
    Without a session take the first.
    """
    plain = json.loads(json.dumps(parameters))  # as the record holds them
    matches = [
        recording
        for recording in recordings(folder)
        if (recording.check, recording.environment) == (check, environment)
        and recording.parameters == plain
    ]
    for recording in matches:
        if session in recording.folder.parts:
            return recording
    number = int(re.sub(r".*?(\d*)$", r"\1", session) or 1)
    return matches[number - 1] if len(matches) >= number else None


def beside(folder: Path, name: str) -> Path | None:
    """Find a file in a folder of recordings, or in the run that it is a part of."""
    files = (place / name for place in (folder, *folder.parents[:2]))
    return next((file for file in files if file.is_file()), None)


def _recording(file: Path, source: Source) -> Recording:
    """Read the first line, which has all except the samples: they may be millions."""
    try:
        with open_plain(file) as lines:
            first = lines.readline(RAW_SIZE.most).rstrip()
            text = first + b"]}" if first.endswith(b"[") else first + lines.read()
        record = msgspec.json.decode(text, type=_Record)
    except (ValueError, RecursionError) as error:
        raise SeatrialError(f"{file}: not a record of a case: {error}") from error
    fields = msgspec.structs.asdict(record)
    return Recording(**fields, folder=file.parent, source=source)
