"""Findings of a ruling: one for each place; one summary of many passing places."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

import numpy as np
import polars as pl

from seatrial.judge.findings import Finding, NodeVerdict
from seatrial.judge.joint_runs import leafs_of
from seatrial.judge.network_parts import WAY, Leafs
from seatrial.judge.stability_findings import Phases
from seatrial.judge.verdicts import FAIL, PASS, VERDICTS, Ruling
from seatrial.model.places import both_ways, several_rails, with_place
from seatrial.runs.raw_output import NO_MEASUREMENT

MAX_PASSING = 64
"""Passing places of one metric with a finding each; more of them share one."""

MAX_FAULTS = 1000
"""Places of each other verdict with a finding each; further ones share one."""


def findings_of(ruling: Ruling, pairs: Ruling | None) -> list[Finding]:
    """Return the findings of a ruling.

    `pairs` is the ruling on the pairs of its nodes, or on the ways of its leafs.
    """
    badness = np.nan_to_num(ruling.value)
    badness *= 1 if ruling.subject.direction == "lower" else -1
    extra: dict[int, str] = {}
    if ruling.of_nodes:
        shown, extra = _worst_of_each(ruling, badness, pairs)
    else:
        shown = np.flatnonzero(~ruling.hidden)
    several = several_rails(ruling.names)
    findings = []
    for code in range(len(VERDICTS)):
        chosen = shown[ruling.verdict[shown] == code]
        if not chosen.size:
            continue
        worst_first = chosen[np.argsort(-badness[chosen], kind="stable")]
        most = 0 if code == PASS and len(chosen) > MAX_PASSING else MAX_FAULTS
        # Places without a finding of their own get no name: a sweep has a million.
        names = _names(ruling, worst_first[: most + 1], several)
        findings += [
            ruling.finding(place, name, extra.get(place, ""))
            for place, name in zip(worst_first[:most].tolist(), names, strict=False)
        ]
        if len(chosen) > most:
            rest = worst_first[most:]
            findings.append(_shared(ruling, rest, names[most], shown.size))
    return findings


def _names(ruling: Ruling, places: np.ndarray, several: bool) -> list[str]:
    """Return the names of places; `several`: the ruling has several rails."""
    rows = ruling.names[places]
    if ruling.of_nodes:
        return list(rows["node"].cast(pl.String))
    return list(with_place(rows, several)["place"].fill_null(""))


def _shared(ruling: Ruling, places: np.ndarray, name: str, shown: int) -> Finding:
    """Summarise places of one verdict in a finding; `name` is the first, the worst."""
    count, worst = places.size, int(places[0])
    if ruling.verdict[worst] == PASS:
        which = f"all {count:,}" if count == shown else f"{count:,} of {shown:,}"
        begin = f"{which} {_noun(ruling)} pass; the worst is {name}:"
    else:
        begin = (
            f"{count:,} more {_noun(ruling)}, less bad than those with findings of "
            f"their own; the worst: {name},"
        )
    return replace(
        ruling.finding(worst, ""),
        reason=f"{begin} {ruling.reason(worst)}",
        n=int(ruling.n[places].sum()),
        value=float(np.median(ruling.value[places])),
        more=None,
    )


def _noun(ruling: Ruling) -> str:
    names = ruling.names
    if ruling.part == "leaf":
        return "leafs"
    if ruling.part == "way":
        return "ways between leafs"
    if names["source"].null_count() == names.height:
        of_sockets = names["socket"].null_count() == 0
        return "sockets" if of_sockets else "nodes"
    return "pairs, each direction counted" if both_ways(names) else "pairs"


def _worst_of_each(
    ruling: Ruling, badness: np.ndarray, pairs: Ruling | None
) -> tuple[np.ndarray, dict[int, str]]:
    """Choose the worst rail and direction of each node; add words on failing nodes."""
    nodes: dict[str, list[int]] = defaultdict(list)
    for place, name in enumerate(ruling.names["node"].to_list()):
        nodes[name].append(place)
    worst = {
        name: min(places, key=lambda place: (ruling.verdict[place], -badness[place]))
        for name, places in nodes.items()
    }
    failing = [name for name in nodes if ruling.verdict[worst[name]] == FAIL]
    all_fail = len(failing) == len(nodes)
    extra = {}
    for name in failing[:MAX_FAULTS]:
        if pairs is not None:
            shared = f"; every {ruling.part} fails: look first at what they share"
            words = _which(ruling, nodes[name]) + _own_pairs(pairs, name)
            extra[worst[name]] = words + shared * all_fail
    shown = [place for place in worst.values() if not ruling.hidden[place]]
    return np.array(sorted(shown), dtype=np.int64), extra


def _which(ruling: Ruling, places: list[int]) -> str:
    """Describe the rails and the direction that fail, if a node has several."""
    failing = ruling.names[[p for p in places if ruling.verdict[p] == FAIL]]
    words = ""
    if ruling.names["hca"].n_unique() > 1:
        words += f" on {', '.join(failing['hca'].cast(pl.String).unique().sort())}"
    if ruling.names[WAY].n_unique() > 1 and failing[WAY].n_unique() == 1:
        words += f" when {failing[WAY][0]}"
    return f"; it is bad{words}" if words else ""


def _own_pairs(pairs: Ruling, name: str) -> str:
    """Describe how many pairs of a failing node, or ways of a leaf, do not pass."""
    at_an_end = pl.any_horizontal(pl.col("source", "destination") == name)
    own = pairs.names.select(at_an_end).to_series().to_numpy()
    noun = "way to other leafs" if pairs.part == "way" else "pair"
    if not own.any():
        return ""
    return _pairs(int((pairs.verdict[own] != PASS).sum()), int(own.sum()), noun)


def _pairs(bad: int, count: int, noun: str = "pair") -> str:
    """Describe how many pairs of a failing node do not pass by themselves."""
    nouns = noun.replace("way ", "ways ") if noun != "pair" else "pairs"
    if bad:
        return f"; {bad} of its {count} {nouns} do not pass"
    passing = (
        f"its only {noun} passes"
        if count == 1
        else f"each of its {count} {nouns} passes"
    )
    return f"; {passing} when judged alone, but what they have in common does not"


@dataclass
class _Node:
    """The worst verdict on a node so far, and its worst value of each metric."""

    verdict: int = PASS
    values: dict[str, float] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)


def node_verdicts(
    nodes: Sequence[Mapping[str, Any]],
    ruled: Iterable[Ruling],
    findings: Iterable[Finding],
    phases: Phases,
    *,
    replay: bool,
) -> tuple[NodeVerdict, ...]:
    """Return the verdict on each delivered node.

    An absent node fails, unless it is allowed or came back. A node without measurements
    is undecided, unless one of the stability `phases` watched it. A node that is
    attributed to its leaf has the reason of that.
    """
    leafs = leafs_of(nodes)
    watched = {name: _Node() for name in phases.watched}
    measured: dict[str, _Node] = defaultdict(_Node, watched)
    for ruling in ruled:
        _add(ruling, measured)
    for finding in findings:
        if finding.verdict not in VERDICTS[:PASS]:
            continue
        of_settings = finding.kind == "declared" and finding.place != ""
        if of_settings and (finding.verdict == "fail" or finding.node in measured):
            node = measured[finding.node]
            node.verdict = min(node.verdict, VERDICTS.index(finding.verdict))
        if finding.node in measured:
            reason = f"{finding.check} {finding.metric}: {finding.reason}"
            measured[finding.node].reasons.append(reason)
    away = {f.place for f in findings if (f.kind, f.verdict) == ("inventory", "fail")}
    return tuple(_verdict(node, leafs, measured, away, replay=replay) for node in nodes)


def _add(ruling: Ruling, measured: dict[str, _Node]) -> None:
    """Add a ruling to its nodes; values of sameness are ratios, and not kept."""
    if ruling.names["node"].null_count() == ruling.names.height:
        return
    names = ruling.names["node"].cast(pl.String).to_list()
    metric, ratios = ruling.subject.metric, ruling.subject.kind == "sameness"
    worst = max if ruling.subject.direction == "lower" else min
    rows = zip(names, ruling.verdict.tolist(), ruling.value.tolist(), strict=True)
    for name, verdict, value in rows:
        if name is None:
            continue
        node = measured[name]
        node.verdict = min(node.verdict, verdict)
        if not ratios and isfinite(value):
            node.values[metric] = worst(node.values.get(metric, value), value)


def _verdict(
    delivered: Mapping[str, Any],
    leafs: Leafs,
    measured: Mapping[str, _Node],
    away: Collection[str],
    *,
    replay: bool,
) -> NodeVerdict:
    name, state = delivered["name"], delivered["state"]
    gone = "" if state == "present" else delivered["reason"]
    if name in away:
        return NodeVerdict(name, state, "fail", gone, {})
    if name not in measured:
        reason = gone or "no number was taken of this node alone"
        return NodeVerdict(name, state, "undecided", reason, {})
    node = measured[name]
    if replay and node.verdict == PASS:
        return NodeVerdict(name, state, "undecided", NO_MEASUREMENT, node.values)
    leaf = leafs.get(name, "")
    reasons = node.reasons
    if not reasons and leaf in measured:
        reasons = [f"{leaf}: {reason}" for reason in measured[leaf].reasons]
    reason = "; ".join(reasons) if node.verdict != PASS else gone
    return NodeVerdict(name, state, VERDICTS[node.verdict], reason, node.values)
