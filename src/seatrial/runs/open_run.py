"""A run folder while it is open: filled session by session, then closed for good.

The folder is called `<run_id>.open` until everything is on disk; the rename is the
last step, so a folder without the suffix is always complete.
"""

import errno
import hashlib
import json
import os
import shutil
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from seatrial.errors import SeatrialError
from seatrial.interrupts import interrupted
from seatrial.limits import MANIFEST_SIZE
from seatrial.model.cases import Case
from seatrial.model.manifest import MANIFEST, OPEN_SUFFIX
from seatrial.plain_files import read_plain, sha256_plain
from seatrial.runs import ledger
from seatrial.runs.closed_run import AGENDA_FILE, by_start, run_folders
from seatrial.runs.run_contents import LOCK_FILE

if TYPE_CHECKING:
    import polars as pl

STARTS_FILE = "starts.json"
SESSIONS_FOLDER = "sessions"
WORK_FOLDER = "work"

_LEAST_FREE = 100_000_000
"""Bytes of disk space that a campaign needs at its start."""

_TRANSIENT = (STARTS_FILE, SESSIONS_FOLDER, WORK_FOLDER, f".{MANIFEST}.new")
"""Parts of an open folder, beside its lock, that the tables replace."""


def new_run_id(campaign: str) -> str:
    """Return a run id with the time in UTC, for example 20261121T063015Z-smoke."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{campaign}"


def utc_text(seconds: float | None = None) -> str:
    """Write a time (default: now) as ISO 8601 in UTC with whole seconds."""
    moment = datetime.fromtimestamp(time.time() if seconds is None else seconds, UTC)
    return moment.isoformat(timespec="seconds")


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Convert a failed write below a folder to an error with a remedy.

    An interrupt stays one, also if cleaning up after it fails: it may come while a
    file is opened or closed.
    """
    try:
        yield
    except OSError as error:
        if interrupted(error):
            raise KeyboardInterrupt from error
        problem = f"cannot write below {folder}: {error.strerror}: {error.filename}"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            problem = (
                f"no space left on the disk of {folder}; what was being written is "
                "not complete and never judged; free some space, then go on with "
                "`seatrial run SYSTEM --resume` if a run was going on"
            )
        raise SeatrialError(problem) from error


class RunFolder:
    """The open folder of one run below `results/<system>/`."""

    def __init__(self, results: Path, system: str, run_id: str) -> None:
        self.final = results / system / run_id
        self.path = self.final.with_name(run_id + OPEN_SUFFIX)

    def create(self, agenda: bytes | None = None) -> None:
        """Create the folder together with its agenda; SeatrialError if it exists."""
        new = self.final.with_name(f".{self.final.name}.new")
        with disk_errors(self.final.parent):
            self.final.parent.mkdir(parents=True, exist_ok=True)
            if self.final.exists() or self.path.exists():
                raise SeatrialError(
                    f"{self.final}: this run exists already; wait a second and run "
                    "again, or choose another --run-id"
                )
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir()
            if agenda is not None:
                write_file(new / AGENDA_FILE, agenda)
            new.rename(self.path)

    def close(
        self,
        manifest: dict[str, Any],
        cases: Sequence[Case],
        measurements: "Iterable[pl.DataFrame]",
    ) -> Path:
        """Write tables, checksums and manifest to disk, then rename the folder.

        `measurements` are blocks with the columns of measurements.parquet. Raises
        SeatrialError if the disk is full; the folder then stays open.
        """
        from seatrial.runs.measurement_table import write_table

        with disk_errors(self.path):
            if "ledger" in manifest:
                kept = ledger.read_ledger(self.final.parent)
                write_file(self.path / ledger.LEDGER, kept or b"")
            write_cases(self.path / "cases.json", cases)
            with new_file(self.path / "measurements.parquet") as stream:
                write_table(stream, measurements)
            shutil.rmtree(self.path / WORK_FOLDER, ignore_errors=True)
            transient = {LOCK_FILE, *_TRANSIENT}
            checksums = {
                str(file.relative_to(self.path)): sha256_plain(file)
                for file in sorted(self.path.rglob("*"))
                if file.is_file()
                and file.relative_to(self.path).parts[0] not in transient
            }
            text = json.dumps({**manifest, "checksums": checksums}, indent=1) + "\n"
            write_file(self.path / MANIFEST, text.encode())
        return self.finish()

    @property
    def written(self) -> bool:
        """Return True if all files are written, and only `finish` is left to do."""
        return (self.path / MANIFEST).is_file()

    def finish(self) -> Path:
        """Remove the transient files, and rename the folder.

        They are not needed once the manifest is written, so this can be repeated. A
        run of the ledger is recorded there before it is renamed.
        """
        content = read_plain(self.path / MANIFEST, MANIFEST_SIZE)
        if "ledger" in json.loads(content):
            digest = hashlib.sha256(content).hexdigest()
            ledger.close(self.final.parent, self.final.name, digest)
        with disk_errors(self.path):
            for path in (self.path / name for name in _TRANSIENT):
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
            publish(self.path, self.final)
        return self.tidied()

    def tidied(self) -> Path:
        """Remove the lock of a closed run: it kept others from closing it, too."""
        with disk_errors(self.final):
            (self.final / LOCK_FILE).unlink(missing_ok=True)
        return self.final


def open_runs(results: Path, system: str | None = None) -> list[Path]:
    """Return the open runs of one system, or of all, by start time, oldest first.

    A folder without an agenda is not a run: a copy in progress, for example.
    """
    folders = run_folders(results, system)
    opened = (run for run in folders if run.name.endswith(OPEN_SUFFIX))
    return by_start(
        (run for run in opened if (run / AGENDA_FILE).is_file()), AGENDA_FILE
    )


def newest_open(results: Path, system: str) -> str:
    """Return the id of the newest open run of a system; SeatrialError if none is."""
    runs = open_runs(results, system)
    if not runs:
        raise SeatrialError(
            f"no open run of system {system!r} below {results}: nothing was cut off; "
            f"begin a run with `seatrial run {system} --campaign NAME`"
        )
    return runs[-1].name.removesuffix(OPEN_SUFFIX)


def publish(open_path: Path, final: Path) -> None:
    """Sync a complete folder to disk, then rename it to its final name."""
    for path in (*open_path.rglob("*"), open_path):
        if path.is_file() or path.is_dir():
            sync(path)
    open_path.rename(final)
    sync(final.parent)


def probe_space(folder: Path) -> None:
    """Write and remove a megabyte; OSError if the disk (or quota) is full.

    With a full disk jobs and ReFrame fail as on a defective machine.
    """
    with TemporaryFile(dir=folder) as file:
        file.write(bytes(1_000_000))
        file.flush()
        os.fsync(file.fileno())


def try_folder(folder: Path) -> None:
    """Check that an output folder is writable and has space, before hours of work.

    Leaves nothing in it. Raises SeatrialError if it cannot be created or written.
    """
    where = f"{folder} on {socket.gethostname()}"
    other = "choose another folder (--results DIR or SEATRIAL_RESULTS for runs)"
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe_space(folder)
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise SeatrialError(
            f"cannot write to {where}: {error.strerror}; nothing was started; make it "
            f"writable for you, or {other}"
        ) from error
    finally:
        for path in missing:
            with suppress(OSError):  # not empty: another run has begun in it
                path.rmdir()
    if free < _LEAST_FREE:
        raise SeatrialError(
            f"{where}: {free / 1e6:.0f} MB of disk space are free, expected at least "
            f"{_LEAST_FREE / 1e6:.0f} MB; nothing was started; free some space, or "
            f"{other}"
        )


def copy_files(files: Sequence[Path], source: Path, target: Path) -> None:
    """Copy files of a stage folder with their relative paths."""
    for file in files:
        destination = target / file.relative_to(source)
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, destination)


def write_cases(file: Path, cases: Sequence[Case]) -> None:
    """Write cases.json, one case per line."""
    encode = msgspec.json.Encoder().encode  # json takes seconds for 100,000 cases
    write_file(file, b"[\n" + b",\n".join(map(encode, cases)) + b"\n]\n")


def write_file(file: Path, content: bytes) -> None:
    """Write a file to disk atomically."""
    with new_file(file) as stream:
        stream.write(content)


@contextmanager
def new_file(file: Path) -> Iterator[BinaryIO]:
    """Open a stream; at its end it replaces a file on disk atomically."""
    new = file.with_name(f".{file.name}.new")
    new.unlink(missing_ok=True)
    try:
        with new.open(
            "xb"
        ) as stream:  # follows no link that another user has put there
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    new.rename(file)
    sync(file.parent)


def sync(path: Path) -> None:
    """Sync a file, or the names in a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
