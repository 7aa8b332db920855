"""False alarms a year and delays of simulated nights: a table, JSON or CSV."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
from rich.table import Table
from rich.text import Text

from seatrial.calibration.simulate.nightly import (
    DIVISIVE,
    MISSED_AFTER,
    OURS,
    RULES,
    NightRow,
)
from seatrial.calibration.simulate.nights import NIGHTS_A_YEAR, NightMachine
from seatrial.calibration.simulate.rates import CONFIDENCE
from seatrial.history.rules import Rules
from seatrial.history.tracker import OF_HISTORY


def declared(rules: Rules) -> float:
    """Return the false alarms a year that history may raise."""
    return rules.alarms_a_year * OF_HISTORY


def interval(count: float, years: int) -> tuple[float, float]:
    """Return the exact interval (Garwood 1936) of a Poisson rate a year."""
    tail = (1 - CONFIDENCE) / 2
    low = float(scipy.stats.chi2.ppf(tail, 2 * count)) / 2 if count else 0.0
    return low / years, float(scipy.stats.chi2.ppf(1 - tail, 2 * count + 2)) / 2 / years


def heading(machine: NightMachine, rules: Rules, rows: Sequence[NightRow]) -> str:
    """Return the first line: the machines that were played."""
    return (
        f"SIMULATED nights, no measurement: {rows[0].year.years} machine-years a row, "
        f"{machine.nodes} nodes x {machine.metrics} metrics, each node every "
        f"{machine.every} nights, scatter {100 * machine.cv:g} %; declared: "
        f"{rules.alarms_a_year:g} false alarms a year, {declared(rules):g} of them by "
        "history"
    )


def legend(rows: Sequence[NightRow]) -> str:
    """Describe the columns."""
    beside = min(row.year.beside for row in rows)
    return (
        f"False alarms a year with the exact interval (Garwood) of "
        f"{100 * CONFIDENCE:.0f} % confidence; broken: the declared number lies below "
        "it. Delays are nights from the onset to the alarm: median, 90 % quantile, "
        f"share missed after {MISSED_AFTER} nights (E-divisive: at the end). Other "
        f"rules looked at {beside} of the machine-years, E-divisive at some series of "
        "these; their alarms are nodes and nights with any metric below the bound. "
        "They see the visits that ours chose, more of the nodes that it watches."
    )


def nights_table(rules: Rules, rows: Sequence[NightRow]) -> Table:
    """Format false alarms and delays of all rows."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("noise", "fault"):
        table.add_column(name, no_wrap=True)
    bound = f"\n≤ {declared(rules):g}"
    for rule in RULES:
        name = f"{rule}{bound if rule == OURS else ''}"
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("nodes\na night", justify="right", no_wrap=True)
    for row in rows:
        cells = [_cell(row, rule, rules) for rule in RULES]
        visits = row.year.visits / row.year.years / NIGHTS_A_YEAR
        table.add_row(row.noise, row.fault.name, *cells, f"{visits:.0f}")
    return table


def records(rules: Rules, rows: Sequence[NightRow]) -> list[dict[str, Any]]:
    """Return all rows as records."""
    return [_record(row, rule, rules) for row in rows for rule in RULES]


def _years(row: NightRow, rule: str) -> int:
    return row.year.years if rule == OURS else row.year.beside


def _delays(row: NightRow, rule: str) -> tuple[float | None, float | None, float]:
    """Return median, 90 % quantile (None if missed) and the share missed."""
    delays = np.sort(row.year.delays[rule])
    median, most = (
        float(delays[int(np.ceil(share * len(delays))) - 1]) for share in (0.5, 0.9)
    )
    missed = float(np.isinf(delays).mean())
    return _finite(median), _finite(most), missed


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _cell(row: NightRow, rule: str, rules: Rules) -> Text:
    if row.fault.loss:
        median, most, missed = _delays(row, rule)
        lost = f"{100 * missed:.0f} % missed"
        if rule == DIVISIVE:
            return Text(lost)
        times = "-" if median is None else f"{median:.0f}"
        return Text(f"{times} ({'-' if most is None else f'{most:.0f}'}), {lost}")
    years, count = _years(row, rule), row.year.false[rule]
    if rule != OURS:
        return Text(f"{count / years:.0f}")
    low, high = interval(count, years)
    text = f"{count / years:.2f} ({low:.2f}-{high:.2f})"
    return Text(text, "red" if low > declared(rules) else "")


def _record(row: NightRow, rule: str, rules: Rules) -> dict[str, Any]:
    years, count = _years(row, rule), row.year.false[rule]
    low, high = interval(count, years)
    median, most, missed = _delays(row, rule) if row.fault.loss else (None,) * 3
    return {
        "data": "simulated",
        "noise": row.noise,
        "fault": row.fault.name,
        "rule": rule,
        "machine_years": years,
        "false_a_year": count / years,
        "low": low,
        "high": high,
        "declared": declared(rules) if rule == OURS else None,
        "delay_median_nights": None if rule == DIVISIVE else median,
        "delay_q90_nights": None if rule == DIVISIVE else most,
        "missed": missed,
    }
