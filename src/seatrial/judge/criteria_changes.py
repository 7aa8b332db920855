"""Criteria that changed after the data were taken, and references that expired."""

from collections.abc import Sequence
from dataclasses import replace

from seatrial.criteria.criteria import Criteria, Criterion, changes, kept_criteria
from seatrial.judge.findings import Finding
from seatrial.runs.closed_run import Run
from seatrial.runs.fingerprint import differences

_UNKNOWN_CRITERIA = "the run does not say which criteria held when its data were taken"


def changes_of(runs: Sequence[Run], criteria: Criteria) -> dict[str, str]:
    """Return changes since the data were taken, by criterion; '' stands for all."""
    changed: dict[str, str] = {}
    for recorded in map(kept_criteria, runs):
        if recorded is None:
            changed |= {"": _UNKNOWN_CRITERIA}
        elif recorded.sha256 != criteria.sha256:
            changed |= changes(recorded, criteria)
    return changed


def flagged(finding: Finding, changed: dict[str, str]) -> Finding:
    """Flag a finding if its criterion changed after the data were taken."""
    if finding.criterion not in changed or not finding.criterion:
        return finding
    flag = f"changed after the data were taken: {changed[finding.criterion]}"
    return replace(finding, flags=(flag,))


def expiry(criterion: Criterion, fingerprints: Sequence[dict[str, str]]) -> str:
    """Return why a measured criterion has expired (new configuration); '' if not."""
    if criterion.kind != "measured":
        return ""
    changed = [differences(criterion.fingerprint, today) for today in fingerprints]
    parts = dict.fromkeys(part for parts in changed for part in parts)
    reason = f"the measured reference has expired: {'; '.join(parts)}; measure it again"
    return reason if parts else ""
