"""`seatrial pack`: write a closed run to one file."""

from pathlib import Path

import click

from seatrial.commands import _options as options
from seatrial.commands._runs import run_path
from seatrial.output import echo


@click.command()
@click.argument("run", type=options.RUN)
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
def pack(run: str, file: Path | None) -> None:
    """Write a closed run and its seal to one FILE, for example to send it.

    RUN is the path of a run, its id, SYSTEM/latest or latest. Every command that reads
    a run also reads such a file. The default name is that of the run.

    Exit status: 0 written, 1 the run was changed, 2 usage, or FILE cannot be written.

    Example: seatrial pack lab/latest offer.seatrial.tar.xz
    """
    from seatrial.model.manifest import read_manifest
    from seatrial.runs.pack import SUFFIX
    from seatrial.runs.pack import pack as pack_run

    path = run_path(run)
    system = read_manifest(path)["system"]
    file = file or Path(f"{system}-{path.name}{SUFFIX}")
    pack_run(path, file)
    echo(f"{file}: {file.stat().st_size / 1e6:.2f} MB")
