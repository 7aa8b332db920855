"""Names and values of nvconfig parameters, as mstflint's own database has them.

Debian's package mstflint puts it into /usr/share/mstflint/mlxconfig_dbs; the table
`params` has name, type, range and, of an ENUM, texts such as `IB=0x1,ETH=0x2`.
"""

import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

DATABASE = Path("/usr/share/mstflint/mlxconfig_dbs/mlxconfig_host.db")
_OF_PORT = re.compile(r"_P\d+$|_\d+$")
_BOOL = {"False": 0, "True": 1}


@dataclass(frozen=True)
class Parameter:
    """A parameter: type BOOL, ENUM, UNSIGNED...; numbers of the texts of an ENUM."""

    name: str
    kind: str
    texts: dict[str, int]

    @property
    def allowed(self) -> str:
        """Describe the values."""
        if self.texts:
            return "one of " + ", ".join(
                f"{text}({number})" for text, number in self.texts.items()
            )
        return "a number >= 0" if self.kind in ("UNSIGNED", "INTEGER") else "a text"

    def written(self, value: str | bool | int) -> str | None:
        """Return a value as mstconfig prints it, `IB(1)`; None if it has no such value.

        Names, numbers and both together are understood.
        """
        if not self.texts:
            text = str(int(value)) if isinstance(value, bool) else str(value)
            is_number = self.kind in ("UNSIGNED", "INTEGER")
            return text if not is_number or text.isdecimal() else None
        text = str(value)
        for name, number in self.texts.items():
            if text.lower() in (name.lower(), str(number), f"{name}({number})".lower()):
                return f"{name}({number})"
        return None


def parameters(database: Path = DATABASE) -> dict[str, Parameter] | None:
    """Return all parameters by name; None if mstflint is not installed here."""
    if not database.is_file():
        return None
    query = (
        "select mlxconfig_name, type, textual_values from params "
        "where mlxconfig_name is not null"
    )
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        rows = connection.execute(query).fetchall()
    return {
        name: Parameter(name, kind, _texts(kind, texts)) for name, kind, texts in rows
    }


def _texts(kind: str, texts: str | None) -> dict[str, int]:
    if kind == "BOOL":
        return _BOOL
    pairs = (part.partition("=") for part in (texts or "").split(",") if "=" in part)
    return {name.strip(): int(number, 0) for name, _, number in pairs}


def find(name: str, known: dict[str, Parameter]) -> Parameter | None:
    """Return a parameter; names of a port, such as LINK_TYPE_P1, lack it there."""
    return known.get(name) or known.get(_OF_PORT.sub("", name))


def written(name: str, value: object, known: dict[str, Parameter] | None) -> str:
    """Return a declared value as mstconfig prints it; as it is if nothing is known."""
    parameter = find(name, known or {})
    parts = value if isinstance(value, (tuple, list)) else (value,)
    return " ".join((parameter and parameter.written(p)) or str(p) for p in parts)
