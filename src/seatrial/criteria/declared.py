"""Criteria of kind `declared`: settings are as the inventory declares them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from seatrial.criteria.criteria_types import Entry
from seatrial.criteria.keys import check_where
from seatrial.model.yaml_file import Place, YamlFile

KIND = "declared"
WHERE = ("class", "node", "subject", "key")
"""Keys of `where`: columns of the settings, by regular expressions."""

PROVENANCE = ("document", "clause", "who", "date", "method")
_KEYS = ("kind", "name", "where", "optional", *PROVENANCE)


@dataclass(frozen=True)
class DeclaredCriterion:
    """The settings that `where` selects, all of them if it is empty.

    Drift fails, an unknown value is undecided. Without settings the machine is
    undecided, unless it is `optional`. `source` is document and clause.
    """

    name: str
    where: Mapping[str, str] = field(hash=False)
    source: str
    optional: bool = False
    provenance: Mapping[str, str] = field(
        default_factory=dict, hash=False, compare=False
    )


def declared_criterion(
    file: YamlFile, entry: Entry, defaults: Any, place: Place
) -> DeclaredCriterion:
    """Return the criterion of an entry; document and clause may be of the defaults.

    Raises SeatrialError with file and line for a key that it cannot have.
    """
    where = where_of(file, entry, place, KIND, _KEYS, WHERE)
    given = provenance_of(entry, defaults)
    apart = ", ".join(f"{key}={value}" for key, value in where.items())
    name = entry.name or "settings as declared" + (f" ({apart})" if apart else "")
    source = ", ".join(given[key] for key in ("document", "clause") if key in given)
    return DeclaredCriterion(
        name, where, source or "hardware.yml", entry.optional, given
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
