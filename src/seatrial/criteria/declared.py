"""Criteria of what the inventory declares: settings of nodes, cables of the fabric."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from seatrial.criteria.criteria_types import Entry
from seatrial.criteria.criterion import Deviation
from seatrial.criteria.keys import check_where
from seatrial.fabric.findings import KINDS as KINDS_FOUND
from seatrial.model.yaml_file import Place, YamlFile

Kind = Literal["declared", "fabric"]
KINDS: tuple[Kind, ...] = get_args(Kind)
WHERE: Mapping[Kind, tuple[str, ...]] = {
    "declared": ("class", "node", "subject", "key"),
    "fabric": ("finding", "device"),
}
"""Keys of `where` by kind, as regular expressions: columns of the settings; the kind of
a finding on the fabric, and its devices."""

_FAILS: tuple[Deviation, ...] = ("absent", "drift")
PROVENANCE = ("document", "clause", "who", "date", "method")
_KEYS = ("kind", "name", "where", "optional", *PROVENANCE)
_NAMES = {"declared": "settings as declared", "fabric": "cables as planned"}
_FILES = {"declared": "hardware.yml", "fabric": "fabric.yml"}


@dataclass(frozen=True)
class DeclaredCriterion:
    """A criterion of the settings or of the fabric; `where` selects a part of them.

    Drift fails, an unknown value is undecided. Of the fabric, the verdicts `fails`
    fail. Without settings or fabric the machine is undecided, unless it is `optional`.
    `source` is document and clause.
    """

    name: str
    where: Mapping[str, str] = field(hash=False)
    source: str
    optional: bool = False
    provenance: Mapping[str, str] = field(
        default_factory=dict, hash=False, compare=False
    )
    kind: Kind = "declared"
    fails: tuple[Deviation, ...] = _FAILS


def declared_criterion(
    file: YamlFile, entry: Entry, defaults: Any, kind: Kind, place: Place
) -> DeclaredCriterion:
    """Return the criterion of an entry; document and clause may be of the defaults.

    Raises SeatrialError with file and line for a key that it cannot have.
    """
    keys = (*_KEYS, *(["fails"] if kind == "fabric" else []))
    where = where_of(file, entry, place, kind, keys, WHERE[kind])
    finding = where.get("finding", ".*")
    if not any(re.fullmatch(finding, one) for one in KINDS_FOUND):
        known = f"a pattern of {', '.join(KINDS_FOUND)}"
        file.expected(known, finding, (*place, "where", "finding"))
    given = provenance_of(entry, defaults)
    apart = ", ".join(f"{key}={value}" for key, value in where.items())
    name = entry.name or _NAMES[kind] + (f" ({apart})" if apart else "")
    source = ", ".join(given[key] for key in ("document", "clause") if key in given)
    return DeclaredCriterion(
        name,
        where,
        source or _FILES[kind],
        entry.optional,
        given,
        kind,
        entry.fails or _FAILS,
    )


def where_of(
    file: YamlFile,
    entry: Entry,
    place: Place,
    kind: str,
    keys: Sequence[str],
    columns: Sequence[str],
) -> dict[str, str]:
    """Return the patterns of an entry; refuse keys that its kind does not have."""
    for name in file.data["criteria"][place[1]]:
        if name not in keys:
            known = ", ".join(keys)
            file.refuse((*place, name), f"kind {kind} has no {name}; it has {known}")
    check_where(file, entry.where, (*place, "where"))
    for key, value in entry.where.items():
        file.one_of("keys", columns, key, (*place, "where", key))
        if not isinstance(value, str):
            file.expected("a text", value, (*place, "where", key))
    return {key: str(value) for key, value in entry.where.items()}


def provenance_of(entry: Entry, defaults: Any) -> dict[str, str]:
    """Return document, clause and so on, of the entry or of the defaults."""
    texts = {
        name: getattr(entry, name) or getattr(defaults, name) for name in PROVENANCE
    }
    return {name: str(value) for name, value in texts.items() if value is not None}
