"""What the commands that read runs share: which runs are meant."""

from pathlib import Path
from tempfile import TemporaryDirectory

import click

from seatrial.bundle import unpack
from seatrial.errors import SeatrialError
from seatrial.paths import home
from seatrial.results import MANIFEST, find_run
from seatrial.signature import known_signers


def run_path(text: str) -> Path:
    """Find a run as `find_run` does; the path of one needs no home of the suite.

    The file of a packed run is opened, for as long as the command runs.
    """
    if (Path(text) / MANIFEST).is_file():
        return Path(text).resolve()
    if Path(text).is_file():
        opened = TemporaryDirectory(prefix="seatrial-run-")
        return unpack(
            Path(text), Path(click.get_current_context().with_resource(opened))
        )
    return find_run(home(), text)


def signers_of(system: str) -> Path | None:
    """Find the signers of a system, where the files of the suite are; None: nowhere."""
    try:
        return known_signers(home() / "reference-data", system)
    except SeatrialError:  # a run verifies on a machine without the suite's files
        return None
