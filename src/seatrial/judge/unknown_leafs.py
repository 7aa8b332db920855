"""Nodes that fail in sweeps of drawn pairs while no leafs are known."""

from collections.abc import Sequence

from seatrial.judge.findings import Finding
from seatrial.judge.network_parts import Leafs
from seatrial.names import node_set
from seatrial.runs.closed_run import Run


def doubtful_nodes(
    runs: Sequence[Run], leafs: Leafs, findings: Sequence[Finding]
) -> tuple[str, ...]:
    """Return a note for each check whose drawn pairs fail nodes without a known leaf.

    A bad up-link of a leaf slows pairs of all its nodes. Without leafs, a sound node
    that drew many of these is not told from a bad one.
    """
    notes = []
    cases = [case for run in runs for case in run.cases if case.draws_pairs]
    for check in dict.fromkeys(case.check for case in cases):
        nodes = {
            one.node
            for one in findings
            if (one.kind, one.check, one.verdict) == ("node", check, "fail")
        }
        if nodes := nodes - {*leafs}:
            notes.append(
                f"{check}: {node_set(nodes)} may be sound. Only some pairs were "
                "measured, and no leaf of these nodes is known: a bad up-link of a "
                "leaf is not told from a bad node. Run `seatrial fabric discover "
                "--keep`, or declare leafs in node_classes, and measure again"
            )
    return tuple(notes)
