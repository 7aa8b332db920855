"""Words and orders that the chapters of a report share."""

from seatrial.judge.judge import Finding
from seatrial.report.render import text

VERDICTS = ("fail", "not shown", "undecided", "pass", "skipped")
"""Verdicts in the order of a table: what needs a look comes first."""

MAX_CASES = 300
"""Rows of a table of cases; the rest is counted there, and is in cases.json."""


MODEL_NOTICE = (
    "Model machine. The numbers are made by a model of known truth; no machine was "
    "measured."
)
"""Label of runs whose programs are stand-ins."""


def urgency(finding: Finding) -> tuple[int, bool]:
    """Sort key: what is wrong with a node stands before all the pairs it spoils."""
    wrong = finding.verdict not in ("pass", "skipped")
    return VERDICTS.index(finding.verdict), wrong and finding.kind == "limit"


def badness(finding: Finding) -> float:
    """Return the ratio of a value to its limit, signed: the larger, the worse."""
    if finding.value is None or not finding.limit:
        return 0.0
    ratio = finding.value / finding.limit
    return ratio if finding.direction == "lower" else -ratio


def case_detail(check: str, case: str) -> str:
    """Return the parameters in a case's name."""
    return case.removeprefix(check).strip(" %_")


def limit_words(finding: Finding) -> str:
    """Format the limit of a finding: 'at least 60 MB/s'; '' if there is none.

    A test has two: 'at least 100 h is accepted, at most 50 h is rejected'.
    """
    if finding.limit is None:
        return ""
    limit = text.quantity(text.exact(finding.limit), finding.unit)
    if finding.accepted is not None:
        accepted = text.quantity(text.exact(finding.accepted), finding.unit)
        return f"at least {accepted} is accepted, at most {limit} is rejected"
    return f"{'at most' if finding.direction == 'lower' else 'at least'} {limit}"


def required_words(finding: Finding) -> str:
    """Format the limit of a finding as a sentence; '' if there is none."""
    words = limit_words(finding)
    return f"{words} is required" if words and finding.accepted is None else words


def interval_words(finding: Finding) -> str:
    """Format confidence bounds: '1,000 to 1,200'; '' if there are none."""
    if finding.lower is None or finding.upper is None:
        return ""
    ends = (finding.lower, finding.upper)
    return " to ".join(text.measured(end, finding.limit) for end in ends)
