"""Findings on planned cases, repeats, checks and nodes that did not come."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from seatrial.criteria.criteria import Criteria, Criterion, kept_criteria
from seatrial.criteria.criterion import matches
from seatrial.judge.allocations import agenda_of
from seatrial.judge.findings import NOT_MEASURED, Finding, first_of
from seatrial.model.cases import Case, CaseKey
from seatrial.runs.closed_run import Run
from seatrial.runs.reasons import Reason

NO_PLAN = (
    "the run does not record its plan: repeats and cases that it left out do not show"
)
NO_NODES = (
    "the plan does not record the delivered nodes of each class: a case counts as one "
    "of all nodes if one of its allocations had them all"
)


def permitted(runs: Sequence[Run], criteria: Criteria) -> Criteria:
    """Return the criteria of the campaign, optional only if all runs kept them so.

    `optional: true` that was added after the start of a run permits nothing.
    """
    criteria = criteria.of_campaign(str(runs[0].manifest["campaign"]))
    kept = [kept_criteria(run) for run in runs]
    names = set.intersection(
        *(set() if one is None else _optional(one) for one in kept)
    )
    return replace(
        criteria,
        criteria=tuple(
            replace(rule, optional=rule.optional and rule.name in names)
            for rule in criteria.criteria
        ),
        declared=tuple(
            replace(rule, optional=rule.optional and rule.name in names)
            for rule in criteria.declared
        ),
    )


def _optional(criteria: Criteria) -> set[str]:
    names = {rule.name for rule in criteria.criteria if rule.optional}
    return names | {rule.name for rule in criteria.declared if rule.optional}


def notes(runs: Sequence[Run]) -> tuple[str, ...]:
    """Return what the plans of runs, by older versions or imported, cannot show."""
    agendas = [agenda_of(run) for run in runs]
    unknown = {
        NO_PLAN: None in agendas,
        NO_NODES: any(agenda and not agenda.nodes for agenda in agendas),
    }
    return tuple(note for note, applies in unknown.items() if applies)


@dataclass(frozen=True)
class _Gap:
    """Repeats of a case that did not run: `count` of `planned`, and why."""

    key: CaseKey
    parameters: Mapping[str, Any]
    count: int
    planned: int
    why: str

    @property
    def words(self) -> str:
        """Describe the gap without its case."""
        if self.count == self.planned:
            return self.why
        return f"in {self.count} of {self.planned} repeats: {self.why}"

    def may_have(self, criterion: Criterion) -> bool:
        """Return True if a criterion would have covered the case.

        What a case that did not run leaves open is taken as covered.
        """
        values = {
            **self.parameters,
            "$system": self.key.partition.partition(":")[0],
            "$partition": self.key.partition,
            "$environ": self.key.environment,
        }
        return criterion.check == self.key.check and all(
            not values.get(key)
            or matches(wanted, values[key])
            or matches(str(wanted), str(values[key]))
            for key, wanted in criterion.where.items()
        )


def _planned(runs: Sequence[Run]) -> dict[CaseKey, dict[tuple[str, str], Case | None]]:
    """Return the last try of each planned case by run and session; None: none."""
    planned: dict[CaseKey, dict[tuple[str, str], Case | None]] = defaultdict(dict)
    for run in runs:
        name = str(run.manifest["run"])
        agenda = agenda_of(run)
        for session in agenda.sessions if agenda else ():
            for listed in session.cases:
                key = CaseKey(
                    listed.check, listed.case, listed.partition, listed.environment
                )
                planned[key][name, session.name] = None
        for case in run.cases:
            planned[case.key][name, case.session] = case
    return planned


def _gaps(runs: Sequence[Run], reasons: Sequence[Reason]) -> Iterator[_Gap]:
    """Yield the gaps of each case, by their reason; a signed reason excuses one."""
    for key, sessions in _planned(runs).items():
        causes: dict[str, int] = defaultdict(int)
        for (run, session), case in sessions.items():
            if case is not None and case.result != "skip":
                continue
            if not any(
                not reason.node and reason.excuses(run, key.check, key.case, session)
                for reason in reasons
            ):
                why = "it did not run" if case is None else "skipped: "
                why += "" if case is None else case.reason or "no reason given"
                causes[why] += 1
        known = [case.parameters for case in sessions.values() if case is not None]
        texts = key.listed.parameters
        parameters = max((texts, *known), key=len)
        for why, count in causes.items():
            yield _Gap(key, parameters, count, len(sessions), why)


def gap_findings(
    runs: Sequence[Run],
    criteria: Sequence[Criterion],
    answered: Mapping[str, Collection[CaseKey]],
    reasons: Sequence[Reason],
) -> list[Finding]:
    """Return a finding per criterion and reason on repeats that did not run.

    `answered` are the cases with numbers, by criterion: only such criteria count here.
    Without a number from any environment, a case counts if it declares the metric.
    """
    declared: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        for case in run.cases:
            declared[case.case].update(case.declared)
    groups: dict[tuple[str, str], list[_Gap]] = defaultdict(list)
    gaps = list(_gaps(runs, reasons))
    for rule in criteria:
        for gap in gaps if answered.get(rule.name) else ():
            names = {key.case for key in answered[rule.name]}
            promised = declared[gap.key.case]
            expected = gap.key.case in names or rule.metric in promised or not promised
            if expected and gap.may_have(rule):
                groups[rule.name, gap.words].append(gap)
    rules = {rule.name: rule for rule in criteria}
    return [
        _incomplete(rules[name], words, own) for (name, words), own in groups.items()
    ]


def _incomplete(criterion: Criterion, words: str, gaps: Sequence[_Gap]) -> Finding:
    named = [" ".join(filter(None, (g.key.case, g.key.environment))) for g in gaps]
    first = gaps[0].key
    alone = len(gaps) == 1
    subject = Finding(
        "limit",
        criterion.check,
        first.case if alone else "",
        first.environment if len({g.key.environment for g in gaps}) == 1 else "",
    )
    return subject.held_to(criterion).judged(
        "skipped" if criterion.optional else "undecided",
        f"{NOT_MEASURED}: {first_of(named)}: {words}",
    )


def unused_nodes(
    runs: Sequence[Run],
    nodes: Sequence[Mapping[str, Any]],
    reasons: Sequence[Reason],
) -> list[Finding]:
    """Return a finding on each node that is present, and that no job used.

    Nodes of classes that the campaign does not choose are none of them. If the nodes of
    a case that ran are not known, nothing is said.
    """
    subject = Finding("inventory")
    there = {node["name"] for node in nodes}
    used: set[str] = set()
    chosen: set[str] = set()
    excused = {reason.node for reason in reasons if not reason.case}
    for run in runs:
        ran = [case for case in run.cases if case.result != "skip"]
        if any(case.result == "pass" and not case.nodes for case in ran):
            return []
        used.update(node for case in ran for node in case.nodes)
        chosen |= _chosen(run, there)
    return [
        subject.judged(
            "undecided",
            "delivered and present, and no job used it"
            if name in there
            else "delivered when the run began, and not in its manifest",
            place=name,
        )
        for name in sorted(chosen - used - excused)
        if name not in there or _is_present(nodes, name)
    ]


def _is_present(nodes: Sequence[Mapping[str, Any]], name: str) -> bool:
    return any(n["name"] == name and n["state"] == "present" for n in nodes)


def _chosen(run: Run, there: set[str]) -> set[str]:
    """Return the delivered nodes that the campaign of a run chooses."""
    agenda = agenda_of(run)
    if agenda is None:
        return there
    choice = agenda.campaign
    if not (choice.get("classes") or choice.get("partitions")):
        return there | {name for own in agenda.nodes.values() for name in own}
    classes = {
        case.partition.rpartition(":")[2]
        for session in agenda.sessions
        for case in session.cases
    }
    return {name for own in classes for name in agenda.nodes.get(own, ())}


def why_not(criterion: Criterion, cases: Sequence[Case]) -> str:
    """Return why no case reported the metric of a criterion."""
    for result in ("skip", "fail"):
        for case in cases:
            if case.check == criterion.check and case.result == result:
                return f"{case.case}: {case.reason or result}"
    return "no case reported this metric"
