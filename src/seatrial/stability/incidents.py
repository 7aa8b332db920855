"""Incidents of a phase: lost nodes, a silent controller, failed jobs, gaps.

Jobs that died with a lost node, or while the controller was silent, belong to that
incident. All others are incidents of their own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from seatrial.campaign.node_log import UNSEEN_S, Loss, title
from seatrial.model.cases import Case
from seatrial.model.causes import Cause
from seatrial.names import node_set
from seatrial.progress import duration
from seatrial.stability.causes import cause_of_job, cause_of_node
from seatrial.stability.journal import Away, Journal, Span

CONTROLLER = "slurmctld"
"""Place of an incident of the controller."""

SUITE = "suite"
"""Place of an incident of the suite itself."""

_ONCE_S = 60.0
"""Nodes that are lost within this time are lost at once."""

_QUIET_S = 20.0
"""A shorter silence of the controller is none: one look did not come through."""

Printed = Callable[[Case], Sequence[str]]
"""Returns the last lines that a failed job printed."""


@dataclass(frozen=True)
class Incident:
    """A failure at a moment: the cause, the nodes, the jobs, and the evidence.

    `place` names it: a node, a job, or `CONTROLLER`.
    """

    start: float
    cause: Cause
    place: str
    nodes: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()


_GROUPS: tuple[Cause, ...] = ("network", "power")


def incidents(
    journal: Journal,
    cases: Iterable[Case],
    losses: Iterable[Loss],
    printed: Printed,
    together: Mapping[str, Mapping[str, str]],
) -> list[Incident]:
    """Return all incidents in order of time.

    `losses` are those that sessions recorded: the accounting may have seen more than
    the journal. `together` maps causes to the group of each node (`network`: its leaf,
    `power`: its rack): all nodes of a group that are lost at once failed for that.
    """
    away = [*journal.away, *_unseen(journal, losses)]
    groups = _whole_groups(away, together)
    found = [_of_node(one, groups.get(one.node)) for one in away]
    found += [_of_controller(span.start, span.end) for span in _silences(journal)]
    for case in (case for case in cases if is_failure(case) and not case.waited_for):
        _add_job(found, case, away, journal, printed)
    found += [
        Incident(
            gap.start,
            "ours",
            SUITE,
            evidence=(
                f"the driver was not at work for {duration(gap.end - gap.start)}",
            ),
        )
        for gap in journal.gaps
    ]
    return sorted(found, key=lambda one: (one.start, one.place))


def _unseen(journal: Journal, losses: Iterable[Loss]) -> Iterator[Away]:
    """Yield the losses that only the accounting saw."""
    for loss in losses:
        known = (a for a in journal.away if a.node == loss.node)
        if not any(-UNSEEN_S <= loss.time - a.span.start <= UNSEEN_S for a in known):
            span = Span(loss.time, loss.time)
            yield Away(loss.node, span, loss.state, loss.reason, loss.user, back=True)


def _whole_groups(
    away: Sequence[Away], together: Mapping[str, Mapping[str, str]]
) -> dict[str, tuple[Cause, str]]:
    """Return the cause of nodes whose whole group was lost at once, and the words."""
    causes: dict[str, tuple[Cause, str]] = {}
    for cause in _GROUPS:
        group_of = together.get(cause, {})
        members: dict[str, set[str]] = {}
        for node, group in group_of.items():
            members.setdefault(group, set()).add(node)
        for one in away:
            group = group_of.get(one.node, "")
            others = members.get(group, set())
            lost = {
                a.node for a in away if abs(a.span.start - one.span.start) < _ONCE_S
            }
            if len(others) > 1 and others <= lost and members.keys() - {group}:
                causes[one.node] = cause, f"all {len(others)} nodes of {group} at once"
    return causes


def _of_node(one: Away, group: tuple[Cause, str] | None) -> Incident:
    cause, words = cause_of_node(one.reason)
    why = f": {one.reason}" if one.reason else ""
    by = f" by {one.user}" if one.user not in ("", "slurm") else ""
    evidence = [f"Slurm: {one.node} {one.state}{by}{why}"]
    if group is not None and not words:
        cause, words = group
        evidence.append(words)
    if one.back and one.span.end > one.span.start:
        away = duration(one.span.end - one.span.start)
        evidence.append(f"{one.node} was back after {away}")
    return Incident(
        one.span.start, cause, one.node, (one.node,), evidence=tuple(evidence)
    )


def _silences(journal: Journal) -> Iterator[Span]:
    return (s for s in journal.silent if s.end - s.start >= _QUIET_S)


def _of_controller(start: float, end: float) -> Incident:
    words = f"the controller did not answer for {duration(end - start)}"
    return Incident(start, "scheduler", CONTROLLER, evidence=(words,))


def is_failure(case: Case) -> bool:
    """Return True for a job that failed for more than its numbers.

    One that only waited for lost nodes is no incident of its own.
    """
    return case.result == "fail" and case.phase != "performance"


def _add_job(
    found: list[Incident],
    case: Case,
    away: Sequence[Away],
    journal: Journal,
    printed: Printed,
) -> None:
    """Add a failed job to the incident that it belongs to, else as one of its own."""
    first = journal.observed[0].start if journal.observed else 0.0
    begin = case.start_time or first
    end = begin + (case.elapsed_s or 0.0)
    job = f"{title(case)} in {case.session}" + (
        f", job {case.job_id}" if case.job_id else ""
    )
    evidence = f"{job} on {node_set(case.nodes) or 'no node'}: {case.reason}"
    cause, line = cause_of_job(case.phase or "", case.reason or "", printed(case))

    def hits(one: Incident) -> bool:
        if one.place == CONTROLLER:
            silent = next(s for s in _silences(journal) if s.start == one.start)
            overlaps = begin <= silent.end + _ONCE_S and end >= silent.start
            return overlaps and cause in ("scheduler", "unknown")
        if one.place not in case.nodes:
            return False
        lost = next(a for a in away if (a.node, a.span.start) == (one.place, one.start))
        return (
            lost.state != "drained" and begin - 1 <= lost.span.start <= end + UNSEEN_S
        )

    for index, one in enumerate(found):
        if one.place in (*case.nodes, CONTROLLER) and hits(one):
            found[index] = replace(
                one, jobs=(*one.jobs, job), evidence=(*one.evidence, evidence)
            )
            return
    seen = f"it printed: {line}" if line and line not in (case.reason or "") else ""
    parts = tuple(filter(None, (evidence, seen)))
    name = f"job{case.job_id}" if case.job_id else case.check
    found.append(Incident(end, cause, name, case.nodes, (job,), parts))
