"""The numbers of one case held to their limits: place by place, node by node."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from statistics import median
from typing import Any, NamedTuple

import polars as pl

from seatrial.findings import CaseKey, Finding, Row, plain_finding
from seatrial.metrics import flat_name, judged_statistic
from seatrial.old_limits import Limit, References
from seatrial.places import PLACE, both_ways, several_rails, turned, with_place
from seatrial.records import Case, parameters_text

MAX_PASSING = 64
"""Passing places of one metric with a finding each; more of them share one."""

MAX_FAULTS = 1000
"""Failing places of one metric with a finding each, and undecided ones; the less bad
ones of more share one."""

COLUMNS = (
    *("session", "parameters", "node", "source", "destination", "hca"),
    *("socket", "metric", "size_bytes", "statistic", "value", "unit", "direction"),
)
"""What is read of the measurements."""


class _Metric(NamedTuple):
    """A metric at one size, with what is needed to compare it."""

    flat: str
    size_bytes: int | None
    unit: str
    direction: str


def judge_numbers(
    key: CaseKey,
    cases: list[Case],
    rows: pl.DataFrame,
    references: References,
    minimum: int,
) -> list[Finding]:
    """Judge the numbers of one case: each place, then each node of its pairs."""
    finished = [
        case
        for case in cases
        if case.result == "pass" or (case.phase == "performance" and rows.height)
    ]
    if not finished:
        return []
    declared = sorted({name for case in finished for name in case.declared})
    own = {parameters_text(case.parameters) for case in finished}
    rows = rows.filter(pl.col("parameters").is_in(own))
    findings = []
    seen = set()
    for metric, samples in _by_metric(rows):
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
            values = samples["value"].to_list()
            findings.append(
                replace(plain, n=len(values), value=median(values), reason=reason)
            )
            continue
        criterion = _Criterion(plain, limit, minimum)
        findings += _places(criterion, samples)
        findings += _pair_nodes(criterion, samples)
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


def _by_metric(rows: pl.DataFrame) -> Iterator[tuple[_Metric, pl.DataFrame]]:
    """Group samples by metric and size, keeping the one judged statistic."""
    keys = ("metric", "size_bytes", "unit", "direction")
    for (name, size_bytes, unit, direction), group in rows.group_by(
        *keys, maintain_order=True
    ):
        statistic = judged_statistic(group["statistic"].unique())
        samples = turned(group.filter(pl.col("statistic") == statistic))
        flat = flat_name(str(name), size_bytes)
        yield _Metric(flat, size_bytes, str(unit), str(direction)), samples


class _Criterion(NamedTuple):
    """A limit, and the finding that says nothing yet but what is held to it."""

    plain: Finding
    limit: Limit
    minimum: int

    @property
    def comparable(self) -> bool:
        return not self.limit.unit or self.limit.unit == self.plain.unit

    @property
    def lower_is_better(self) -> bool:
        return self.plain.direction == "lower"

    def hold(self, rows: pl.DataFrame, *keys: str) -> pl.DataFrame:
        """Hold the samples of each group: n, median `value`, `met`, verdict."""
        value = pl.col("value")
        met = value.is_finite()
        if self.limit.lower is not None:
            met &= value >= self.limit.lower
        if self.limit.upper is not None:
            met &= value <= self.limit.upper
        n, held = pl.col("n"), pl.col("met")
        undecided = (n < self.minimum) | (not self.comparable)
        return (
            rows.group_by(*keys, maintain_order=True)
            .agg(n=pl.len(), value=value.median(), met=met.sum())
            .with_columns(
                verdict=pl.when(undecided)
                .then(pl.lit("undecided"))
                .when(held == n)
                .then(pl.lit("pass"))
                .when(held == 0)
                .then(pl.lit("fail"))
                .otherwise(pl.lit("undecided"))
            )
        )

    def finding(self, row: Row, **more: Any) -> Finding:
        """Turn a row of what was held into a finding; `more` are fields of it."""
        finding = replace(
            self.plain,
            n=row["n"],
            value=row["value"],
            reference_kind=self.limit.kind,
            reference_source=self.limit.source,
            verdict=row["verdict"],
            **{"reason": self.reason(row), **more},
        )
        return replace(finding, limit=_bound(self.limit, finding))

    def reason(self, row: Row) -> str:
        """Say how many samples meet the limit, or why that does not count."""
        if not self.comparable:
            units = (self.limit.unit, self.plain.unit)
            return "the reference is in {}, the metric in {}".format(*units)
        reason = f"{row['met']} of {row['n']} within the limit"
        if row["n"] < self.minimum:
            reason += f"; at least {self.minimum} samples are needed"
        return reason


def _places(criterion: _Criterion, samples: pl.DataFrame) -> list[Finding]:
    """Judge each place; of very many, those that nobody will look at share one."""
    held = criterion.hold(samples, *PLACE)
    rails = several_rails(samples)
    findings = []
    for verdict in ("fail", "undecided", "pass"):
        worst_first = held.filter(pl.col("verdict") == verdict).sort(
            "value", descending=criterion.lower_is_better, maintain_order=True
        )
        most = MAX_FAULTS
        if verdict == "pass" and worst_first.height > MAX_PASSING:
            most = 0
        findings += [
            criterion.finding(row, place=row["place"] or "")
            for row in with_place(worst_first.head(most), rails).iter_rows(named=True)
        ]
        rest = worst_first.slice(most)
        if rest.height:
            worst = with_place(rest.head(1), rails).row(0, named=True)
            findings.append(_shared(criterion, rest, worst, held))
    return findings


def _shared(
    criterion: _Criterion, rest: pl.DataFrame, worst: Row, held: pl.DataFrame
) -> Finding:
    """Make one finding of many places with the same verdict."""
    places, noun = held.height, _noun(held)
    if worst["verdict"] != "pass":
        reason = (
            f"{rest.height:,} more {noun}, less bad than those with findings of their "
            f"own; the worst: {worst['place']}, {criterion.reason(worst)}"
        )
    else:
        if rest.height == places:
            reason = f"{rest.height:,} {noun}: all within the limit"
        else:
            reason = (
                f"{rest.height:,} of {places:,} {noun} are within the limit; the "
                "others have findings of their own"
            )
        value = f"{worst['value']:.4g} {criterion.plain.unit}"
        reason += f"; the worst is {value} at {worst['place']}"
    row = {**worst, "n": rest["n"].sum(), "value": rest["value"].median()}
    return criterion.finding(row, reason=reason)


def _noun(places: pl.DataFrame) -> str:
    if places["source"].null_count() == places.height:
        return "nodes" if places["socket"].is_null().any() else "sockets"
    return "pairs, each direction counted" if both_ways(places) else "pairs"


def _pair_nodes(criterion: _Criterion, samples: pl.DataFrame) -> list[Finding]:
    """Judge each node by the best of its pairs, once per repeat.

    A bad link spoils every pair of its node, while a sound neighbour keeps at
    least one good pair. Rails count one by one, and so do the directions of numbers
    that were taken in both: a node is as good as the worst of them.
    """
    pairs = samples.filter(
        pl.col("source").is_not_null() & pl.col("destination").is_not_null()
    )
    if not pairs.height:
        return []
    directed = both_ways(pairs)
    ends = pl.concat(
        pairs.select(
            pl.col(node).alias("node"),
            pl.col(partner).alias("partner"),
            *("session", "value", "hca"),
            way=pl.lit(way if directed else ""),
        )
        for node, partner, way in (
            ("source", "destination", "sending"),
            ("destination", "source", "receiving"),
        )
    )
    value = pl.col("value")
    best = ends.group_by("node", "hca", "way", "session", maintain_order=True).agg(
        value.min() if criterion.lower_is_better else value.max()
    )
    partners = ends.group_by("node").agg(pl.col("partner").unique())
    return _worst_of_each(
        criterion,
        criterion.hold(best, "node", "hca", "way"),
        dict(partners.iter_rows()),
    )


def _worst_of_each(
    criterion: _Criterion, held: pl.DataFrame, partners: dict[str, list[str]]
) -> list[Finding]:
    """Make one finding per node: its worst rail and direction."""
    rails, ways = (held[name].n_unique() > 1 for name in ("hca", "way"))
    nodes: dict[str, list[Row]] = defaultdict(list)
    for row in held.iter_rows(named=True):
        nodes[row["node"]].append(row)
    rank = ("fail", "undecided", "pass")
    worst = {
        node: min(
            rows,
            key=lambda row: (
                rank.index(row["verdict"]),
                -row["value"] if criterion.lower_is_better else row["value"],
            ),
        )
        for node, rows in nodes.items()
    }
    all_fail = all(row["verdict"] == "fail" for row in worst.values())
    findings = []
    for node, row in worst.items():
        reason = criterion.reason(row)
        if row["verdict"] == "fail":
            telling = [each for each in nodes[node] if each["verdict"] == "fail"]
            reason += "; best of its pairs"
            if rails:
                names = dict.fromkeys(str(each["hca"]) for each in telling)
                reason += f" on {', '.join(names)}"
            if ways and len({each["way"] for each in telling}) == 1:
                reason += f" when {telling[0]['way']}"
            reason += _doubt(all_fail, partners[node])
        findings.append(criterion.finding(row, kind="node", place=node, reason=reason))
    return findings


def _doubt(all_fail: bool, partners: list[str]) -> str:
    if all_fail:
        return "; every node fails: look first at what they share"
    if len(partners) < 2:
        return f"; its only partner was {partners[0]}: the fault may be there"
    return ""


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
