"""`seatrial plan`: what a campaign costs, and what it will find."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from seatrial import paths
from seatrial.calibration.detection_limits import (
    Design,
    Prospect,
    comparable_runs,
    prospects,
)
from seatrial.campaign.campaign_file import Campaign, load_campaign
from seatrial.campaign.cost import (
    Cost,
    Recorded,
    allocations,
    cost,
    recorded,
    sessions_of,
)
from seatrial.checks.catalogue import Entry, catalogue
from seatrial.checks.listing import describe_checks, list_cases
from seatrial.commands._names import CAMPAIGN, SYSTEM
from seatrial.commands._options import format_option
from seatrial.commands._share import Share
from seatrial.console import Terminal
from seatrial.criteria.criteria import Criteria
from seatrial.errors import SeatrialError
from seatrial.model.cases import ListedCase
from seatrial.model.csv_text import csv_text
from seatrial.model.units import rounded
from seatrial.output import write_data
from seatrial.progress import duration
from seatrial.runs.closed_run import closed_runs
from seatrial.system.description import (
    is_provisioned,
    known_systems,
    load_system,
    unknown_system,
)
from seatrial.system.features import needed, why_not

_LEGEND = """\
scatter: of one place from allocation to allocation (and how many are recorded).
finds: a place that misses its limit by this share of it is convicted, with a chance of
50 % or 90 %; all: 90 %, if every place of the machine is a suspect.
passes if: all places pass, with a chance of 90 %, if they beat their limit by so much.
now: by how much the worst recorded place beats it; after: repeats to pass so."""

_LEGEND_NEEDED = """\
needs: so many repeats convict a place that misses its limit by the slowdown."""


@dataclass(frozen=True)
class _Plan:
    """All that is printed."""

    system: str
    campaign: str
    repeats: int
    slowdown: float | None
    cost: Cost
    criteria: tuple[Prospect, ...]
    designs: tuple[Design, ...]
    notes: tuple[str, ...]


@click.command()
@click.argument("system", type=SYSTEM)
@click.option(
    "--campaign", type=CAMPAIGN, required=True, help="Its name, e.g. acceptance."
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    help="How often every block runs (default: as the campaign says).",
)
@click.option(
    "--slowdown",
    type=Share(),
    help="Say how many repeats find a place that misses its limit by so much: 5%.",
)
@format_option("How to print it; csv has the criteria, json has all.")
def plan(
    system: str,
    campaign: str,
    repeats: int | None,
    slowdown: float | None,
    form: str,
) -> None:
    """Say what a campaign on SYSTEM costs, and which slowdowns it will find.

    Jobs, wall time and node-hours are those of recorded cases; what never ran counts
    as long as its check states. Of each criterion: how much numbers scatter in the
    newest runs of one configuration, and what the repeats come to at the declared
    risks. Nothing is submitted.

    Exit status: 0; 2 usage or environment.

    Example: seatrial plan lab --campaign acceptance --repeats 8 --slowdown 10%
    """
    home = paths.home()
    found = _planned(home, system, campaign, repeats, slowdown)
    if form == "json":
        write_data(json.dumps(asdict(found), indent=1) + "\n")
    elif form == "csv":
        names = [field.name for field in fields(Prospect)]
        write_data(csv_text(names, map(asdict, found.criteria)))
    else:
        _print(found, Terminal())


def _planned(
    home: Path,
    system: str,
    name: str,
    repeats: int | None,
    slowdown: float | None,
) -> _Plan:
    campaign = load_campaign(home, name)
    campaign = replace(campaign, repeats=repeats or campaign.repeats)
    results = paths.results_dir(home)
    known = recorded(results, system, name)
    listed, missing, delivered = None, dict[str, str](), known.delivered
    if is_provisioned(home, system):
        listed, missing, delivered = _listed(home, system, campaign)
    elif not known.runs and system not in known_systems(home):
        raise unknown_system(home, system)
    entries = _entries(home, campaign, known, listed)
    sessions = sessions_of(campaign, known, listed, missing, entries)
    notes = [] if known.runs else [f"no run of {system} is recorded: times are stated"]
    if listed is None:
        notes.append(
            f"{system} is not provisioned here: cases are those that were recorded; a "
            "check that never ran counts once for each choice of its parameters. "
            "Programs that were installed after the newest run are not seen: "
            "for these run `seatrial plan` on the login node"
        )
    criteria = _criteria(home, system, notes)
    answers: tuple[list[Prospect], list[Design]] = ([], [])
    if criteria is not None:
        runs, told = comparable_runs(closed_runs(results, system))
        notes += told
        units = allocations(sessions)
        answers = prospects(
            criteria, campaign.checks, runs, units, campaign.repeats, slowdown
        )
    return _Plan(
        system=system,
        campaign=name,
        repeats=campaign.repeats,
        slowdown=slowdown,
        cost=cost(sessions, known, entries, campaign.max_jobs, delivered),
        criteria=tuple(answers[0]),
        designs=tuple(answers[1]),
        notes=tuple(notes),
    )


def _listed(
    home: Path, system: str, campaign: Campaign
) -> tuple[Sequence[ListedCase], dict[str, str], int]:
    """List the cases of a provisioned system, what it lacks, and count its nodes."""
    described = load_system(home, system)
    checks = paths.checks_dir(home)
    listed = list_cases(described.settings, system, checks, home)
    without = set(campaign.checks) - {case.check for case in listed}
    needs = needed(describe_checks(checks, home)) if without else {}
    unknown = sorted(without - needs.keys())
    if unknown:
        raise SeatrialError(
            f"campaign {campaign.name!r} names unknown checks: {', '.join(unknown)}"
        )
    missing = {check: why_not(needs[check], described.features) for check in without}
    return listed, missing, len(described.nodes)


def _entries(
    home: Path,
    campaign: Campaign,
    known: Recorded,
    listed: Sequence[ListedCase] | None,
) -> Mapping[str, Entry]:
    """Read the catalogue, which takes seconds, if some case of ours never ran."""
    cases = [
        case
        for case in listed
        or (each for found in known.newest.values() for each in found)
        if case.check in campaign.checks
    ]
    ran = all(str(case) in known.times or str(case) in known.skipped for case in cases)
    if ran and {case.check for case in cases} >= set(campaign.checks):
        return {}
    return {entry.check: entry for entry in catalogue(paths.checks_dir(home), home)}


def _criteria(home: Path, system: str, notes: list[str]) -> Criteria | None:
    file = paths.criteria_file(home, system)
    if file.is_file():
        return Criteria.load(file)
    notes.append(f"no criteria: {file} is missing")
    return None


def _print(found: _Plan, console: Terminal) -> None:
    costs = found.cost
    console.print_line(
        (f"{found.campaign} on {found.system}", "bold"),
        f", {found.repeats} repeats: {costs.jobs} jobs in {costs.sessions} sessions, "
        f"{duration(costs.wall_s)}, {_hours(costs.node_hours)} node-hours",
    )
    console.print(_cost_table(costs))
    for check, why in costs.nothing.items():
        console.print_line(f"no job of {check}: {why}")
    known = [each for each in found.criteria if not each.reason]
    if known:
        console.print()
        console.print(_criteria_table(known, found.slowdown))
        legend = _LEGEND if found.slowdown is None else f"{_LEGEND_NEEDED}\n{_LEGEND}"
        console.print(legend, style="dim")
    if len(known) < len(found.criteria):
        console.print()
        for text in _without_scatter(found.criteria):
            console.print_line(text)
    if found.designs:
        console.print()
        console.print(_designs_table(found.designs))
    for note in found.notes:
        console.print_line((f"note: {note}", "yellow"))


def _without_scatter(criteria: Sequence[Prospect]) -> list[str]:
    """Tell once for each reason which criteria it keeps from a plan."""
    names: dict[str, list[str]] = {}
    for each in criteria:
        if each.reason:
            least = max(each.convicts_from, each.passes_from)
            why = f"{each.reason} (decides from {least} repeats)"
            names.setdefault(why, []).append(each.criterion)
    return [f"{why}: {', '.join(found)}" for why, found in names.items()]


def _cost_table(costs: Cost) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("check")
    for heading in ("jobs", "each", "together", "node-hours"):
        table.add_column(heading, justify="right")
    table.add_column("times")
    for each in costs.checks:
        table.add_row(
            each.check,
            str(each.jobs),
            f"{rounded(each.seconds, 3)} s",
            duration(each.seconds * each.jobs),
            _hours(each.node_hours),
            "stated" if each.stated else "recorded",
        )
    table.add_row("(between sessions)", "", "", duration(costs.between_s), "", "")
    return table


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


def _designs_table(designs: Sequence[Design]) -> Table:
    table = Table(box=None, pad_edge=False, title_justify="left")
    table.title = "looks: allocations until decided, by the zone off the limit"
    table.add_column("criterion", overflow="fold", max_width=34)
    table.add_column("at", overflow="fold")
    table.add_column("risk spent", overflow="fold")
    for heading in ("worse", "undecided", "better", "undecided"):
        table.add_column(heading, justify="right")
    for each in designs:
        table.add_row(
            Text(each.criterion),
            ", ".join(map(str, each.units)),
            ", ".join(f"{rounded(100 * risk, 2)} %" for risk in each.risk),
            f"{each.mean_worse:.1f}",
            f"{100 * each.undecided_worse:.0f} %",
            f"{each.mean_better:.1f}",
            f"{100 * each.undecided_better:.0f} %",
        )
    return table
