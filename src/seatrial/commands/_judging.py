"""What the commands share: load a run, judge it by its system's references."""

from pathlib import Path

from seatrial.judge import Judgement, judge
from seatrial.old_limits import References
from seatrial.paths import references_dir
from seatrial.results import Run, load_run


def judged(home: Path, path: Path) -> tuple[Run, References, Judgement]:
    """Load a closed run and the references of its system, and judge it."""
    run = load_run(path)
    references = References.load(references_dir(home, run.manifest["system"]))
    return run, references, judge(run, references)
