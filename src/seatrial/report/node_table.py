"""The node view: every delivered node with its verdict, its values and its facts."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from seatrial.judge.judge import Judgement, NodeVerdict
from seatrial.names import natural_key
from seatrial.report.render import text
from seatrial.report.render.figure import Table
from seatrial.report.render.text import short
from seatrial.report.wording import VERDICTS
from seatrial.runs.closed_run import Run

MAX_NODES = 400
"""Rows of the table; the rest is counted on the page."""

FACTS = {
    "cpus": "CPUs",
    "sockets": "sockets",
    "cores_per_socket": "cores per socket",
    "threads_per_core": "threads per core",
    "memory_mib": "memory",
    "cpu_model": "CPU model",
    "os": "OS",
    "kernel": "kernel",
}

_MARKS = {"fail": " ✕", "undecided": " ?"}


@dataclass(frozen=True)
class Fact:
    """A fact of one node; `odd`: most nodes have another value."""

    text: str
    odd: bool


@dataclass(frozen=True)
class NodeValue:
    """A node's value of one metric, with the worst verdict on it."""

    text: str
    verdict: str


@dataclass(frozen=True)
class NodeRow:
    """A delivered node: its verdict, its values and facts in the table's columns."""

    node: NodeVerdict
    values: tuple[NodeValue, ...]
    facts: tuple[Fact, ...]


@dataclass(frozen=True)
class NodeTable:
    """All delivered nodes, with the columns that at least one of them fills.

    `metrics` are flat names with their units.
    """

    metrics: tuple[tuple[str, str], ...]
    facts: tuple[str, ...]
    rows: tuple[NodeRow, ...]


def node_table(run: Run, judgement: Judgement) -> NodeTable:
    """Return every delivered node, failing ones first, with values and facts."""
    facts = _facts(run)
    keys = [key for key in FACTS if any(key in known for known in facts.values())]
    usual = {
        key: Counter(
            known[key] for known in facts.values() if key in known
        ).most_common(1)[0][0]
        for key in keys
    }
    units, verdicts = _judged(judgement)
    metrics = dict.fromkeys(flat for node in judgement.nodes for flat in node.values)

    def row(node: NodeVerdict) -> NodeRow:
        known = facts.get(node.name, {})
        return NodeRow(
            node,
            tuple(
                NodeValue(
                    text.measured(node.values.get(metric)),
                    verdicts.get((node.name, metric), ""),
                )
                for metric in metrics
            ),
            tuple(
                Fact(known[key], known[key] != usual[key])
                if key in known
                else Fact("unknown", False)
                for key in keys
            ),
        )

    nodes = sorted(
        judgement.nodes,
        key=lambda node: (VERDICTS.index(node.verdict), natural_key(node.name)),
    )
    return NodeTable(
        tuple((metric, units.get(metric, "")) for metric in metrics),
        tuple(FACTS[key] for key in keys),
        tuple(row(node) for node in nodes[:MAX_NODES]),
    )


def values_table(nodes: NodeTable) -> Table:
    """Return verdict, values and reason of each node; failures are marked.

    The marks are those of the report: a cross, a question mark.
    """
    heads = (
        short(metric if unit in ("", "1") else f"{metric} ({unit})")
        for metric, unit in nodes.metrics
    )
    return Table(
        ("node", "state", "verdict", *heads, "reason"),
        tuple(
            (
                short(row.node.name),
                row.node.state,
                row.node.verdict,
                *(
                    f"{value.text}{_MARKS.get(value.verdict, '')}"
                    for value in row.values
                ),
                row.node.reason,
            )
            for row in nodes.rows
        ),
    )


def facts_table(nodes: NodeTable) -> Table:
    """Return the facts of each node; what differs from most nodes has a mark."""
    return Table(
        ("node", *nodes.facts),
        tuple(
            (
                short(row.node.name),
                *(f"≠ {fact.text}" if fact.odd else fact.text for fact in row.facts),
            )
            for row in nodes.rows
        ),
    )


def _judged(judgement: Judgement) -> tuple[dict[str, str], dict[tuple[str, str], str]]:
    """Return units by flat metric, and the worst verdicts by place and metric."""
    units: dict[str, str] = {}
    verdicts: dict[tuple[str, str], str] = {}
    for finding in judgement.findings:
        if finding.metric:
            if finding.kind != "sameness":
                units[finding.metric] = finding.unit
            key = (finding.node, finding.metric)
            known = verdicts.get(key, finding.verdict)
            verdicts[key] = min(known, finding.verdict, key=VERDICTS.index)
    return units, verdicts


def _facts(run: Run) -> dict[str, dict[str, str]]:
    """Return the known facts of each delivered node as text."""
    return {
        node["name"]: {
            key: _fact(key, value)
            for key, value in (node.get("facts") or {}).items()
            if value is not None
        }
        for node in run.manifest["nodes"]
    }


def _fact(key: str, value: Any) -> str:
    if key == "memory_mib" and isinstance(value, int | float):
        return text.memory(value)
    return str(value)
