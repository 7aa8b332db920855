"""The verdict on each delivered node, from all that was found at it."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import polars as pl

from seatrial.judge.findings import Finding, NodeVerdict, Row
from seatrial.judge.verdicts import FAIL, PASS, UNDECIDED, VERDICTS, Ruling
from seatrial.runs.raw_output import NO_MEASUREMENT

_SILENT = "no number was taken of this node alone"


@dataclass
class _Seen:
    """The worst verdict on a node so far, and its worst value of each metric."""

    verdict: int = PASS
    values: dict[str, float] = field(default_factory=dict)


def node_verdicts(
    nodes: Sequence[Row],
    found: Iterable[Ruling],
    findings: Iterable[Finding],
    *,
    replay: bool,
) -> tuple[NodeVerdict, ...]:
    """Sum up what became of each delivered node.

    A node that was absent fails; one of which nothing was measured is undecided.
    """
    seen: dict[str, _Seen] = defaultdict(_Seen)
    for ruling in found:
        _look(ruling, seen)
    reasons: dict[str, list[str]] = defaultdict(list)
    for finding in findings:
        if finding.verdict in ("fail", "undecided") and finding.node in seen:
            reasons[finding.node].append(
                f"{finding.check} {finding.metric}: {finding.reason}"
            )
    return tuple(_verdict(node, seen, reasons, replay=replay) for node in nodes)


def _look(ruling: Ruling, seen: dict[str, _Seen]) -> None:
    """Add what a ruling says of nodes; values of sameness are ratios, and not kept."""
    if ruling.names["node"].null_count() == ruling.names.height:
        return
    names = ruling.names["node"].cast(pl.String).to_list()
    metric, lower = ruling.plain.metric, ruling.plain.direction == "lower"
    ratios = ruling.plain.kind == "sameness"
    verdicts, values = ruling.verdict.tolist(), ruling.value.tolist()
    for name, verdict, value in zip(names, verdicts, values, strict=True):
        if name is None:
            continue
        node = seen[name]
        node.verdict = min(node.verdict, verdict)
        if ratios or value != value:
            continue
        known = node.values.get(metric, value)
        node.values[metric] = max(known, value) if lower else min(known, value)


def _verdict(
    node: Row, seen: dict[str, _Seen], reasons: dict[str, list[str]], *, replay: bool
) -> NodeVerdict:
    name = node["name"]
    if node["state"] != "present":
        return NodeVerdict(name, node["state"], "fail", node["reason"], {})
    if name not in seen:
        return NodeVerdict(name, "present", "undecided", _SILENT, {})
    code, values = seen[name].verdict, seen[name].values
    if replay and code == PASS:
        return NodeVerdict(name, "present", "undecided", NO_MEASUREMENT, values)
    reason = "; ".join(reasons[name]) if code in (FAIL, UNDECIDED) else ""
    return NodeVerdict(name, "present", VERDICTS[code], reason, values)
