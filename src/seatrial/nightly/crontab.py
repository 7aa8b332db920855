"""The marked section of a system in the scrontab of the user; other lines stay.

Slurm runs an entry of a scrontab as one job, which is queued again after each end. So a
night cannot overlap itself.
"""

import difflib
import shutil
import sys
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from shlex import quote

from seatrial.errors import SeatrialError
from seatrial.nightly.settings import Settings
from seatrial.paths import results_dir

JUDGING = timedelta(minutes=30)
"""Time that the driver may work after the window, for the judge and the pages."""

MEMORY = "4G"
"""Memory of the driver: without it Slurm may give it that of a whole node."""

LOG = "nightly.log"
"""Name of the driver's output, beside the runs of a system."""

_DISABLED = "#DISABLED"
_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True)
class Driver:
    """The job that drives the nights of a system.

    `program` is the suite, `path` the folders of programs, `results` those of all runs.
    """

    system: str
    program: Path
    home: Path
    results: Path
    path: str
    settings: Settings

    @property
    def log(self) -> Path:
        """The file of the job's output."""
        return self.results / self.system / LOG

    @property
    def limit(self) -> timedelta:
        """The time limit of the job: the window, and the time for the judge."""
        return self.settings.window.length + JUDGING

    @property
    def command(self) -> str:
        """The shell command of a night; Slurm gives it no environment of the user."""
        variables = {
            "PATH": self.path,
            "SEATRIAL_HOME": str(self.home),
            "SEATRIAL_RESULTS": str(self.results),
        }
        words = [f"{name}={quote(value)}" for name, value in variables.items()]
        return " ".join((*words, quote(str(self.program)), "nightly run", self.system))

    @property
    def options(self) -> tuple[str, ...]:
        """The options of Slurm for the job: one core, and an output that grows."""
        return (
            f"--time={int(self.limit.total_seconds() // 60)}",
            "--ntasks=1",
            "--cpus-per-task=1",
            f"--mem={MEMORY}",
            "--open-mode=append",
            f"--output={self.log}",
            *self.settings.driver,
        )

    @property
    def section(self) -> str:
        """The lines of the scrontab."""
        start = self.settings.window.start
        begin, end = _marks(self.system)
        options = (f"--job-name={job_name(self.system)}", *self.options)
        lines = [
            begin,
            *(f"#SCRON {option}" for option in options),
            f"{start.minute} {start.hour} * * * {self.command}",
            end,
        ]
        return "".join(f"{line}\n" for line in lines)


def job_name(system: str) -> str:
    """Return the name of the job of the scrontab."""
    return f"seatrial-nightly-{system}"


def driver_of(home: Path, system: str, settings: Settings) -> Driver:
    """Return the driver of a system from an installed suite, else from a checkout.

    Raises SeatrialError for a folder that an option of Slurm cannot name.
    """
    installed = home / "bin" / "seatrial"
    beside = Path(sys.executable).with_name("seatrial")
    sbatch = shutil.which("sbatch")
    folders = _SYSTEM_PATH.split(":")
    if sbatch and str(Path(sbatch).parent) not in folders:
        folders.insert(0, str(Path(sbatch).parent))
    driver = Driver(
        system=system,
        program=installed if installed.exists() else beside,
        home=home,
        results=results_dir(home),
        path=":".join(folders),
        settings=settings,
    )
    for path in (driver.program, driver.home, driver.log):
        if any(letter in " \t\n%$\\" for letter in str(path)):
            raise SeatrialError(
                f"{str(path)!r}: expected a path without blanks, %, $ and backslashes: "
                "Slurm changes them in a scrontab"
            )
    return driver


def merged(text: str, driver: Driver) -> str:
    """Put the section of a system in place of its earlier one, else before all lines.

    There, no #SCRON line and no variable of the user applies to it. Raises
    SeatrialError as `without`.
    """
    before, _, after = _split(text, driver.system)
    return before + driver.section + after


def without(text: str, system: str) -> str:
    """Remove the section of a system; all other bytes stay.

    Raises SeatrialError if only one of its marks is there.
    """
    before, _, after = _split(text, system)
    return before + after


def section_of(text: str, system: str) -> str:
    """Return the section of a system; '' without one. Raises as `without`."""
    return _split(text, system)[1]


def is_disabled(text: str, system: str) -> bool:
    """Return True if Slurm disabled the entry: someone cancelled its job."""
    lines = section_of(text, system).split("\n")
    return any(line.startswith(_DISABLED) for line in lines)


def difference(before: str, after: str) -> list[str]:
    """Return the changed lines as a unified difference; none if nothing changes."""
    lines = difflib.unified_diff(
        before.split("\n"), after.split("\n"), "scrontab", "scrontab (new)", "", "", 1
    )
    return [line.rstrip("\n") for line in lines]


def _marks(system: str) -> tuple[str, str]:
    return (
        f"# BEGIN seatrial nightly {system}: `seatrial nightly install` writes this",
        f"# END seatrial nightly {system}",
    )


def _split(text: str, system: str) -> tuple[str, str, str]:
    """Split a scrontab into the bytes before, of, and after the section of a system."""
    lines = text.split("\n")
    begin, end = (
        [number for number, line in enumerate(lines) if line == mark]
        for mark in _marks(system)
    )
    if not begin and not end:
        return "", "", text
    if len(begin) != 1 or len(end) != 1 or begin > end:
        marks = " and then one line ".join(map(repr, _marks(system)))
        raise SeatrialError(
            f"scrontab: the section of {system} is damaged: expected one line {marks}, "
            f"got {len(begin)} and {len(end)}; repair it with `scrontab -e`"
        )
    first, last = begin[0], end[0] + 1
    before = "".join(f"{line}\n" for line in lines[:first])
    after = "\n".join(lines[last:])
    section = text[len(before) : len(text) - len(after)]
    return before, section, after
