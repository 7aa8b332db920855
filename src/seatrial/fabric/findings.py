"""Findings on a fabric: what differs from the plan, in the audit's words."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from seatrial.audit.rows import VERDICTS, Verdict
from seatrial.errors import Exit
from seatrial.fabric.plan import Cable
from seatrial.fabric.records import End
from seatrial.names import natural_key

Kind = Literal[
    "missing",
    "additional",
    "swapped",
    "moved",
    "rate",
    "state",
    "leaf",
    "device",
    "switch",
    "guid",
    "uplinks",
    "firmware",
    "manager",
    "discovery",
    "routes",
]
KINDS: dict[Kind, str] = {
    "discovery": "the tools did not see everything, or contradict each other",
    "manager": "subnet managers and their priorities",
    "guid": "a GUID that exists twice",
    "switch": "a switch in the place of another, or not in the plan",
    "device": "a node that is not there, or not in the plan",
    "swapped": "cables whose plugs were exchanged, also in a ring",
    "moved": "a cable with one plug in another port",
    "missing": "a planned cable without a link",
    "additional": "a link that is not in the plan",
    "rate": "width or speed of a link",
    "state": "a link that is not Active",
    "leaf": "a node on another leaf in Slurm's topology",
    "uplinks": "up-links of a leaf, fewer or unevenly spread",
    "firmware": "firmware of switches",
    "routes": "forwarding tables that are not those of the fabric",
}
"""Kinds of findings, and what they are about; the order of reports."""

OF_CABLES: tuple[Kind, ...] = (
    "swapped",
    "moved",
    "missing",
    "additional",
    "rate",
    "state",
)
"""Kinds whose spots are both ends of one cable after the other."""

_MOST_PLACES = 4


@dataclass(frozen=True)
class Spot:
    """A port as a technician finds it."""

    device: str
    port: str = ""
    rack: str = ""
    rail: str = ""

    def __str__(self) -> str:
        rack = f"{self.rack} " if self.rack else ""
        port = f" port {self.port}" if self.port else ""
        rail = f" ({self.rail})" if self.rail else ""
        return f"{rack}{self.device}{port}{rail}"


@dataclass(frozen=True)
class Finding:
    """One difference; `spots` are the ports to look at, `cables` the labels.

    `lines` are those of the plan. The texts are for the reader.
    """

    kind: Kind
    verdict: Verdict
    spots: tuple[Spot, ...]
    declared: str
    actual: str
    reason: str = ""
    cables: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()

    @property
    def ends(self) -> list[tuple[str, Spot, Spot]]:
        """Return number and both ends of each cable; none if it is about no cable."""
        if self.kind not in OF_CABLES:
            return []
        pairs = [*zip(self.spots[::2], self.spots[1::2], strict=False)]
        labels = self.cables if len(self.cables) == len(pairs) else [""] * len(pairs)
        return [(label, *pair) for label, pair in zip(labels, pairs, strict=True)]

    @property
    def where(self) -> str:
        """Return the place in one text: cables with both of their ends, or a device."""
        texts = [cable_text(*cable) for cable in self.ends] or [*map(str, self.spots)]
        if self.kind in ("device", "switch"):
            device, *far = self.spots or (Spot(""),)
            texts = texts[:1]
            if 0 < len(far) == len(self.cables) <= _MOST_PLACES:
                labelled = zip(self.cables, far, strict=True)
                texts = [cable_text(label, device, end) for label, end in labelled]
        more = len(texts) - _MOST_PLACES
        shown = "; ".join(texts[:_MOST_PLACES])
        return f"{shown}; and {more} more" if more > 0 else shown

    @property
    def words(self) -> str:
        """Return the verdict, what is planned, what was found, and the remedy."""
        planned = f"planned {self.declared}, " if self.declared else ""
        reason = f"; {self.reason}" if self.reason else ""
        return f"{self.verdict}: {planned}found {self.actual}{reason}"


def cable_text(label: str, a: Spot, b: Spot) -> str:
    """Return a cable as a technician finds it: its number, and both ends."""
    return f"cable {label}: {a} - {b}" if label else f"{a} - {b}"


def spots_of(cable: Cable) -> tuple[Spot, Spot]:
    """Return both ends of a planned cable."""
    return (
        Spot(cable.a.device, cable.a.port, cable.a_rack, cable.a_rail),
        Spot(cable.b.device, cable.b.port, cable.b_rack, cable.b_rail),
    )


def pair(a: End, b: End) -> str:
    """Return both ends of a cable in one text."""
    return f"{a} - {b}"


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings by kind, verdict and place."""
    kinds = [*KINDS]
    return sorted(
        findings,
        key=lambda one: (
            VERDICTS.index(one.verdict),
            kinds.index(one.kind),
            [natural_key(f"{spot.device} {spot.port}") for spot in one.spots],
        ),
    )


def exit_status(findings: Iterable[Finding]) -> Exit:
    """Return FAILED with an absent or drifted part, UNDECIDED with an unknown one."""
    verdicts = {finding.verdict for finding in findings}
    if verdicts & {"absent", "drift", "pending"}:
        return Exit.FAILED
    return Exit.UNDECIDED if "unknown" in verdicts else Exit.PASS
