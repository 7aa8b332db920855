"""Load closed runs and judge them by the criteria of their system."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from seatrial.errors import SeatrialError
from seatrial.paths import criteria_file

if TYPE_CHECKING:
    from seatrial.criteria.criteria import Criteria
    from seatrial.judge.judge import Judgement
    from seatrial.runs.closed_run import Run

KEPT = "kept"
"""Value of --criteria for the criteria that the run kept when it started."""


criteria_option = click.option(
    "--criteria",
    metavar="FILE",
    help="Judge by this file, or with `kept` by the criteria that the run kept when it "
    "started (default: reference-data/SYSTEM/criteria.yaml).",
)


def judged(
    home: Path, path: Path, further: Sequence[Path] = (), criteria: str | None = None
) -> "tuple[Run, Judgement]":
    """Load a closed run and the criteria of its system, and judge it.

    `further` runs are judged with it; `criteria` is a file instead of the system's, or
    `KEPT`.
    """
    from seatrial.judge.judge import judge
    from seatrial.runs.closed_run import load_run

    run = load_run(path)
    more = [load_run(each) for each in further]
    return run, judge(run, _criteria(home, run, criteria), more)


def _criteria(home: Path, run: "Run", named: str | None) -> "Criteria":
    from seatrial.criteria.criteria import Criteria, kept_criteria

    if named is None:
        return Criteria.load(criteria_file(home, run.manifest["system"]))
    if named != KEPT:
        return Criteria.load(Path(named), known=())
    kept = kept_criteria(run)
    if kept is None:
        raise SeatrialError(
            f"{run.path}: the run kept no criteria; expected --criteria FILE"
        )
    return kept
