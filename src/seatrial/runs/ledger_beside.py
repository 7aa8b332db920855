"""The folder of runs around a run: its ledger, and the other runs in it."""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from seatrial.errors import SeatrialError
from seatrial.limits import MANIFEST_SIZE
from seatrial.model.manifest import MANIFEST, OPEN_SUFFIX, Place
from seatrial.plain_files import read_plain
from seatrial.runs.closed_run import Run, run_folders
from seatrial.runs.ledger import LEDGER, read_ledger


@dataclass(frozen=True)
class Sibling:
    """Another run in the same folder; `digest` is '' for an open one.

    `measured` is False for replays and imports, which are not in the ledger. It may
    repeat spoiled cases of another run: `repeat_of`.
    """

    run: str
    digest: str = ""
    place: Place | None = None
    measured: bool = True
    campaign: str = ""
    started: str = ""
    repeat_of: str = ""


@dataclass(frozen=True)
class Beside:
    """What is beside a run: the ledger, the other runs, the copy of the last of them.

    `ledger` is None where the driver does not work, for example on a machine that
    fetches runs.
    """

    folder: Path | None = None
    ledger: bytes | None = None
    siblings: tuple[Sibling, ...] = ()
    kept: bytes = b""

    def repeats_of(self, run: str) -> list[str]:
        """Return the closed repeats of a run, and the repeats of these."""
        repeats = [
            sibling.run
            for sibling in self.siblings
            if sibling.repeat_of == run != sibling.run
        ]
        return [name for one in repeats for name in (one, *self.repeats_of(one))]


class _Head(msgspec.Struct):
    """The keys of a manifest that a sibling needs."""

    run: str
    campaign: str = ""
    started: str = ""
    replay: str | None = None
    imported: dict[str, Any] | None = None
    ledger: Place | None = None
    repeat_of: str = ""
    checksums: dict[str, str] = {}


def read_beside(run: Run) -> Beside:
    """Read the folder of runs around a run; empty if it is not that of its system.

    Its other runs are not verified; damaged ones are left out.
    """
    folder = run.path.parent
    if folder.name != run.manifest["system"]:
        return Beside()
    siblings, last, kept = [], 0, b""
    newest: tuple[Path, str] | None = None
    for path in sorted(run_folders(folder.parent, folder.name)):
        if path.name.endswith(OPEN_SUFFIX):
            siblings.append(Sibling(path.name.removesuffix(OPEN_SUFFIX)))
            continue
        try:
            content = read_plain(path / MANIFEST, MANIFEST_SIZE)
            head = msgspec.json.decode(content, type=_Head)
        except (SeatrialError, msgspec.DecodeError):
            continue
        siblings.append(
            Sibling(
                head.run,
                sha256(content).hexdigest(),
                head.ledger,
                head.replay is None and head.imported is None,
                head.campaign,
                head.started,
                head.repeat_of,
            )
        )
        if head.ledger and head.ledger.entry > last:
            last, newest = head.ledger.entry, (path, head.checksums.get(LEDGER, ""))
    if newest is not None:
        path, digest = newest
        kept = read_ledger(path) or b""
        if sha256(kept).hexdigest() != digest:
            kept = b""
    return Beside(folder, read_ledger(folder), tuple(siblings), kept)
