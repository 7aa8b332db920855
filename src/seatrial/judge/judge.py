"""The judge: from closed runs and the criteria to findings and one verdict.

It never changes a run. Its risks are declared: a machine passes if every place of
every criterion reaches its limit (at the buyer's risk), fails if some place is
convicted of missing it (at the seller's risk, that of the whole machine), and is
undecided otherwise. Fail outranks undecided, undecided outranks pass. Recorded output
is judged in the same way, but what is no measurement decides nothing: a replay never
passes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice, zip_longest
from typing import Any

import polars as pl

from seatrial.criteria.criteria import (
    Criteria,
    Criterion,
    Risks,
    changes,
    kept_criteria,
)
from seatrial.judge.case_findings import case_findings, inventory, retried
from seatrial.judge.case_numbers import Numbers, numbers_by_size
from seatrial.judge.findings import (
    NOT_MEASURED,
    Finding,
    Judgement,
    NodeVerdict,
    Subject,
    Verdict,
)
from seatrial.judge.joint_runs import (
    cases_of,
    delivered_nodes,
    is_replay,
    last_tries,
    require_alike,
    rows_by_case,
)
from seatrial.judge.place_findings import findings_of, node_verdicts
from seatrial.judge.screening import tried
from seatrial.judge.start_crashes import start_findings
from seatrial.judge.verdicts import Ruling, rulings
from seatrial.model.cases import Case, CaseKey
from seatrial.model.places import with_place
from seatrial.names import natural_key
from seatrial.runs.closed_run import Run
from seatrial.runs.fingerprint import differences, fingerprint

__all__ = ["Finding", "Judgement", "NodeVerdict", "Verdict", "judge"]

_KIND_ORDER = ("replay", "inventory", "start", "case", "limit", "sameness", "node")
_UNKNOWN_CRITERIA = "the run does not say which criteria held when its data were taken"


def judge(run: Run, criteria: Criteria, further: Sequence[Run] = ()) -> Judgement:
    """Hold a run to the criteria of its system; same input, same judgement.

    `further` runs of the same campaign are judged together with it: each is one more
    look, and a criterion limits the number of looks.

    Raises SeatrialError if some of its numbers are replayed and others measured, if
    the runs are not of one system and campaign, or if a criterion allows fewer looks.
    """
    runs = (run, *further)
    require_alike(runs, criteria)
    replay = is_replay(runs)
    nodes = delivered_nodes(runs)
    cases = cases_of(runs)
    by_case = _numbers(runs, cases, criteria)
    numbers = [of_size for sizes in by_case.values() for of_size in sizes]
    ruled = _rule(numbers, criteria.risks)
    findings = inventory(nodes, replay)
    for key, tries in cases.items():
        last = last_tries(tries)
        own = [finding for of_size in by_case[key] for finding in of_size.findings]
        findings += own + case_findings(key, last, own) + retried(key, tries, last)
    unmeasured, uncovered = _unmeasured(runs, criteria, numbers)
    every_try = [case for tries in cases.values() for case in tries]
    starts, conspicuous = start_findings(every_try, criteria.risks.seller)
    findings += unmeasured + starts
    changed = _changes(run, criteria)
    flagged = [_flagged(finding, changed) for finding in findings]
    flagged.sort(key=_order)
    by_node = node_verdicts(nodes, ruled, flagged, replay=replay)
    return Judgement(
        run=run.manifest["run"],
        system=run.manifest["system"],
        campaign=run.manifest["campaign"],
        verdict=_overall(flagged),
        findings=tuple(flagged),
        nodes=by_node,
        convicted=tuple(
            node.name
            for node in by_node
            if node.verdict == "fail" and node.state == "present"
        ),
        suspects=_suspects(ruled, conspicuous),
        replay=replay,
        further=tuple(each.manifest["run"] for each in further),
        criteria_sha256=criteria.sha256,
        changed=tuple(
            f"{name}: {what}" if name else what for name, what in changed.items()
        ),
        uncovered=uncovered,
    )


def _changes(run: Run, criteria: Criteria) -> dict[str, str]:
    """Return changes since the data were taken, by criterion; '' stands for all."""
    recorded = kept_criteria(run)
    if recorded is None:
        return {"": _UNKNOWN_CRITERIA}
    if recorded.sha256 == criteria.sha256:
        return {}
    return changes(recorded, criteria)


def _flagged(finding: Finding, changed: dict[str, str]) -> Finding:
    """Flag a finding whose criterion changed after the data were taken."""
    if finding.criterion not in changed or not finding.criterion:
        return finding
    flag = f"changed after the data were taken: {changed[finding.criterion]}"
    return replace(finding, flags=(flag,))


def _expired(runs: Sequence[Run], criteria: Criteria) -> dict[str, str]:
    """Return why measured criteria expired (another configuration), by name."""
    expired = {}
    for run in runs:
        today = fingerprint(run.manifest)
        for criterion in criteria.criteria:
            if criterion.kind != "measured":
                continue
            found = differences(criterion.fingerprint, today)
            if found:
                expired[criterion.name] = (
                    f"the measured reference has expired: {'; '.join(found)}; measure "
                    "it again"
                )
    return expired


def _numbers(
    runs: Sequence[Run], cases: Mapping[CaseKey, Sequence[Case]], criteria: Criteria
) -> dict[CaseKey, list[Numbers]]:
    """Hold the numbers of each case to the criteria, apart by size of allocation."""
    rows = rows_by_case(runs)
    expired = _expired(runs, criteria)
    return {
        key: numbers_by_size(
            key, last_tries(tries), rows.get(key, []), criteria.criteria, expired
        )
        for key, tries in cases.items()
    }


def _rule(numbers: Sequence[Numbers], risks: Risks) -> list[Ruling]:
    """Try all places of the machine together; add the findings to their numbers."""
    groups = [group for each in numbers for group in each.groups]
    after = rulings(tried(groups, risks))
    ruled = []
    for each in numbers:
        own = [*each.rulings, *islice(after, len(each.groups))]
        # The ruling on nodes of pairs stands directly before that on the pairs.
        for ruling, following in zip_longest(own, own[1:]):
            pairs = following if ruling.of_nodes else None
            each.findings += findings_of(ruling, pairs)
        ruled += own
    return ruled


def _unmeasured(
    runs: Sequence[Run], criteria: Criteria, numbers: Sequence[Numbers]
) -> tuple[list[Finding], tuple[str, ...]]:
    """Return findings on criteria without numbers, and criteria of checks not run.

    Skipping a check does not satisfy its criterion, unless the criterion is optional.
    """
    answered = {name for each in numbers for name in each.answered}
    cases = [case for run in runs for case in run.cases]
    checks = {case.check for case in cases}
    checks |= {check for run in runs for check in run.manifest.get("checks", ())}
    findings, uncovered = [], []
    for criterion in criteria.criteria:
        if criterion.name in answered:
            continue
        if criterion.check not in checks:
            uncovered.append(criterion.name)
            continue
        findings.append(
            Subject("limit", criterion.check)
            .held_to(criterion)
            .finding(
                "skipped" if criterion.optional else "undecided",
                f"{NOT_MEASURED}: {_why_not(criterion, cases)}",
            )
        )
    return findings, tuple(uncovered)


def _why_not(criterion: Criterion, cases: Sequence[Case]) -> str:
    own = [case for case in cases if case.check == criterion.check]
    for result in ("skip", "fail"):
        for case in own:
            if case.result == result:
                return f"{case.case}: {case.reason or result}"
    return "no case reported this metric"


def _suspects(found: Iterable[Ruling], conspicuous: Iterable[str]) -> tuple[str, ...]:
    """Return the places worth a look, each once, in natural order."""
    names = dict.fromkeys(conspicuous)
    for ruling in found:
        if ruling.discovered.any():
            told = ruling.names.filter(pl.Series(ruling.discovered))
            names |= dict.fromkeys(with_place(told, several_rails=False)["place"])
    return tuple(sorted(filter(None, names), key=natural_key))


def _overall(findings: Iterable[Finding]) -> Verdict:
    verdicts = {finding.verdict for finding in findings}
    judged = {
        finding.verdict
        for finding in findings
        if finding.kind not in ("inventory", "start")
    } - {"skipped"}
    if "fail" in verdicts:
        return "fail"
    return "undecided" if "undecided" in verdicts or not judged else "pass"


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
