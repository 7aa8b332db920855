"""The node view: verdicts, values and facts of every delivered node."""

from collections import Counter
from collections.abc import Sequence

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

_MARKS = {"fail": " ✕", "not shown": " !", "undecided": " ?"}


def node_tables(run: Run, judgement: Judgement) -> list[tuple[str, Table]]:
    """Return values and facts of the nodes, failing ones first, each with its title.

    Verdicts are marked: ✕ failed, ! not shown, ? undecided. A fact that differs from
    that of most nodes is marked ≠; without any fact there is no table of facts.
    """
    nodes = sorted(
        judgement.nodes,
        key=lambda node: (VERDICTS.index(node.verdict), natural_key(node.name)),
    )[:MAX_NODES]
    tables = [("Verdicts and values", _values_table(judgement, nodes))]
    facts = _facts(run)
    keys = [key for key in FACTS if any(key in known for known in facts.values())]
    usual = {
        key: Counter(
            known[key] for known in facts.values() if key in known
        ).most_common(1)[0][0]
        for key in keys
    }

    def words(node: str, key: str) -> str:
        value = facts.get(node, {}).get(key)
        if value is None:
            return "unknown"
        return value if value == usual[key] else f"≠ {value}"

    if keys:
        rows = [
            (short(node.name), *(words(node.name, key) for key in keys))
            for node in nodes
        ]
        heads = ("node", *(FACTS[key] for key in keys))
        tables.append(("Facts", Table(heads, tuple(rows))))
    return tables


def _values_table(judgement: Judgement, nodes: Sequence[NodeVerdict]) -> Table:
    """Return verdict, values and reason of each node."""
    units, verdicts = _judged(judgement)
    metrics = dict.fromkeys(flat for node in judgement.nodes for flat in node.values)
    heads = (
        short(metric if unit in ("", "1") else f"{metric} ({unit})")
        for metric in metrics
        for unit in [units.get(metric, "")]
    )

    def words(node: NodeVerdict, metric: str) -> str:
        verdict = verdicts.get((node.name, metric), "")
        value = text.measured(node.values.get(metric))
        return value + _MARKS.get(verdict, "")

    return Table(
        ("node", "state", "verdict", *heads, "reason"),
        tuple(
            (
                short(node.name),
                node.state,
                node.verdict,
                *(words(node, metric) for metric in metrics),
                node.reason,
            )
            for node in nodes
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
            key: text.memory(value)
            if key == "memory_mib" and isinstance(value, int | float)
            else str(value)
            for key, value in (node.get("facts") or {}).items()
            if value is not None
        }
        for node in run.manifest["nodes"]
    }
