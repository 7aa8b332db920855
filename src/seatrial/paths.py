"""Where things are: the home of the suite, its results, its systems."""

import os
from pathlib import Path

from seatrial.errors import SeatrialError

PUBLISHED = "published"
"""The folder of what papers published, beside those of the systems' references, and the
key at the top of its files."""

CRITERIA_FILE = "criteria.yaml"
"""What a system must reach: beside what is generated from it, and kept by each run."""

WEIGHTS = "weights"
"""The folder of the weights of bake-offs, beside those of the systems' references."""

WEIGHTS_FILE = "weights.yaml"
"""What a run keeps of them."""

_MARKERS = ("reframe-checks", "reference-data")


def is_home(folder: Path) -> bool:
    """Tell whether a folder is a checkout or an install prefix of the suite."""
    return all((folder / name).is_dir() for name in _MARKERS)


def home() -> Path:
    """Find SEATRIAL_HOME: the folder that holds reframe-checks/ and reference-data/.

    The environment variable wins, then the working directory and its parents, then
    the parents of this file (a checkout, or a virtual environment below the install
    prefix). Raises SeatrialError if none of them is one.
    """
    named = os.environ.get("SEATRIAL_HOME")
    if named:
        folder = Path(named).resolve()
        if not is_home(folder):
            raise SeatrialError(
                f"SEATRIAL_HOME={named}: no reframe-checks/ and reference-data/ "
                "there; set it to a checkout or to the install prefix of the suite"
            )
        return folder
    for start in (Path.cwd(), Path(__file__).resolve().parent):
        for folder in (start, *start.parents):
            if is_home(folder):
                return folder
    raise SeatrialError(
        "no folder with reframe-checks/ and reference-data/ here or above; "
        "go into a checkout of the suite, or set SEATRIAL_HOME"
    )


def results_dir(home: Path) -> Path:
    """Give the folder of all runs: SEATRIAL_RESULTS, else results/ below home."""
    named = os.environ.get("SEATRIAL_RESULTS")
    return Path(named).resolve() if named else home / "results"


def checks_dir(home: Path) -> Path:
    """Give the folder of the ReFrame checks."""
    return home / "reframe-checks" / "checks"


def campaigns_dir(home: Path) -> Path:
    """Give the folder of the campaigns, one YAML file each."""
    return home / "reframe-checks" / "campaigns"


def references_dir(home: Path, system: str) -> Path:
    """Give the folder of a system's references."""
    return home / "reference-data" / system


def criteria_file(home: Path, system: str) -> Path:
    """Give the file of what a system must reach."""
    return references_dir(home, system) / CRITERIA_FILE


def weights_file(home: Path, name: str) -> Path:
    """Give the file of the weights of a bake-off."""
    return home / "reference-data" / WEIGHTS / f"{name}.yaml"


def published_dir(home: Path) -> Path:
    """Give the folder of the numbers that papers published."""
    return home / "reference-data" / PUBLISHED


def etc_dir(home: Path, system: str) -> Path:
    """Give the folder of a provisioned system: settings.yaml and system.json."""
    return home / "etc" / system
