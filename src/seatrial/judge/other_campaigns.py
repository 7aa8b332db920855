"""Criteria that hold for runs of other campaigns: named, and not judged."""

from collections.abc import Iterable

from seatrial.criteria.criteria import Criterion
from seatrial.judge.case_numbers import NO_CRITERION
from seatrial.judge.findings import Finding

_ONLY = "only for campaign"


def findings_elsewhere(others: Iterable[Criterion]) -> list[Finding]:
    """Return a skipped finding for each criterion of other campaigns."""
    return [
        Finding("limit", rule.check).held_to(rule).judged("skipped", _reason(rule))
        for rule in others
    ]


def _reason(rule: Criterion) -> str:
    return f"{_ONLY}{'s' * (len(rule.campaigns) > 1)} {', '.join(rule.campaigns)}"


def accounted(
    findings: Iterable[Finding], others: Iterable[Criterion]
) -> list[Finding]:
    """Skip metrics without a criterion here that have one in another campaign."""
    reasons = {(rule.check, rule.metric): _reason(rule) for rule in others}
    return [
        finding.judged("skipped", reasons[finding.check, finding.metric])
        if finding.reason == NO_CRITERION and (finding.check, finding.metric) in reasons
        else finding
        for finding in findings
    ]


def is_elsewhere(finding: Finding) -> bool:
    """Return True if a criterion holds for runs of other campaigns only."""
    return finding.verdict == "skipped" and finding.reason.startswith(_ONLY)


def words_elsewhere(findings: Iterable[Finding]) -> str:
    """Count the criteria of other campaigns, and name these; '' if there are none.

    Example: `37 criteria hold only for campaign acceptance`.
    """
    names: dict[str, set[str]] = {}
    for finding in filter(is_elsewhere, findings):
        if finding.criterion:
            names.setdefault(finding.reason, set()).add(finding.criterion)
    words = (
        f"{len(own)} {'criteria hold' if len(own) > 1 else 'criterion holds'} {reason}"
        for reason, own in names.items()
    )
    return ", ".join(words)
