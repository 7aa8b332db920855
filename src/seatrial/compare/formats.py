"""A comparison as JSON and CSV, and its most telling numbers."""

import json
from typing import Any

from seatrial.compare.records import Comparison, PairedNumber
from seatrial.model.csv_text import csv_text

_COLUMNS = (
    "check",
    "case",
    "environment",
    "partition",
    "num_nodes",
    "metric",
    "size_bytes",
    "size",
    "unit",
    "direction",
    "group",
    "weight",
)

_ENCODER = json.JSONEncoder(default=vars, allow_nan=False)


_OF_SIDE = ("side", "value", "n", "ratio", "lower", "upper", "mark", "note")


def as_json(comparison: Comparison) -> str:
    """Write the whole record; a list has one of its records a line."""
    parts = []
    for name, value in vars(comparison).items():
        if isinstance(value, tuple) and value:
            rows = ",\n  ".join(_plain(each) for each in value)
            parts.append(f" {json.dumps(name)}: [\n  {rows}\n ]")
        else:
            parts.append(f" {json.dumps(name)}: {_plain(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _plain(value: Any) -> str:
    return _ENCODER.encode(value)


def as_csv(comparison: Comparison) -> str:
    """Write a row for each paired number and side."""
    names = [side.name for side in comparison.sides]
    rows = []
    for number in comparison.numbers:
        shared = {name: getattr(number, name) for name in _COLUMNS}
        for at, name in enumerate(names):
            ratio = number.ratios[at]
            own = {
                "side": name,
                "value": number.values[at],
                "n": number.n[at],
                "ratio": ratio and ratio.value,
                "lower": ratio and ratio.lower,
                "upper": ratio and ratio.upper,
                "mark": number.marks[at],
                "note": number.note,
            }
            rows.append(shared | own)
    return csv_text((*_COLUMNS, *_OF_SIDE), rows)


def most_telling(comparison: Comparison, most: int) -> list[PairedNumber]:
    """Choose numbers for people: weighted first, then the largest differences."""

    def order(number: PairedNumber) -> tuple[bool, float]:
        found = [max(r.value, 1 / r.value) for r in number.ratios if r is not None]
        return number.weight == 0, -max(found, default=0.0)

    return sorted(comparison.numbers, key=order)[:most]
