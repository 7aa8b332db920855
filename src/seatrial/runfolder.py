"""A run folder while it is open: filled session by session, then closed for good.

The folder is called `<run_id>.open` until everything is on disk; the rename is the
last step, so a folder without the suffix is always complete.
"""

import errno
import io
import json
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from seatrial.errors import SeatrialError
from seatrial.records import Case, Measurement, as_dict
from seatrial.results import OPEN_SUFFIX, SCHEMA, sha256


def new_run_id(campaign: str) -> str:
    """Make a run id from the time in UTC, for example 20261121T063015Z-smoke."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{campaign}"


def utc_text(seconds: float | None = None) -> str:
    """Write a time (default: now) as ISO 8601 in UTC with whole seconds."""
    moment = datetime.fromtimestamp(time.time() if seconds is None else seconds, UTC)
    return moment.isoformat(timespec="seconds")


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Turn a failed write below a folder into an error that tells what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _disk_full(folder) from error
        raise SeatrialError(
            f"cannot write below {folder}: {error.strerror}: {error.filename}"
        ) from error


def _disk_full(folder: Path) -> SeatrialError:
    """Make the error of a full disk."""
    return SeatrialError(
        f"no space left on the disk of {folder}; the run is not complete and will "
        "not be judged; free some space, delete its folder and run again"
    )


class RunFolder:
    """The open folder of one run below `results/<system>/`."""

    def __init__(self, results: Path, system: str, run_id: str) -> None:
        self.final = results / system / run_id
        self.path = self.final.with_name(run_id + OPEN_SUFFIX)

    def create(self) -> None:
        """Make the folder; SeatrialError if this run exists already."""
        with disk_errors(self.final.parent):
            self.final.parent.mkdir(parents=True, exist_ok=True)
            if self.final.exists() or self.path.exists():
                raise SeatrialError(
                    f"{self.final}: this run exists already; wait a second and run "
                    "again, or choose another --run-id"
                )
            self.path.mkdir()

    def close(
        self,
        manifest: dict[str, Any],
        cases: Sequence[Case],
        measurements: Sequence[Measurement],
    ) -> Path:
        """Write tables, checksums and manifest to disk, then rename the folder.

        Raises SeatrialError if the disk is full; the folder then stays open.
        """
        with disk_errors(self.path):
            _write(
                self.path / "cases.json",
                json.dumps([as_dict(case) for case in cases], indent=1).encode(),
            )
            _write(self.path / "measurements.parquet", _parquet(measurements))
            checksums = {
                str(file.relative_to(self.path)): sha256(file)
                for file in sorted(self.path.rglob("*"))
                if file.is_file()
            }
            text = json.dumps({**manifest, "checksums": checksums}, indent=1) + "\n"
            _write(self.path / "manifest.json", text.encode())
            publish(self.path, self.final)
        return self.final


def publish(open_path: Path, final: Path) -> None:
    """Bring a complete folder to disk and give it its final name."""
    for path in (*open_path.rglob("*"), open_path):
        if path.is_file() or path.is_dir():
            _sync(path)
    open_path.rename(final)
    _sync(final.parent)


def probe_space(folder: Path) -> None:
    """Write a megabyte and drop it again; OSError if the disk (or quota) is full.

    A full disk makes jobs and ReFrame fail in many ways, each hard to tell from a
    fault of the machine under test.
    """
    probe = folder / ".probe"
    try:
        with probe.open("wb") as file:
            file.write(bytes(1_000_000))
            file.flush()
            os.fsync(file.fileno())
    finally:
        probe.unlink(missing_ok=True)


def copy_files(files: Sequence[Path], source: Path, target: Path) -> None:
    """Copy some files of a stage folder, keeping their places below it."""
    for file in files:
        destination = target / file.relative_to(source)
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, destination)


def _parquet(measurements: Sequence[Measurement]) -> bytes:
    frame = pl.DataFrame([as_dict(row) for row in measurements], schema=SCHEMA)
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
