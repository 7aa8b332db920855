"""Damage to JSON rows of our own benchmarks, for the tests of their parsers."""

import json
from typing import Any


def with_values(text: str, line: int, **values: Any) -> str:
    """Change or add values of one row; line 1 is the first."""
    lines = text.splitlines()
    row: dict[str, Any] = json.loads(lines[line - 1])
    lines[line - 1] = json.dumps(row | values)
    return "\n".join(lines) + "\n"


def without_key(text: str, line: int, key: str) -> str:
    """Remove a key from one row."""
    lines = text.splitlines()
    row: dict[str, Any] = json.loads(lines[line - 1])
    del row[key]
    lines[line - 1] = json.dumps(row)
    return "\n".join(lines) + "\n"


def without_line(text: str, line: int) -> str:
    """Remove one line."""
    lines = text.splitlines()
    del lines[line - 1]
    return "".join(f"{kept}\n" for kept in lines)
