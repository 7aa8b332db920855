"""Rates by the criteria of a file, beside their risks: a table, JSON or CSV."""

from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from seatrial.calibration.simulate.criteria_rates import Row
from seatrial.calibration.simulate.rates import CONFIDENCE, Rate
from seatrial.criteria.criteria import Criteria
from seatrial.judge.verdicts import VERDICTS

_WRONG = ("false_fail", "false_pass", "sound_blamed")
_RATES = (*_WRONG, "found", *VERDICTS)


def declared(criteria: Criteria) -> dict[str, float]:
    """Return the declared risk of each wrong verdict."""
    risks = criteria.risks
    return dict(zip(_WRONG, (risks.seller, risks.buyer, risks.seller), strict=True))


def holds(rate: Rate, risk: float) -> bool:
    """Return whether a risk lies within the interval of a rate, or above it."""
    return rate.interval is None or risk >= rate.interval[0]


def heading(criteria: Criteria, rows: Sequence[Row]) -> str:
    """Return the first line: the machines that were judged."""
    setting = rows[0].setting
    count = len(criteria.criteria)
    return (
        f"SIMULATED machines, no measurement: {rows[0].machines} a row, {count} "
        f"criteri{'on' if count == 1 else 'a'}, {setting.nodes} nodes, "
        f"{setting.repeats} allocations, scatter {100 * setting.cv:g} %, "
        f"{100 * setting.shared:g} % of its variance shared by all places"
    )


def legend(rows: Sequence[Row]) -> str:
    """Describe the machines and the columns."""
    meanings = {row.truth.name: row.truth.meaning for row in rows}
    lines = [f"{name}: {meaning}" for name, meaning in meanings.items()]
    lines.append(
        "All in %, in brackets the exact interval (Clopper and Pearson) of "
        f"{100 * CONFIDENCE:.0f} % confidence. A machine at its limit counts as "
        "compliant and as non-compliant. broken: a declared risk lies below the "
        "interval."
    )
    return "\n".join(lines)


def rates_table(criteria: Criteria, rows: Sequence[Row]) -> Table:
    """Format the rates of all rows."""
    risks = declared(criteria)
    headings = {
        "false_fail": "wrong fail",
        "false_pass": "wrong pass",
        "sound_blamed": "sound blamed",
        "found": "faults found",
    }
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("machine", no_wrap=True)
    table.add_column("noise", no_wrap=True)
    for rate in _RATES:
        risk = f"\n≤ {100 * risks[rate]:g} %" if rate in risks else ""
        text = f"{headings.get(rate, rate)}{risk}"
        table.add_column(text, justify="right", no_wrap=True)
    table.add_column("risks", no_wrap=True)
    for row in rows:
        broken = _broken(row, risks)
        table.add_row(
            row.truth.name,
            row.setting.noise,
            *(_cell(row.rates.get(rate), rate, broken) for rate in _RATES),
            Text("broken" if broken else "hold", "red" if broken else ""),
        )
    return table


def records(criteria: Criteria, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return all rates as records, shares of 1."""
    risks = declared(criteria)
    every = [_record(row, name, risks) for row in rows for name in _RATES]
    return [record for record in every if record["machines"]]


def _record(row: Row, name: str, risks: dict[str, float]) -> dict[str, Any]:
    rate = row.rates.get(name, Rate(0, 0))
    low, high = rate.interval or (None, None)
    return {
        "data": "simulated",
        "machine": row.truth.name,
        **asdict(row.setting),
        "rate": name,
        "declared": risks.get(name),
        "measured": rate.value,
        "low": low,
        "high": high,
        "hits": rate.hits,
        "machines": rate.trials,
        "holds": holds(rate, risks[name]) if name in risks else None,
    }


def _broken(row: Row, risks: dict[str, float]) -> set[str]:
    return {
        name
        for name, risk in risks.items()
        if name in row.rates and not holds(row.rates[name], risk)
    }


def _cell(rate: Rate | None, name: str, broken: Collection[str]) -> Text:
    if rate is None or rate.value is None or rate.interval is None:
        return Text("-")
    text = f"{100 * rate.value:.1f}"
    if name not in VERDICTS:
        low, high = (100 * end for end in rate.interval)
        text += f" ({low:.1f}-{high:.1f})"
    return Text(text, "red" if name in broken else "")
