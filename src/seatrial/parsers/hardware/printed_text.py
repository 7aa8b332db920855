"""Lines, fields and JSON as the tools of HCAs print them."""

import json
import re
from typing import Any, NoReturn, TypeVar

import msgspec

from seatrial.parsers.errors import ParseError

T = TypeVar("T")
_FOREIGN = re.compile(r"[^\t\n\x20-\x7e\u00a0-\ud7ff\ue000-\ufffc]")
_COUNT = re.compile(r"[0-9]{1,18}")


def whole_lines(text: str) -> list[str]:
    """Return the lines of a text, without the whitespace at their ends.

    Raises ParseError if the text is empty, cut off in a line, or not a text.
    """
    if not text.strip():
        raise ParseError(0, "no output")
    if match := _FOREIGN.search(text):
        line = text.count("\n", 0, match.start()) + 1
        raise ParseError(line, f"{match[0]!r}, expected a text")
    lines = text.split("\n")
    if lines.pop():
        raise ParseError(len(lines) + 1, "cut off: no newline at the end")
    return [line.rstrip() for line in lines]


class Fields:
    """Values by name, each printed once; `owner` is the tool or the part of it."""

    def __init__(self, owner: str, line: int = 0) -> None:
        self._owner = owner
        self._line = line
        self._values: dict[str, tuple[int, str]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def add(self, line: int, name: str, value: str) -> None:
        """Add a field; ParseError if it is there already."""
        if name in self._values:
            raise ParseError(line, f"{self._owner}: a second {name}")
        self._values[name] = line, value

    def get(self, name: str, pattern: str = r".+") -> str | None:
        """Return a value, None without one; ParseError unless the pattern fits."""
        line, value = self._values.get(name, (self._line, ""))
        if not value:
            return None
        if not re.fullmatch(pattern, value):
            raise ParseError(line, f"{self._owner}: {name} is {value[:80]!r}")
        return value

    def need(self, name: str, pattern: str = r".+") -> str:
        """Return a value as `get`; ParseError without one."""
        value = self.get(name, pattern)
        if value is None:
            line = self._values.get(name, (self._line, ""))[0]
            raise ParseError(line, f"{self._owner}: no {name}")
        return value

    def count(self, name: str) -> int | None:
        """Return a whole number, None without one; ParseError if it is none."""
        value = self.get(name, _COUNT.pattern)
        return None if value is None else int(value)

    def need_count(self, name: str) -> int:
        """Return a whole number as `count`; ParseError without one."""
        return int(self.need(name, _COUNT.pattern))


def read_json(text: str, kind: type[T]) -> T:
    """Convert the one JSON value of a text; ParseError unless it is of that kind.

    A name that comes twice, NaN and infinity are refused. Unknown names are ignored.
    """
    if not text.strip():
        raise ParseError(0, "no output")
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise ParseError(error.lineno, f"no JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise ParseError(0, f"no JSON: {error}") from None
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ParseError(0, str(error)) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a name comes twice")
    return values


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")
