"""Rates of adaptive sweeps beside the declared risks: a table, JSON or CSV."""

from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from seatrial.calibration.simulate.adaptive_rates import TOLERANCE, SweepRow, criteria
from seatrial.calibration.simulate.criteria_table import holds
from seatrial.calibration.simulate.rates import CONFIDENCE, Rate

_HEADINGS = {
    "false_fail": "wrong fail",
    "sound_blamed": "sound blamed",
    "nodes_found": "nodes found",
    "links_found": "up-links found",
}
_WRONG = ("false_fail", "sound_blamed")


def declared(row: SweepRow) -> float:
    """Return the declared risk of both wrong verdicts."""
    return criteria(row.repeats).risks.seller


def heading(rows: Sequence[SweepRow]) -> str:
    """Return the first line: the machines that were swept."""
    row = rows[0]
    return (
        f"SIMULATED sweeps, no measurement: {len(row.outcomes)} machines a row, "
        f"{row.fabric.nodes} nodes, {row.fabric.leafs} leafs with {row.fabric.uplinks} "
        f"up-links each, {row.repeats} allocations, scatter "
        f"{100 * row.fabric.noise:g} %, tolerance {100 * TOLERANCE:g} %"
    )


def legend() -> str:
    """Describe the columns."""
    return (
        f"Shares in %, in brackets the exact interval (Clopper and Pearson) of "
        f"{100 * CONFIDENCE:.0f} % confidence; broken: a declared risk lies below it. "
        "Sound blamed: machines where a sound node, way "
        "or pair fails, or a leaf with sound up-links is named. An up-link is found if "
        "its leaf is named. Pairs: the most of all pairs that the allocations of a "
        "machine measured together. Faults are losses of bandwidth."
    )


def sweeps_table(rows: Sequence[SweepRow]) -> Table:
    """Format the rates of all rows."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("faults", no_wrap=True)
    for name, title in _HEADINGS.items():
        risk = f"\n≤ {100 * declared(rows[0]):g} %" if name in _WRONG else ""
        table.add_column(f"{title}{risk}", justify="right", no_wrap=True)
    table.add_column("pairs", justify="right", no_wrap=True)
    table.add_column("rounds", justify="right", no_wrap=True)
    table.add_column("risks", no_wrap=True)
    for row in rows:
        broken = _broken(row)
        table.add_row(
            row.faults,
            *(row.rates[name].percent for name in _HEADINGS),
            f"{100 * row.share:.1f}",
            f"{row.rounds:.0f}",
            Text("broken" if broken else "hold", "red" if broken else ""),
        )
    return table


def records(rows: Sequence[SweepRow]) -> list[dict[str, Any]]:
    """Return all rates as records, shares of 1."""
    return [
        _record(row, name, rate)
        for row in rows
        for name, rate in row.rates.items()
        if rate.trials
    ]


def _record(row: SweepRow, name: str, rate: Rate) -> dict[str, Any]:
    wrong = name in _WRONG
    return {
        "data": "simulated",
        "faults": row.faults,
        "nodes": row.fabric.nodes,
        "repeats": row.repeats,
        "machines": len(row.outcomes),
        "rate": name,
        "declared": declared(row) if wrong else None,
        **rate.facts,
        "holds": holds(rate, declared(row)) if wrong else None,
        "pairs_share_max": row.share,
        "rounds_mean": row.rounds,
    }


def _broken(row: SweepRow) -> bool:
    risk = declared(row)
    return any(not holds(row.rates[name], risk) for name in _WRONG)
