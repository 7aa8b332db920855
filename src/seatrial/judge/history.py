"""The numbers of several closed runs of a system, metric by metric."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from seatrial.judge.sampling import Sampled, rows_of, sampled
from seatrial.model.cases import Case, CaseKey, parameters_text
from seatrial.model.metrics import flat_name
from seatrial.runs.closed_run import Run


@dataclass(frozen=True)
class History:
    """One metric of one case, on one number of nodes, in one or several runs.

    `nodes` are those of its allocations, `metric` is the flat name, `rows` have all its
    numbers in the order of the runs, of every statistic. `faults` are the reasons of
    its failed cases. `declared`: the check promises the metric.
    """

    key: CaseKey
    parameters: dict[str, Any]
    num_nodes: int
    nodes: frozenset[str]
    metric: str
    unit: str
    direction: str
    declared: bool
    faults: tuple[str, ...]
    rows: pl.DataFrame

    def sampled(self, statistic: str | None = None) -> Sampled:
        """Sort the numbers of all runs by place and allocation."""
        return sampled(self.rows, statistic)

    @property
    def case_text(self) -> str:
        """The case as listings name it."""
        return str(self.key.listed)

    def __str__(self) -> str:
        return f"{self.case_text} {self.metric}"


def histories(runs: Sequence[Run], checks: Sequence[str] = ()) -> Iterator[History]:
    """Yield every metric of every case (of some `checks`), oldest run first.

    Numbers with parameters of their own, beside those of their case, are left out: no
    criterion covers them.
    """
    cases: dict[tuple[CaseKey, int], list[Case]] = {}
    tables = []
    for run in runs:
        chosen = [case for case in run.cases if not checks or case.check in checks]
        for case in chosen:
            cases.setdefault((case.key, len(case.nodes)), []).append(case)
        names = sorted({case.check for case in chosen})
        tables.append(rows_of(run).filter(pl.col("check").is_in(names)))
    if not tables:
        return
    nodes = pl.col("nodes").cast(pl.String)
    count = pl.when(nodes == "").then(0).otherwise(nodes.str.count_matches(" ") + 1)
    table = pl.concat(tables).with_columns(num_nodes=count.cast(pl.Int64))
    parts = table.partition_by(*CaseKey._fields, "num_nodes", as_dict=True)
    for (key, num_nodes), group in cases.items():
        if (rows := parts.get((*key, num_nodes))) is not None:
            yield from _metrics(key, num_nodes, group, rows)


def _metrics(
    key: CaseKey, num_nodes: int, cases: Sequence[Case], rows: pl.DataFrame
) -> Iterator[History]:
    own = {parameters_text(case.parameters) for case in cases}
    declared = {name for case in cases for name in case.declared}
    faults = tuple(
        f"failed in {case.phase or 'some phase'}: {case.reason or 'no reason given'}"
        for case in cases
        if case.result == "fail"
    )
    rows = rows.filter(pl.col("parameters").cast(pl.String).is_in(own))
    by = ("metric", "size_bytes", "unit", "direction")
    for (name, size, unit, direction), group in rows.group_by(*by, maintain_order=True):
        flat = flat_name(str(name), size)
        yield History(
            key=key,
            parameters=cases[-1].parameters,
            num_nodes=num_nodes,
            nodes=frozenset(node for case in cases for node in case.nodes),
            metric=flat,
            unit=str(unit),
            direction=str(direction),
            declared=flat in declared,
            faults=faults,
            rows=group,
        )
