"""Print records as JSON or CSV; write the files of a page."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
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


def write_files(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write texts to the files of a folder, by name; return the paths."""
    from seatrial.runs.open_run import disk_errors, write_file

    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            write_file(folder / name, text.encode())
    return [folder / name for name in texts]
