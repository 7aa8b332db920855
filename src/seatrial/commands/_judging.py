"""What the commands share: load closed runs, judge them by their system's criteria."""

from collections.abc import Sequence
from pathlib import Path

from seatrial.criteria import Criteria
from seatrial.judge import Judgement, judge
from seatrial.paths import criteria_file
from seatrial.results import Run, load_run


def judged(
    home: Path,
    path: Path,
    further: Sequence[Path] = (),
    criteria: Path | None = None,
) -> tuple[Run, Judgement]:
    """Load a closed run and the criteria of its system, and judge it.

    `further` runs are judged with it; `criteria` is a file to judge by, in place of the
    system's.
    """
    run = load_run(path)
    more = [load_run(each) for each in further]
    if criteria is not None:
        return run, judge(run, Criteria.load(criteria, known=()), more)
    file = criteria_file(home, run.manifest["system"])
    return run, judge(run, Criteria.load(file), more)
