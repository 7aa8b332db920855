"""Waivers: signed acceptances of criteria that a run does not meet.

A waiver changes no finding and no verdict on a node. If all that does not pass is
waived, the verdict on the run is "pass with waivers".
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from seatrial.criteria.criteria import Criteria
from seatrial.judge.findings import Finding, RunVerdict, Verdict
from seatrial.runs.closed_run import Run
from seatrial.runs.reasons import Signed, Waiver

WAIVED = "waived"
"""Flag of a finding that a waiver accepts."""

_NEVER = ("replay", "ledger")
"""Kinds of findings without waivers: replays, and contradictions of the ledger."""


@dataclass(frozen=True)
class Waived:
    """The findings with their flags, the waivers that count, and notes on others."""

    findings: tuple[Finding, ...]
    waivers: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def verdict(self, overall: Callable[[Sequence[Finding]], Verdict]) -> RunVerdict:
        """Return the verdict on the run; `overall` is that of some findings."""
        whole = overall(self.findings)
        accepted = [
            replace(one, verdict="pass") if WAIVED in one.flags else one
            for one in self.findings
        ]
        if whole != "pass" and overall(accepted) == "pass":
            return "pass with waivers"
        return whole


def waived(
    findings: Sequence[Finding],
    signed: Signed,
    runs: Sequence[Run],
    criteria: Criteria,
) -> Waived:
    """Flag the findings that signed waivers accept.

    A waiver that names another clause than its criterion counts, with a note.
    """
    manifests = {str(run.manifest["run"]): run.manifest for run in runs}
    rules = (*criteria.criteria, *criteria.declared)
    clauses = {one.name: one.provenance.get("clause") for one in rules}
    notes, counted = [*signed.problems], list[str]()
    flagged = [*findings]
    for waiver in signed.waivers:
        if not waiver.covers(manifests[waiver.run]):
            notes.append(f"waiver ended before the run began: {waiver}")
            continue
        hits = [at for at, one in enumerate(flagged) if _accepts(waiver, one)]
        if not hits:
            notes.append(f"waiver of nothing that fails or is undecided: {waiver}")
            continue
        clause = clauses.get(waiver.criterion) or waiver.clause
        if clause.split() != waiver.clause.split():
            notes.append(f"waiver of a criterion of clause {clause}: {waiver}")
        counted.append(str(waiver))
        for at in hits:
            flags = dict.fromkeys((*flagged[at].flags, WAIVED))
            flagged[at] = replace(flagged[at], flags=tuple(flags))
    return Waived(tuple(flagged), tuple(counted), tuple(notes))


def _accepts(waiver: Waiver, finding: Finding) -> bool:
    """Return True if a finding does not pass, and a waiver is about it."""
    if finding.verdict in ("pass", "skipped") or finding.kind in _NEVER:
        return False
    places = ("", finding.place, finding.node)
    return waiver.criterion == waiver_name(finding) and waiver.place in places


def waiver_name(finding: Finding) -> str:
    """Return the name by which a waiver accepts a finding."""
    return finding.criterion or finding.check or finding.kind
