"""The forecast of the nights, as a table and as JSON."""

from dataclasses import asdict
from typing import Any

from rich.table import Table

from seatrial.console import Terminal
from seatrial.nightly.forecast import Forecast, rounded_up


def print_forecast(expected: Forecast, console: Terminal) -> None:
    """Print the nights of a system."""
    settings = expected.settings
    rules, window = settings.rules, settings.window
    console.print_line(
        (f"nights of {expected.system}", "bold"),
        f", {window}, the next at {expected.opening:%Y-%m-%d %H:%M}",
    )
    table = Table(box=None, pad_edge=False)
    table.add_column("class")
    table.add_column("nodes", justify="right")
    table.add_column("a night", justify="right")
    for share in expected.shares:
        table.add_row(share.name, str(share.nodes), str(share.a_night))
    console.print(table)
    console.print_line(f"every node within {rules.every} nights")
    minutes = window.length.total_seconds() / 60
    usage, needed = expected.usage, expected.node_hours
    if usage is None or needed is None:
        console.print_line("a night: time and node-hours are unknown")
    else:
        console.print_line(
            f"a night: {rounded_up(usage.minutes)} of {minutes:.0f} minutes, "
            f"{rounded_up(needed)} of {settings.node_hours:g} node-hours, "
            f"{usage.source}"
        )
    console.print_line(
        f"false alarms: {rules.alarms_a_year:g} a year are expected, at most; half by "
        "history, half by the limits of each night, at a seller's risk of "
        f"{expected.risk:.2g} a night"
    )
    console.print_line(
        f"history: losses of more than {100 * rules.margin:g} % are found after "
        f"{expected.learning} nights, when all baselines are learnt"
    )
    for share in expected.shares:
        if not share.a_night:
            alone = f"class {share.name} is not measured: a pair needs two nodes"
            console.print_line((f"note: {alone}", "yellow"))
    for check, why in expected.nothing.items():
        console.print_line((f"note: no job of {check}: {why}", "yellow"))


def as_json(expected: Forecast) -> dict[str, Any]:
    """Return the nights of a system for JSON: minutes, node-hours, shares of risk."""
    settings, usage = expected.settings, expected.usage
    return {
        "system": expected.system,
        "window": str(settings.window),
        "next": expected.opening.isoformat(timespec="minutes"),
        "every": settings.rules.every,
        "classes": [asdict(share) for share in expected.shares],
        "nights": None if usage is None else usage.nights,
        "minutes": None if usage is None else usage.minutes,
        "window_minutes": settings.window.length.total_seconds() / 60,
        "node_hours": expected.node_hours,
        "budget_node_hours": settings.node_hours,
        "alarms_a_year": settings.rules.alarms_a_year,
        "risk_a_night": expected.risk,
        "nights_to_learn": expected.learning,
        "nothing": dict(expected.nothing),
        "problems": expected.problems,
    }
