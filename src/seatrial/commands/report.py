"""`seatrial report`: the report of a closed run as one HTML file, and JUnit XML."""

from dataclasses import astuple
from pathlib import Path

import click

from seatrial.commands._judging import judged
from seatrial.paths import home
from seatrial.recordings import NO_MEASUREMENT
from seatrial.results import find_run


@click.command()
@click.argument("run")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the files (default: reports/out/SYSTEM/RUN below SEATRIAL_HOME).",
)
def report(run: str, out: Path | None) -> None:
    """Write the report of a closed run: report.html and junit.xml.

    RUN is the path of a run, its id, SYSTEM/latest or latest. The HTML file is
    complete in itself and opens offline.

    Exit status: 0 when both are written, whatever the verdict; 2 usage or
    environment. For the verdict as exit status, use `seatrial judge`.

    Example: seatrial report lab/latest --out /tmp/report
    """
    from seatrial.report import write_report

    suite = home()
    loaded, judgement = judged(suite, find_run(suite, run))
    folder = out or suite / "reports" / "out" / judgement.system / judgement.run
    paths = write_report(loaded, judgement, folder, suite)
    if judgement.replay:
        click.echo(NO_MEASUREMENT)
    click.echo(f"verdict: {judgement.verdict}")
    for path in astuple(paths):
        click.echo(str(path))
