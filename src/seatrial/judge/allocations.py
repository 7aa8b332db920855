"""Planned allocations of each case, and whose missing numbers count.

Each try of a case that got nodes is an allocation. Nothing is missing of a try whose
MPI library crashed at start, nor with a signed reason; of an allocation that lost a
node, only numbers of that node, and none if a repeat made it again.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from seatrial.campaign.schedule import Agenda, parse_agenda
from seatrial.judge.joint_runs import start_time
from seatrial.judge.spoiled import Spoiled
from seatrial.model.cases import Case, CaseKey
from seatrial.parsers.mpi_start import TRIES
from seatrial.runs.closed_run import AGENDA_FILE, Run
from seatrial.runs.reasons import Reason

_DRAINED = "drained"
"""State of a lost node whose jobs go on."""


@dataclass(frozen=True)
class Allocation:
    """A try of a case, with the `nodes` that it was to measure.

    `unit` is its run, session, job and attempt; its job `got` some nodes. Missing
    numbers of the `blamed` nodes count; those of pairs and of all nodes together only
    if it is `whole`. `drawn`: it chose its pairs, so that none of them is missing.
    """

    unit: tuple[str, str, str | None, int]
    got: frozenset[str]
    nodes: frozenset[str]
    blamed: frozenset[str]
    whole: bool
    drawn: bool = False

    @property
    def size(self) -> int:
        """The number of nodes that it got."""
        return len(self.got)


def agenda_of(run: Run) -> Agenda | None:
    """Parse the plan that a run kept; None without one, as in an imported run."""
    content = run.kept.get(AGENDA_FILE)
    return None if content is None else parse_agenda(content, run.path / AGENDA_FILE)


def allocations(
    runs: Sequence[Run],
    nodes: Sequence[Mapping[str, Any]],
    reasons: Sequence[Reason],
    repaired: Mapping[str, float],
    spoiled: Spoiled,
) -> dict[CaseKey, list[Allocation]]:
    """Return the allocations of each case, in the order of time.

    `nodes` are the delivered ones. A try that never got nodes is no allocation. Tries
    that started before a node was `repaired` (UTC seconds) do not count for it. A node
    that is back in a repeat of `spoiled` cases is planned there.
    """
    present_in_all = _present(nodes)
    planned: dict[CaseKey, list[Allocation]] = defaultdict(list)
    for run in runs:
        agenda = agenda_of(run)
        classes = {} if agenda is None else agenda.nodes
        present = present_in_all
        if run.manifest.get("repeat_of"):
            present |= _present(run.manifest["nodes"])
        tries: dict[CaseKey, list[Case]] = defaultdict(list)
        for case in run.cases:
            if case.result != "skip" and case.nodes:
                tries[case.key].append(case)
        for key, own in tries.items():
            name = key.partition.rpartition(":")[2]
            delivered = present.intersection(classes.get(name, present))
            every = delivered if _take_all(own, delivered) else frozenset[str]()
            excuses = _Excuses(run, reasons, repaired, spoiled)
            planned[key] += _allocations(own, present, every, excuses)
    return planned


def _present(nodes: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    return frozenset(node["name"] for node in nodes if node["state"] == "present")


class _Excuses(NamedTuple):
    """Why numbers of a run may be missing; `repaired`: when nodes were, UTC seconds."""

    run: Run
    reasons: Sequence[Reason]
    repaired: Mapping[str, float]
    spoiled: Spoiled

    @property
    def name(self) -> str:
        """The name of the run."""
        return str(self.run.manifest["run"])

    def nodes(self, case: Case) -> frozenset[str]:
        """Return the nodes whose missing numbers in a try do not count, '' for all."""
        signed = {
            reason.node
            for reason in self.reasons
            if reason.excuses(self.name, case.check, case.case, case.session)
        }
        started = case.start_time or start_time(self.run)
        old = {node for node, at in self.repaired.items() if started < at}
        return self.spoiled.excused(self.name, case).union(old, signed)


def _take_all(tries: Sequence[Case], nodes: frozenset[str]) -> bool:
    """Return True if a case was to measure all these nodes, which are its class.

    Runs of older versions do not record it: there one allocation of the case must have
    had all of them.
    """
    recorded = {case.whole_class for case in tries} - {None}
    if recorded:
        return True in recorded
    return any(nodes.issubset(case.nodes) for case in tries)


def _allocations(
    tries: Sequence[Case],
    present: frozenset[str],
    every: frozenset[str],
    excuses: _Excuses,
) -> Iterator[Allocation]:
    """Yield the allocations of a case in a run; all of them plan `every` node."""
    for case in tries:
        got = frozenset(case.nodes)
        lost = {event.node for event in case.node_events if event.state != _DRAINED}
        lost &= got
        excused = excuses.nodes(case)
        nodes = (got & present) | lost | every
        crashed = any(crash["try"] >= TRIES for crash in case.start_crashes)
        none = crashed or "" in excused
        blamed = frozenset() if none else (frozenset(lost) or nodes) - excused
        whole = not (none or lost)
        unit = (excuses.name, case.session, case.job_id, case.attempt)
        yield Allocation(unit, got, nodes, blamed, whole, case.draws_pairs)
