"""Places that are not shown, undecided or suspect, and the reasons for a place."""

from collections.abc import Mapping, Sequence

from seatrial.judge.findings import Finding, Judgement
from seatrial.names import natural_key
from seatrial.report.content import ActOn
from seatrial.report.render import text
from seatrial.report.render.text import few, short
from seatrial.report.wording import badness, interval_words, required_words

MOST_NAMES = 8
"""Places with the same reason whose names are in one line; the rest is counted."""

MOST_REASONS = 2
_MEETS = {
    "not shown": "not shown; the values are within their limits, but too close to them",
    "undecided": "undecided; the values are within their limits so far",
}


def look_at(judgement: Judgement) -> tuple[list[ActOn], list[ActOn], list[str]]:
    """Return places that are not shown, undecided places, and other suspects.

    A place is in one list only, and in none if it fails. Cases that are not shown as a
    whole follow the places that are not.
    """
    failing = judgement.failing
    listed: dict[str, dict[str, list[Finding]]] = {"not shown": {}, "undecided": {}}
    whole: dict[str, list[Finding]] = {}
    for finding in judgement.findings:
        if finding.verdict in listed and not failing & {finding.place, finding.node}:
            if finding.place:
                listed[finding.verdict].setdefault(finding.node, []).append(finding)
            elif finding.verdict == "not shown":
                whole.setdefault(case_name(finding), []).append(finding)
    not_shown, undecided = listed.values()
    undecided = {name: own for name, own in undecided.items() if name not in not_shown}
    known = {*not_shown, *undecided}
    suspects = {*judgement.worth_a_look}
    cases = [ActOn(case, reasons_of(own, of_whole=True)) for case, own in whole.items()]
    return (
        _grouped(not_shown, suspects, _MEETS["not shown"]) + cases,
        _grouped(undecided, suspects, _MEETS["undecided"]),
        [
            place
            for place in judgement.worth_a_look
            if (place.rpartition(" (")[0] or place) not in known
        ],
    )


def case_name(finding: Finding) -> str:
    """Name the case of a finding on a case as a whole."""
    return ", ".join(filter(None, (finding.case, finding.environment))) or finding.kind


def _grouped(
    places: Mapping[str, list[Finding]], suspects: set[str], meets: str
) -> list[ActOn]:
    """Put places with the same reason into an entry; those that may be bad come first.

    `meets` is the reason of places within their limits.
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for place, findings in sorted(places.items(), key=lambda item: _badness(item[1])):
        telling = [finding for finding in findings if _may_be_bad(finding)]
        telling = telling or (findings if place in suspects else [])
        groups.setdefault(reasons_of(telling) or (meets,), []).append(place)
    return [ActOn(_names(names), reasons) for reasons, names in groups.items()]


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
    required = required_words(finding) if finding.limit else ""
    if finding.value is None:
        limits = required if finding.accepted is not None else ""
        return ": ".join(filter(None, (finding.metric, limits, finding.reason)))
    value = text.quantity(text.measured(finding.value, finding.limit), finding.unit)
    if finding.kind == "sameness":
        value += " times the typical"
    told = finding.reason.startswith("between ")  # the reason has the interval
    interval = "" if told else interval_words(finding)
    between = f" ({interval})" if interval else ""
    limits = f", {required}" if required else ""
    return f"{finding.metric} is {value}{between}{limits}: {finding.reason}"
