"""A curve as a table: a row per message size (or other x), a column per line."""

from collections.abc import Iterable

from seatrial.report.curves import Curve
from seatrial.report.render import text
from seatrial.report.render.figure import Table


def table(curve: Curve) -> Table:
    """Turn a curve into a table; limits and published numbers are the last columns."""
    known = {point.x for line in curve.lines for point in line.points}
    known |= {limit.x for limit in curve.limits}
    columns = [curve.x_title, *(line.label for line in curve.lines)]
    values = [
        {point.x: text.measured(point.value) for point in line.points}
        for line in curve.lines
    ]
    if curve.limits:
        columns.append("limit")
        values.append(_joined((limit.x, limit.label) for limit in curve.limits))
    if curve.published:
        columns.append("published")
        values.append(
            _joined((each.x, f"{each.system} {each.words}") for each in curve.published)
        )
    return Table(
        tuple(columns),
        tuple(
            (
                text.exact(x) if curve.over else text.size(int(x)),
                *(column.get(x, "") for column in values),
            )
            for x in sorted(known)
        ),
    )


def _joined(pairs: Iterable[tuple[float, str]]) -> dict[float, str]:
    """Put what stands at the same x together."""
    found: dict[float, list[str]] = {}
    for x, words in pairs:
        found.setdefault(x, []).append(words)
    return {x: "; ".join(words) for x, words in found.items()}
