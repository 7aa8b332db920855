"""Places to look at: undecided places and suspects, and the reasons for a place."""

from collections.abc import Sequence

from seatrial.judge.findings import Finding, Judgement
from seatrial.names import natural_key
from seatrial.report.content import ActOn
from seatrial.report.render import text
from seatrial.report.render.text import few, short
from seatrial.report.wording import badness, interval_words, limit_words

MOST_NAMES = 8
"""Places with the same reason whose names are in one line; the rest is counted."""

MOST_REASONS = 2
_MEETS = "undecided; the values are within their limits so far"


def look_at(judgement: Judgement) -> tuple[list[ActOn], list[str]]:
    """Return undecided places and other suspects, without those that fail.

    Places with the same reason share an entry; those that may be bad come first.
    """
    failing = {*judgement.convicted}
    failing |= {row.place for row in judgement.findings if row.verdict == "fail"}
    places: dict[str, list[Finding]] = {}
    for finding in judgement.findings:
        known = not finding.place or failing & {finding.place, finding.node}
        if finding.verdict == "undecided" and not known:
            places.setdefault(finding.node, []).append(finding)
    suspects = {*judgement.worth_a_look}
    groups: dict[tuple[str, ...], list[str]] = {}
    for place, findings in sorted(places.items(), key=lambda item: _badness(item[1])):
        telling = [finding for finding in findings if _may_be_bad(finding)]
        telling = telling or (findings if place in suspects else [])
        groups.setdefault(reasons_of(telling) or (_MEETS,), []).append(place)
    undecided = [ActOn(_names(names), reasons) for reasons, names in groups.items()]
    return undecided, [
        place
        for place in judgement.worth_a_look
        if (place.rpartition(" (")[0] or place) not in places
    ]


def _may_be_bad(finding: Finding) -> bool:
    """Return True if a number misses its limit, or has none."""
    if finding.value is None or finding.limit is None:
        return True
    beyond = finding.value - finding.limit
    return beyond > 0 if finding.direction == "lower" else beyond < 0


def _badness(findings: Sequence[Finding]) -> tuple[bool, float]:
    """Sort key: what may be bad first, the worst of it before the rest."""
    bad = [finding for finding in findings if _may_be_bad(finding)]
    return not bad, -max(map(badness, bad), default=0.0)


def _names(names: Sequence[str]) -> str:
    """Name places, nodes without their pairs; the first ones, in natural order."""
    known = {*names}
    alone = [name for name in names if not known & {*name.split(" - ")} - {name}]
    ordered = sorted(alone, key=natural_key)
    return ", ".join(few(map(short, ordered), MOST_NAMES))


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
        key=lambda row: (not row.metric, row.kind == "sameness", -badness(row)),
    )
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in worst:
        reason = "" if finding.metric else finding.reason
        key = (finding.check, finding.metric, finding.kind, reason)
        groups.setdefault(key, []).append(finding)
    reasons = (
        ("" if of_whole else _origin(own)) + _words(own[0]) for own in groups.values()
    )
    return tuple(few(reasons, MOST_REASONS))


def _origin(findings: Sequence[Finding]) -> str:
    """Name the check and its environments, the worst first."""
    others = dict.fromkeys(finding.environment for finding in findings[1:])
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
