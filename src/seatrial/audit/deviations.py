"""Rows of an audit for the reader: worst first, nodes with the same row together."""

from collections.abc import Iterable
from dataclasses import dataclass

from seatrial.audit.rows import VERDICTS, Row, Verdict
from seatrial.names import natural_key, node_set

_MOST_PEERS = 4


@dataclass(frozen=True)
class Deviation:
    """A setting that `nodes` have in the same way; all texts are for the reader.

    `peers` are the most frequent values of the class, '' if all nodes have one value.
    """

    verdict: Verdict
    nodes: str
    node_class: str
    subject: str
    key: str
    declared: str
    found: str
    peers: str


def deviations(rows: Iterable[Row], *, everything: bool = False) -> list[Deviation]:
    """Return what is not as it should be, or `everything`.

    What is unknown but not declared is left out: `untold` has it.
    """
    lines: dict[tuple[str | None, ...], list[Row]] = {}
    for row in sorted(rows, key=lambda row: VERDICTS.index(row.verdict)):
        if everything or not (row.verdict == "ok" or _is_untold(row)):
            same = (row.node_class, row.subject, row.key, row.declared, row.actual)
            about = (row.pending, row.verdict, row.reason)
            lines.setdefault((*same, *about), []).append(row)
    return [
        Deviation(
            of[0].verdict,
            node_set(row.node for row in of),
            of[0].node_class,
            of[0].subject,
            of[0].key,
            of[0].declared or "",
            _found(of[0]),
            _peers(of[0]),
        )
        for of in lines.values()
    ]


def untold(rows: Iterable[Row]) -> str:
    """Return the keys that are unknown but not declared, by their reasons; '' if none.

    For example `bmc (ipmitool: needs root)`.
    """
    keys: dict[str, set[str]] = {}
    for row in rows:
        if _is_untold(row):
            keys.setdefault(row.reason, set()).add(row.key)
    listed = ((", ".join(sorted(of, key=natural_key)), why) for why, of in keys.items())
    return "; ".join(f"{names} ({why})" for names, why in listed)


def counted(peers: dict[str, int]) -> str:
    """Return values with their numbers of nodes: `3 x 8, 1 x 16`."""
    return ", ".join(f"{count} x {value}" for value, count in peers.items())


def _is_untold(row: Row) -> bool:
    """Return True if a source was asked and said nothing about an undeclared key."""
    return row.verdict == "unknown" and row.declared is None and bool(row.tool)


def _found(row: Row) -> str:
    text = row.actual or row.reason
    text += f", after the next boot {row.pending}" if row.pending else ""
    return f"{text} ({row.reason})" if row.actual and row.reason else text


def _peers(row: Row) -> str:
    if len(row.peers) < 2:
        return ""
    more = ", ..." if len(row.peers) > _MOST_PEERS else ""
    return counted(dict([*row.peers.items()][:_MOST_PEERS])) + more
