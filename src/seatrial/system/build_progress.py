"""The time left of builds, some of which may never have been timed."""

import time
from collections.abc import Iterable

from seatrial.progress import TimeLeft, duration
from seatrial.system.spack_plan import Step


def label(package: str, environment: str) -> str:
    """Name a package of an environment: `hpcc@1.5.0 (openmpi)`."""
    return f"{package} ({environment})"


class BuildTimeLeft(TimeLeft):
    """Adds up the estimates of a plan; nothing is made up for a package without one.

    Several packages may be built at once; then it ends earlier than it says.
    """

    def __init__(self, steps: Iterable[Step]) -> None:
        super().__init__((), {})
        self._estimates = {
            label(str(step), step.environment): step.seconds for step in steps
        }
        self._began: dict[str, float] = {}

    def start(self, case: str, spent: float = 0.0) -> None:
        """Note that a package began `spent` seconds ago."""
        self._began[case] = time.monotonic() - spent

    def finish(self, case: str) -> float:
        """Note that a package ended now; give its duration in seconds."""
        self._estimates.pop(case, None)
        now = time.monotonic()
        return now - self._began.pop(case, now)

    def seconds(self) -> float | None:
        """Estimate the seconds left of what has an estimate; None if nothing has."""
        known = {
            case: seconds
            for case, seconds in self._estimates.items()
            if seconds is not None
        }
        if self._estimates and not known:
            return None
        now = time.monotonic()
        spent = {case: now - self._began.get(case, now) for case in known}
        return sum(max(known[case] - spent[case], 0.0) for case in known)

    def text(self) -> str:
        """Say it, and how many packages have no estimate."""
        unknown = sum(seconds is None for seconds in self._estimates.values())
        seconds = self.seconds()
        if seconds is None or not unknown:
            return super().text()
        return f"at least {duration(seconds)} left, {unknown} of unknown time"
