"""Plan a campaign: its cost, the slowdowns that it will find, and who passes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from seatrial import paths
from seatrial.calibration.comparable_runs import comparable_runs
from seatrial.calibration.detection_limits import Prospect, prospects
from seatrial.calibration.pass_chances import Chance, chances
from seatrial.calibration.stability_plan import PlannedPhase, planned_phase
from seatrial.calibration.sweep_plan import SweepCost, sweep_costs
from seatrial.campaign.campaign_file import Campaign, load_campaign, with_repeats
from seatrial.campaign.cost import (
    Cost,
    Recorded,
    allocations,
    cost,
    recorded,
    sessions_of,
)
from seatrial.campaign.schedule import Planned
from seatrial.campaign.selected_cases import check_variables, selected_cases
from seatrial.checks.growth import Place
from seatrial.checks.job_mix import CHECK as JOB
from seatrial.checks.job_mix import format_mix
from seatrial.checks.typical import Stated, typical_cases
from seatrial.criteria.criteria import Criteria
from seatrial.model.cases import ListedCase
from seatrial.runs.closed_run import closed_runs
from seatrial.system.description import (
    is_provisioned,
    known_systems,
    load_system,
    unknown_system,
)


@dataclass(frozen=True)
class Plan:
    """Cost of a campaign, of its sweeps also as adaptive ones, and what it finds.

    `bears` counts the criteria whose burden of proof each party bears; `chances` are
    those of machines a little inside their limits. A `stability` phase has tests.
    """

    system: str
    campaign: str
    repeats: int
    slowdown: float | None
    cost: Cost
    criteria: tuple[Prospect, ...]
    bears: Mapping[str, int]
    chances: tuple[Chance, ...]
    sweeps: tuple[SweepCost, ...]
    notes: tuple[str, ...]
    stability: PlannedPhase | None = None


def plan_campaign(
    home: Path,
    system: str,
    name: str,
    repeats: int | None,
    slowdown: float | None,
) -> Plan:
    """Plan a campaign on a system; `None` repeats are those of the campaign."""
    campaign = with_repeats(load_campaign(home, name), repeats)
    results, phase = paths.results_dir(home), campaign.stability
    work = _work(home, system, campaign)
    known = work.known
    notes = [] if known.runs else [f"no run of {system} is recorded: times are typical"]
    if not work.is_listed:
        notes.append(
            f"{system} is not provisioned here: cases are those that were recorded; a "
            "check that never ran counts once for each choice of its parameters, on as "
            "many nodes as the newest run had. "
            "Programs that were installed after the newest run are not seen: "
            "for these run `seatrial plan` on the login node"
        )
    criteria = _criteria(home, system, name, notes)
    answers: list[Prospect] = []
    inside: list[Chance] = []
    bears: Counter[str] = Counter()
    if criteria is not None:
        runs, left_out = comparable_runs(closed_runs(results, system))
        notes += left_out
        units = allocations(work.sessions)
        answers = prospects(
            criteria, campaign.checks, runs, units, campaign.repeats, slowdown
        )
        inside = chances(criteria, answers, work.delivered)
        named = {each.criterion for each in answers}
        bears.update(rule.bears for rule in criteria.criteria if rule.name in named)
    costs = work.cost(campaign.max_jobs)
    return Plan(
        system=system,
        campaign=name,
        repeats=campaign.repeats,
        slowdown=slowdown,
        cost=costs,
        sweeps=tuple(sweep_costs(costs, work.delivered)),
        criteria=tuple(answers),
        bears=dict(bears),
        chances=tuple(inside),
        notes=tuple(notes),
        stability=None if phase is None else planned_phase(phase, criteria, work.nodes),
    )


def campaign_cost(home: Path, system: str, name: str) -> Cost:
    """Return the cost of a campaign on a system; SeatrialError as `plan_campaign`."""
    campaign = load_campaign(home, name)
    return _work(home, system, campaign).cost(campaign.max_jobs)


@dataclass(frozen=True)
class _Work:
    """The sessions of a campaign; `is_listed`: all cases of the system are known."""

    sessions: Sequence[Planned]
    known: Recorded
    stated: Stated
    places: Mapping[str, Place]
    is_listed: bool

    @property
    def delivered(self) -> int:
        """Return the number of delivered nodes; 0 if it is unknown."""
        counts = (place.nodes for place in self.places.values())
        return sum(counts) or self.known.delivered

    @property
    def nodes(self) -> dict[str, int]:
        """Return the number of nodes of each class by its full name."""
        return {name: place.nodes for name, place in self.places.items()}

    def cost(self, max_jobs: int) -> Cost:
        """Add up jobs, time and node-hours."""
        return cost(self.sessions, self.known, self.stated, max_jobs, self.places)


def _work(home: Path, system: str, campaign: Campaign) -> _Work:
    known = recorded(paths.results_dir(home), system, campaign.name)
    listed, missing, places = None, dict[str, str](), dict[str, Place]()
    if is_provisioned(home, system):
        described = load_system(home, system)
        listed, missing = selected_cases(home, described, campaign)
        places = {
            f"{system}:{name}": Place(
                nodes=len(each.nodes),
                cores=each.cores,
                memory_mib=0 if described.demonstration else each.memory_mib,
                rack_nodes=each.rack_nodes,
            )
            for name, each in described.classes.items()
        }
    elif not known.runs and system not in known_systems(home):
        raise unknown_system(home, system)
    else:
        check_variables(home, campaign)
    stated = _stated(home, campaign, known, listed)
    sessions = sessions_of(campaign, known, listed, missing, stated)
    return _Work(sessions, known, stated, places, listed is not None)


def _stated(
    home: Path,
    campaign: Campaign,
    known: Recorded,
    listed: Sequence[ListedCase] | None,
) -> Stated:
    """Ask the checks, which takes seconds, if some case of ours never ran."""
    cases = [
        case
        for case in listed
        or (each for newest in known.newest.values() for each in newest)
        if case.check in campaign.checks
    ]
    ran = all(str(case) in known.times or str(case) in known.skipped for case in cases)
    if ran and {case.check for case in cases} >= set(campaign.checks):
        return {}
    jobs = {case.parameters["mix"]: "" for case in cases if case.check == JOB}
    mix = format_mix(jobs.items())
    return typical_cases(paths.checks_dir(home), home, mix)


def _criteria(
    home: Path, system: str, campaign: str, notes: list[str]
) -> Criteria | None:
    file = paths.criteria_file(home, system)
    if file.is_file():
        return Criteria.load(file).of_campaign(campaign)
    notes.append(f"no criteria: {file} is missing")
    return None
