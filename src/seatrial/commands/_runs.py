"""What the commands that read runs share: which runs are meant."""

from pathlib import Path
from tempfile import TemporaryDirectory

import click

from seatrial.commands._packs import PACKS, with_pack_names
from seatrial.errors import SeatrialError
from seatrial.paths import home


def run_path(text: str) -> Path:
    """Find a run as `find_run` does; the path of one needs no home of the suite.

    The file of a packed run is opened, for as long as the command runs.
    """
    from seatrial.runs.closed_run import MANIFEST, find_run
    from seatrial.runs.pack import unpack

    if (Path(text) / MANIFEST).is_file():
        return Path(text).resolve()
    if Path(text).is_file():
        context = click.get_current_context()
        folder = context.with_resource(TemporaryDirectory(prefix="seatrial-run-"))
        context.meta.setdefault(PACKS, {})[folder] = text
        return unpack(Path(text), Path(folder))
    return find_run(home(), text)


def shown_path(path: Path) -> str:
    """Return the path of a run as the user named it: a packed run by its file."""
    return with_pack_names(str(path))


def signers_of(system: str) -> Path | None:
    """Find the signers of a system, where the files of the suite are; None: nowhere."""
    from seatrial.runs.ssh_signature import known_signers

    try:
        return known_signers(home() / "reference-data", system)
    except SeatrialError:  # a run verifies on a machine without the suite's files
        return None
