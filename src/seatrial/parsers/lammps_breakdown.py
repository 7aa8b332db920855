"""LAMMPS' breakdown of the loop time by MPI task.

The parts' mean times add up to the loop time, and each has a share of it.
"""

from collections.abc import Sequence

from seatrial.parsers.errors import ParseError
from seatrial.parsers.printed import Range, exactly, printed, printed_short, read_number

_ABSURD_S = 1e9
_ALWAYS = ("Pair", "Neigh", "Comm", "Output", "Modify")
_SOMETIMES = ("Bond", "Kspace", "Sync")
_REST = "Other"


def read_breakdown(
    lines: Sequence[str], first: int, loop_time_s: float
) -> dict[str, float]:
    """Read the mean time in s of each section over all MPI tasks.

    The first of the lines is the title of the table, on line `first` of the output.

    Foreign lines are passed over, unless they have a bar. (A row that one of them has
    broken leaves a piece with a bar, too few or too many in it.) Raises ParseError
    unless every section is there and the times agree with each other.
    """
    columns: list[str] = []
    sections: dict[str, float] = {}
    total, loop = exactly(0), printed_short(loop_time_s)
    for line, shown in enumerate(lines, start=first):
        if "|" not in shown:
            continue
        cells = [cell.strip() for cell in shown.split("|")]
        if not columns and cells[0] == "Section":
            columns = cells
            continue
        name = cells[0]
        is_known = name in (*_ALWAYS, *_SOMETIMES, _REST) and name not in sections
        if len(cells) != len(columns) or not is_known:
            header = " | ".join(columns or ["Section"])
            raise ParseError(line, f"{shown.strip()!r}, expected a row of {header!r}")
        row = dict(zip(columns, cells, strict=True))
        sections[name], mean = _section(line, name, row)
        total += mean
        share = exactly(100) * mean / loop  # printed by %.2f
        if not printed(row["%total"]).meets(share):
            reason = f"{name} has {row['%total']} % of the loop time"
            raise ParseError(line, f"{reason}, not {share.middle:.4g} %")
        if name == _REST:
            break
    if missing := {*_ALWAYS, _REST} - sections.keys():
        raise ParseError(first, f"no time of {', '.join(sorted(missing))}")
    if not total.meets(loop):
        reason = f"parts of {total.middle:.6g} s in all, expected {loop_time_s} s"
        raise ParseError(first, reason)
    return sections


def _section(line: int, name: str, row: dict[str, str]) -> tuple[float, Range]:
    """Read the mean time in a row, and its range.

    LAMMPS prints the times by %.5g, but the rest, which has only a mean, by %.4g.
    """
    read_number(f"%total of {name}", line, row.get("%total", ""), -1, 101)
    if name == _REST:
        rest = read_number(name, line, row.get("avg time", ""), -1.0, _ABSURD_S)
        return rest, printed_short(rest, 4)
    least, mean, most = (
        read_number(f"{key} of {name}", line, row.get(key, ""), 0, _ABSURD_S)
        for key in ("min time", "avg time", "max time")
    )
    low, middle, high = (printed_short(value, 5) for value in (least, mean, most))
    if not (low.may_be_at_most(middle) and middle.may_be_at_most(high)):
        reason = f"{name} took {least} to {most} s, but {mean} s in the mean"
        raise ParseError(line, reason)
    return mean, middle
