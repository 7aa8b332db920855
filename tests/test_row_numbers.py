"""Numbers of distinct rows: as a dictionary would give them, for any kind of column."""

from typing import Any

import numpy as np
import polars as pl
import pytest

from seatrial.judge import row_numbers
from seatrial.judge.row_numbers import numbered

COLUMNS = ("name", "other", "count")
CHOICES: tuple[list[Any], ...] = (
    ["a", "b", None],
    [None],
    [0, 3, -(2**40), 2**40, None],
)


def expected(rows: pl.DataFrame) -> tuple[list[int], list[tuple[Any, ...]]]:
    known: dict[tuple[Any, ...], int] = {}
    numbers = [known.setdefault(row, len(known)) for row in rows.rows()]
    return numbers, [*known]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("most", [1 << 62, 100])
def test_equal_rows_have_equal_numbers(
    monkeypatch: pytest.MonkeyPatch, seed: int, most: int
) -> None:
    monkeypatch.setattr(row_numbers, "_MOST_CODES", most)
    dice = np.random.default_rng(seed)
    height = int(dice.integers(0, 60))
    columns = [
        [choices[at] for at in dice.integers(0, len(choices), height)]
        for choices in (CHOICES[0], CHOICES[seed % 2], CHOICES[2][: 2 + seed % 4])
    ]
    kinds = (pl.Categorical, pl.Categorical, pl.Int64)
    rows = pl.DataFrame(
        [
            pl.Series(name, values, kind)
            for name, values, kind in zip(COLUMNS, columns, kinds, strict=True)
        ]
    )
    blocks = [rows.slice(at, 7) for at in range(0, max(height, 1), 7)]
    numbers, distinct = numbered(blocks, COLUMNS)
    assert (numbers.tolist(), distinct.rows()) == expected(rows)


@pytest.mark.parametrize(("most", "size"), [(2**31 - 1, 4), (2**31, 8)])
def test_integers_are_as_wide_as_needed(most: int, size: int) -> None:
    assert row_numbers.wide_enough(most)(most) == most
    assert row_numbers.wide_enough(most)(0).itemsize == size
