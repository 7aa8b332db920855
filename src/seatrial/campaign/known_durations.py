"""Durations of cases in earlier runs, to estimate the time that is left."""

from collections import defaultdict
from contextlib import suppress
from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.runs.closed_run import closed_runs, read_cases

_EARLIER_RUNS = 3
"""Runs from which the durations of cases are taken."""


def known_durations(results: Path, system: str) -> dict[str, list[float]]:
    """Return the seconds that each case took in the last closed runs of a system."""
    durations: dict[str, list[float]] = defaultdict(list)
    for run in closed_runs(results, system)[-_EARLIER_RUNS:]:
        with suppress(SeatrialError):
            for case in read_cases(run):
                if case.elapsed_s is not None and not case.replay:
                    durations[str(case.key.listed)].append(case.elapsed_s)
    return durations
