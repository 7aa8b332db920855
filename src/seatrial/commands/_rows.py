"""Print records as JSON or CSV."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from seatrial.model.csv_text import csv_text
from seatrial.output import write_data


def write_json(record: Any) -> None:
    """Write a record, or a list of records, as JSON."""
    write_data(json.dumps(record, indent=1) + "\n")


def write_rows(
    rows: Iterable[Mapping[str, Any]], form: str, columns: Sequence[str]
) -> None:
    """Write rows as `json`, else as CSV with these columns."""
    if form == "json":
        write_json([*rows])
    else:
        write_data(csv_text(columns, rows))
