"""Names and values of nvconfig parameters, as mstflint's own database has them.

Debian's package mstflint puts it into /usr/share/mstflint/mlxconfig_dbs; the table
`params` has name, type, range and, of an ENUM, texts such as `IB=0x1,ETH=0x2`.
"""

import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from seatrial.errors import SeatrialError

DATABASE = Path("/usr/share/mstflint/mlxconfig_dbs/mlxconfig_host.db")

_QUERY = """
select params.mlxconfig_name, params.type, params.textual_values, params.size,
       params.min_val, params.max_val, params.array_length, tlvs.class
from params join tlvs on tlvs.name = params.tlv_name
where params.mlxconfig_name > ''
"""
_SUFFIXES = {1: "_P1", 9: "_M0"}
"""Of the classes of parameters that mstconfig prints for each port or module."""

_WRITTEN = re.compile(r"(.+)\((\d+)\)")
_NUMBERED = re.compile(r"(.+)(_[PM])\d+")
_BOOL = {"False": 0, "True": 1}
_YAML_WORDS = {False: ("OFF", "False"), True: ("ON", "True")}
"""YAML reads OFF and ON as booleans; both are names of values, too."""


@dataclass(frozen=True)
class Parameter:
    """A parameter: numbers of the texts of an ENUM, or its range.

    `suffix` is that of the first port or module. `single` is False for arrays and
    binary data, which mstconfig's query does not print as one value.
    """

    texts: dict[str, int]
    least: int
    greatest: int
    suffix: str
    single: bool

    @property
    def allowed(self) -> str:
        """Describe the values."""
        if not self.single:
            return "no value, as it is an array or binary data"
        if self.texts:
            return "one of " + ", ".join(
                f"{text}({number})" for text, number in self.texts.items()
            )
        return f"a whole number from {self.least} to {self.greatest}"

    def written(self, value: str | bool | int) -> str | None:
        """Return a value as mstconfig prints it, `IB(1)`; None if it has no such value.

        Names, numbers and both together are understood.
        """
        names = _YAML_WORDS[value] if isinstance(value, bool) else (str(value),)
        for name, number in self.texts.items():
            ways = (name.lower(), str(number), f"{name}({number})".lower())
            if any(text.lower() in ways for text in names):
                return f"{name}({number})"
        text = names[0]
        if self.texts or not self.single or not text.isdecimal():
            return None
        return str(int(text)) if self.least <= int(text) <= self.greatest else None


def parameters(database: Path = DATABASE) -> dict[str, Parameter] | None:
    """Return all parameters by name; None if mstflint is not installed here.

    Raises SeatrialError if the file is not mstflint's database.
    """
    if not database.is_file():
        return None
    try:
        uri = f"file:{database}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            rows = connection.execute(_QUERY).fetchall()
        return {name: _parameter(*row) for name, *row in rows}
    except (sqlite3.Error, ValueError) as error:
        raise SeatrialError(
            f"{database}: expected the parameters of mstconfig, got: {error}. Install "
            "the package mstflint again."
        ) from error


def _parameter(
    kind: str,
    texts: str | None,
    size: str,
    least: str | None,
    greatest: str | None,
    array: int,
    of_class: int,
) -> Parameter:
    """Convert a row; size is BYTES.BITS, limits may be formulas of the firmware."""
    size_bytes, bits = size.removeprefix("0x").split(".")
    most = 2 ** (8 * int(size_bytes, 16) + int(bits)) - 1
    pairs = (part.partition("=") for part in (texts or "").split(",") if "=" in part)
    numbers = {name.strip(): int(number, 0) for name, _, number in pairs}
    return Parameter(
        _BOOL if kind == "BOOL" else numbers,
        int(least) if least and least.isdecimal() else 0,
        int(greatest) if greatest and greatest.isdecimal() else most,
        _SUFFIXES.get(of_class, ""),
        not array and kind in ("BOOL", "ENUM", "UNSIGNED", "INTEGER"),
    )


def find(name: str, known: dict[str, Parameter]) -> Parameter | None:
    """Return a parameter; names of a port, such as LINK_TYPE_P1, lack it there."""
    match = _NUMBERED.fullmatch(name)
    base, suffix = (match[1], match[2]) if match else (name, "")
    parameter = known.get(base)
    return parameter if parameter and parameter.suffix[:2] == suffix else None


def nearest(name: str, known: dict[str, Parameter]) -> str:
    """Return the known name that is most like an unknown one; '' if none is."""
    match = _NUMBERED.fullmatch(name)
    base, port = (match[1], name.removeprefix(match[1])) if match else (name, "")
    for found in get_close_matches(base, known, 1):
        suffix = known[found].suffix
        return found + (port if suffix and port.startswith(suffix[:2]) else suffix)
    return ""


def written(
    name: str, value: str | bool | int, known: dict[str, Parameter] | None
) -> str:
    """Return a declared value as mstconfig prints it; as it is if nothing is known."""
    if known is None:
        return f"{value}({value:d})" if isinstance(value, bool) else str(value)
    parameter = find(name, known)
    text = parameter.written(value) if parameter else None
    return text or str(value)


def same(one: str, other: str) -> bool:
    """Return True if two values are the same, as `IB(1)`, `IB` or `1`.

    Names count before numbers: the number of a name differs between versions.
    """
    (name, number), (other_name, other_number) = _parts(one), _parts(other)
    if name and other_name:
        return name.lower() == other_name.lower()
    return number == other_number and number != ""


def _parts(text: str) -> tuple[str, str]:
    match = _WRITTEN.fullmatch(text)
    if match:
        return match[1], match[2]
    return ("", text) if text.isdecimal() else (text, "")
