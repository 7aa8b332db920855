"""`seatrial report`: write the report of a closed run."""

from pathlib import Path

import click

from seatrial.commands import _options as options
from seatrial.commands._runs import judged, run_path
from seatrial.errors import SeatrialError
from seatrial.output import echo
from seatrial.paths import home

_DIGEST = "manifest.sha256"
"""File in a report folder with the SHA-256 of the run's manifest."""

_FORMS = ["html", "pdf", "md", "csv", "junit"]


@click.command()
@click.argument("run", type=options.RUN)
@options.out(
    help="Folder for the files (default: reports/out/SYSTEM/RUN below SEATRIAL_HOME)."
)
@click.option(
    "--form",
    "forms",
    multiple=True,
    type=click.Choice(_FORMS),
    default=_FORMS,
    help="Write this form only; may be repeated (default: all).",
)
@options.criteria
@options.note
def report(
    run: str,
    out: Path | None,
    forms: tuple[str, ...],
    criteria: str | None,
    notes: tuple[str, ...],
) -> None:
    """Write the report of a closed run.

    RUN is the path of a run or the file of a packed one, its id, SYSTEM/latest or
    latest. Files: report.html (one file, opens offline), report.pdf, summary.md (for a
    ticket), findings.csv, criteria.csv and junit.xml. For every number, use
    `seatrial query RUN`.

    Exit status: 0 for every verdict when all files are written; 2 usage or environment.
    For the verdict as exit status, use `seatrial judge`.

    Example: seatrial report lab/latest --out report
    """
    from seatrial.report import write_report
    from seatrial.runs.open_run import write_file
    from seatrial.runs.raw_output import NO_MEASUREMENT

    suite = home()
    loaded, judgement = judged(suite, run_path(run), criteria=criteria)
    folder = out or suite / "reports" / "out" / judgement.system / judgement.run
    if out is None:
        _require_own(folder, loaded.digest)
    paths = write_report(loaded, judgement, folder, suite, forms, notes)
    write_file(folder / _DIGEST, f"{loaded.digest}\n".encode())
    if judgement.replay:
        echo(NO_MEASUREMENT)
    echo(f"verdict: {judgement.verdict}")
    for path in paths.values():
        echo(str(path))


def _require_own(folder: Path, digest: str) -> None:
    """Raise SeatrialError if the folder has the report of another run of this name.

    A pack from outside may hold a run with the name of a local one.
    """
    file = folder / _DIGEST
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    mark = file.read_text(errors="replace").strip() if file.is_file() else "unknown"
    if mark != digest:
        raise SeatrialError(
            f"{folder}: holds the report of another run of this name: manifest SHA-256 "
            f"{mark}, this run has {digest}; nothing is replaced; write this report "
            "with --out FOLDER, or remove the old one"
        )
