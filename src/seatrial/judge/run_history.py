"""Effects of the ledger on a judgement: gaps fail, repaired nodes begin anew."""

import polars as pl

from seatrial.judge.findings import Finding
from seatrial.judge.sampling import TIME
from seatrial.model.places import PLACE
from seatrial.model.units import counted
from seatrial.runs.ledger_view import LedgerView

_NODES = [name for name in PLACE if name not in ("hca", "socket")]


def ledger_findings(ledger: LedgerView | None) -> list[Finding]:
    """Return a failing finding for each gap of the ledger."""
    problems = ledger.problems if ledger else ()
    return [Finding("ledger").judged("fail", problem) for problem in problems]


def since_repairs(
    rows: pl.LazyFrame, ledger: LedgerView | None
) -> tuple[pl.LazyFrame, tuple[str, ...]]:
    """Leave out the numbers of repaired nodes from before their repair; and say so.

    Numbers of the allocation as a whole stay: they are of no node.
    """
    latest = {repair.node: repair for repair in (ledger.repairs if ledger else ())}
    notes = []
    for node, repair in latest.items():
        of_node = pl.any_horizontal(
            pl.col(name).cast(pl.String).eq_missing(node) for name in _NODES
        )
        before = pl.col(TIME).fill_null(0.0) < repair.time
        count = rows.select((of_node & before).sum()).collect().item()
        notes.append(
            f"node {node} was repaired ({repair.reason}): "
            f"{counted(count, 'number')} of it from before that "
            f"{'does' if count == 1 else 'do'} not count"
        )
        rows = rows.filter(~(of_node & before))
    return rows, tuple(notes)
