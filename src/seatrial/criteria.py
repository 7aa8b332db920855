"""The numbers of one case held to their limits: place by place, node by node."""

import math
from collections import defaultdict
from dataclasses import replace
from statistics import median
from typing import NamedTuple

from seatrial.findings import CaseKey, Finding, Row, Verdict, plain_finding
from seatrial.metrics import flat_name
from seatrial.records import Case, parameters_text
from seatrial.references import Limit, References

STATISTICS = ("mean", "p50", "p99", "max", "min")
"""Of several statistics of one metric, the first of these is held to the limit."""


class _Metric(NamedTuple):
    """A metric at one size, with what is needed to compare it."""

    flat: str
    size_bytes: int | None
    unit: str
    direction: str


def judge_numbers(
    key: CaseKey,
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
    own = {parameters_text(case.parameters) for case in finished}
    rows = [row for row in rows if row["parameters"] in own]
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
            plain_finding(key, "limit"),
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
            plain_finding(key, "limit"),
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


def _place(row: Row) -> str:
    if row["source"] is not None and row["destination"] is not None:
        return f"{row['source']} - {row['destination']}"
    return row["node"] or ""
