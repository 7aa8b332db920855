"""A curve as a table: a row per message size, a column per line."""

from dataclasses import dataclass

from seatrial.report import text
from seatrial.report.curves import Curve


@dataclass(frozen=True)
class Table:
    """The numbers of a curve as text."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


def table(curve: Curve) -> Table:
    """Turn a curve into a table; the limit is the last column if there is one."""
    sizes = {point.size_bytes for line in curve.lines for point in line.points}
    sizes |= {limit.size_bytes for limit in curve.limits}
    values = [
        {point.size_bytes: text.measured(point.value) for point in line.points}
        for line in curve.lines
    ]
    columns = [line.label for line in curve.lines]
    if curve.limits:
        columns.append("limit")
        limits: dict[int, str] = {}
        for limit in curve.limits:
            before = (
                f"{limits[limit.size_bytes]}; " if limit.size_bytes in limits else ""
            )
            limits[limit.size_bytes] = before + limit.label
        values.append(limits)
    return Table(
        tuple(columns),
        tuple(
            (text.size(size), tuple(column.get(size, "") for column in values))
            for size in sorted(sizes)
        ),
    )
