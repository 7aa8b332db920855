"""Findings that rest on no number: what was delivered, what ran, and what did not."""

from collections.abc import Sequence
from dataclasses import replace

from seatrial.judge.findings import Finding, Row, plain_finding
from seatrial.model.cases import Case, CaseKey
from seatrial.runs.raw_output import NO_MEASUREMENT

_QUICK_VERDICT = "does not meet its reference"
"""What ReFrame says of a number that misses its limit; the judge knows all of them."""


def inventory(nodes: Sequence[Row], replay: bool) -> list[Finding]:
    """Judge what was delivered: a node that was absent, or lost in the run, fails."""
    key = CaseKey("", "", "", "")
    plain = plain_finding(key, "inventory")
    findings = [
        replace(
            plain,
            place=node["name"],
            verdict="fail",
            reason=f"delivered but {node['state']}: {node['reason']}",
        )
        for node in nodes
        if node["state"] != "present"
    ]
    if replay:
        reason = f"{NO_MEASUREMENT}, and nobody looked at the nodes"
        return [replace(plain_finding(key, "replay"), reason=reason), *findings]
    if not nodes:
        reason = "the run does not say which nodes were delivered"
        return [replace(plain, reason=reason)]
    if not findings:
        reason = f"all {len(nodes)} delivered nodes are present"
        findings = [replace(plain, n=len(nodes), verdict="pass", reason=reason)]
    return findings


def case_findings(
    key: CaseKey, cases: Sequence[Case], numbers: Sequence[Finding]
) -> list[Finding]:
    """Judge what is no number: a case that failed, was skipped, or only ran."""
    plain = plain_finding(key, "case")
    findings = []
    failed = [
        case
        for case in cases
        if case.result == "fail" and not _explained(case, numbers)
    ]
    skipped = [case for case in cases if case.result == "skip"]
    passed = [case for case in cases if case.result == "pass"]
    if failed:
        where = f" in {failed[0].phase}" if failed[0].phase else ""
        times = f" in {len(failed)} of {len(cases)} repeats" if len(cases) > 1 else ""
        reason = f"failed{where}{times}: {failed[0].reason or 'no reason given'}"
        findings.append(replace(plain, n=len(cases), verdict="fail", reason=reason))
    if skipped:
        reason = skipped[0].reason or "no reason given"
        findings.append(
            replace(plain, n=len(skipped), verdict="skipped", reason=reason)
        )
    if passed and not failed and not numbers:
        reason = "ran and verified; it has no number to judge"
        findings.append(replace(plain, n=len(passed), verdict="pass", reason=reason))
    return findings


def _explained(case: Case, numbers: Sequence[Finding]) -> bool:
    """Tell whether a case failed for its numbers, and these are judged by themselves.

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
            where = f" in {first.phase}" if first.phase else ""
            reason = (
                f"passed at try {case.attempt} in session {case.session}; the first "
                f"failed{where}: {first.reason or 'no reason given'}"
            )
            plain = plain_finding(key, "case")
            findings.append(replace(plain, n=1, verdict="pass", reason=reason))
    return findings
