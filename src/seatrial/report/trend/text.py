"""A trend as text: a line per series for people, all points for programs."""

import json
from collections.abc import Iterable
from dataclasses import asdict

from rich.table import Table
from rich.text import Text

from seatrial.console import folding_table
from seatrial.model.csv_text import csv_text
from seatrial.model.units import rounded
from seatrial.report.trend.series import Limit, Series, SeriesKey, Trend

COLUMNS = (
    "run",
    "campaign",
    "started",
    *SeriesKey._fields,
    "value",
    "low",
    "high",
    "allocations",
    "worst",
    "worst_place",
    "limits",
    "beyond",
    "gap",
    "changes",
)
"""Columns of trend.csv, which has a row for every night of every series."""


def trend_csv(trend: Trend) -> str:
    """Write all points; semicolons separate several limits or changes."""
    rows = (
        {
            **vars(night),
            **series.key._asdict(),
            **vars(series.points[number]),
            "limits": "; ".join(
                f"{limit.kind} {limit.value!r}"
                for limit in series.points[number].limits
            ),
            "beyond": "yes" if series.beyond(number) else "",
            "changes": "; ".join(change.words for change in night.changes),
        }
        for series in trend.series
        for number, night in enumerate(trend.nights)
    )
    return csv_text(COLUMNS, rows)


def trend_json(trend: Trend) -> str:
    """Write the whole trend; the points of a series are in the order of the runs."""
    content = {
        "system": trend.system,
        "runs": [asdict(night) for night in trend.nights],
        "series": [
            {
                **series.key._asdict(),
                "limits_today": [asdict(limit) for limit in series.today],
                "points": [
                    {"run": night.run}
                    | asdict(series.points[number])
                    | {"beyond": series.beyond(number)}
                    for number, night in enumerate(trend.nights)
                ],
            }
            for series in trend.series
        ],
        "changes_since": [asdict(change) for change in trend.since],
    }
    return json.dumps(content, indent=1) + "\n"


def trend_table(trend: Trend) -> Table:
    """Build a table of the series: first, last, least and largest value, limits."""
    table = folding_table("case", "environment", "nodes", "metric")
    for heading in ("runs", "first", "last", "least", "largest"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    table.add_column("limit today", overflow="fold")
    table.add_column("beyond", overflow="fold")
    for series in trend.series:
        key = series.key
        values = [point.value for point in series.points if point.value is not None]
        cells = (
            *(key.case, key.environment, str(key.num_nodes or ""), metric_words(key)),
            f"{len(values)} of {len(series.points)}",
            *map(rounded, (values[0], values[-1], min(values), max(values))),
            "" if key.unit == "1" else key.unit,
            limits_words(series.today, key.direction),
        )
        table.add_row(*map(Text, cells), Text(beyond_words(series), style="red"))
    return table


def metric_words(key: SeriesKey) -> str:
    """Name a metric, with its statistic unless that is the mean."""
    return key.metric if key.statistic == "mean" else f"{key.metric} {key.statistic}"


def limits_words(limits: Iterable[Limit], direction: str) -> str:
    """Format limits with their kinds: `promised ≥ 60`."""
    sign = {"higher": "≥", "lower": "≤"}[direction]
    return "; ".join(f"{x.kind} {sign} {rounded(x.value, 10)}" for x in limits)


def beyond_words(series: Series) -> str:
    """Count the runs with a number beyond a limit; '' if there is none."""
    nights = [night for night in range(len(series.points)) if series.beyond(night)]
    if not nights:
        return ""
    last = ", the last" if nights[-1] == len(series.points) - 1 else ""
    return f"{len(nights)} {'run' if len(nights) == 1 else 'runs'}{last}"
