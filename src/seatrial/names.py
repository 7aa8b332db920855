"""Names and paths that come from data, and become parts of paths here; their order."""

import re
from pathlib import PurePosixPath
from typing import TypeGuard

from seatrial.errors import SeatrialError

EXPECTED = "expected letters, digits, dot, dash and underscore, not a dot or dash first"

_NAME = re.compile(r"\w[\w.-]*", re.ASCII)
_DIGITS = re.compile(r"(\d+)")
_LONGEST = 200
"""Characters; a file system allows 255, and suffixes such as .open are added."""


def is_name(text: object) -> TypeGuard[str]:
    """Check if a value can name a system, run, campaign, session, node or stack.

    Such a name is one component of a path, and holds nothing that a shell, a glob
    pattern or a terminal interprets.
    """
    return (
        isinstance(text, str)
        and len(text) <= _LONGEST
        and _NAME.fullmatch(text) is not None
    )


def checked_name(text: object, what: str) -> str:
    """Return a name; SeatrialError says that `what` is none."""
    if not is_name(text):
        raise SeatrialError(f"{what}: {str(text)[:_LONGEST]!r} is no name; {EXPECTED}")
    return text


def is_inside(text: str) -> bool:
    """Check if a text is the path of a file below a folder, in its shortest form."""
    path = PurePosixPath(text)
    return (
        str(path) == text
        and text != "."
        and not path.is_absolute()
        and ".." not in path.parts
        and "\0" not in text
    )


def natural_key(text: str) -> tuple[tuple[int, int | str], ...]:
    """Return a sort key that puts cn2 before cn10."""
    return tuple(
        (0, int(part)) if part.isdecimal() else (1, part)
        for part in _DIGITS.split(text)
        if part
    )
