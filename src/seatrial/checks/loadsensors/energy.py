"""Energy of a node over time: from RAPL's counters, and from a command's watts.

Sources: Documentation/power/powercap/powercap.rst of Linux. Times are monotonic
seconds; functions take the root of the file system, that of tests is a folder.
"""

import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from seatrial.checks.nodesweep.readings import AbsentError

_ZONES = "sys/class/powercap"
_COUNTED = re.compile(r"package-\d+.*|dram")
"""Names of zones that add up: DRAM is no part of a package; core and uncore are."""

_SHORTEST_S = 0.5
"""Counters are updated every millisecond: shorter spans have no sound power."""

_WATTS = re.compile(r"(\d+(?:\.\d+)?)(?:\s*(?:W|watts?))?", re.IGNORECASE)
_MOST_W = 100_000.0
_COMMAND_S = 5.0
_LONGEST_GAP_S = 60.0


@dataclass
class Energy:
    """Joules since the first reading, and the highest power between two of them."""

    began: float
    until: float
    joules: float = 0.0
    peak_w: float | None = None

    @property
    def mean_w(self) -> float | None:
        """Return the mean power in watts; None before any time has passed."""
        seconds = self.until - self.began
        return self.joules / seconds if seconds > 0 else None

    def add(self, joules: float, now: float, highest_w: float | None = None) -> None:
        """Add the energy since the last reading; its power counts for the peak."""
        seconds = now - self.until
        if highest_w is None and seconds >= _SHORTEST_S:
            highest_w = joules / seconds
        if highest_w is not None:
            self.peak_w = max(highest_w, self.peak_w or 0.0)
        self.joules += joules
        self.until = now


@dataclass
class _Zone:
    """A counter of microjoules, which begins at 0 again after `span_uj`."""

    file: Path
    span_uj: int
    last_uj: int

    def grown_uj(self) -> int:
        """Return the microjoules since the last reading, of less than one span."""
        now, before = _counter(self.file), self.last_uj
        self.last_uj = now
        if now >= before:
            return now - before
        if not self.span_uj:
            raise AbsentError(f"RAPL: a counter went back from {before} to {now}")
        return self.span_uj - before + now


class Rapl:
    """Energy of the processor packages and the DRAM of a node.

    Raises AbsentError if the node has no counters, or this user may not read them.
    """

    def __init__(self, root: Path, now: float) -> None:
        self._zones = []
        for folder in sorted((root / _ZONES).glob("intel-rapl:*")):
            if _COUNTED.fullmatch(_text(folder / "name")):
                file, span = folder / "energy_uj", _text(folder / "max_energy_range_uj")
                span_uj = int(span) if span.isdecimal() else 0
                self._zones.append(_Zone(file, span_uj, _counter(file)))
        if not self._zones:
            raise AbsentError("RAPL: no package in /sys/class/powercap/intel-rapl:*")
        self.energy = Energy(now, now)

    def read(self, now: float) -> None:
        """Read all counters; AbsentError if one of them is gone."""
        grown_uj = sum(zone.grown_uj() for zone in self._zones)
        self.energy.add(grown_uj / 1e6, now)


@dataclass
class Board:
    """Energy of a whole node, from a command that prints its power in watts now.

    A reading that fails leaves a gap of at most a minute, which the power before and
    after it fills. Raises AbsentError if the first reading fails, or a gap is longer.
    """

    watts: Callable[[], float]
    now: float
    energy: Energy = field(init=False)
    _last_w: float = field(init=False)

    def __post_init__(self) -> None:
        self._last_w = self.watts()
        self.energy = Energy(self.now, self.now, peak_w=self._last_w)

    def read(self, now: float) -> None:
        """Read the power; AbsentError after a minute without."""
        seconds = now - self.energy.until
        try:
            watts = self.watts()
        except AbsentError:
            if seconds > _LONGEST_GAP_S:
                raise
            return
        joules = (watts + self._last_w) / 2 * seconds
        self.energy.add(joules, now, watts)
        self._last_w = watts


def printed_watts(command: str) -> float:
    """Run a command of the site and return its watts; AbsentError if it prints none."""
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_COMMAND_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        if isinstance(error, OSError):
            raise AbsentError(f"power_command: {error.strerror}") from None
        reason = f"power_command: timed out after {_COMMAND_S:g} s"
        raise AbsentError(reason) from None
    if done.returncode:
        lines = done.stderr.decode(errors="replace").split("\n")
        reason = f"power_command: exit status {done.returncode}: {lines[0][:200]}"
        raise AbsentError(reason.rstrip(": "))
    return parse_watts(done.stdout.decode(errors="replace"))


def parse_watts(text: str) -> float:
    """Return the watts in a text such as `412 W`; AbsentError if it is another one."""
    match = _WATTS.fullmatch(text.strip())
    watts = float(match[1]) if match else 0.0
    if not 0 < watts < _MOST_W:
        expected = f"expected watts between 0 and {_MOST_W:g}, such as 412"
        raise AbsentError(f"power_command: {expected}, got {text.strip()[:60]!r}")
    return watts


def _counter(file: Path) -> int:
    try:
        return int(file.read_text())
    except PermissionError:
        reason = "RAPL: energy_uj is readable by root only (permission denied)"
        raise AbsentError(reason) from None
    except (OSError, ValueError) as error:
        words = getattr(error, "strerror", None) or "no number"
        raise AbsentError(f"RAPL: {file.parent.name}/{file.name}: {words}") from None


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
