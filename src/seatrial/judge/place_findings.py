"""Findings of a ruling: one for each place; one summary of many passing places."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from seatrial.judge.findings import Finding, NodeVerdict, Row
from seatrial.judge.place_groups import WAY
from seatrial.judge.verdicts import FAIL, PASS, UNDECIDED, VERDICTS, Ruling
from seatrial.model.places import both_ways, several_rails, with_place
from seatrial.runs.raw_output import NO_MEASUREMENT

MAX_PASSING = 64
"""Passing places of one metric with a finding each; more of them share one."""

MAX_FAULTS = 1000
"""Failing places of one metric with a finding each, and undecided ones; the less bad
ones of more share one."""


def findings_of(ruling: Ruling, pairs: Ruling | None) -> list[Finding]:
    """Return the findings of a ruling; `pairs` is the ruling on its nodes' pairs."""
    seen = np.flatnonzero(~ruling.hidden)
    rails = several_rails(ruling.names)
    names = with_place(ruling.names, rails)["place"].fill_null("").to_list()
    extra: dict[int, str] = {}
    if ruling.of_nodes:
        seen, extra = _worst_of_each(ruling, pairs)
        names = ruling.names["node"].to_list()
    findings = []
    badness = _badness(ruling)
    for code in (FAIL, UNDECIDED, PASS):
        chosen = seen[ruling.verdict[seen] == code]
        worst_first = chosen[np.argsort(-badness[chosen], kind="stable")]
        most = MAX_FAULTS
        if code == PASS and len(worst_first) > MAX_PASSING:
            most = 0
        for place in worst_first[:most].tolist():
            words = extra.get(place, "")
            findings.append(ruling.finding(place, names[place], words))
        rest = worst_first[most:]
        if rest.size:
            findings.append(_shared(ruling, rest, names, seen.size))
    return findings


def _badness(ruling: Ruling) -> np.ndarray:
    """Return values whose largest is the worst."""
    values = np.nan_to_num(ruling.value)
    return values if ruling.subject.direction == "lower" else -values


def _shared(ruling: Ruling, rest: np.ndarray, names: list[str], places: int) -> Finding:
    """Summarise places of the same verdict, the worst first, in one finding."""
    noun, worst = _noun(ruling), int(rest[0])
    verdict = VERDICTS[ruling.verdict[worst]]
    if verdict != "pass":
        reason = (
            f"{rest.size:,} more {noun}, less bad than those with findings of their "
            f"own; the worst: {names[worst]}, {ruling.reason(worst)}"
        )
    else:
        which = f"all {places:,}" if rest.size == places else f"{rest.size:,}"
        of = "" if rest.size == places else f" of {places:,}"
        reason = (
            f"{which}{of} {noun} pass; the worst is {names[worst]}: "
            f"{ruling.reason(worst)}"
        )
    return replace(
        ruling.finding(worst, ""),
        reason=reason,
        n=int(ruling.n[rest].sum()),
        value=float(np.median(ruling.value[rest])),
        more=None,
    )


def _noun(ruling: Ruling) -> str:
    names = ruling.names
    if names["source"].null_count() == names.height:
        of_sockets = names["socket"].null_count() == 0
        return "sockets" if of_sockets else "nodes"
    return "pairs, each direction counted" if both_ways(names) else "pairs"


def _worst_of_each(
    ruling: Ruling, pairs: Ruling | None
) -> tuple[np.ndarray, dict[int, str]]:
    """Choose for each node its worst rail and direction; more words on some places."""
    names = ruling.names["node"].to_list()
    nodes: dict[str, list[int]] = defaultdict(list)
    for place, name in enumerate(names):
        nodes[name].append(place)
    badness = _badness(ruling)
    worst = {
        name: min(places, key=lambda each: (ruling.verdict[each], -badness[each]))
        for name, places in nodes.items()
    }
    failing = [name for name in nodes if ruling.verdict[worst[name]] == FAIL]
    told = [] if pairs is None else failing[:MAX_FAULTS]
    partners = _partners(pairs, told) if pairs is not None else {}
    all_fail = len(failing) == len(nodes)
    extra = {
        worst[name]: _which(ruling, nodes[name])
        + partners.get(name, ("", ""))[1]
        + (
            "; every node fails: look first at what they share"
            if all_fail
            else partners.get(name, ("", ""))[0]
        )
        for name in told
    }
    return np.array(sorted(worst.values())), extra


def _which(ruling: Ruling, places: list[int]) -> str:
    """Describe the rails and the direction that fail, if a node has several."""
    failing = ruling.names[[p for p in places if ruling.verdict[p] == FAIL]]
    words = ""
    if ruling.names["hca"].n_unique() > 1:
        words += f" on {', '.join(failing['hca'].cast(pl.String).unique().sort())}"
    if ruling.names[WAY].n_unique() > 1 and failing[WAY].n_unique() == 1:
        words += f" when {failing[WAY][0]}"
    return f"; it is bad{words}" if words else ""


def _partners(pairs: Ruling, nodes: list[str]) -> Mapping[str, tuple[str, str]]:
    """Describe the pairs of nodes that fail, and name who else may be at fault."""
    ends = pairs.names.select(
        pl.col("source", "destination").cast(pl.String),
        passes=pl.Series(pairs.verdict == PASS),
    )
    found = {}
    for node in nodes:
        own = ends.filter((pl.col("source") == node) | (pl.col("destination") == node))
        others = set(own["source"]) | set(own["destination"])
        others.discard(node)
        doubt = ""
        if len(others) == 1:
            doubt = f"; its only partner was {others.pop()}: the fault may be there"
        found[node] = (doubt, _pairs(int((~own["passes"]).sum()), own.height))
    return found


def _pairs(bad: int, count: int) -> str:
    """Describe how many pairs of a failing node do not pass by themselves."""
    if bad:
        return f"; {bad} of its {count} pairs do not pass"
    passing = (
        "its only pair passes" if count == 1 else f"each of its {count} pairs passes"
    )
    return (
        f"; {passing} when judged alone, but a node is judged by the better quartile "
        "of its pairs in each allocation"
    )


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
    """Return the verdict on each delivered node.

    An absent node fails; a node without measurements is undecided.
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
    metric, lower = ruling.subject.metric, ruling.subject.direction == "lower"
    ratios = ruling.subject.kind == "sameness"
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
