"""Names and paths that come from data, their order, and host lists of nodes."""

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import TypeGuard

from seatrial.errors import SeatrialError

EXPECTED = "expected letters, digits, dot, dash and underscore, not a dot or dash first"

_NAME = re.compile(r"\w[\w.-]*", re.ASCII)
_DIGITS = re.compile(r"(\d+)")
_LAST_NUMBER = re.compile(r"(?P<prefix>.*?)(?P<number>\d+)")
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


def node_set(names: Iterable[str]) -> str:
    """Format nodes as Slurm does: `cn[01-03,07],login`."""
    numbers: dict[str, set[tuple[int, str]]] = defaultdict(set)
    texts = set()
    for name in names:
        match = _LAST_NUMBER.fullmatch(name)
        if match is None:
            texts.add(name)
        else:
            numbers[match["prefix"]].add((int(match["number"]), match["number"]))
    for prefix, own in numbers.items():
        texts.add(_folded(prefix, [text for _, text in sorted(own)]))
    return ",".join(sorted(texts))


def _folded(prefix: str, numbers: list[str]) -> str:
    ranges: list[list[str]] = []
    for text in numbers:
        # Slurm writes all numbers of a range as wide as its first, or wider.
        if ranges and text == f"{int(ranges[-1][-1]) + 1:0{len(ranges[-1][0])}}":
            ranges[-1].append(text)
        else:
            ranges.append([text])
    if len(numbers) == 1:
        return prefix + numbers[0]
    texts = ["-".join(dict.fromkeys((part[0], part[-1]))) for part in ranges]
    return f"{prefix}[{','.join(texts)}]"
