"""The judge: from a closed run and the references to findings and one verdict.

It never changes a run. A criterion passes if all samples meet its limit, fails if
none does, and is undecided otherwise, or with too few samples, or without a
reference. Fail outranks undecided, undecided outranks pass. Recorded output is judged
in the same way, but what is no measurement decides nothing: a replay never passes.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from seatrial.errors import SeatrialError
from seatrial.findings import (
    CaseKey,
    Finding,
    Judgement,
    NodeVerdict,
    Row,
    Verdict,
    plain_finding,
)
from seatrial.old_limits import References
from seatrial.old_numbers import COLUMNS, judge_numbers
from seatrial.recordings import NO_MEASUREMENT
from seatrial.records import Case
from seatrial.results import Run

__all__ = ["Finding", "Judgement", "NodeVerdict", "Verdict", "judge"]

_KIND_ORDER = ("replay", "inventory", "case", "limit", "node")


def judge(run: Run, references: References) -> Judgement:
    """Hold a run to the references of its system; same input, same order.

    Raises SeatrialError if some of its numbers are replayed and others measured.
    """
    replay = _is_replay(run)
    minimum = int(run.manifest.get("minimum_samples", 1))
    cases: dict[CaseKey, list[Case]] = defaultdict(list)
    for case in run.cases:
        cases[CaseKey(case.check, case.case, case.partition, case.environment)].append(
            case
        )
    table = run.columns(*CaseKey._fields, *COLUMNS)
    rows = table.partition_by(CaseKey._fields, as_dict=True)
    findings = _inventory(run.manifest["nodes"], replay)
    for key, group in cases.items():
        # Numbers of every try count: a retry does not wash a bad number away.
        last = list({case.session: case for case in group}.values())
        numbers = judge_numbers(
            key, last, rows.get(key, table.clear()), references, minimum
        )
        findings += numbers
        findings += _case_findings(key, last, numbers, minimum)
        findings += _retried(key, group, last)
    findings.sort(key=_order)
    own: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.kind in ("node", "limit"):
            own[finding.node].append(finding)
    nodes = tuple(
        _node(node, own[node["name"]], replay) for node in run.manifest["nodes"]
    )
    return Judgement(
        run=run.manifest["run"],
        system=run.manifest["system"],
        campaign=run.manifest["campaign"],
        verdict=_overall(findings),
        findings=tuple(findings),
        nodes=nodes,
        suspects=tuple(
            node.name
            for node in nodes
            if node.verdict == "fail" and node.state == "present"
        ),
        replay=replay,
    )


def _is_replay(run: Run) -> bool:
    """Tell whether a run is of recorded output, as all in it must say alike."""
    marks = {bool(run.manifest.get("replay"))}
    marks |= {case.replay for case in run.cases}
    marks |= set(run.measurements["replay"].fill_null(False))
    if len(marks) > 1:
        raise SeatrialError(
            f"{run.path}: some of its results are measured, others replayed from "
            "recorded output; expected one or the other; such a run is never judged"
        )
    return marks.pop()


def _overall(findings: Iterable[Finding]) -> Verdict:
    verdicts = {finding.verdict for finding in findings}
    judged = {
        finding.verdict for finding in findings if finding.kind != "inventory"
    } - {"skipped"}
    if "fail" in verdicts:
        return "fail"
    return "undecided" if "undecided" in verdicts or not judged else "pass"


def _inventory(nodes: Sequence[Row], replay: bool) -> list[Finding]:
    key = CaseKey("", "", "", "")
    plain = plain_finding(key, "inventory")
    findings = [
        replace(
            plain,
            place=node["name"],
            verdict="fail",
            reason=f"delivered but absent: {node['reason']}",
        )
        for node in nodes
        if node["state"] != "present"
    ]
    if replay:
        reason = f"{NO_MEASUREMENT}, and nobody looked at the nodes"
        return [replace(plain_finding(key, "replay"), reason=reason), *findings]
    if not nodes:
        reason = "the run does not say which nodes were delivered"
        return [replace(plain, reason=reason)]
    if not findings:
        reason = f"all {len(nodes)} delivered nodes are present"
        findings = [replace(plain, n=len(nodes), verdict="pass", reason=reason)]
    return findings


def _case_findings(
    key: CaseKey, cases: list[Case], numbers: list[Finding], minimum: int
) -> list[Finding]:
    """Judge what is no number: a case that failed, was skipped, or only ran."""
    plain = plain_finding(key, "case")
    findings = []
    explained = any(finding.verdict != "pass" for finding in numbers)
    failed = [
        case
        for case in cases
        if case.result == "fail" and not (case.phase == "performance" and explained)
    ]
    skipped = [case for case in cases if case.result == "skip"]
    passed = [case for case in cases if case.result == "pass"]
    if failed:
        where = f" in {failed[0].phase}" if failed[0].phase else ""
        times = f" in {len(failed)} of {len(cases)} repeats" if len(cases) > 1 else ""
        reason = f"failed{where}{times}: {failed[0].reason or 'no reason given'}"
        findings.append(replace(plain, n=len(cases), verdict="fail", reason=reason))
    if skipped:
        reason = skipped[0].reason or "no reason given"
        findings.append(
            replace(plain, n=len(skipped), verdict="skipped", reason=reason)
        )
    if passed and not failed and not numbers:
        verdict: Verdict = "pass" if len(passed) >= minimum else "undecided"
        reason = "ran and verified; it has no number to judge"
        if verdict == "undecided":
            reason = f"ran {len(passed)} times, at least {minimum} are needed"
        findings.append(replace(plain, n=len(passed), verdict=verdict, reason=reason))
    return findings


def _retried(
    key: CaseKey, tries: Sequence[Case], last: Sequence[Case]
) -> list[Finding]:
    """Show each case that passed, but not at the first try."""
    findings = []
    for case in last:
        first = next(each for each in tries if each.session == case.session)
        if case.attempt > 1 and case.result == "pass":
            where = f" in {first.phase}" if first.phase else ""
            reason = (
                f"passed at try {case.attempt} in session {case.session}; the first "
                f"failed{where}: {first.reason or 'no reason given'}"
            )
            plain = plain_finding(key, "case")
            findings.append(replace(plain, n=1, verdict="pass", reason=reason))
    return findings


def _node(node: Row, own: list[Finding], replay: bool) -> NodeVerdict:
    """Sum up the findings on one delivered node."""
    name = node["name"]
    if node["state"] != "present":
        return NodeVerdict(name, node["state"], "fail", node["reason"], {})
    values: dict[str, float] = {}
    for finding in own:
        if finding.value is not None:
            worse = min if finding.direction == "higher" else max
            known = values.get(finding.metric, finding.value)
            values[finding.metric] = worse(known, finding.value)
    rank: tuple[Verdict, ...] = ("fail", "undecided", "pass")
    for verdict in rank:
        telling = [finding for finding in own if finding.verdict == verdict]
        if telling:
            reason = "; ".join(
                f"{finding.check} {finding.metric}: {finding.reason}"
                for finding in telling
                if verdict != "pass"
            )
            if replay and verdict == "pass":
                return NodeVerdict(name, "present", "undecided", NO_MEASUREMENT, values)
            return NodeVerdict(name, "present", verdict, reason, values)
    reason = "no number was taken of this node alone"
    return NodeVerdict(name, "present", "undecided", reason, values)


def _order(finding: Finding) -> tuple[Any, ...]:
    return (
        _KIND_ORDER.index(finding.kind),
        finding.check,
        _natural(finding.case),
        finding.environment,
        finding.size_bytes or 0,
        finding.metric,
        _natural(finding.place),
    )


def _natural(text: str) -> list[tuple[str, int]]:
    """Order cn2 before cn10."""
    return [
        (other, int(digits or 0))
        for other, digits in re.findall(r"(\D*)(\d*)", text)
        if other or digits
    ]
