"""The plan of a Spack build as a table, a line, JSON or CSV."""

import json
from collections.abc import Sequence
from dataclasses import asdict, fields

from rich.table import Table

from seatrial.model.csv_text import csv_text
from seatrial.model.units import rounded
from seatrial.progress import duration
from seatrial.system.spack_plan import Origin, Step, total

_COLOURS = {Origin.SOURCE: "yellow", Origin.CACHE: "cyan"}


def summary(steps: Sequence[Step]) -> str:
    """Return one line: the number of builds and their time."""
    sums = total(steps)
    if not sums.source + sums.cache:
        return "All of it is installed."
    return f"{sums.source} from source, {sums.cache} from a build cache: {_time(steps)}"


def format_plan(system: str, steps: Sequence[Step], form: str) -> str:
    """Format a plan as `json`, with its sums, or as `csv`."""
    rows = [asdict(step) for step in steps]
    if form == "json":
        sums = asdict(total(steps))
        content = {"system": system, "total": sums, "steps": rows}
        return json.dumps(content, indent=1) + "\n"
    return csv_text([field.name for field in fields(Step)], rows)


def _time(steps: Sequence[Step]) -> str:
    sums = total(steps)
    if sums.unknown == sums.source + sums.cache:
        return "time unknown, no build of them is recorded"
    if sums.unknown:
        return f"at least {duration(sums.seconds)}, {sums.unknown} of unknown time"
    return f"about {duration(sums.seconds)}"


def plan_table(steps: Sequence[Step]) -> Table:
    """Return a table of the steps."""
    table = Table(box=None, pad_edge=False)
    for heading in ("environment", "package", "hash", "from"):
        table.add_column(heading, no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("recorded", no_wrap=True)
    for step in steps:
        took = "unknown" if step.seconds is None else f"{rounded(step.seconds, 3)} s"
        table.add_row(
            step.environment,
            str(step),
            step.hash[:7],
            step.origin,
            took if step.to_do else "",
            step.basis,
            style=_COLOURS.get(step.origin, "dim"),
        )
    return table
