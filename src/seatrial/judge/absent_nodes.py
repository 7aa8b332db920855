"""Findings on delivered nodes that were absent or lost in a run."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seatrial.criteria.absence import NONE, Absence
from seatrial.criteria.criteria import Criteria, kept_criteria
from seatrial.judge.allocations import agenda_of
from seatrial.judge.findings import Finding, first_of
from seatrial.judge.joint_runs import start_time
from seatrial.judge.presence import presence
from seatrial.model.cases import CaseKey
from seatrial.names import node_set
from seatrial.runs.closed_run import Run
from seatrial.runs.ledger_view import Repair
from seatrial.runs.raw_output import NO_MEASUREMENT

_Nodes = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Inventory:
    """The delivered nodes, the absent ones that the contract allows, and the allowance.

    `away` says of nodes when they were absent; `back` has a finding on each lost node
    that a repeat measured again; `spares` says of absent nodes by which spare they are
    replaced, and of absent spares that they are spares. `words` are the number of
    absent nodes, the allowance, and the spares in use.
    """

    nodes: _Nodes
    away: Mapping[str, str]
    back: Mapping[str, Finding]
    permitted: frozenset[str]
    spares: Mapping[str, str]
    words: str

    @classmethod
    def of(
        cls,
        runs: Sequence[Run],
        nodes: _Nodes,
        criteria: Criteria,
        repairs: Sequence[Repair] = (),
        returned: Collection[str] = (),
    ) -> "Inventory":
        """Judge the absent nodes by the allowance that all runs kept at their start.

        Numbers from before one of the `repairs` do not count for its node. `returned`
        are lost nodes that are back: they need neither the allowance nor a spare.
        """
        classes: dict[str, frozenset[str]] = {}
        for agenda in filter(None, map(agenda_of, runs)):
            for name, own in agenda.nodes.items():
                classes[name] = classes.get(name, frozenset()).union(own)
        back = {
            str(node["name"]): finding
            for node in nodes
            if node["state"] == "lost"
            and (finding := _back(node, runs, repairs, classes))
        }
        states = {str(node["name"]): node["state"] == "present" for node in nodes}
        absence = _allowance(runs, criteria)
        there = states | dict.fromkeys([*back, *returned], True)
        replaced = absence.replaced(there, classes)
        spare = {name for name in absence.spare_nodes if name in states}
        spares = {name: "a spare" for name in spare if not states[name]}
        spares |= {name: f"spare {by} replaces it" for name, by in replaced.items()}
        names = [name for name, present in states.items() if not present]
        away = [name for name in names if not there[name] and name not in spares]
        words = absence.words(len(away), len(nodes) - len(spare))
        words += _spare_words(absence.spare_nodes, replaced, states)
        spans = {name: span for name in names if (span := presence(name, runs))}
        permitted = absence.permitted(away, classes).union(spares)
        return cls(nodes, spans, back, permitted, spares, words)

    def findings(self, *, replay: bool) -> list[Finding]:
        """Judge the nodes: one that was absent, or lost in the run, fails.

        It passes if the contract allows it; one that is back has its own finding.
        """
        subject = Finding("inventory")
        findings = []
        for node in self.nodes:
            name, reason = str(node["name"]), f"{node['state']}: {node['reason']}"
            if span := self.away.get(name):
                reason += f"; {span}"
            if name in self.back:
                findings.append(self.back[name])
            elif name in self.permitted:
                spare = self.spares.get(name)
                allowed = f"{reason}; {spare or f'absent nodes: {self.words}'}"
                findings.append(subject.judged("pass", allowed, place=name))
            elif node["state"] != "present":
                missing = f"delivered but {reason}"
                findings.append(subject.judged("fail", missing, place=name))
        if replay:
            reason = f"{NO_MEASUREMENT}; the nodes were not inspected"
            return [Finding("replay", reason=reason), *findings]
        if not self.nodes:
            reason = "the run does not say which nodes were delivered"
            return [subject.judged("undecided", reason)]
        if not findings:
            reason = f"all {len(self.nodes)} delivered nodes are present"
            return [subject.judged("pass", reason, n=len(self.nodes))]
        return findings


def _spare_words(
    declared: Sequence[str], replaced: Mapping[str, str], states: Mapping[str, bool]
) -> str:
    """Describe the spares beside the allowance; '' without any."""
    if not declared:
        return ""
    used = ", ".join(f"{spare} for {node}" for node, spare in replaced.items())
    words = f"; spares in use: {len(replaced)} of {len(declared)}"
    words += f" ({used})" if used else ""
    unknown = [name for name in declared if name not in states]
    return words + (f"; not in the run: {node_set(unknown)}" if unknown else "")


def _allowance(runs: Iterable[Run], criteria: Criteria) -> Absence:
    """Return the allowance that all runs kept at their start, at most that of today."""
    least = criteria.absence
    for run in runs if least != NONE else ():
        kept = kept_criteria(run)
        least = least.least(kept.absence if kept else NONE)
    return least


def _back(
    node: Mapping[str, Any],
    runs: Sequence[Run],
    repairs: Sequence[Repair],
    classes: Mapping[str, frozenset[str]],
) -> Finding | None:
    """Return a finding on a lost node that a repeat measured again; None without one.

    It passes if every case of its whole class measured it, since its last repair; else
    it is undecided.
    """
    name = str(node["name"])
    repaired = max((one.time for one in repairs if one.node == name), default=0.0)
    since = [run for run in runs if start_time(run) >= repaired]
    repeat = next((run for run in since if _measured_again(run, name)), None)
    if repeat is None:
        return None
    wanted: set[CaseKey] = set()
    measured: set[CaseKey] = set()
    for own, case in ((run, case) for run in runs for case in run.cases):
        of_class = classes.get(case.partition.rpartition(":")[2], frozenset())
        if case.result == "skip":
            continue
        if case.whole_class and name in of_class:
            wanted.add(case.key)
        if name in case.nodes and own in since:
            measured.add(case.key)
    left = sorted(f"{key.case} ({key.environment})" for key in wanted - measured)
    reason = f"lost, and back in run {repeat.manifest['run']}: {node['reason']}"
    reason += f"; not measured in {first_of(left)}" if left else ""
    subject = Finding("inventory", place=name)
    return subject.judged("undecided" if left else "pass", reason)


def _measured_again(run: Run, name: str) -> bool:
    """Return True if a repeat had a node all the time, and a case passed on it."""
    if not run.manifest.get("repeat_of"):
        return False
    states = {node["name"]: node["state"] for node in run.manifest["nodes"]}
    passed = (case for case in run.cases if case.result == "pass")
    return states.get(name) == "present" and any(name in c.nodes for c in passed)
