"""Results that were computed from verified runs, kept in the user's own folder.

A result is kept by the SHA-256 of the manifest of its run, which lists the checksums of
all files of the run. So years of runs are verified once, not each night. The folder can
be removed at any time.
"""

import hashlib
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TypeVar

import msgspec

from seatrial.errors import SeatrialError
from seatrial.limits import CASES_SIZE
from seatrial.model.manifest import manifest_bytes
from seatrial.plain_files import read_plain
from seatrial.runs.closed_run import Run, load_run

_T = TypeVar("_T")
_OWN = 0o700


def verified(path: Path, name: str, kind: type[_T], compute: Callable[[Run], _T]) -> _T:
    """Return the result of `compute` for a closed run, which is verified first.

    A result that was kept under this `name` is returned without reading the run. The
    name has all that the result depends on beside the run, and a version. Raises
    SeatrialError as `load_run` does.
    """
    digest = hashlib.sha256(manifest_bytes(path)).hexdigest()
    folder = cache_folder()
    file = None if folder is None else folder / f"{digest}-{name}.json"
    if file is not None and file.is_file():
        with suppress(SeatrialError, msgspec.DecodeError):
            return msgspec.json.decode(read_plain(file, CASES_SIZE), type=kind)
    run = load_run(path)
    result = compute(run)
    if file is not None and run.digest == digest:
        _keep(file, msgspec.json.encode(result))
    return result


def cache_folder() -> Path | None:
    """Return the user's own folder of results; None if it is not theirs alone."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "seatrial" / "runs"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=_OWN, exist_ok=True)
        state = folder.lstat()
    except OSError:
        return None
    own = state.st_uid == os.getuid() and stat.S_IMODE(state.st_mode) == _OWN
    return folder if own and stat.S_ISDIR(state.st_mode) else None


def _keep(file: Path, content: bytes) -> None:
    """Write a result atomically; keep none on a full disk."""
    with suppress(OSError), NamedTemporaryFile(dir=file.parent) as new:
        new.write(content)
        new.flush()
        file.unlink(missing_ok=True)
        os.link(new.name, file)
