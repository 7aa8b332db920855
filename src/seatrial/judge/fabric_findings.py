"""Findings on the fabric: its cables are as planned, or not."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from seatrial.criteria.criterion import matches
from seatrial.criteria.declared import DeclaredCriterion
from seatrial.criteria.recorded import Recorded
from seatrial.errors import SeatrialError
from seatrial.fabric.findings import Finding as Deviation
from seatrial.judge.findings import NOT_MEASURED, Finding
from seatrial.model.units import counted
from seatrial.runs.closed_run import Run

_MOST_SHOWN = 3


@dataclass(frozen=True)
class _Compared:
    """The fabric of a run beside its plan, which has `cables`.

    `missing` says what the run lacks for it, `damage` what is wrong with its files.
    """

    findings: tuple[Deviation, ...] = ()
    devices: frozenset[str] = frozenset()
    cables: int = 0
    missing: str = ""
    damage: str = ""


def fabric_findings(runs: Sequence[Run], criteria: Sequence[Recorded]) -> list[Finding]:
    """Hold the fabrics of all runs to the criteria of kind `fabric`.

    The verdicts that a criterion names fail, what is unknown is undecided.
    """
    wanted = [
        criterion
        for criterion in criteria
        if isinstance(criterion, DeclaredCriterion) and criterion.kind == "fabric"
    ]
    compared = [_compared(run) for run in runs] if wanted else []
    return [finding for one in wanted for finding in _judged(one, compared)]


def _compared(run: Run) -> _Compared:
    """Compare the fabric of a run with its plan."""
    try:
        kept = run.fabric
        if kept is None:
            return _Compared(missing="the run kept no fabric")
        if kept.plan is None:
            return _Compared(missing="the run kept no cable plan")
        devices = {device.name for device in kept.fabric.devices} | {*kept.plan.kinds}
        return _Compared(kept.findings, frozenset(devices), len(kept.plan.cables))
    except SeatrialError as error:
        return _Compared(damage=str(error))


def _judged(
    criterion: DeclaredCriterion, compared: Sequence[_Compared]
) -> Iterator[Finding]:
    """Yield a finding for each deviation that does not pass, or one for all."""
    subject = Finding("fabric", "Fabric").held_to_declaration(criterion)
    if damage := next((one.damage for one in compared if one.damage), ""):
        yield subject.judged("undecided", f"the fabric cannot be compared: {damage}")
        return
    missing = next((one.missing for one in compared if one.missing), "")
    device = criterion.where.get("device", ".*")
    if not missing and not any(matches(device, d) for o in compared for d in o.devices):
        missing = f"the fabric has no device {device!r}"
    if missing:
        reason = f"{NOT_MEASURED}: {missing}"
        yield subject.judged("skipped" if criterion.optional else "undecided", reason)
        return
    selected = {
        (one.kind, one.where, one.actual): one
        for of_run in compared
        for one in of_run.findings
        if _is_selected(one, criterion)
    }
    shown, clean = list[Deviation](), True
    for one in selected.values():
        if one.verdict in criterion.fails or one.verdict == "unknown":
            clean = False
            yield subject.judged(
                "undecided" if one.verdict == "unknown" else "fail",
                one.words,
                metric=one.kind,
                place=one.where,
                n=1,
            )
        else:
            shown.append(one)
    if clean:
        cables = max(one.cables for one in compared)
        reason = f"the plan has {counted(cables, 'cable')}, no finding fails"
        yield subject.judged("pass", reason + _counted(shown), n=len(compared))


def _is_selected(one: Deviation, criterion: DeclaredCriterion) -> bool:
    """Return True if `where` selects a deviation; an incomplete discovery counts."""
    if one.kind == "discovery":
        return True
    device = criterion.where.get("device")
    return matches(criterion.where.get("finding", ".*"), one.kind) and (
        device is None or any(matches(device, spot.device) for spot in one.spots)
    )


def _counted(shown: Iterable[Deviation]) -> str:
    """Count what is shown only: '; shown only: 2 uplinks (odd)'."""
    counts = Counter((one.kind, one.verdict) for one in shown)
    words = [f"{count} {kind} ({verdict})" for (kind, verdict), count in counts.items()]
    more = [f"{len(words) - _MOST_SHOWN} more kinds"] if words[_MOST_SHOWN:] else []
    return f"; shown only: {', '.join([*words[:_MOST_SHOWN], *more])}" if words else ""
