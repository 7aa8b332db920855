"""The counts of each port over all sessions: errors, bits, bound of the error rate."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from seatrial.fabric.counters import rate_below
from seatrial.fabric.quantities import ERRORS, OF_BITS, QUANTITIES
from seatrial.fabric.records import End
from seatrial.model.cases import Case
from seatrial.names import natural_key
from seatrial.runs.closed_run import Run
from seatrial.runs.counters_table import CHECK, CONFIDENCE, is_exact, partition_of

BIT_ERRORS = "bit_errors"
_ALL = (BIT_ERRORS, *QUANTITIES)
_OF_ROW = (
    *("session", "node", "port", "bits_received", "seconds"),
    *("cleared", "wrapped", "full", "missing"),
)


@dataclass
class PortTotal:
    """The counts of a port by quantity and session; bits and seconds by session.

    `missing` is why it was not read in some sessions, `doubts` why more may have
    happened than it counted, by quantity; of all quantities: ''. `wrapped` is where
    its bits are the least.
    """

    node: str
    port: str
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    passed: dict[str, tuple[int | None, float]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    doubts: dict[str, str] = field(default_factory=dict)
    wrapped: str = ""

    @property
    def place(self) -> str:
        """The port as a place of findings: 'cn02 (mlx5_0:1)'."""
        return f"{self.node} ({self.port})" if self.port else self.node

    def total(self, quantity: str) -> int | None:
        """Return the count of all sessions; None if it does not count the quantity."""
        counts = self.counts.get(quantity)
        return None if counts is None else sum(counts.values())

    def exposed(
        self, quantity: str, *, of_bits: bool = True
    ) -> tuple[dict[str, int], float]:
        """Return counts by session, and the bits or hours in which they happened.

        A session whose bits are not known is left out, with its count.
        """
        counts, passed = {}, 0.0
        for session, count in self.counts.get(quantity, {}).items():
            bits, seconds = self.passed[session]
            if not of_bits or bits is not None:
                counts[session] = count
                passed += (bits or 0) if of_bits else seconds / 3600
        return counts, passed

    def doubt(self, quantity: str) -> str:
        """Return why a count may be too small; '' if it is exact."""
        missing = self.missing[0] if self.missing else ""
        return self.doubts.get("") or self.doubts.get(quantity, "") or missing

    @property
    def errors(self) -> dict[str, int]:
        """The errors that it counted, by quantity, those of 0 left out."""
        totals = {name: self.total(name) for name in ERRORS}
        return {name: count for name, count in totals.items() if count}

    @property
    def bit_error_rate_below(self) -> float | None:
        """The upper bound of the bit error rate at 95 %; None if nothing bounds it."""
        counts, bits = self.exposed(BIT_ERRORS)
        if not bits or self.doubt(BIT_ERRORS):
            return None
        return rate_below(sum(counts.values()), bits, CONFIDENCE)

    @property
    def bits(self) -> int:
        """The bits that it received while it counted bit errors."""
        return int(self.exposed(BIT_ERRORS)[1])

    def add(
        self, row: Mapping[str, Any], session: str, quantities: Sequence[str]
    ) -> None:
        """Add some quantities of a row of counters_table.SCHEMA."""
        where = f"in session {session}: "
        if row["missing"]:
            self.missing.append(where + row["missing"])
            return
        for name in quantities:
            if row[name] is not None:
                self.counts.setdefault(name, {})[session] = row[name]
                if row["full"]:
                    self._note_full(row, name, where)
        if row["cleared"]:
            self.doubts[""] = f"{where}somebody else cleared {row['cleared']}"
        if row["wrapped"]:
            self.wrapped = f"{where}{row['wrapped']} wrapped"
        self.passed[session] = row["bits_received"], row["seconds"]

    def _note_full(self, row: Mapping[str, Any], name: str, where: str) -> None:
        of_bits = next((one for one in OF_BITS if row[one] is not None), "")
        counter = of_bits if name == BIT_ERRORS else name
        if not row["cleared"] and not is_exact(row, [counter]):
            self.doubts[name] = f"{where}the counter is full"


def port_totals(
    tables: Iterable[pl.DataFrame], quantities: Sequence[str] = _ALL
) -> list[PortTotal]:
    """Return some quantities of all ports of some tables, in natural order.

    A node that could not be read is a doubt of its ports that others read; without
    any, it is a port without a name.
    """
    totals: dict[End, PortTotal] = {}
    silent: dict[str, list[str]] = defaultdict(list)
    for number, table in enumerate(tables):
        of_run = f" of run {number + 1}" if number else ""
        columns = dict.fromkeys((*_OF_ROW, *OF_BITS, *quantities))
        for row in table.select(*columns).iter_rows(named=True):
            session = f"{row['session']}{of_run}"
            if row["port"]:
                end = End(row["node"], row["port"])
                total = totals.setdefault(end, PortTotal(end.device, end.port))
                total.add(row, session, quantities)
            else:
                reason = f"in session {session}: {row['missing']}"
                silent[row["node"]].append(reason)
    for node, reasons in silent.items():
        own = [total for end, total in totals.items() if node in ("", end.device)]
        for total in own or [totals.setdefault(End(node, ""), PortTotal(node, ""))]:
            total.missing += reasons
    ends = sorted(totals, key=lambda end: [*map(natural_key, (end.device, end.port))])
    return [totals[end] for end in ends]


def ports_of_run(run: Run) -> dict[End, PortTotal]:
    """Return the counts of each port of a run; empty if it has none.

    Of a node, the port is `mlx5_0:1`; of a switch, its number.
    """
    if run.counters is None:
        return {}
    return {End(one.node, one.port): one for one in port_totals([run.counters])}


def port_cases(run: Run) -> list[Case]:
    """Return a case for the measurements of each node whose ports were read."""
    if run.counters is None:
        return []
    read = run.counters.filter(pl.col("missing") == "")
    rows = read.select("node", "node_class").unique().sort("node")
    return [
        Case(
            session="",
            repeat=1,
            check=CHECK,
            case=CHECK,
            partition=partition_of(str(run.manifest["system"]), node_class),
            environment="",
            parameters={},
            result="pass",
            nodes=(node,),
        )
        for node, node_class in rows.iter_rows()
    ]
