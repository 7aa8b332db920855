"""Numbers paired by case: arrays of one row per number, one column per side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from seatrial.compare.allocations import KEY, case_words, parameters_of
from seatrial.compare.records import Key
from seatrial.model.metrics import Direction
from seatrial.names import natural_key

_LEAST, _MOST = 1e-100, 1e100
"""No measured number is beyond these; their ratios are still numbers."""

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass
class Paired:
    """All numbers of all sides, on logarithms; shapes (numbers, sides).

    `repeats` has for each side the means over the allocations of each repeat, (numbers,
    repeats), in the order of their start. `means` are those of the repeats, NaN where a
    side has no number; `counts` are of allocations. `signs` (numbers,)
    is 1 where higher is better and -1 where lower is. `values` say of each case what
    `where` of the weights may ask for, `bad` why a number of a side has no logarithm.
    """

    keys: list[Key]
    units: list[str]
    directions: list[Direction]
    values: list[Mapping[str, Any]]
    means: Floats
    counts: Counts
    repeats: list[Floats]
    bad: dict[tuple[int, int], str] = field(default_factory=dict)
    notes: dict[int, str] = field(default_factory=dict)

    @property
    def signs(self) -> Floats:
        """Return 1 where higher is better, -1 where lower is."""
        return np.array(
            [1.0 if direction == "higher" else -1.0 for direction in self.directions]
        )

    @property
    def there(self) -> NDArray[np.bool_]:
        """Return True where a side has a number, (numbers, sides)."""
        return ~np.isnan(self.means)

    @property
    def on_all(self) -> NDArray[np.bool_]:
        """Return True for numbers that all sides have, (numbers,)."""
        return np.asarray(self.there.all(axis=1))

    def add_note(self, row: int, note: str) -> None:
        """Append a note to those of a number."""
        self.notes[row] = "; ".join(filter(None, [self.notes.get(row), note]))

    def add(self, key: Key, unit: str, direction: Direction, row: Floats) -> None:
        """Add a number without allocations: `row` has one logarithm per side."""
        self.keys.append(key)
        self.units.append(unit)
        self.directions.append(direction)
        self.values.append({})
        self.means = np.vstack([self.means, row])
        unknown = np.full((1, self.means.shape[1]), np.nan)
        self.counts = np.vstack([self.counts, np.zeros_like(unknown, dtype=np.int64)])
        self.repeats = [
            np.vstack([repeat, np.full((1, repeat.shape[1]), np.nan)])
            for repeat in self.repeats
        ]


def paired(table: pl.DataFrame, sides: int) -> Paired:
    """Sort the allocations of all sides by number, in natural order."""
    if table.is_empty():
        return _blank([], sides)
    texts = {*table["check"], *table["parameters"], *table["environment"]}
    rank = {text: at for at, text in enumerate(sorted(texts, key=natural_key))}
    ranks = [
        pl.col(name).replace_strict(rank, return_dtype=pl.Int64)
        for name in ("check", "parameters", "environment")
    ]
    ordered = table.sort(
        *ranks,
        *KEY,
        "side",
        "repeat",
        "session",
        "attempt",
        "job_id",
        maintain_order=True,
    )
    ordered = ordered.with_columns(row=pl.struct(KEY).rle_id().cast(pl.Int64))
    rows = ordered.group_by("row", maintain_order=True).agg(
        *(pl.col(name).first() for name in (*KEY, "unit", "direction")),
        *(
            pl.col(name).unique(maintain_order=True)
            for name in ("stack", "full_partition", "of_nodes")
        ),
    )
    numbers = _blank([*rows.iter_rows(named=True)], sides)
    _fill(numbers, ordered)
    return numbers


def _blank(rows: Sequence[Mapping[str, Any]], sides: int) -> Paired:
    """Return numbers that no side has yet."""
    texts = {row["parameters"] for row in rows}
    words = {text: case_words(text) for text in texts}
    parsed = {text: parameters_of(text) for text in texts}
    own = [name for name in KEY if name != "parameters"]
    shape = (len(rows), sides)
    return Paired(
        keys=[
            Key(case=words[row["parameters"]], **{name: row[name] for name in own})
            for row in rows
        ],
        units=[row["unit"] for row in rows],
        directions=[row["direction"] for row in rows],
        values=[
            {
                **{name: (it,) for name, it in parsed[row["parameters"]].items()},
                "$environ": row["stack"],
                "$partition": row["full_partition"],
                "num_nodes": row["of_nodes"],
            }
            for row in rows
        ],
        means=np.full(shape, np.nan),
        counts=np.zeros(shape, np.int64),
        repeats=[np.empty((len(rows), 0))] * sides,
    )


def _fill(table: Paired, rows: pl.DataFrame) -> None:
    """Compute means and variances of log values; report values <= 0."""
    value = pl.col("value")
    sound = value.is_between(_LEAST, _MOST)
    worst = rows.group_by("row", "side", maintain_order=True).agg(
        sound=sound.fill_null(False).all(),
        least=value.min(),
        most=value.max(),
        unknown=value.is_null().any(),
    )
    wrong = worst.filter(~pl.col("sound")).drop("sound")
    for row, side, least, most, unknown in wrong.iter_rows():
        fault = "a value that is no finite number"
        if not unknown:
            fault = f"a value of {least if least < _LEAST else most:g}"
        table.bad[row, side] = f"{fault} has no ratio"
    sound_rows = worst.filter("sound")
    good = rows.join(sound_rows, on=["row", "side"], how="semi", maintain_order="left")
    good = good.with_columns(log=value.log())
    # In a fixed order: the last digit of a mean depends on it.
    by_repeat = good.group_by("row", "side", "repeat", maintain_order=True).agg(
        pl.col("log").mean(), n=pl.len()
    )
    stats = by_repeat.group_by("row", "side").agg(pl.col("log").mean(), pl.sum("n"))
    at = (stats["row"].to_numpy(), stats["side"].to_numpy())
    table.means[at] = stats["log"].to_numpy()
    table.counts[at] = stats["n"].to_numpy()
    for (side,), part in by_repeat.partition_by("side", as_dict=True).items():
        columns = _columns(good.filter(side=side))
        array = np.full((len(table.keys), len(columns)), np.nan)
        column = part["repeat"].replace_strict(columns).to_numpy()
        array[part["row"].to_numpy(), column] = part["log"].to_numpy()
        table.repeats[int(side)] = array


def _columns(rows: pl.DataFrame) -> dict[int, int]:
    """Order the repeats of a side by their start, by number if one is unknown."""
    starts = rows.group_by("repeat").agg(pl.col("start_time").min())
    known = starts["start_time"].null_count() == 0
    by = ("start_time", "repeat") if known else ("repeat",)
    return {repeat: at for at, repeat in enumerate(starts.sort(by)["repeat"])}
