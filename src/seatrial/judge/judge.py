"""The judge: from closed runs and the criteria to findings and one verdict.

It never changes a run. Its risks are declared: a machine passes if every place of
every criterion reaches its limit (at the buyer's risk), fails if some place is
convicted of missing it (at the seller's risk, that of the whole machine), and is
undecided otherwise. Fail outranks undecided, undecided outranks pass. A replay of
recorded output is judged in the same way, but never passes.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, zip_longest
from pathlib import Path
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
from seatrial.judge.completeness import allocations
from seatrial.judge.declared_findings import declared_findings
from seatrial.judge.findings import (
    NOT_MEASURED,
    Finding,
    Judgement,
    NodeVerdict,
    Verdict,
)
from seatrial.judge.place_findings import findings_of, node_verdicts
from seatrial.judge.planned_findings import (
    gap_findings,
    notes,
    permitted,
    unused_nodes,
)
from seatrial.judge.screening import tried
from seatrial.judge.verdicts import Ruling, rulings
from seatrial.model.cases import Case, CaseKey
from seatrial.model.places import with_place
from seatrial.names import natural_key
from seatrial.runs.closed_run import Run
from seatrial.runs.fingerprint import differences, fingerprint
from seatrial.runs.reasons import Reason, signed_reasons

__all__ = ["Finding", "Judgement", "NodeVerdict", "Verdict", "judge"]

_KIND_ORDER = (
    "replay",
    "inventory",
    "declared",
    "start",
    "case",
    "limit",
    "sameness",
    "node",
)
_UNKNOWN_CRITERIA = "the run does not say which criteria held when its data were taken"


def judge(
    run: Run,
    criteria: Criteria,
    further: Sequence[Run] = (),
    signers: Path | None = None,
) -> Judgement:
    """Hold a run to the criteria of its system; same input, same judgement.

    `further` runs of the same campaign are judged together with it: each is one more
    look, and a criterion limits the number of looks. `signers` are the persons whose
    reasons for missing numbers count, as OpenSSH's allowed_signers.

    Raises SeatrialError if some of its numbers are replayed and others measured, if
    the runs are not of one system and campaign, or if a criterion allows fewer looks.
    """
    runs = (run, *further)
    joint_runs.require_alike(runs, criteria)
    replay = joint_runs.is_replay(runs)
    changed = _changes(run, criteria)
    criteria = permitted(runs, criteria)
    reasons, refused = _reasons(runs, signers)
    nodes = joint_runs.delivered_nodes(runs)
    cases = joint_runs.cases_of(runs)
    rows = joint_runs.rows_by_case(runs)
    planned = allocations(runs, nodes, reasons)
    fingerprints = [fingerprint(judged.manifest) for judged in runs]
    rules = [(rule, _expiry(rule, fingerprints)) for rule in criteria.criteria]
    by_case = {}
    for key, tries in cases.items():
        last, own = joint_runs.last_tries(tries), rows.get(key, [])
        by_case[key] = numbers_by_size(key, last, own, rules, planned.get(key, ()))
    numbers = [of_size for sizes in by_case.values() for of_size in sizes]
    ruled = _rule(numbers, criteria)
    findings = inventory(nodes, replay) + unused_nodes(runs, nodes, reasons)
    findings += declared_findings(runs, criteria.declared)
    findings += _of_cases(cases, by_case)
    unmeasured, uncovered = _unmeasured(runs, criteria, numbers, reasons)
    every_try = [case for tries in cases.values() for case in tries]
    starts, conspicuous = start_findings(every_try, criteria.risks.seller)
    findings = [_flagged(item, changed) for item in findings + unmeasured + starts]
    findings.sort(key=_order)
    by_node = node_verdicts(nodes, ruled, findings, replay=replay)
    convicted = (n for n in by_node if n.verdict == "fail" and n.state == "present")
    return Judgement(
        run=run.manifest["run"],
        system=run.manifest["system"],
        campaign=run.manifest["campaign"],
        verdict=_overall(findings),
        findings=tuple(findings),
        nodes=by_node,
        convicted=tuple(node.name for node in convicted),
        suspects=_suspects(ruled, conspicuous),
        replay=replay,
        further=tuple(other.manifest["run"] for other in further),
        criteria_sha256=criteria.sha256,
        changed=tuple(": ".join(filter(None, change)) for change in changed.items()),
        uncovered=uncovered,
        reasons=tuple(map(str, reasons)),
        notes=(*refused, *notes(runs)),
    )


def _of_cases(
    cases: Mapping[CaseKey, Sequence[Case]], numbers: Mapping[CaseKey, list[Numbers]]
) -> Iterator[Finding]:
    """Yield the findings of each case: on its numbers, and on its tries."""
    for key, tries in cases.items():
        last = joint_runs.last_tries(tries)
        own = [finding for of_size in numbers[key] for finding in of_size.findings]
        yield from own + case_findings(key, last, own) + retried(key, tries, last)


def _reasons(
    runs: Sequence[Run], signers: Path | None
) -> tuple[list[Reason], list[str]]:
    """Return the signed reasons of all runs, and why others do not count."""
    answers = [signed_reasons(run, signers) for run in runs]
    reasons = [reason for counted, _ in answers for reason in counted]
    return reasons, [words for _, words in answers if words]


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
        # The ruling on nodes of pairs stands directly before that on the pairs.
        for ruling, following in zip_longest(own, own[1:]):
            pairs = following if ruling.of_nodes else None
            of_case.findings += findings_of(ruling, pairs)
        ruled += own
    return ruled


def _unmeasured(
    runs: Sequence[Run],
    criteria: Criteria,
    numbers: Sequence[Numbers],
    reasons: Sequence[Reason],
) -> tuple[list[Finding], tuple[str, ...]]:
    """Return findings on criteria that lack numbers, and criteria of checks not run.

    Skipping a check, or leaving it out, does not satisfy its criterion, unless the
    criterion is optional, or a signed reason names the check.
    """
    answered: dict[str, list[CaseKey]] = defaultdict(list)
    for of_case in numbers:
        for name in of_case.answered:
            answered[name].append(of_case.key)
    cases = [case for run in runs for case in run.cases]
    checks = {case.check for case in cases}
    checks |= {check for run in runs for check in run.manifest.get("checks", ())}
    findings, uncovered = gap_findings(runs, criteria.criteria, answered, reasons), []
    excused = {one.case: str(one) for one in reasons if not (one.node or one.session)}
    for rule in criteria.criteria:
        if rule.name in answered:
            continue
        if rule.check not in checks:
            uncovered.append(rule.name)
            why = f"campaign {runs[0].manifest['campaign']} does not run {rule.check}"
        else:
            why = _why_not(rule, cases)
        skipped = rule.optional or rule.check in excused
        findings.append(
            Finding("limit", rule.check)
            .held_to(rule)
            .judged(
                "skipped" if skipped else "undecided",
                f"{NOT_MEASURED}: {excused.get(rule.check, why)}",
            )
        )
    return findings, tuple(uncovered)


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
