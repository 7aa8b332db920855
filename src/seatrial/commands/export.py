"""`seatrial export`: write measurements of runs for other programs."""

import sys
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import click

from seatrial.commands import _options as options
from seatrial.commands._runs import run_path
from seatrial.errors import SeatrialError
from seatrial.output import write_bytes, write_data

if TYPE_CHECKING:
    from seatrial.runs.export import Form


@click.command()
@click.argument("runs", type=options.RUN, nargs=-1, required=True, metavar="RUN...")
@options.form(None, ("csv", "parquet", "openmetrics"))
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    default="-",
    help="File to write (default: standard output).",
)
def export(runs: tuple[str, ...], form: "Form", output: Path) -> None:
    """Verify closed runs, and write all their measurements.

    RUN is the path of a run, its id, SYSTEM/latest or latest. OpenMetrics text has the
    time of each measurement; `promtool tsdb create-blocks-from openmetrics` reads it.

    All formats are raw: texts are as the run recorded them. A spreadsheet takes a text
    that begins with `=` for a formula; `seatrial query --format csv` puts an apostrophe
    before such texts. On a terminal, control characters are replaced.

    Exit status: 0; 2 usage, or a run that is changed or cannot be read.

    Example: seatrial export lab/latest --format parquet --output lab.parquet
    """
    from seatrial.runs.export import export as export_runs
    from seatrial.runs.open_run import disk_errors, new_file

    to_stdout = str(output) == "-"
    if to_stdout and form == "parquet" and sys.stdout.isatty():
        raise SeatrialError("parquet is not text: name a file with --output")
    paths = [run_path(run) for run in runs]
    if not to_stdout:
        with disk_errors(output.parent), new_file(output) as stream:
            export_runs(paths, form, stream)
    elif sys.stdout.isatty() or form == "parquet":
        content = BytesIO()
        export_runs(paths, form, content)
        if form == "parquet":
            write_bytes(content.getvalue())
        else:
            write_data(content.getvalue().decode())
    else:
        export_runs(paths, form, sys.stdout.buffer)
