"""The impact of changed criteria on past runs as tables."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from seatrial.calibration.criteria_impact import Changed, RunChange
from seatrial.console import Terminal, folding_table
from seatrial.model.units import counted, rounded

_MOST_ROWS = 100


def print_changes(
    runs: Sequence[RunChange], differing: dict[str, str], console: Terminal
) -> None:
    """Print the criteria, verdicts and findings that differ."""
    for name, what in differing.items():
        console.print(Text(f"{name or 'risks of the machine'}: {what}"))
    if not differing:
        console.print("no criterion differs")
    if not runs:
        console.print("no run to judge")
        return
    findings = [finding for run in runs for finding in run.changed]
    if not findings and all(run.old == run.new for run in runs):
        same = f"no verdict and no finding changes in {counted(len(runs), 'run')}"
        moved = sum(run.moved for run in runs)
        have = "has" if moved == 1 else "have"
        tail = f"; {counted(moved, 'finding')} {have} another limit" if moved else ""
        console.print(same + tail)
        return
    console.print(_runs_table(runs))
    if findings:
        console.print(_findings_table(findings[:_MOST_ROWS]))
    if len(findings) > _MOST_ROWS:
        console.print(f"... and {len(findings) - _MOST_ROWS} more: --format csv")


def _runs_table(runs: Sequence[RunChange]) -> Table:
    table = folding_table("run", "old", "new")
    for heading in ("findings changed", "only the limit", "same"):
        table.add_column(heading, justify="right")
    for run in runs:
        counts = (len(run.changed), run.moved, run.same)
        table.add_row(run.run, run.old, run.new, *map(str, counts))
    return table


def _findings_table(findings: Sequence[Changed]) -> Table:
    table = folding_table("run", "criterion", "case", "place", "old", "new")
    for heading in ("old limit", "new limit"):
        table.add_column(heading, justify="right", overflow="fold")
    for finding in findings:
        case = " ".join(filter(None, (finding.case, finding.environment)))
        texts = (
            finding.run,
            finding.criterion,
            case,
            finding.place,
            finding.old,
            finding.new,
        )
        limits = (
            _limit(finding.old_limit, finding.unit),
            _limit(finding.new_limit, finding.unit),
        )
        table.add_row(*(Text(text) for text in (*texts, *limits)))
    return table


def _limit(limit: float | None, unit: str) -> str:
    return "" if limit is None else f"{rounded(limit)} {unit}"
