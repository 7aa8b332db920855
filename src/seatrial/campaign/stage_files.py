"""The files of ReFrame's stage folders that a run keeps as raw output."""

import gzip
import re
import shutil
from pathlib import Path
from typing import Any

from seatrial.runs.open_run import copy_files
from seatrial.runs.raw_output import COMPRESSED, JOB_FILE, RECORD_FILE

BIG_FILE = 1 << 20
"""Raw files of that many bytes are compressed."""

_UNCLEAN = re.compile(r"[^A-Za-z0-9._=+-]+")


def keep_files(stage: Path, entry: dict[str, Any], raw: Path, part: str) -> Path | None:
    """Copy what is worth keeping of a stage folder; return the copy's folder.

    `entry` is that of ReFrame's report. None if there is nothing to keep.
    """
    names = [
        f"{Path(entry['job_stdout'] or 'rfm_job.out').stem}.sh",
        entry["job_stdout"] or "rfm_job.out",
        entry["job_stderr"] or "rfm_job.err",
        RECORD_FILE,
        *entry.get("keep_files", []),
    ]
    found = [path for name in names for path in sorted(stage.glob(name))]
    files = [
        file
        for path in found
        for file in (path.rglob("*") if path.is_dir() else [path])
        if file.is_file()
    ]
    if not files:
        return None
    name = _UNCLEAN.sub("_", "-".join(stage.parts[-3:]))
    copy_files(list(dict.fromkeys(files)), stage, raw / f"{name}{part}")
    return raw / f"{name}{part}"


def compress(folder: Path) -> None:
    """Replace every big file below a folder by a compressed one."""
    for file in sorted(folder.rglob("*")):
        if file.name in (RECORD_FILE, JOB_FILE) or not file.is_file():
            continue
        if file.stat().st_size >= BIG_FILE:
            with (
                file.open("rb") as plain,
                file.with_name(file.name + COMPRESSED).open("wb") as target,
                # A file of the same content is to have the same bytes.
                gzip.GzipFile(
                    fileobj=target, mode="wb", mtime=0, filename=""
                ) as packed,
            ):
                shutil.copyfileobj(plain, packed, 1 << 20)
            file.unlink()
