"""Availability of a phase: node-hours by state, and the formula of a contract."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seatrial.criteria.formula import evaluate
from seatrial.runs.maintenance import Maintenance
from seatrial.stability.journal import Away, Journal, Span

HOUR_S = 3600.0


@dataclass(frozen=True)
class NodeHours:
    """Hours of the nodes, each in one state, and hours of the machine.

    `total` = `up` + `down` + `planned` + `unobserved`, all of nodes. Maintenance is
    planned whether the node was up or not. `hours` and `scheduler_down` (in which the
    controller did not answer) are of the machine.
    """

    hours: float
    nodes: int
    total: float
    up: float
    down: float
    planned: float
    unobserved: float
    scheduler_down: float

    def value(self, formula: str, failures: int) -> float:
        """Compute a formula; ValueError if no number comes out."""
        return evaluate(formula, {**vars(self), "failures": float(failures)})

    @property
    def unobserved_share(self) -> float:
        """Return the share of the phase without a working driver."""
        return self.unobserved / self.total if self.total else 1.0


def node_hours(journal: Journal, windows: Sequence[Maintenance]) -> NodeHours:
    """Add up the states of all nodes of a journal."""
    observed, nodes = journal.observed, journal.nodes
    by_node: dict[str, list[Away]] = {name: [] for name in nodes}
    for one in journal.away:
        by_node[one.node].append(one)
    down = planned = 0.0
    for name, away in by_node.items():
        own = [Span(w.start, w.end) for w in windows if not w.nodes or name in w.nodes]
        excluded = common(observed, merged(own))
        planned += length(excluded)
        lost = common(observed, merged(one.span for one in away))
        down += length(lost) - length(common(lost, excluded))
    unobserved = length(journal.gaps) * len(nodes)
    seen = length(observed) * len(nodes)
    silent = common(observed, merged(journal.silent))
    return NodeHours(
        hours=(length(observed) + length(journal.gaps)) / HOUR_S,
        nodes=len(nodes),
        total=(seen + unobserved) / HOUR_S,
        up=(seen - down - planned) / HOUR_S,
        down=down / HOUR_S,
        planned=planned / HOUR_S,
        unobserved=unobserved / HOUR_S,
        scheduler_down=length(silent) / HOUR_S,
    )


def exposure(journal: Journal, windows: Sequence[Maintenance]) -> list[Span]:
    """Return the observed time without maintenance of the whole machine."""
    closed = merged(Span(w.start, w.end) for w in windows if not w.nodes)
    parts: list[Span] = []
    for span in journal.observed:
        start = span.start
        for window in closed:
            if window.end <= start or window.start >= span.end:
                continue
            parts.append(Span(start, max(start, window.start)))
            start = max(start, min(window.end, span.end))
        parts.append(Span(start, span.end))
    return [part for part in parts if part.end > part.start]


def hours_until(spans: Iterable[Span], moment: float) -> float:
    """Return the hours of some spans until a moment."""
    return sum(max(0.0, min(s.end, moment) - s.start) for s in spans) / HOUR_S


def merged(spans: Iterable[Span]) -> list[Span]:
    """Return the union of spans as spans apart, in order of time."""
    union: list[Span] = []
    for span in sorted(spans):
        if union and span.start <= union[-1].end:
            union[-1] = Span(union[-1].start, max(union[-1].end, span.end))
        else:
            union.append(span)
    return union


def common(some: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """Return the times that lie in spans of both; each are apart and in order."""
    both = (
        Span(max(a.start, b.start), min(a.end, b.end)) for a in some for b in others
    )
    return [span for span in both if span.end > span.start]


def length(spans: Iterable[Span]) -> float:
    """Return the seconds of spans."""
    return sum(span.end - span.start for span in spans)
