"""The criteria as CSV: one row each, with the numbers of the worst place."""

from seatrial.model.csv_text import csv_text
from seatrial.report.content import Content

_OF_ROW = (
    *("name", "verdict", "check", "metric", "where", "kind", "clause"),
    *("allocations", "places", "reason", "scatter"),
)
_OF_WORST = ("place", "direction", "limit", "value", "lower", "upper", "unit", "more")


def criteria_csv(content: Content) -> str:
    """Write a row per criterion; `value` to `more` are of the worst place."""
    return csv_text(
        (*_OF_ROW, *_OF_WORST),
        (
            {
                **{name: getattr(row, name) for name in _OF_ROW},
                **{name: getattr(row.worst, name) for name in _OF_WORST},
            }
            for row in content.criteria
        ),
    )
