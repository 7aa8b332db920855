"""Windows of planned maintenance: declared in criteria.yaml, or signed afterwards."""

import datetime
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta, Struct

from seatrial.model.yaml_file import Place, Text, YamlFile

_Moment = Annotated[
    datetime.datetime, Meta(description="a time with its zone: 2026-12-01 06:00:00Z")
]


class MaintenanceKeys(
    Struct, frozen=True, forbid_unknown_fields=True, rename={"begin": "from"}
):
    """An entry of the list `maintenance`."""

    begin: _Moment
    until: _Moment
    clause: Text
    reason: Text
    nodes: tuple[Text, ...] = ()


@dataclass(frozen=True)
class Maintenance:
    """A window (UTC seconds) of some nodes, all if none is named.

    `signer` signed it after the phase; '' if it was declared before.
    """

    start: float
    end: float
    nodes: tuple[str, ...]
    clause: str
    reason: str
    signer: str = ""

    def covers(self, moment: float, nodes: Collection[str]) -> bool:
        """Return True if an incident of some nodes at a moment lies in it."""
        if not self.start <= moment < self.end:
            return False
        return not self.nodes or (bool(nodes) and {*nodes} <= {*self.nodes})

    def __str__(self) -> str:
        signed = f", signed by {self.signer}" if self.signer else ""
        return f"{self.reason} (clause {self.clause}{signed})"


def read_windows(
    file: YamlFile,
    entries: Iterable[MaintenanceKeys],
    signer: str = "",
    place: Place = ("maintenance",),
) -> Iterator[Maintenance]:
    """Yield the windows of a file; SeatrialError if one has no length or no zone."""
    for number, entry in enumerate(entries):
        for key, moment in (("from", entry.begin), ("until", entry.until)):
            if moment.tzinfo is None:
                expected = "a time with its zone, such as 2026-12-01 06:00:00Z"
                file.expected(expected, str(moment), (*place, number, key))
        if entry.until <= entry.begin:
            expected = f"a time after {entry.begin}"
            file.expected(expected, str(entry.until), (*place, number, "until"))
        yield Maintenance(
            entry.begin.timestamp(),
            entry.until.timestamp(),
            entry.nodes,
            entry.clause,
            entry.reason,
            signer,
        )
