"""Rates of a study as a table for people, JSON or CSV."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from seatrial.calibration.simulate.arithmetic import facts
from seatrial.calibration.simulate.rates import CONFIDENCE, RATES, Rate
from seatrial.calibration.simulate.rules import RULES
from seatrial.calibration.simulate.runs import RISKS
from seatrial.calibration.simulate.study import OURS, Result

_DECLARED = {
    "false_fail": RISKS.seller,
    "false_pass": RISKS.buyer,
    "blamed_wrong": RISKS.seller,
    "false_suspects": RISKS.discovery,
}
_SHOWN = {
    "false_fail": "false fail",
    "false_pass": "false pass",
    "not_shown": "not shown",
    "undecided": "undecided",
    "found": "faults found",
    "blamed_wrong": "sound blamed",
    "false_suspects": "false suspects",
}


def results_table(results: Sequence[Result]) -> Table:
    """Format our rates, in %, and the machines that each other rule fails."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("scenario", no_wrap=True)
    table.add_column("noise", no_wrap=True)
    for name, heading in _SHOWN.items():
        risk = _DECLARED.get(name)
        declared = "" if risk is None else f"\n≤ {100 * risk:.0f} %"
        table.add_column(f"{heading}{declared}", justify="right", no_wrap=True)
    for rule in RULES:
        table.add_column(f"{rule}:\nfails", justify="right", no_wrap=True)
    before = ""
    for result in results:
        name = result.scenario.name
        if before not in ("", name):
            table.add_row()
        ours = result.tallies[OURS]
        table.add_row(
            name if name != before else "",
            result.machine.shape,
            *(_cell(ours[rate], _DECLARED.get(rate)) for rate in _SHOWN),
            *(_percent(result.tallies[rule]["fail"]) for rule in RULES),
        )
        before = name
    return table


def legend(results: Sequence[Result]) -> str:
    """Describe the simulation."""
    meanings = {result.scenario.name: result.scenario.meaning for result in results}
    lines = [f"{name}: {meaning}" for name, meaning in meanings.items()]
    first = results[0]
    machine = first.machine
    lines.append(
        f"{first.runs} machines a row, {machine.nodes} nodes, {machine.repeats} "
        f"allocations, noise {100 * machine.noise:g} %, model {first.model}. "
        "All in %, in brackets the interval of "
        f"{100 * CONFIDENCE:.0f} % confidence; red where it lies above the declared "
        "risk. What other rules fail: rightly only where something is below the limit."
    )
    return "\n".join(lines)


def facts_table(seed: int) -> Table:
    """Format the arithmetic of one value against one tolerance."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("why one value is not enough")
    for heading in ("by arithmetic", "measured"):
        table.add_column(heading, justify="right")
    for fact in facts(seed):
        table.add_row(fact.statement, f"{fact.expected:.0f}", f"{fact.measured:.0f}")
    return table


def records(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return all rates of all rules as records, shares of 1."""
    return [row for result in results for row in _rows(result)]


def _rows(result: Result) -> list[dict[str, Any]]:
    machine = {k: v for k, v in asdict(result.machine).items() if k != "shape"}
    known = {
        "scenario": result.scenario.name,
        "noise_shape": result.machine.shape,
        "model": result.model,
        "runs": result.runs,
    }
    rows = []
    for rule, tally in result.tallies.items():
        for name in RATES:
            rate = tally[name]
            if rate.trials:
                low, high = rate.interval or (None, None)
                declared = _DECLARED.get(name) if rule == OURS else None
                rows.append(
                    known
                    | {"rule": rule, "rate": name, "declared": declared}
                    | {"measured": rate.value, "low": low, "high": high}
                    | {"hits": rate.hits, "trials": rate.trials}
                    | machine
                )
    return rows


def _cell(rate: Rate, declared: float | None) -> Text:
    if rate.value is None or rate.interval is None:
        return Text("-")
    low, high = rate.interval
    text = f"{100 * rate.value:.0f} ({100 * low:.0f}-{100 * high:.0f})"
    return Text(text, "red" if declared is not None and low > declared else "")


def _percent(rate: Rate) -> str:
    return "-" if rate.value is None else f"{100 * rate.value:.0f}"
