"""The judge: from closed runs and the criteria to findings and one verdict.

It never changes a run. Its risks are declared: a machine passes if every place of
every criterion reaches its limit (at the buyer's risk), fails if some place is
convicted of missing it (at the seller's risk, that of the whole machine), and is
undecided otherwise. Fail outranks undecided, undecided outranks pass. Recorded output
is judged in the same way, but what is no measurement decides nothing: a replay never
passes.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from seatrial.criteria.criteria import Criteria, Criterion, changes, kept_criteria
from seatrial.errors import SeatrialError
from seatrial.judge.case_findings import case_findings, inventory, retried
from seatrial.judge.case_numbers import Numbers, numbers_by_size
from seatrial.judge.findings import (
    NOT_MEASURED,
    Finding,
    Judgement,
    NodeVerdict,
    Verdict,
    plain_finding,
)
from seatrial.judge.place_findings import findings_of, node_verdicts
from seatrial.judge.sampling import COLUMNS
from seatrial.judge.screening import tried
from seatrial.judge.start_crashes import start_findings
from seatrial.judge.verdicts import Ruling, described, rulings
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
    look, of which a criterion says how many there may be.

    Raises SeatrialError if some of its numbers are replayed and others measured, if
    the runs are not of one system and campaign, or if a criterion allows fewer looks.
    """
    runs = (run, *further)
    _require_alike(runs, criteria)
    replay = _is_replay(runs)
    changed = _changes(run, criteria)
    cases = _cases(runs)
    rows = _rows_by_case(_table(runs))
    expired = _expired(runs, criteria)
    by_case = {
        key: numbers_by_size(
            key, _last(group), rows.get(key, []), criteria.criteria, expired
        )
        for key, group in cases.items()
    }
    numbers = [each for sizes in by_case.values() for each in sizes]
    found, own = _ruled(numbers, criteria)
    findings = inventory(_nodes(runs), replay)
    for key, group in cases.items():
        of_case = [finding for each in by_case[key] for finding in own[each.key]]
        findings += of_case
        findings += case_findings(key, _last(group), of_case)
        findings += retried(key, group, _last(group))
    unmeasured, uncovered = _unmeasured(runs, criteria, numbers)
    findings += unmeasured
    every_try = [case for group in cases.values() for case in group]
    starts, conspicuous = start_findings(every_try, criteria.risks.seller)
    findings += starts
    flagged = [_flagged(finding, changed) for finding in findings]
    flagged.sort(key=_order)
    nodes = node_verdicts(_nodes(runs), found, flagged, replay=replay)
    return Judgement(
        run=run.manifest["run"],
        system=run.manifest["system"],
        campaign=run.manifest["campaign"],
        verdict=_overall(flagged),
        findings=tuple(flagged),
        nodes=nodes,
        convicted=tuple(
            node.name
            for node in nodes
            if node.verdict == "fail" and node.state == "present"
        ),
        suspects=_suspects(found, conspicuous),
        replay=replay,
        further=tuple(each.manifest["run"] for each in further),
        criteria_sha256=criteria.sha256,
        changed=tuple(
            f"{name}: {what}" if name else what for name, what in changed.items()
        ),
        uncovered=uncovered,
    )


def _require_alike(runs: Sequence[Run], criteria: Criteria) -> None:
    """Refuse runs that cannot be judged together."""
    first = runs[0]
    for each in runs[1:]:
        for key in ("system", "campaign"):
            if each.manifest[key] != first.manifest[key]:
                raise SeatrialError(
                    f"{each.path}: {key} {each.manifest[key]!r}; expected "
                    f"{first.manifest[key]!r}, as in {first.path}: only runs of one "
                    "campaign on one system are judged together"
                )
    names = [each.manifest["run"] for each in runs]
    if len(set(names)) < len(names):
        raise SeatrialError(f"a run counts once; found {', '.join(names)}")
    checks = {case.check for each in runs for case in each.cases}
    for criterion in criteria.criteria:
        if criterion.looks < len(runs) > 1 and criterion.check in checks:
            raise SeatrialError(
                f"criterion {criterion.name!r} allows {criterion.looks} look"
                f"{'s' * (criterion.looks > 1)} at the data, this is number "
                f"{len(runs)}: each look is one more chance to err; say `looks: "
                f"{len(runs)}` in the criteria before the first, or judge a new run of "
                "more repeats alone"
            )


def _is_replay(runs: Sequence[Run]) -> bool:
    """Tell whether runs are of recorded output, as all in them must say alike."""
    marks = set()
    for run in runs:
        marks |= {bool(run.manifest.get("replay"))}
        marks |= {case.replay for case in run.cases}
        marks |= set(run.measurements["replay"].fill_null(False).unique())
    if len(marks) > 1:
        raise SeatrialError(
            f"{', '.join(str(run.path) for run in runs)}: some of the results are "
            "measured, others replayed from recorded output; expected one or the "
            "other; such a run is never judged"
        )
    return marks.pop()


def _changes(run: Run, criteria: Criteria) -> dict[str, str]:
    """Tell by criterion what changed after the data were taken; '' for all of them."""
    recorded = kept_criteria(run)
    if recorded is None:
        return {"": _UNKNOWN_CRITERIA}
    if recorded.sha256 == criteria.sha256:
        return {}
    return changes(recorded, criteria)


def _flagged(finding: Finding, changed: dict[str, str]) -> Finding:
    """Say in a finding that its criterion is not the one of the time of the data."""
    if finding.criterion not in changed or not finding.criterion:
        return finding
    flag = f"changed after the data were taken: {changed[finding.criterion]}"
    return replace(finding, flags=(flag,))


def _expired(runs: Sequence[Run], criteria: Criteria) -> dict[str, str]:
    """Tell of measured criteria why they no longer hold: another configuration."""
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


def _cases(runs: Sequence[Run]) -> dict[CaseKey, list[Case]]:
    """Group the cases of all runs; sessions of further runs get names of their own."""
    cases: dict[CaseKey, list[Case]] = defaultdict(list)
    for number, run in enumerate(runs):
        for case in run.cases:
            key = CaseKey(case.check, case.case, case.partition, case.environment)
            session = f"{run.manifest['run']}/{case.session}" if number else ""
            cases[key].append(replace(case, session=session or case.session))
    return cases


def _table(runs: Sequence[Run]) -> pl.DataFrame:
    """Put the numbers of all runs together; each run has its own name in them."""
    columns = dict.fromkeys((*CaseKey._fields, "nodes", *COLUMNS))
    return pl.concat(
        run.columns(*columns).with_columns(
            run=pl.lit(run.manifest["run"]).cast(pl.Categorical)
        )
        for run in runs
    )


def _rows_by_case(table: pl.DataFrame) -> dict[CaseKey, list[pl.DataFrame]]:
    """Cut the table into the numbers of each metric, by case."""
    by_case: dict[CaseKey, list[pl.DataFrame]] = defaultdict(list)
    columns = (*CaseKey._fields, "metric", "size_bytes")
    for key, rows in table.partition_by(columns, as_dict=True).items():
        by_case[CaseKey(*key[: len(CaseKey._fields)])].append(rows)
    return by_case


def _last(tries: Sequence[Case]) -> list[Case]:
    """Give the last try of each session. (Numbers of every try count.)"""
    return list({case.session: case for case in tries}.values())


def _nodes(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Give the delivered nodes; one that was absent in some run was absent."""
    nodes: dict[str, dict[str, Any]] = {}
    for run in runs:
        for node in run.manifest["nodes"]:
            known = nodes.get(node["name"])
            if known is None or known["state"] == "present":
                nodes[node["name"]] = node
    return list(nodes.values())


def _ruled(
    numbers: Sequence[Numbers], criteria: Criteria
) -> tuple[list[Ruling], dict[CaseKey, list[Finding]]]:
    """Try all places of the machine together, then rule on each."""
    groups = [group for each in numbers for group in each.groups]
    after = dict(
        zip(map(id, groups), rulings(tried(groups, criteria.risks)), strict=True)
    )
    pairs_of = {id(g.nodes): after[id(g)] for g in groups if g.nodes is not None}
    found: list[Ruling] = []
    own: dict[CaseKey, list[Finding]] = {}
    for each in numbers:
        own[each.key] = list(each.findings)
        for ruling in each.rulings:
            own[each.key] += findings_of(ruling, None)
        for group in each.groups:
            own[each.key] += findings_of(after[id(group)], pairs_of.get(id(group)))
        found += [*each.rulings, *(after[id(group)] for group in each.groups)]
    return found, own


def _unmeasured(
    runs: Sequence[Run], criteria: Criteria, numbers: Sequence[Numbers]
) -> tuple[list[Finding], tuple[str, ...]]:
    """Find the criteria that nobody measured, and those that the campaign leaves out.

    A promise is not kept by leaving out its check: only an optional criterion is
    skipped.
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
        key = CaseKey(criterion.check, "", "", "")
        findings.append(
            replace(
                described(plain_finding(key, "limit"), criterion),
                verdict="skipped" if criterion.optional else "undecided",
                reason=f"{NOT_MEASURED}: {_why_not(criterion, cases)}",
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
    """Name the places worth a look, each once, in their order."""
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
