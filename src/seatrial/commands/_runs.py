"""What the commands that read runs share: which runs are meant."""

import re
from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.paths import home
from seatrial.results import MANIFEST, find_run


def run_path(text: str) -> Path:
    """Find a run as `find_run` does; the path of one needs no home of the suite."""
    if (Path(text) / MANIFEST).is_file():
        return Path(text).resolve()
    return find_run(home(), text)


def known_signers(system: str) -> Path | None:
    """Find allowed_signers of a system, else of all systems; None: there is none."""
    try:
        references = home() / "reference-data"
    except SeatrialError:  # a run verifies on a machine without the suite's files
        return None
    plain = re.fullmatch(r"\w[\w.-]*", system)  # it is the manifest that says it
    folders = (references / system, references) if plain else (references,)
    files = [folder / "allowed_signers" for folder in folders]
    return next((file for file in files if file.is_file()), None)
