"""Findings without a number: delivered nodes, failed and skipped cases, retries."""

from collections.abc import Mapping, Sequence
from typing import Any

from seatrial.judge.findings import Finding
from seatrial.model.cases import Case, CaseKey
from seatrial.runs.raw_output import NO_MEASUREMENT

_QUICK_VERDICT = "does not meet its reference"
"""ReFrame's words for a number that misses its limit."""


def inventory(nodes: Sequence[Mapping[str, Any]], replay: bool) -> list[Finding]:
    """Judge the delivered nodes: one that was absent, or lost in the run, fails."""
    subject = Finding("inventory")
    findings = [
        subject.judged(
            "fail",
            f"delivered but {node['state']}: {node['reason']}",
            place=node["name"],
        )
        for node in nodes
        if node["state"] != "present"
    ]
    if replay:
        reason = f"{NO_MEASUREMENT}; the nodes were not inspected"
        return [Finding("replay", reason=reason), *findings]
    if not nodes:
        reason = "the run does not say which nodes were delivered"
        return [subject.judged("undecided", reason)]
    if not findings:
        reason = f"all {len(nodes)} delivered nodes are present"
        return [subject.judged("pass", reason, n=len(nodes))]
    return findings


def case_findings(
    key: CaseKey, cases: Sequence[Case], numbers: Sequence[Finding]
) -> list[Finding]:
    """Judge a case without regard to its numbers: it failed, was skipped, or ran."""
    subject = Finding.of_case(key)
    failed = [case for case in cases if _failed(case, numbers)]
    skipped = [case for case in cases if case.result == "skip"]
    passed = [case for case in cases if case.result == "pass"]
    findings = []
    if failed:
        times = f" in {len(failed)} of {len(cases)} repeats" if len(cases) > 1 else ""
        reason = f"failed{_phase_and_reason(failed[0], times)}"
        findings.append(subject.judged("fail", reason, n=len(cases)))
    if skipped:
        reason = skipped[0].reason or _NO_REASON
        findings.append(subject.judged("skipped", reason, n=len(skipped)))
    if passed and not failed and not numbers:
        reason = "ran and verified; it has no number to judge"
        findings.append(subject.judged("pass", reason, n=len(passed)))
    return findings


def _failed(case: Case, numbers: Sequence[Finding]) -> bool:
    """Return True if a case failed, and not only for numbers that are judged.

    ReFrame holds the worst number to the limit; a criterion judges all of them.
    """
    if case.result != "fail":
        return False
    if case.phase != "performance" or not numbers:
        return True
    faults = (case.reason or "").split("; ")
    explained = all(fault.strip().endswith(_QUICK_VERDICT) for fault in faults)
    return not explained and all(finding.verdict == "pass" for finding in numbers)


def retried(key: CaseKey, tries: Sequence[Case], last: Sequence[Case]) -> list[Finding]:
    """Return a finding on each case that passed, but not at the first try."""
    findings = []
    for case in last:
        if case.attempt > 1 and case.result == "pass":
            first = next(other for other in tries if other.session == case.session)
            reason = (
                f"passed at try {case.attempt} in session {case.session}; "
                f"the first failed{_phase_and_reason(first)}"
            )
            findings.append(Finding.of_case(key).judged("pass", reason, n=1))
    return findings


_NO_REASON = "no reason given"


def _phase_and_reason(case: Case, times: str = "") -> str:
    phase = f" in {case.phase}" if case.phase else ""
    return f"{phase}{times}: {case.reason or _NO_REASON}"
