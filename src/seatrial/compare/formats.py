"""A comparison as JSON and CSV, and its most telling numbers."""

import json
from collections.abc import Sequence
from dataclasses import fields

from seatrial.compare.records import Comparison, Key, PairedNumber
from seatrial.model.csv_text import csv_rows

_KEY = tuple(field.name for field in fields(Key))
_OF_NUMBER = (*_KEY, "unit", "direction", "group", "weight")
_OF_SIDE = ("side", "value", "n", "ratio", "lower", "upper", "mark", "note")
_ENCODER = json.JSONEncoder(default=vars, allow_nan=False)


def as_json(comparison: Comparison) -> str:
    """Write the whole record; a list has one of its records a line."""
    parts = []
    for name, value in vars(comparison).items():
        if isinstance(value, tuple) and value:
            rows = ",\n  ".join(map(_ENCODER.encode, value))
            parts.append(f" {json.dumps(name)}: [\n  {rows}\n ]")
        else:
            parts.append(f" {json.dumps(name)}: {_ENCODER.encode(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def as_csv(comparison: Comparison) -> str:
    """Write a row for each paired number and side."""
    rows: list[Sequence[object]] = [(*_OF_NUMBER, *_OF_SIDE)]
    for number in comparison.numbers:
        shared = [getattr(number, name) for name in _OF_NUMBER]
        for at, side in enumerate(comparison.sides):
            ratio = number.ratios[at]
            ends = (ratio.value, ratio.lower, ratio.upper) if ratio else (None,) * 3
            own = (side.name, number.values[at], number.n[at], *ends, number.marks[at])
            rows.append((*shared, *own, number.note))
    return csv_rows(rows)


def most_telling(comparison: Comparison, most: int) -> list[PairedNumber]:
    """Choose numbers for people: weighted first, then the largest differences."""

    def order(number: PairedNumber) -> tuple[bool, float]:
        factors = [max(r.value, 1 / r.value) for r in number.ratios if r is not None]
        return number.weight == 0, -max(factors, default=0.0)

    return sorted(comparison.numbers, key=order)[:most]
