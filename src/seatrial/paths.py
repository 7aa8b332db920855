"""Where things are: the home of the suite, its results, its systems."""

import os
import stat
import sys
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

HARDWARE_FILE, FABRIC_FILE = "hardware.yml", "fabric.yml"
PLAN_FILE, DISCOVERED_FILE = "fabric_plan.csv", "fabric.json"
ROUTES_FILE = "fabric_routes.txt"
FABRIC_FILES = (DISCOVERED_FILE, PLAN_FILE, FABRIC_FILE)
OPTIONAL_FILES = (HARDWARE_FILE, *FABRIC_FILES, ROUTES_FILE)
"""Files beside the description of a system, if it has them: each run keeps them."""

SITE = "site"
"""The folder of a site's own checks, in that of the checks."""

_UMASK = 0o022
_MARKERS = ("reframe-checks", "reference-data")


def is_home(folder: Path) -> bool:
    """Return True if a folder is a checkout or an install prefix of the suite."""
    return all((folder / name).is_dir() for name in _MARKERS)


def home() -> Path:
    """Find SEATRIAL_HOME: the folder that holds reframe-checks/ and reference-data/.

    The environment variable wins, then the parents of this file (a checkout, or a
    virtual environment below the install prefix), then the working directory and its
    parents: anybody may have put a folder there. Raises SeatrialError if none of them
    is one, and if others can change it.
    """
    named = os.environ.get("SEATRIAL_HOME")
    if named:
        folder = Path(named).resolve()
        if not is_home(folder):
            raise SeatrialError(
                f"SEATRIAL_HOME={named}: no reframe-checks/ and reference-data/ "
                "there; set it to a checkout or to the install prefix of the suite"
            )
        return _safe(folder)
    for folder in Path(__file__).resolve().parents:
        if is_home(folder):
            return _safe(folder)
    start = Path.cwd()
    for folder in (start, *start.parents):
        if is_home(folder):
            return _safe(folder, planted=True)
    raise SeatrialError(
        "no folder with reframe-checks/ and reference-data/ here or above; "
        "go into a checkout of the suite, or set SEATRIAL_HOME"
    )


def _safe(folder: Path, *, planted: bool = False) -> Path:
    """Return a home of the suite; SeatrialError if others can change what it runs.

    It may be `planted`, so that its owner counts, where nobody named it.
    """
    for part in (folder, *(folder / name for name in _MARKERS)):
        status = part.stat()
        problem = ""
        if planted and status.st_uid not in (0, os.geteuid()):
            problem = f"it belongs to another user (uid {status.st_uid})"
        elif status.st_mode & stat.S_IWOTH:
            problem = f"every user can write to it (mode {status.st_mode & 0o7777:04o})"
        if problem:
            raise SeatrialError(
                f"{part}: {problem}; checks, limits and known signers are read from "
                "there; expected a folder that only its owner and root can change; "
                "`chmod o-w` it, or set SEATRIAL_HOME to another one"
            )
    return folder


def suite_python(home: Path) -> str:
    """Return the Python that runs the suite in jobs.

    The one of the install prefix is on the shared file system. The driver's own may
    exist on this machine only; it is taken where nothing is installed (replays).
    """
    installed = home / "venv" / "bin" / "python"
    return str(installed) if installed.exists() else sys.executable


def restrict_umask() -> None:
    """Set the umask: only the owner may write to new files."""
    os.umask(os.umask(_UMASK) | _UMASK)


def results_dir(home: Path) -> Path:
    """Return the folder of all runs: SEATRIAL_RESULTS, else results/ below home."""
    named = os.environ.get("SEATRIAL_RESULTS")
    return Path(named).resolve() if named else home / "results"


def checks_dir(home: Path) -> Path:
    """Return the folder of the ReFrame checks."""
    return home / "reframe-checks" / "checks"


def campaigns_dir(home: Path) -> Path:
    """Return the folder of the campaigns, one YAML file each."""
    return home / "reframe-checks" / "campaigns"


def known_campaigns(home: Path) -> list[str]:
    """Return the names of the suite's campaigns."""
    return sorted(file.stem for file in campaigns_dir(home).glob("*.yaml"))


def references_dir(home: Path, system: str) -> Path:
    """Return the folder of a system's references."""
    return home / "reference-data" / system


def criteria_file(home: Path, system: str) -> Path:
    """Return the file with the criteria of a system."""
    return references_dir(home, system) / CRITERIA_FILE


def weights_file(home: Path, name: str) -> Path:
    """Return the file of the weights of a bake-off."""
    return home / "reference-data" / WEIGHTS / f"{name}.yaml"


def published_dir(home: Path) -> Path:
    """Return the folder of the numbers that papers published."""
    return home / "reference-data" / PUBLISHED


def etc_dir(home: Path, system: str) -> Path:
    """Return the folder of a provisioned system: settings.yaml and system.json."""
    return home / "etc" / system
