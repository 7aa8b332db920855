"""Impact of changed criteria on the verdicts on past runs."""

import csv
import io
import json
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from seatrial.checks.sources import own_metrics
from seatrial.criteria.criteria import Criteria
from seatrial.criteria.keys import Known
from seatrial.errors import SeatrialError
from seatrial.judge.findings import Finding
from seatrial.judge.judge import judge
from seatrial.model.metrics import METRICS
from seatrial.paths import CRITERIA_FILE, checks_dir, criteria_file
from seatrial.runs.closed_run import Run

ABSENT = "-"
"""The verdict of a finding that is not there."""


@dataclass(frozen=True)
class Changed:
    """A finding with another verdict than before; limits are in `unit`."""

    run: str
    criterion: str
    case: str
    environment: str
    metric: str
    place: str
    old: str
    new: str
    old_limit: float | None
    new_limit: float | None
    unit: str
    reason: str


@dataclass(frozen=True)
class RunChange:
    """A run by old and new criteria.

    `changed` findings have another verdict; `moved` counts those with another limit
    and the same verdict, `same` the others.
    """

    run: str
    campaign: str
    old: str
    new: str
    changed: tuple[Changed, ...]
    moved: int
    same: int


def criteria_at(home: Path, system: str, against: str) -> Criteria:
    """Read the criteria of a system as in a file, or as at a commit of git.

    Raises SeatrialError if there is neither.
    """
    known = Known(metrics=METRICS | own_metrics(checks_dir(home)))
    if Path(against).is_file():
        return Criteria.load(Path(against), known)
    file = criteria_file(home, system)
    command = ["git", "show", "--end-of-options", f"{against}:./{file.name}"]
    try:
        shown = subprocess.run(
            command, cwd=file.parent, capture_output=True, check=False
        )
    except OSError as error:
        raise SeatrialError(f"git show in {file.parent}: {error.strerror}") from error
    if shown.returncode:
        errors = shown.stderr.decode(errors="replace").strip().splitlines()
        raise SeatrialError(
            f"no criteria of {system!r} at {against!r}: "
            f"{errors[0] if errors else 'git'}; expected --against FILE, or a "
            f"commit that has reference-data/{system}/{CRITERIA_FILE}"
        )
    with TemporaryDirectory() as folder:
        copy = Path(folder, f"{CRITERIA_FILE} of {against.replace('/', '-')}")
        copy.write_bytes(shown.stdout)
        return Criteria.load(copy, known)


def compare(run: Run, old: Criteria, new: Criteria) -> RunChange:
    """Judge a run by old and new criteria; SeatrialError as `judge` does."""
    before, after = judge(run, old), judge(run, new)
    was, now = _by_key(before.findings), _by_key(after.findings)
    changed, moved, same = [], 0, 0
    for key in {**was, **now}:
        one, other = was.get(key), now.get(key)
        if one is None or other is None or one.verdict != other.verdict:
            changed.append(_changed(before.run, one, other))
        elif one.limit != other.limit:
            moved += 1
        else:
            same += 1
    return RunChange(
        run=before.run,
        campaign=before.campaign,
        old=before.verdict,
        new=after.verdict,
        changed=tuple(changed),
        moved=moved,
        same=same,
    )


def format_changes(
    runs: Sequence[RunChange], criteria: dict[str, str], form: str
) -> str:
    """Write changes as `json` (all of them) or `csv` (findings with another verdict).

    `criteria` tells by name what changed in them.
    """
    if form == "json":
        content = {"criteria": criteria, "runs": [asdict(each) for each in runs]}
        return json.dumps(content, indent=1) + "\n"
    text = io.StringIO()
    names = [field.name for field in fields(Changed)]
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(each) for run in runs for each in run.changed)
    return text.getvalue()


def _by_key(findings: Iterable[Finding]) -> dict[tuple[Any, ...], Finding]:
    """Return findings by subject; several of the same subject are numbered."""
    by_key: dict[tuple[Any, ...], Finding] = {}
    for finding in findings:
        about = (
            finding.kind,
            finding.criterion,
            finding.check,
            finding.case,
            finding.environment,
        )
        key = (*about, finding.metric, finding.place)
        number = 0
        while (*key, number) in by_key:
            number += 1
        by_key[*key, number] = finding
    return by_key


def _changed(run: str, old: Finding | None, new: Finding | None) -> Changed:
    finding = new or old
    assert finding is not None, "one of them is there"
    return Changed(
        run=run,
        criterion=finding.criterion or finding.kind,
        case=finding.case,
        environment=finding.environment,
        metric=finding.metric,
        place=finding.place,
        old=old.verdict if old else ABSENT,
        new=new.verdict if new else ABSENT,
        old_limit=old.limit if old else None,
        new_limit=new.limit if new else None,
        unit=finding.unit,
        reason=finding.reason,
    )
