"""Recorded runs of one configuration."""

from collections.abc import Sequence
from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.model.manifest import read_manifest
from seatrial.runs.closed_run import Run, load_run
from seatrial.runs.fingerprint import differences, fingerprint

_MOST_RUNS = 10


def comparable_runs(paths: Sequence[Path]) -> tuple[list[Run], list[str]]:
    """Load the newest runs of the configuration of the newest one, oldest first.

    Replays are left out, and runs that do not say on which nodes they were. Give also
    what else was left out, and why.
    """
    manifests = {path: read_manifest(path) for path in paths}
    known = [
        path
        for path, manifest in manifests.items()
        if not manifest.get("replay") and manifest.get("nodes")
    ]
    if not known:
        return [], []
    today = fingerprint(manifests[known[-1]])
    alike, notes = [], []
    for path in known:
        there = fingerprint(manifests[path])
        if not (differences(today, there) or differences(there, today)):
            alike.append(path)
    others = len(known) - len(alike)
    if others:
        notes.append(
            f"{others} older run{'s' * (others > 1)} of another configuration (kernel, "
            "MPI, nodes ...) left out"
        )
    runs = []
    for path in alike[-_MOST_RUNS:]:
        try:
            runs.append(load_run(path))
        except SeatrialError as error:
            notes.append(f"left out: {error}")
    return runs, notes
