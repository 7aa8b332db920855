"""Paper: PDF set by Typst. Texts go to the template as data, so that none is markup."""

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import typst

from seatrial.errors import SeatrialError
from seatrial.report.render import text

PAPER = "paper.typ"
"""The part of a template that all papers share."""

_LONGEST, _LONGEST_PROSE = 600, 2000
"""Characters of a text in a cell or list, and of a paragraph; a longer one is
shortened between two words."""

_PROSE = ("intro", "notes", "note", "alt", "empty")
_WHOLE = ("svg", "digest", "manifest_sha256", "sha256", "commands", "colours")

_LONG_WORD = re.compile(r"\S{13,}")
_BREAKS = re.compile(r"(?<=[_/.,:;=-])(?=\w)|(?<=[^\s_/.,:;=-]{12})(?=\w{4})")


def template(home: Path, name: str) -> bytes:
    """Read a template of a paper, after what all share; SeatrialError if missing."""
    parts = []
    for file in (home / "reports" / PAPER, home / "reports" / name):
        try:
            parts.append(file.read_bytes())
        except OSError as error:
            raise SeatrialError(
                f"{file}: cannot be read: {error.strerror}; expected a complete "
                "checkout or installation of the suite"
            ) from error
    return b"\n".join(parts)


def typeset(home: Path, name: str, data: dict[str, Any], when: datetime) -> bytes:
    """Set a paper; the same data give the same bytes. `when` is its date.

    Raises SeatrialError if the template is missing or faulty.
    """
    source = template(home, name)
    try:
        made: bytes = typst.compile(
            source,
            format="pdf",
            sys_inputs={"data": json.dumps(data)},
            ignore_system_fonts=True,
            timestamp=when,
        )
    except typst.TypstError as error:
        raise SeatrialError(
            f"{home / 'reports' / name}: the PDF cannot be set: {error.message}; this "
            "is a fault of the suite; `seatrial report --form html` writes the report "
            "without a PDF"
        ) from error
    return made


def fitted(data: dict[str, Any]) -> dict[str, Any]:
    """Shorten every text, and allow breaks in long words."""
    return {**_fit(data)}


def _fit(value: Any, most: int = _LONGEST) -> Any:
    if isinstance(value, dict):
        return {
            key: item
            if key in _WHOLE
            else _fit(item, _LONGEST_PROSE if key in _PROSE else most)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_fit(item, most) for item in value]
    return _line(value, most) if isinstance(value, str) else value


def _line(words: str, most: int) -> str:
    """Return a text as one line, without line breaks and tabs."""
    words = text.shortened(" ".join(text.clean(words).split()), most)
    return _LONG_WORD.sub(lambda word: _BREAKS.sub("\u200b", word[0]), words)
