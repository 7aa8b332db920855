"""Write a protocol: a new folder with all that is signed, or nothing."""

import errno
import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from seatrial import __version__
from seatrial.criteria.criteria import Criteria
from seatrial.errors import SeatrialError
from seatrial.judge.judge import Judgement
from seatrial.plain_files import sha256_plain
from seatrial.protocol.content import protocol_of
from seatrial.protocol.markdown import markdown
from seatrial.protocol.pdf import protocol_pdf
from seatrial.protocol.record import (
    CRITERIA,
    LEDGER,
    LIST,
    PAPER,
    RECORD,
    REPORT_FOLDER,
    RUNS_FOLDER,
    SIGNATURES_FOLDER,
    TEXT,
    Record,
    SignedRun,
    list_text,
)
from seatrial.protocol.verification import verify_protocol
from seatrial.report import report_files
from seatrial.report.chapters import contents
from seatrial.report.pdf import day_of
from seatrial.runs.closed_run import Run
from seatrial.runs.ledger_beside import Beside
from seatrial.runs.open_run import disk_errors, sync, utc_text
from seatrial.runs.pack import SUFFIX, pack


def write_protocol(
    folder: Path,
    runs: Sequence[Run],
    judgement: Judgement,
    criteria: Criteria,
    beside: Beside,
    home: Path,
) -> None:
    """Write the protocol of a run, the first, and of those judged with it.

    `beside` has the ledger; without one, that of the run counts. `home` has the
    templates. Raises SeatrialError if the folder exists or cannot be written, or if a
    run changed since it was judged.
    """
    if os.path.lexists(folder):
        raise SeatrialError(
            f"{folder}: exists already; a protocol is written once: sign it, or move "
            "it away, or use --out FOLDER"
        )
    with disk_errors(folder.parent):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=".protocol-", dir=folder.parent
        ) as place:
            part = Path(place, folder.name)
            part.mkdir()
            _fill(part, runs, judgement, criteria, beside, home)
            verify_protocol(part).require_whole()
            _rename(part, folder)


def _rename(part: Path, folder: Path) -> None:
    """Move the finished folder to its place, which must still be free."""
    try:
        part.rename(folder)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            raise
        raise SeatrialError(
            f"{folder}: exists already; another process made it meanwhile"
        ) from error
    sync(folder.parent)


def _fill(
    folder: Path,
    runs: Sequence[Run],
    judgement: Judgement,
    criteria: Criteria,
    beside: Beside,
    home: Path,
) -> None:
    """Write all files of a protocol, the list last."""
    run = runs[0]
    content = contents(run, judgement, home)
    report = report_files(run, judgement, content, home)
    files = {f"{REPORT_FOLDER}/{name}": made for name, made in report.items()}
    files[CRITERIA] = criteria.content
    ledger = run.kept.get(LEDGER) if beside.ledger is None else beside.ledger
    if ledger is not None:
        files[LEDGER] = ledger
    checksums = {name: hashlib.sha256(made).hexdigest() for name, made in files.items()}
    packed = _packed(folder, runs)
    checksums |= {one.file: sha256_plain(folder / one.file) for one in packed}
    written = utc_text()
    record = Record(
        schema=1,
        system=judgement.system,
        campaign=judgement.campaign,
        run=judgement.run,
        verdict=judgement.verdict,
        judgement=judgement.digest,
        criteria=judgement.criteria_sha256,
        runs=packed,
        signatures=dict(criteria.signatures),
        seatrial=__version__,
        written=written,
    )
    encoded = msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n"
    checksums[RECORD] = hashlib.sha256(encoded).hexdigest()
    protocol = protocol_of(runs, judgement, criteria, content, checksums, written)
    own = {
        RECORD: encoded,
        TEXT: markdown(protocol).encode(errors="replace"),
        PAPER: protocol_pdf(protocol, home, day_of(run)),
    }
    for name in (TEXT, PAPER):
        checksums[name] = hashlib.sha256(own[name]).hexdigest()
    for name, made in {**files, **own, LIST: list_text(checksums)}.items():
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(made)
    (folder / SIGNATURES_FOLDER).mkdir()


def _packed(folder: Path, runs: Sequence[Run]) -> tuple[SignedRun, ...]:
    """Pack the runs, whole and as they were judged."""
    (folder / RUNS_FOLDER).mkdir()
    packed = []
    for run in runs:
        name = str(run.manifest["run"])
        file = f"{RUNS_FOLDER}/{name}{SUFFIX}"
        pack(run.path, folder / file)
        packed.append(SignedRun(name, run.digest, file))
    return tuple(packed)
