"""Findings without a number: delivered nodes, failed and skipped cases, retries."""

from collections.abc import Sequence

from seatrial.judge.findings import Finding, Row, Subject
from seatrial.model.cases import Case, CaseKey
from seatrial.runs.raw_output import NO_MEASUREMENT

_QUICK_VERDICT = "does not meet its reference"
"""What ReFrame says of a number that misses its limit; the judge knows all of them."""


def inventory(nodes: Sequence[Row], replay: bool) -> list[Finding]:
    """Judge the delivered nodes: one that was absent, or lost in the run, fails."""
    subject = Subject("inventory")
    findings = [
        subject.finding(
            "fail",
            f"delivered but {node['state']}: {node['reason']}",
            place=node["name"],
        )
        for node in nodes
        if node["state"] != "present"
    ]
    if replay:
        reason = f"{NO_MEASUREMENT}; the nodes were not inspected"
        return [Subject("replay").finding("undecided", reason), *findings]
    if not nodes:
        reason = "the run does not say which nodes were delivered"
        return [subject.finding("undecided", reason)]
    if not findings:
        reason = f"all {len(nodes)} delivered nodes are present"
        return [subject.finding("pass", reason, n=len(nodes))]
    return findings


def case_findings(
    key: CaseKey, cases: Sequence[Case], numbers: Sequence[Finding]
) -> list[Finding]:
    """Judge a case without regard to its numbers: it failed, was skipped, or ran."""
    subject = Subject.of_case(key)
    findings = []
    failed = [
        case
        for case in cases
        if case.result == "fail" and not _explained(case, numbers)
    ]
    skipped = [case for case in cases if case.result == "skip"]
    passed = [case for case in cases if case.result == "pass"]
    if failed:
        times = f" in {len(failed)} of {len(cases)} repeats" if len(cases) > 1 else ""
        reason = f"failed{_in_phase(failed[0])}{times}: {_reason(failed[0])}"
        findings.append(subject.finding("fail", reason, n=len(cases)))
    if skipped:
        reason = _reason(skipped[0])
        findings.append(subject.finding("skipped", reason, n=len(skipped)))
    if passed and not failed and not numbers:
        reason = "ran and verified; it has no number to judge"
        findings.append(subject.finding("pass", reason, n=len(passed)))
    return findings


def _explained(case: Case, numbers: Sequence[Finding]) -> bool:
    """Return True if a case failed only for numbers that are judged by themselves.

    ReFrame holds the worst of them to the limit; that is not what a criterion says.
    """
    if case.phase != "performance" or not numbers:
        return False
    if any(finding.verdict != "pass" for finding in numbers):
        return True
    faults = (case.reason or "").split("; ")
    return all(fault.strip().endswith(_QUICK_VERDICT) for fault in faults)


def retried(key: CaseKey, tries: Sequence[Case], last: Sequence[Case]) -> list[Finding]:
    """Show each case that passed, but not at the first try."""
    findings = []
    for case in last:
        first = next(each for each in tries if each.session == case.session)
        if case.attempt > 1 and case.result == "pass":
            reason = (
                f"passed at try {case.attempt} in session {case.session}; the first "
                f"failed{_in_phase(first)}: {_reason(first)}"
            )
            findings.append(Subject.of_case(key).finding("pass", reason, n=1))
    return findings


def _in_phase(case: Case) -> str:
    return f" in {case.phase}" if case.phase else ""


def _reason(case: Case) -> str:
    return case.reason or "no reason given"
