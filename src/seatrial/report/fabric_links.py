"""Links with a finding, with errors, or that explain slow pairs, as a table."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from seatrial.fabric.findings import Finding, Spot, spots_of
from seatrial.fabric.plan import Cable
from seatrial.fabric.records import End, Fabric, Link
from seatrial.judge.located_part import LocatedPart
from seatrial.report.render.figure import Table
from seatrial.runs.port_totals import PortTotal

LOCATED = "slow pairs"
"""In place of a verdict: the link explains slow pairs."""

AMONG = "one of slow pairs"
"""In place of a verdict: one of several links explains slow pairs."""

COUNTED = "errors"
"""In place of a verdict: a port of the link counted errors in the run."""

_MOST_ENDS = 3


@dataclass(frozen=True)
class BadLink:
    """A cable, or all cables of a device, with a finding.

    `verdict` is that of the finding, `LOCATED`, `AMONG` or `COUNTED`. `ends` are both
    ends of the cable, or the device and the far ends of its cables; `cables` are their
    numbers. `key` are both ports of a cable.
    """

    verdict: str
    cables: tuple[str, ...]
    ends: tuple[Spot, ...]
    plan: str
    state: str
    finding: str

    @property
    def is_cable(self) -> bool:
        """Return True if it is one cable."""
        return len(self.ends) == 2 and bool(self.ends[0].port)

    @property
    def key(self) -> frozenset[End]:
        """Return the ports of its ends."""
        return frozenset(End(spot.device, spot.port) for spot in self.ends)


Column = tuple[str, Callable[[BadLink], str]]

COLUMNS: tuple[Column, ...] = (
    ("Verdict", lambda link: link.verdict),
    ("Cable", lambda link: _few(link.cables)),
    ("One end", lambda link: str(link.ends[0])),
    ("Other end", lambda link: _few(map(str, link.ends[1:]))),
    ("Plan", lambda link: link.plan),
    ("State", lambda link: link.state),
    ("Finding", lambda link: link.finding),
)
"""Heads of the table, and what stands below them."""


Ports = Mapping[End, PortTotal]
"""Counts of the ports of a fabric in a run; empty if nothing was read."""


def links_table(links: Sequence[BadLink], ports: Ports) -> Table:
    """Return a row for each link, with the counts of its ports if there are any."""
    counts: tuple[Column, ...] = (
        ("Errors in the run", lambda link: _errors(link, ports)),
        ("Bit error rate below", lambda link: _bound(link, ports)),
    )
    columns = (*COLUMNS, *counts) if ports else COLUMNS
    rows = (tuple(text(link) for _, text in columns) for link in links)
    return Table(tuple(head for head, _ in columns), tuple(rows))


def bad_links(
    fabric: Fabric,
    cables: Iterable[Cable],
    findings: Iterable[Finding],
    located: Iterable[LocatedPart] = (),
    ports: Ports = MappingProxyType({}),
) -> list[BadLink]:
    """Return located links first, then those of findings, then others with errors."""
    planned = {frozenset((one.a, one.b)): one for one in cables}
    links = {frozenset((one.a, one.b)): one for one in fabric.links}
    far = {end: other for a, b in map(tuple, links) for end, other in ((a, b), (b, a))}
    found = [
        *_located(located, planned, links),
        *(link for one in findings for link in _of_finding(one, planned, links, far)),
    ]
    named = {link.key for link in found if link.is_cable}
    return [
        *found,
        *(
            _link(COUNTED, key, planned, links, "")
            for key in links
            if key not in named
            and any(ports[end].errors for end in key if end in ports)
        ),
    ]


def _located(
    parts: Iterable[LocatedPart],
    planned: Mapping[frozenset[End], Cable],
    links: Mapping[frozenset[End], Link],
) -> Iterator[BadLink]:
    for part in parts:
        for one in part.members:
            key = frozenset(End(*end) for end in one.ends)
            verdict, words = LOCATED, part.words
            if not part.is_single:
                verdict = AMONG
                words = f"{100 * one.likely:.3g} % likely; {part.words}"
            link = _link(verdict, key, planned, links, words)
            yield link if key else replace(link, ends=(Spot(one.device),))


def _link(
    verdict: str,
    key: frozenset[End],
    planned: Mapping[frozenset[End], Cable],
    links: Mapping[frozenset[End], Link],
    words: str,
) -> BadLink:
    """Return the link between two ports."""
    cable, link = planned.get(key), links.get(key)
    ends = tuple(Spot(end.device, end.port) for end in sorted(key))
    return BadLink(
        verdict,
        (cable.cable,) if cable and cable.cable else (),
        spots_of(cable) if cable else ends,
        _rate(cable),
        _rate(link),
        words,
    )


def _of_finding(
    finding: Finding,
    planned: Mapping[frozenset[End], Cable],
    links: Mapping[frozenset[End], Link],
    far: Mapping[End, End],
) -> Iterator[BadLink]:
    """Yield the cables of a finding, or its device with all cables."""
    why = f"{finding.kind}: {finding.reason}" if finding.reason else finding.kind
    for label, a, b in finding.ends:
        ports = [End(spot.device, spot.port) for spot in (a, b)]
        cable, link = planned.get(frozenset(ports)), links.get(frozenset(ports))
        elsewhere = [f"{end} - {far[end]}" for end in ports if end in far]
        state = "; ".join(elsewhere) if link is None else _rate(link)
        yield BadLink(
            finding.verdict,
            (label,) if label else (),
            (a, b),
            _rate(cable) or ("" if cable else finding.declared),
            state or finding.actual,
            why,
        )
    if finding.kind in ("device", "switch") and len(finding.spots) > 1:
        yield BadLink(
            finding.verdict,
            finding.cables,
            finding.spots,
            finding.declared,
            finding.actual,
            why,
        )


def _errors(link: BadLink, ports: Ports) -> str:
    """Return the errors of both ends, by quantity."""
    counts = {end: ports[end].errors for end in sorted(link.key) if end in ports}
    texts = [
        f"{end}: " + ", ".join(f"{name} {count:,}" for name, count in errors.items())
        for end, errors in counts.items()
        if errors
    ]
    return "; ".join(texts) or ("0" if counts else "")


def _bound(link: BadLink, ports: Ports) -> str:
    """Return the larger bound of both ends; '' if one of them has none."""
    bounds = [ports[end].bit_error_rate_below for end in link.key if end in ports]
    known = [bound for bound in bounds if bound is not None]
    return f"{max(known):.2g}" if known and len(known) == len(bounds) else ""


def _rate(link: Cable | Link | None) -> str:
    """Return width and speed, and a state that is not Active."""
    if link is None:
        return ""
    parts = [f"{link.width}x" if link.width else "", link.speed]
    if isinstance(link, Link) and link.state not in ("", "Active"):
        parts.append(f"{link.state}/{link.physical}")
    return " ".join(filter(None, parts)) or "link"


def _few(texts: Iterable[str]) -> str:
    texts = [*texts]
    more = len(texts) - _MOST_ENDS
    shown = "; ".join(texts[:_MOST_ENDS])
    return f"{shown}; and {more} more" if more > 0 else shown
