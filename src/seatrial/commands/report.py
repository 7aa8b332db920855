"""`seatrial report`: the report of a closed run, as HTML, PDF, Markdown, CSV, JUnit."""

from pathlib import Path

import click

from seatrial.commands._judging import criteria_option, judged
from seatrial.commands._note import note_option
from seatrial.commands._runs import run_path
from seatrial.paths import home
from seatrial.recordings import NO_MEASUREMENT

_FORMS = ["html", "pdf", "md", "csv", "junit"]


@click.command()
@click.argument("run")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the files (default: reports/out/SYSTEM/RUN below SEATRIAL_HOME).",
)
@click.option(
    "--form",
    "forms",
    multiple=True,
    type=click.Choice(_FORMS),
    default=_FORMS,
    help="Write this form only; may be repeated (default: all).",
)
@criteria_option
@note_option
def report(
    run: str,
    out: Path | None,
    forms: tuple[str, ...],
    criteria: str | None,
    notes: tuple[str, ...],
) -> None:
    """Write the report of a closed run.

    RUN is the path of a run or the file of a packed one, its id, SYSTEM/latest or
    latest. Files: report.html (complete in itself, opens offline), report.pdf,
    summary.md (for a ticket), findings.csv, criteria.csv and junit.xml. Every number:
    seatrial query RUN.

    Exit status: 0 when all are written, whatever the verdict; 2 usage or
    environment. For the verdict as exit status, use `seatrial judge`.

    Example: seatrial report lab/latest --out report
    """
    from seatrial.report import write_report

    suite = home()
    loaded, judgement = judged(suite, run_path(run), criteria=criteria)
    folder = out or suite / "reports" / "out" / judgement.system / judgement.run
    paths = write_report(loaded, judgement, folder, suite, forms, notes)
    if judgement.replay:
        click.echo(NO_MEASUREMENT)
    click.echo(f"verdict: {judgement.verdict}")
    for path in paths.of(forms):
        click.echo(str(path))
