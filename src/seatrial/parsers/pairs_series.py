"""The order of the rows of programs that measure many pairs of ranks."""

from collections.abc import Sequence
from itertools import groupby, pairwise

from seatrial.parsers.errors import ParseError
from seatrial.parsers.rows import check_sizes


def check_series(rows: Sequence[tuple[str, int, int]], *, doubled: bool = True) -> None:
    """Check rows of (mode, pairs, size): by mode, then number of pairs, then size.

    Each mode has the same numbers of pairs, which double (the last may be smaller), and
    each of these the same sizes, `doubled` or growing otherwise. Raises ParseError if
    not.
    """
    series = [
        (key, [size for _, _, size in group])
        for key, group in groupby(rows, key=lambda row: row[:2])
    ]
    if doubled:
        check_sizes(series[0][1])
    for before, size in pairwise(series[0][1]):
        if size <= before:
            raise ParseError(0, f"size {size} after {before}")
    for key, sizes in series:
        if sizes != series[0][1]:
            raise ParseError(0, f"sizes of {key} are not those of {series[0][0]}")
    modes = [
        (mode, [pairs for (_, pairs), _ in group])
        for mode, group in groupby(series, key=lambda item: item[0][0])
    ]
    if len({mode for mode, _ in modes}) != len(modes):
        raise ParseError(0, "a mode comes back after another")
    for mode, counts in modes:
        if counts != modes[0][1]:
            raise ParseError(0, f"pairs of {mode} are not those of {modes[0][0]}")
    for before, pairs in pairwise(modes[0][1]):
        least = before + 1 if pairs == modes[0][1][-1] else 2 * before
        if not least <= pairs <= 2 * before:
            raise ParseError(0, f"{pairs} pairs after {before}")
