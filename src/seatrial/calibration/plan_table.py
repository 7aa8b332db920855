"""The plan of a campaign as tables."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from seatrial.calibration.detection_limits import Prospect
from seatrial.calibration.pass_chances import ASKED, MOST_REPEATS, SURE
from seatrial.calibration.plan import Plan
from seatrial.calibration.stability_plan import PlannedPhase
from seatrial.campaign.cost import CheckCost, Cost
from seatrial.console import Terminal
from seatrial.model.units import counted, rounded
from seatrial.progress import duration

_CURVE_ROWS = 12

_LEGEND = """\
scatter: of one place from allocation to allocation (and how many are recorded).
finds: a place that misses its limit by this share of it is convicted, with a chance of
50 % or 90 %; all: 90 %, if every place of the machine is a suspect.
passes if: all places pass, with a chance of 90 %, if they beat their limit by so much.
now: by how much the worst recorded place beats it; after: repeats to pass so."""

_LEGEND_CHANCES = f"""\
inside by: all places beat their limits by this share. Scatter: as recorded; of criteria
without a record it is stated. Their places: one on each delivered node. At most 512
places of a kind are judged; more are computed. From: at {ASKED:.0%} inside."""

_LEGEND_NEEDED = """\
needs: so many repeats convict a place that misses its limit by the slowdown."""


def print_plan(plan: Plan, console: Terminal) -> None:
    """Print a plan: cost, criteria and notes."""
    costs = plan.cost
    console.print_line(
        (f"{plan.campaign} on {plan.system}", "bold"),
        f", {counted(plan.repeats, 'repeat')}: {counted(costs.jobs, 'job')} in "
        f"{counted(costs.sessions, 'session')}, "
        f"{duration(costs.wall_s)}, {_hours(costs.node_hours)} node-hours",
    )
    console.print(cost_table(costs))
    for sweep in plan.sweeps:
        console.print_line(str(sweep))
    for check, why in costs.nothing.items():
        console.print_line(f"no job of {check}: {why}")
    known = [each for each in plan.criteria if not each.reason]
    if known:
        console.print()
        console.print(_criteria_table(known, plan.slowdown))
        legend = _LEGEND if plan.slowdown is None else f"{_LEGEND_NEEDED}\n{_LEGEND}"
        console.print(legend, style="dim")
    if len(known) < len(plan.criteria):
        console.print()
        for text in _without_scatter(plan.criteria):
            console.print_line(text)
    if plan.chances:
        console.print()
        _print_chances(plan, console)
    if plan.stability:
        console.print()
        _print_phase(plan.stability, console)
    for note in plan.notes:
        console.print_line((f"note: {note}", "yellow"))


def _print_phase(phase: PlannedPhase, console: Terminal) -> None:
    """Print a stability phase, its tests, and the chances of each by true quality."""
    console.print_line((phase.words, "bold"))
    for test in phase.tests:
        console.print_line((test.criterion, "bold"), f": {test.words}")
        table = Table(box=None, pad_edge=False)
        of = "share of good intervals" if test.measure == "intervals" else "MTBF in h"
        for heading in (f"true {of}", "passes", "fails", "undecided"):
            table.add_column(heading, justify="right")
        step = max(1, len(test.curve) // _CURVE_ROWS)
        for number, (quality, passes, fails) in enumerate(test.curve):
            known = {test.accepted: " accepted", test.rejected: " rejected"}
            if number % step and quality not in known:
                continue
            chances = (passes, fails, max(0.0, 1 - passes - fails))
            cells = (f"{100 * chance:.1f} %" for chance in chances)
            table.add_row(rounded(quality) + known.get(quality, ""), *cells)
        console.print(table)
    if not phase.tests:
        console.print_line(
            ("no criterion of kind stability has a test: nothing decides", "yellow")
        )


def _without_scatter(criteria: Sequence[Prospect]) -> list[str]:
    """Return one line for each reason with the criteria that it excludes, by check."""
    names: dict[str, dict[str, list[str]]] = {}
    for each in criteria:
        if each.reason:
            least = max(each.convicts_from, each.passes_from)
            why = f"{each.reason} (decides from {least} repeats)"
            own = names.setdefault(why, {}).setdefault(each.check, [])
            own.append(each.criterion.removeprefix(f"{each.check} "))
    return [
        f"{why}: " + "; ".join(f"{check} {', '.join(own)}" for check, own in of.items())
        for why, of in names.items()
    ]


def cost_table(costs: Cost) -> Table:
    """Build the table of the cost by check, and say which times are typical."""
    table = Table(box=None, pad_edge=False)
    table.add_column("check")
    for heading in ("jobs", "each", "together", "node-hours"):
        table.add_column(heading, justify="right")
    table.add_column("times")
    for check in costs.checks:
        table.add_row(
            check.check,
            str(check.jobs),
            f"{rounded(check.seconds, 3)} s",
            duration(check.seconds * check.jobs),
            _hours(check.node_hours),
            _source(check),
        )
    table.add_row("(between sessions)", "", "", duration(costs.between_s), "", "")
    return table


def _source(check: CheckCost) -> str:
    if 0 < check.typical < check.jobs:
        return f"typical in {check.typical} of {check.jobs} jobs"
    return "typical" if check.typical else "recorded"


def _criteria_table(known: Sequence[Prospect], slowdown: float | None) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("criterion", overflow="fold", max_width=34)
    verb = "finds" if slowdown is None else f"{100 * slowdown:g} % needs"
    numbers = ("places", "scatter", f"{verb} 50 %", "90 %", "all")
    for heading in (*numbers, "passes if", "now", "after"):
        table.add_column(heading, justify="right")
    for each in known:
        table.add_row(
            Text(f"{each.criterion}, {each.what}" if each.what else each.criterion),
            str(each.places),
            f"{_share(each.scatter)} ({each.recorded})",
            *(_finds(each) if slowdown is None else _needs(each)),
            _passes_if(each),
            _share(each.margin),
            "never" if each.passes_after is None else str(each.passes_after),
        )
    return table


def _finds(each: Prospect) -> list[str]:
    if each.units < each.convicts_from:
        return [f"from {each.convicts_from}", "-", "-"]
    return [_share(x) for x in (each.finds_even, each.finds_sure, each.finds_all)]


def _needs(each: Prospect) -> list[str]:
    needed = (each.needed_even, each.needed_sure, each.needed_all)
    return [">1000" if x is None else str(x) for x in needed]


def _passes_if(each: Prospect) -> str:
    if each.units < each.passes_from:
        return f"from {each.passes_from}"
    return _share(each.passes_if)


def _hours(value: float | None) -> str:
    return "?" if value is None else rounded(value, 2)


def _share(value: float | None) -> str:
    if value is None:
        return "-"
    if value < 10:
        return f"{rounded(100 * value, 2)} %"
    return f"x {rounded(value + 1, 3)}"


def _print_chances(plan: Plan, console: Terminal) -> None:
    """Print the chances of machines inside their limits, and who bears the burden."""
    table = Table(box=None, pad_edge=False)
    table.add_column("inside by", justify="right")
    table.add_column("allocations")
    if several := len({chance.scatter for chance in plan.chances}) > 1:
        table.add_column("scatter", justify="right")
    verdicts = [*plan.chances[0].verdicts][::-1]
    for heading in (*verdicts, f"pass in {SURE:.0%} from"):
        table.add_column(heading, justify="right")
    for each in plan.chances:
        needed = "" if each.inside != ASKED else f"> {MOST_REPEATS} repeats"
        table.add_row(
            f"{each.inside:.0%}",
            each.noise,
            *([_share(each.scatter)] if several else []),
            *(f"{100 * each.verdicts[name]:.0f} %" for name in verdicts),
            needed if each.needed is None else f"{each.needed} repeats",
        )
    draws = plan.chances[0].draws
    title = (
        f"a machine inside its limits, by simulation (up to {draws} draws of each kind)"
    )
    console.print_line((title, "bold"))
    console.print(table)
    burden = ", ".join(f"{party} {count}" for party, count in plan.bears.items())
    console.print_line(f"bears the burden of proof, by criteria: {burden}")
    console.print(_LEGEND_CHANCES, style="dim")
