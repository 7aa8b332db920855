"""Findings on stability phases: each criterion of kind `stability` of each phase.

A phase is a part of an acceptance by itself. Its run is judged by the criteria of its
kind and by all that a run records beside its cases; criteria of checks that it does not
run are named, and do not leave it undecided. Runs of other campaigns skip criteria of
stability in the same way.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from seatrial.criteria.criteria import Criteria, kept_criteria
from seatrial.criteria.recorded import Recorded
from seatrial.criteria.stability import StabilityCriterion
from seatrial.errors import SeatrialError
from seatrial.judge.case_findings import case_findings
from seatrial.judge.findings import NOT_MEASURED, Finding, Verdict
from seatrial.judge.joint_runs import cases_of
from seatrial.judge.planned_findings import notes
from seatrial.model.units import rounded
from seatrial.runs.closed_run import Run
from seatrial.runs.maintenance import Maintenance
from seatrial.runs.reasons import Signed
from seatrial.stability.demonstration import IntervalTest
from seatrial.stability.incidents import is_failure
from seatrial.stability.phase import Phase, phase_of_run

_VERDICTS: Mapping[str, Verdict] = {"pass": "pass", "fail": "fail"}


@dataclass(frozen=True)
class Phases:
    """The stability phases among runs, by the names of the runs.

    `criteria` are those of kind `stability`; `damage` is what could not be read.
    `of_plans` are notes on the plans of all runs.
    """

    phases: Mapping[str, Phase]
    criteria: tuple[StabilityCriterion, ...]
    damage: str = ""
    of_plans: tuple[str, ...] = ()

    @classmethod
    def of(cls, runs: Sequence[Run], criteria: Criteria, signed: Signed) -> "Phases":
        """Read the phases; planned maintenance counts if it was declared before."""
        rules = stability_criteria(criteria.declared)
        phases: dict[str, Phase] = {}
        for run in runs:
            windows = _windows(run, criteria, signed)
            try:
                phase = phase_of_run(run, windows, signed.corrections)
            except SeatrialError as error:
                return cls({}, rules, str(error), notes(runs))
            if phase is not None:
                phases[str(run.manifest["run"])] = phase
        return cls(phases, rules, of_plans=notes(runs))

    @property
    def counted(self) -> frozenset[str]:
        """The runs whose failures are events, because criteria count them."""
        return frozenset(self.phases if self.criteria else ())

    @property
    def watched(self) -> frozenset[str]:
        """The nodes whose failures are events, without those away at the end."""
        journals = (phase.journal for phase in self.phases.values() if self.counted)
        names = {name for journal in journals for name in journal.nodes}
        return frozenset(names - self._away)

    @property
    def _away(self) -> set[str]:
        journals = (phase.journal for phase in self.phases.values())
        return {one.node for own in journals for one in own.away if not one.back}

    @property
    def notes(self) -> tuple[str, ...]:
        """Return notes on plans, and on corrections with and without an event."""
        phases = self.phases.values()
        unknown = [note for phase in phases for note in phase.notes]
        known = [f"cause corrected: {c}" for p in phases for c in p.corrections]
        known = [one for one in known if not any(one[17:] in note for note in unknown)]
        return tuple(dict.fromkeys([*self.of_plans, *known, *unknown]))

    def findings(self, runs: Iterable[Run]) -> list[Finding]:
        """Return a finding for each criterion and phase, and on their failed jobs."""
        found = [*self._failed_jobs(runs)]
        for rule in self.criteria:
            subject = _subject(rule)
            if self.damage:
                reason = f"the phase cannot be read: {self.damage}"
                found.append(subject.judged("undecided", reason))
            elif not self.phases:
                reason = f"{NOT_MEASURED}: the campaign is no stability phase"
                found.append(subject.judged("skipped", reason))
            for name, phase in self.phases.items():
                one = judge_phase(rule, phase)
                words = f"run {name}: " if len(self.phases) > 1 else ""
                found.append(replace(one, reason=words + one.reason))
        return found

    def _failed_jobs(self, runs: Iterable[Run]) -> Iterator[Finding]:
        """Yield a passing finding for each case with failed jobs: these are events."""
        counted = [run for run in runs if run.manifest["run"] in self.counted]
        for key, tries in cases_of(counted).items():
            jobs = [one for one in tries if one.result != "fail" or is_failure(one)]
            for finding in case_findings(key, jobs, ()):
                if finding.verdict == "fail":
                    words = f"{finding.reason}; counted as an event of the phase"
                    yield finding.judged("pass", words)

    def returned(self, nodes: Iterable[Mapping[str, Any]]) -> frozenset[str]:
        """Return the lost nodes that were back before their phase ended.

        There are none without criteria of stability: these count their losses.
        """
        if not self.counted:
            return frozenset()
        lost = {str(node["name"]) for node in nodes if node["state"] == "lost"}
        return frozenset(lost - self._away)

    def softened(
        self, findings: Iterable[Finding], nodes: Iterable[Mapping[str, Any]]
    ) -> list[Finding]:
        """Pass lost nodes that are back; skip criteria of checks that no phase runs."""
        if not self.counted:
            return [*findings]
        returned = self.returned(nodes)
        return [_softened(finding, returned) for finding in findings]


def stability_criteria(declared: Iterable[Recorded]) -> tuple[StabilityCriterion, ...]:
    """Return the criteria of kind `stability`."""
    return tuple(rule for rule in declared if isinstance(rule, StabilityCriterion))


def _windows(run: Run, criteria: Criteria, signed: Signed) -> tuple[Maintenance, ...]:
    """Return signed windows, and those that the run kept and that still hold."""
    kept = kept_criteria(run)
    before = kept.maintenance if kept else ()
    declared = tuple(one for one in criteria.maintenance if one in before)
    return declared + signed.maintenance


def _softened(finding: Finding, returned: Collection[str]) -> Finding:
    absent = finding.kind == "inventory" and finding.verdict == "fail"
    if absent and finding.place in returned:
        words = f"{finding.reason}; back, and counted as an event"
        return finding.judged("pass", words)
    unmeasured = finding.verdict == "undecided" and finding.reason.startswith(
        NOT_MEASURED
    )
    if unmeasured and "does not run" in finding.reason:
        return finding.judged("skipped", finding.reason)
    return finding


def _subject(rule: StabilityCriterion) -> Finding:
    return Finding("stability", "Stability").held_to_declaration(rule)


def judge_phase(rule: StabilityCriterion, phase: Phase) -> Finding:
    """Judge a phase, or what was observed of it so far, by a criterion."""
    events, hours = phase.counted(rule), phase.hours
    subject = replace(
        _subject(rule),
        metric=rule.measure,
        n=len(events),
        limit=rule.rejected,
        direction="higher",
        unit="h" if rule.measure == "mtbf" else "1",
    )
    if not phase.journal.seconds:
        return subject.judged("undecided", f"{NOT_MEASURED}: the run has no journal")
    finding = (
        _availability(subject, rule, phase, len(events))
        if rule.measure == "availability"
        else _demonstrated(subject, rule, phase)
    )
    if finding.verdict == "fail":
        return finding
    if hours.unobserved_share > rule.unobserved:
        words = (
            f"{100 * hours.unobserved_share:.2g} % of the phase was not observed, "
            f"allowed {100 * rule.unobserved:.2g} %; {finding.reason}"
        )
        return finding.judged("undecided", words)
    if phase.load < rule.least_load:
        words = (
            f"jobs took {100 * phase.load:.2g} % of the node-hours, expected "
            f"{100 * rule.least_load:.2g} %; {finding.reason}"
        )
        return finding.judged("undecided", words)
    return finding


def _availability(
    subject: Finding, rule: StabilityCriterion, phase: Phase, failures: int
) -> Finding:
    """Compute the formula of the contract, with its numbers."""
    hours = phase.hours
    numbers = ", ".join(
        f"{name} {rounded(getattr(hours, name))}"
        for name in ("total", "up", "down", "planned", "unobserved")
    )
    try:
        value = hours.value(rule.formula, failures)
    except ValueError as error:
        return subject.judged("undecided", f"{rule.formula}: {error} ({numbers})")
    words = f"{rule.formula} = {rounded(value, 5)}; node-hours: {numbers}"
    subject = replace(subject, value=value, method="formula of the contract")
    if value < rule.accepted:
        return subject.judged("fail", f"{words}; at least {rule.accepted:g}")
    declared = phase.declared.duration_s / 3600
    if hours.hours < declared * (1 - _SHORT):
        reason = f"{words}; {rounded(hours.hours)} h of {rounded(declared)} h"
        return subject.judged("undecided", reason)
    return subject.judged("pass", words)


_SHORT = 0.02
"""A phase that is shorter by this share is as long as declared: rounds are whole."""


def _demonstrated(subject: Finding, rule: StabilityCriterion, phase: Phase) -> Finding:
    """Judge a phase by a demonstration test."""
    decision, test = phase.decide(rule), phase.test(rule)
    subject = replace(subject, accepted=rule.accepted)
    if isinstance(test, IntervalTest):
        intervals = int(phase.exposed / test.length + 1e-9)
        value = 1 - decision.counted / intervals if intervals else None
        subject = replace(subject, value=value, n=intervals, method="binomial test")
    else:
        count, exposed = len(phase.counted(rule)), phase.exposed
        low, high = test.interval(count, exposed)
        subject = replace(
            subject,
            value=exposed * test.nodes / count if count else None,
            lower=low,
            upper=high if high < float("inf") else None,
            method="sequential test" if rule.sequential else "fixed-duration test",
        )
    risks = f"risks: seller {rule.seller:g}, buyer {rule.buyer:g}"
    verdict = _VERDICTS.get(decision.verdict, "undecided")
    return subject.judged(verdict, f"{decision.reason} ({risks})")
