"""The judge: from closed runs and the criteria to findings and one verdict.

It never changes a run. Its risks are declared: a machine passes if every place of
every criterion reaches its limit (at the buyer's risk), fails if some place is
convicted of missing it (at the seller's risk, that of the whole machine), and is
undecided otherwise. Fail outranks undecided, undecided outranks pass. A replay of
recorded output is judged in the same way, but never passes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice, zip_longest
from typing import Any

import polars as pl

from seatrial.criteria.criteria import Criteria, Criterion, changes, kept_criteria
from seatrial.judge import joint_runs
from seatrial.judge.case_findings import (
    case_findings,
    inventory,
    retried,
    start_findings,
)
from seatrial.judge.case_numbers import Numbers, numbers_by_size
from seatrial.judge.declared_findings import declared_findings
from seatrial.judge.findings import (
    NOT_MEASURED,
    Finding,
    Judgement,
    NodeVerdict,
    Verdict,
)
from seatrial.judge.place_findings import findings_of, node_verdicts
from seatrial.judge.screening import tried
from seatrial.judge.verdicts import Ruling, rulings
from seatrial.model.cases import Case
from seatrial.model.places import with_place
from seatrial.names import natural_key
from seatrial.runs.closed_run import Run
from seatrial.runs.fingerprint import differences, fingerprint

__all__ = ["Finding", "Judgement", "NodeVerdict", "Verdict", "judge"]

_KIND_ORDER = (
    "replay",
    "inventory",
    "declared",
    "start",
    "case",
    "limit",
    "sameness",
    "leaf",
    "node",
)
_UNKNOWN_CRITERIA = "the run does not say which criteria held when its data were taken"


def judge(run: Run, criteria: Criteria, further: Sequence[Run] = ()) -> Judgement:
    """Hold a run to the criteria of its system; same input, same judgement.

    `further` runs of the same campaign are judged together with it: each is one more
    look, and a criterion limits the number of looks.

    Raises SeatrialError if some of its numbers are replayed and others measured, if
    the runs are not of one system and campaign, or if a criterion allows fewer looks.
    """
    runs = (run, *further)
    joint_runs.require_alike(runs, criteria)
    replay = joint_runs.is_replay(runs)
    nodes = joint_runs.delivered_nodes(runs)
    leafs = joint_runs.leafs_of(nodes)
    cases = joint_runs.cases_of(runs)
    rows = joint_runs.rows_by_case(runs)
    fingerprints = [fingerprint(judged.manifest) for judged in runs]
    rules = [(rule, _expiry(rule, fingerprints)) for rule in criteria.criteria]
    by_case = {
        key: numbers_by_size(
            key, joint_runs.last_tries(tries), rows.get(key, []), rules, leafs
        )
        for key, tries in cases.items()
    }
    numbers = [of_size for sizes in by_case.values() for of_size in sizes]
    ruled = _rule(numbers, criteria)
    findings = inventory(nodes, replay)
    findings += declared_findings(runs, criteria.declared)
    for key, tries in cases.items():
        last = joint_runs.last_tries(tries)
        own = [finding for of_size in by_case[key] for finding in of_size.findings]
        findings += own + case_findings(key, last, own) + retried(key, tries, last)
    unmeasured, uncovered = _unmeasured(runs, criteria, numbers)
    every_try = [case for tries in cases.values() for case in tries]
    starts, conspicuous = start_findings(every_try, criteria.risks.seller)
    changed = _changes(run, criteria)
    findings = [_flagged(item, changed) for item in findings + unmeasured + starts]
    findings.sort(key=_order)
    by_node = node_verdicts(nodes, leafs, ruled, findings, replay=replay)
    return Judgement(
        run=run.manifest["run"],
        system=run.manifest["system"],
        campaign=run.manifest["campaign"],
        verdict=_overall(findings),
        findings=tuple(findings),
        nodes=by_node,
        convicted=tuple(
            node.name
            for node in by_node
            if node.verdict == "fail" and node.state == "present"
        ),
        suspects=_suspects(ruled, conspicuous),
        replay=replay,
        further=tuple(other.manifest["run"] for other in further),
        criteria_sha256=criteria.sha256,
        changed=tuple(": ".join(filter(None, change)) for change in changed.items()),
        uncovered=uncovered,
    )


def _changes(run: Run, criteria: Criteria) -> dict[str, str]:
    """Return changes since the data were taken, by criterion; '' stands for all."""
    recorded = kept_criteria(run)
    if recorded is None:
        return {"": _UNKNOWN_CRITERIA}
    return {} if recorded.sha256 == criteria.sha256 else changes(recorded, criteria)


def _flagged(finding: Finding, changed: dict[str, str]) -> Finding:
    """Flag a finding if its criterion changed after the data were taken."""
    if finding.criterion not in changed or not finding.criterion:
        return finding
    flag = f"changed after the data were taken: {changed[finding.criterion]}"
    return replace(finding, flags=(flag,))


def _expiry(criterion: Criterion, fingerprints: Sequence[dict[str, str]]) -> str:
    """Return why a measured criterion has expired (new configuration); '' if not."""
    if criterion.kind != "measured":
        return ""
    changed = [differences(criterion.fingerprint, today) for today in fingerprints]
    parts = dict.fromkeys(part for parts in changed for part in parts)
    reason = f"the measured reference has expired: {'; '.join(parts)}; measure it again"
    return reason if parts else ""


def _rule(numbers: Sequence[Numbers], criteria: Criteria) -> list[Ruling]:
    """Try all places of the machine together; add the findings to their numbers."""
    groups = [group for of_case in numbers for group in of_case.groups]
    after = rulings(tried(groups, criteria.risks))
    ruled = []
    for of_case in numbers:
        own = [*of_case.rulings, *islice(after, len(of_case.groups))]
        # Rulings on leafs, ways between leafs, nodes, and pairs follow each other.
        for ruling, following in zip_longest(own, own[1:]):
            pairs = following if ruling.of_nodes else None
            of_case.findings += findings_of(ruling, pairs)
        ruled += own
    return ruled


def _unmeasured(
    runs: Sequence[Run], criteria: Criteria, numbers: Sequence[Numbers]
) -> tuple[list[Finding], tuple[str, ...]]:
    """Return findings on criteria without numbers, and criteria of checks not run.

    Skipping a check does not satisfy its criterion, unless the criterion is optional.
    """
    answered = {name for of_case in numbers for name in of_case.answered}
    cases = [case for run in runs for case in run.cases]
    checks = {case.check for case in cases}
    checks |= {check for run in runs for check in run.manifest.get("checks", ())}
    silent = [rule for rule in criteria.criteria if rule.name not in answered]
    findings = [
        Finding("limit", criterion.check)
        .held_to(criterion)
        .judged(
            "skipped" if criterion.optional else "undecided",
            f"{NOT_MEASURED}: {_why_not(criterion, cases)}",
        )
        for criterion in silent
        if criterion.check in checks
    ]
    return findings, tuple(rule.name for rule in silent if rule.check not in checks)


def _why_not(criterion: Criterion, cases: Sequence[Case]) -> str:
    for result in ("skip", "fail"):
        for case in cases:
            if case.check == criterion.check and case.result == result:
                return f"{case.case}: {case.reason or result}"
    return "no case reported this metric"


def _suspects(ruled: Iterable[Ruling], conspicuous: Iterable[str]) -> tuple[str, ...]:
    """Return the places worth a look, each once, in natural order."""
    names = dict.fromkeys(conspicuous)
    for ruling in ruled:
        if ruling.discovered.any():
            places = ruling.names.filter(pl.Series(ruling.discovered))
            names |= dict.fromkeys(with_place(places, several_rails=False)["place"])
    return tuple(sorted(filter(None, names), key=natural_key))


def _overall(findings: Sequence[Finding]) -> Verdict:
    verdicts = {finding.verdict for finding in findings}
    if "fail" in verdicts:
        return "fail"
    judged = any(
        finding.kind not in ("inventory", "start", "declared")
        and finding.verdict != "skipped"
        for finding in findings
    )
    return "pass" if judged and "undecided" not in verdicts else "undecided"


def _order(finding: Finding) -> tuple[Any, ...]:
    return (
        _KIND_ORDER.index(finding.kind),
        finding.check,
        natural_key(finding.case),
        finding.environment,
        finding.size_bytes or 0,
        finding.metric,
        finding.criterion,
        natural_key(finding.place),
    )
