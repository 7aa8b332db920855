"""Reasons for a place on page one: its worst numbers and their limits."""

from collections.abc import Sequence

from seatrial.judge.findings import Finding
from seatrial.report.render import text
from seatrial.report.render.text import few
from seatrial.report.wording import badness, interval_words, limit_words

MOST_REASONS = 2


def reasons_of(
    findings: Sequence[Finding], *, of_whole: bool = False
) -> tuple[str, ...]:
    """Describe the worst findings of a place, what is required, and how sure it is.

    The place is a node or a link, or a whole case, whose name stands before them.
    Limits of a contract come before sameness. Of a metric that several cases took, the
    worst counts.
    """
    worst = sorted(
        findings,
        key=lambda each: (not each.metric, each.kind == "sameness", -badness(each)),
    )
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for each in worst:
        reason = "" if each.metric else each.reason
        groups.setdefault((each.check, each.metric, each.kind, reason), []).append(each)
    return tuple(
        few(
            (
                _words(own[0]) if of_whole else f"{_of(own)}{_words(own[0])}"
                for own in groups.values()
            ),
            MOST_REASONS,
        )
    )


def _of(findings: Sequence[Finding]) -> str:
    """Name the check and its environments, the worst first."""
    others = dict.fromkeys(each.environment for each in findings[1:])
    others.pop(findings[0].environment, None)
    named = ", ".join(filter(None, (findings[0].check, findings[0].environment)))
    too = f" ({', '.join(few(others, 3))} too)" if others else ""
    return f"{named}{too}: " if named else ""


def _words(finding: Finding) -> str:
    if finding.value is None:
        return (
            f"{finding.metric}: {finding.reason}" if finding.metric else finding.reason
        )
    value = text.quantity(text.measured(finding.value, finding.limit), finding.unit)
    if finding.kind == "sameness":
        value += " times the typical"
    interval = interval_words(finding)
    between = f" ({interval})" if interval else ""
    required = f", {limit_words(finding)} is required" if finding.limit else ""
    return f"{finding.metric} is {value}{between}{required}: {finding.reason}"
