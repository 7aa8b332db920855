"""A curve as a table: a row per message size (or other x), a column per line."""

from dataclasses import dataclass

from seatrial.report import text
from seatrial.report.curves import Curve


@dataclass(frozen=True)
class Table:
    """The numbers of a curve as text; `over` heads the first column."""

    over: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


def table(curve: Curve) -> Table:
    """Turn a curve into a table; the limit is the last column if there is one."""
    known = {point.x for line in curve.lines for point in line.points}
    known |= {limit.x for limit in curve.limits}
    values = [
        {point.x: text.measured(point.value) for point in line.points}
        for line in curve.lines
    ]
    columns = [line.label for line in curve.lines]
    if curve.limits:
        columns.append("limit")
        limits: dict[float, str] = {}
        for limit in curve.limits:
            before = f"{limits[limit.x]}; " if limit.x in limits else ""
            limits[limit.x] = before + limit.label
        values.append(limits)
    return Table(
        over=curve.x_title,
        columns=tuple(columns),
        rows=tuple(
            (
                text.exact(x) if curve.over else text.size(int(x)),
                tuple(column.get(x, "") for column in values),
            )
            for x in sorted(known)
        ),
    )
