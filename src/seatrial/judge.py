"""The judge: from a closed run and the references to findings and one verdict.

It never changes a run. A criterion passes if all samples meet its limit, fails if
none does, and is undecided otherwise, or with too few samples, or without a
reference. Fail outranks undecided, undecided outranks pass.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Literal, NamedTuple

from seatrial.metrics import flat_name
from seatrial.records import Case
from seatrial.references import Limit, References
from seatrial.results import Run

Verdict = Literal["pass", "fail", "undecided"]
Kind = Literal["limit", "case", "inventory", "node"]

STATISTICS = ("mean", "p50", "p99", "max", "min")
"""Of several statistics of one metric, the first of these is held to the limit."""

_KIND_ORDER = ("inventory", "case", "limit", "node")


@dataclass(frozen=True)
class Finding:
    """One criterion and what became of it.

    `metric` is the flat name, '' if none; `place` is '', a node, or a pair
    'cn02 - cn03'; `n` counts samples, `value` is their median, `limit` the bound
    that counts for the metric's direction, both in `unit`.
    """

    kind: Kind
    check: str
    case: str
    environment: str
    metric: str
    size_bytes: int | None
    place: str
    n: int
    value: float | None
    unit: str
    limit: float | None
    direction: str
    reference_kind: str
    reference_source: str
    verdict: Verdict | Literal["skipped"]
    reason: str


@dataclass(frozen=True)
class NodeVerdict:
    """One delivered node: `values` maps flat metrics to the node's worst value."""

    name: str
    state: str
    verdict: Verdict
    reason: str
    values: dict[str, float]


@dataclass(frozen=True)
class Judgement:
    """The verdict on a run; `suspects` are the nodes named as cause."""

    run: str
    system: str
    campaign: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    nodes: tuple[NodeVerdict, ...]
    suspects: tuple[str, ...]


class _Key(NamedTuple):
    """What makes cases of different repeats the same case."""

    check: str
    case: str
    partition: str
    environment: str


class _Metric(NamedTuple):
    """A metric at one size, with what is needed to compare it."""

    flat: str
    size_bytes: int | None
    unit: str
    direction: str


Row = dict[str, Any]


def judge(run: Run, references: References) -> Judgement:
    """Hold a run to the references of its system; same input, same order."""
    minimum = int(run.manifest.get("minimum_samples", 1))
    cases: dict[_Key, list[Case]] = defaultdict(list)
    for case in run.cases:
        cases[_Key(case.check, case.case, case.partition, case.environment)].append(
            case
        )
    rows: dict[_Key, list[Row]] = defaultdict(list)
    for row in run.measurements.iter_rows(named=True):
        rows[_Key(*(row[name] for name in _Key._fields))].append(row)
    findings = _inventory(run.manifest["nodes"])
    for key, group in cases.items():
        numbers = _numbers(key, group, rows[key], references, minimum)
        findings += numbers
        findings += _case_findings(key, group, numbers, minimum)
    findings.sort(key=_order)
    nodes = tuple(_node(node, findings) for node in run.manifest["nodes"])
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
    )


def _overall(findings: Iterable[Finding]) -> Verdict:
    verdicts = {finding.verdict for finding in findings}
    judged = {
        finding.verdict for finding in findings if finding.kind != "inventory"
    } - {"skipped"}
    if "fail" in verdicts:
        return "fail"
    return "undecided" if "undecided" in verdicts or not judged else "pass"


def _inventory(nodes: Sequence[Row]) -> list[Finding]:
    absent = [node for node in nodes if node["state"] != "present"]
    plain = _plain(_Key("", "", "", ""), "inventory")
    if absent:
        return [
            replace(
                plain,
                place=node["name"],
                verdict="fail",
                reason=f"delivered but absent: {node['reason']}",
            )
            for node in absent
        ]
    reason = f"all {len(nodes)} delivered nodes are present"
    return [replace(plain, n=len(nodes), verdict="pass", reason=reason)]


def _case_findings(
    key: _Key, cases: list[Case], numbers: list[Finding], minimum: int
) -> list[Finding]:
    """Judge what is no number: a case that failed, was skipped, or only ran."""
    plain = _plain(key, "case")
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


def _numbers(
    key: _Key,
    cases: list[Case],
    rows: list[Row],
    references: References,
    minimum: int,
) -> list[Finding]:
    """Judge the numbers of one case: each place, then each node of its pairs."""
    finished = [
        case
        for case in cases
        if case.result == "pass" or (case.phase == "performance" and rows)
    ]
    if not finished:
        return []
    declared = sorted({name for case in finished for name in case.declared})
    findings = []
    seen = set()
    for metric, samples in _by_metric(rows).items():
        limit = references.limit(
            key.check,
            key.partition,
            key.environment,
            finished[0].parameters,
            len(finished[0].nodes),
            metric.flat,
        )
        if limit is None and metric.flat not in declared:
            continue
        seen.add(metric.flat)
        plain = replace(
            _plain(key, "limit"),
            metric=metric.flat,
            size_bytes=metric.size_bytes,
            unit=metric.unit,
            direction=metric.direction,
        )
        if limit is None:
            reason = "no reference for this metric"
            values = [row["value"] for row in samples]
            findings.append(
                replace(plain, n=len(values), value=median(values), reason=reason)
            )
            continue
        places: dict[str, list[float]] = defaultdict(list)
        for row in samples:
            places[_place(row)].append(row["value"])
        findings += [
            _hold(replace(plain, place=place), values, limit, minimum)
            for place, values in places.items()
        ]
        findings += _pair_nodes(plain, samples, limit, minimum)
    findings += [
        replace(
            _plain(key, "limit"),
            metric=name,
            verdict="undecided",
            reason="the check declares this metric and did not report it",
        )
        for name in declared
        if name not in seen
    ]
    return findings


def _pair_nodes(
    plain: Finding, rows: list[Row], limit: Limit, minimum: int
) -> list[Finding]:
    """Judge each node by the best of its pairs, once per repeat.

    A bad link spoils every pair of its node, while a sound neighbour keeps at
    least one good pair.
    """
    best: dict[str, dict[str, float]] = defaultdict(dict)
    partners: dict[str, set[str]] = defaultdict(set)
    better = max if plain.direction == "higher" else min
    for row in rows:
        source, destination = row["source"], row["destination"]
        if source is None or destination is None:
            continue
        for node, partner in ((source, destination), (destination, source)):
            partners[node].add(partner)
            values = best[node]
            session = row["session"]
            values[session] = better(values.get(session, row["value"]), row["value"])
    findings = [
        _hold(
            replace(plain, kind="node", place=node),
            list(values.values()),
            limit,
            minimum,
        )
        for node, values in best.items()
    ]
    all_fail = all(finding.verdict == "fail" for finding in findings)
    return [
        replace(finding, reason=finding.reason + _doubt(all_fail, partners, finding))
        if finding.verdict == "fail"
        else finding
        for finding in findings
    ]


def _doubt(all_fail: bool, partners: dict[str, set[str]], finding: Finding) -> str:
    reason = "; best of its pairs"
    if all_fail:
        reason += "; every node fails: look first at what they share"
    elif len(partners[finding.place]) < 2:
        (partner,) = partners[finding.place]
        reason += f"; its only partner was {partner}: the fault may be there"
    return reason


def _hold(finding: Finding, values: list[float], limit: Limit, minimum: int) -> Finding:
    """Hold the samples of one criterion to its limit."""
    n = len(values)
    finding = replace(finding, n=n, value=median(values))
    met = sum(_meets(value, limit) for value in values)
    verdict: Verdict = "pass" if met == n else "fail" if met == 0 else "undecided"
    reason = f"{met} of {n} within the limit"
    if limit.unit and limit.unit != finding.unit:
        verdict = "undecided"
        reason = f"the reference is in {limit.unit}, the metric in {finding.unit}"
    elif n < minimum:
        verdict = "undecided"
        reason += f"; at least {minimum} samples are needed"
    return replace(
        finding,
        limit=_bound(limit, finding),
        reference_kind=limit.kind,
        reference_source=limit.source,
        verdict=verdict,
        reason=reason,
    )


def _meets(value: float, limit: Limit) -> bool:
    return (
        math.isfinite(value)
        and (limit.lower is None or value >= limit.lower)
        and (limit.upper is None or value <= limit.upper)
    )


def _bound(limit: Limit, finding: Finding) -> float | None:
    """Give the bound to show: the one broken, else the one of the good direction."""
    lower, upper, value = limit.lower, limit.upper, finding.value
    if lower is None or upper is None:
        return upper if lower is None else lower
    if value is not None and value > upper:
        return upper
    if value is not None and value < lower:
        return lower
    return lower if finding.direction == "higher" else upper


def _by_metric(rows: list[Row]) -> dict[_Metric, list[Row]]:
    """Group samples by metric and size, keeping the one judged statistic."""
    groups: dict[_Metric, list[Row]] = defaultdict(list)
    for row in rows:
        flat = flat_name(row["metric"], row["size_bytes"])
        metric = _Metric(flat, row["size_bytes"], row["unit"], row["direction"])
        groups[metric].append(row)
    judged = {}
    for metric, samples in groups.items():
        present = {row["statistic"] for row in samples}
        ranked = [name for name in STATISTICS if name in present]
        statistic = ranked[0] if ranked else min(present)
        judged[metric] = [row for row in samples if row["statistic"] == statistic]
    return judged


def _node(node: Row, findings: list[Finding]) -> NodeVerdict:
    """Sum up what the findings say about one delivered node."""
    name = node["name"]
    if node["state"] != "present":
        return NodeVerdict(name, node["state"], "fail", node["reason"], {})
    own = [
        finding
        for finding in findings
        if finding.place == name and finding.kind in ("node", "limit")
    ]
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
            return NodeVerdict(name, "present", verdict, reason, values)
    reason = "no number was taken of this node alone"
    return NodeVerdict(name, "present", "undecided", reason, values)


def _place(row: Row) -> str:
    if row["source"] is not None and row["destination"] is not None:
        return f"{row['source']} - {row['destination']}"
    return row["node"] or ""


def _plain(key: _Key, kind: Kind) -> Finding:
    return Finding(
        kind=kind,
        check=key.check,
        case=key.case,
        environment=key.environment,
        metric="",
        size_bytes=None,
        place="",
        n=0,
        value=None,
        unit="",
        limit=None,
        direction="",
        reference_kind="",
        reference_source="",
        verdict="undecided",
        reason="",
    )


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
