"""The cost of a campaign: jobs, durations, node-hours.

Cases and times are recorded ones; those of cases that never ran are typical ones, as
their checks state them.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import fmean, median

from seatrial.campaign.campaign_file import Campaign
from seatrial.campaign.schedule import Planned, plan_sessions
from seatrial.checks.growth import Place
from seatrial.checks.typical import Stated, Typical
from seatrial.errors import SeatrialError
from seatrial.model.cases import Case, ListedCase
from seatrial.model.manifest import read_manifest
from seatrial.runs.closed_run import closed_runs, read_cases

_RUNS = 20
_LAST_TIMES = 3


@dataclass(frozen=True)
class Recorded:
    """Durations of the cases in the newest runs of a system, by their texts.

    `times` are seconds, the newest last; `nodes` those of a job; `newest` lists by
    check the cases of the newest run that has it, preferably of the campaign.
    `skipped` cases were skipped in their last run. `between_s` is the time of a session
    outside its jobs.
    """

    times: Mapping[str, Sequence[float]]
    nodes: Mapping[str, int]
    newest: Mapping[str, Sequence[ListedCase]]
    skipped: frozenset[str]
    delivered: int
    between_s: float
    runs: int


@dataclass(frozen=True)
class CheckCost:
    """The jobs of one check: their number, seconds of each, node-hours of all.

    `typical` counts the jobs whose time is stated by the check, not recorded.
    `node_hours` is None where the number of nodes is unknown.
    """

    check: str
    jobs: int
    seconds: float
    node_hours: float | None
    typical: int


@dataclass(frozen=True)
class Cost:
    """The cost of a campaign. `wall_s` takes concurrent jobs into account.

    `between_s` of it is the time of sessions outside their jobs. `nothing`: the reasons
    by check without a job.
    """

    sessions: int
    jobs: int
    wall_s: float
    between_s: float
    node_hours: float | None
    checks: tuple[CheckCost, ...]
    nothing: Mapping[str, str]


@dataclass(frozen=True)
class _Job:
    check: str
    seconds: float
    nodes: int
    typical: bool

    @property
    def node_hours(self) -> float | None:
        return self.seconds * self.nodes / 3600 if self.nodes else None


def recorded(results: Path, system: str, campaign: str) -> Recorded:
    """Read the newest closed runs of a system; replays are left out."""
    times: dict[str, list[float]] = defaultdict(list)
    nodes: dict[str, int] = {}
    own: dict[str, dict[ListedCase, None]] = {}
    others: dict[str, dict[ListedCase, None]] = {}
    skipped: dict[str, bool] = {}
    between: list[float] = []
    delivered = runs = 0
    for path in closed_runs(results, system)[-_RUNS:]:
        with suppress(SeatrialError):
            manifest = read_manifest(path)
            cases = [case for case in read_cases(path) if not case.replay]
            if manifest.get("replay") or not cases:
                continue
            runs += 1
            delivered = len(manifest["nodes"])
            between += _between(manifest, cases)
            by_check: dict[str, dict[ListedCase, None]] = defaultdict(dict)
            for case in cases:
                listed, text = case.key.listed, str(case.key.listed)
                by_check[case.check][listed] = None
                skipped[text] = case.result == "skip"
                if case.elapsed_s is not None and case.result != "skip":
                    times[text].append(case.elapsed_s)
                    nodes[text] = len(case.nodes)
            (own if manifest.get("campaign") == campaign else others).update(by_check)
    return Recorded(
        times=times,
        nodes=nodes,
        newest={check: list(cases) for check, cases in (others | own).items()},
        skipped=frozenset(text for text, skip in skipped.items() if skip),
        delivered=delivered,
        between_s=median(between) if between else 0.0,
        runs=runs,
    )


def sessions_of(
    campaign: Campaign,
    known: Recorded,
    listed: Sequence[ListedCase] | None,
    missing: Mapping[str, str],
    stated: Stated,
) -> tuple[Planned, ...]:
    """Plan the campaign's sessions.

    `listed` are all cases of the system, None if only records know them: then checks
    that never ran have the cases that they state. Raises SeatrialError if a check is in
    none of them, or a parameter has no such value.
    """
    if listed is not None:
        return plan_sessions(campaign, listed, missing)
    cases = [case for check in campaign.checks for case in known.newest.get(check, ())]
    never = [check for check in campaign.checks if check not in known.newest]
    unknown = [check for check in never if check not in stated]
    if unknown:
        raise SeatrialError(
            f"campaign {campaign.name!r} names unknown checks: {', '.join(unknown)}"
        )
    cases += [ListedCase(name, "?", "?") for check in never for name in stated[check]]
    return plan_sessions(campaign, cases, missing)


def cost(
    sessions: Sequence[Planned],
    known: Recorded,
    stated: Stated,
    max_jobs: int,
    places: Mapping[str, Place],
) -> Cost:
    """Add up jobs, time and node-hours.

    `places` are the classes of nodes by their full names; without any the nodes are
    those of recorded runs. At most `max_jobs` run at a time, in their order, and
    together on no more than these nodes. A case that was skipped in its last run is no
    job. Retries are not counted.
    """
    delivered = sum(place.nodes for place in places.values()) or known.delivered
    jobs = [
        _jobs(session, known, stated, places, Place(delivered)) for session in sessions
    ]
    by_check: dict[str, list[_Job]] = defaultdict(list)
    for job in (job for session in jobs for job in session):
        by_check[job.check].append(job)
    checks = tuple(
        CheckCost(
            check=check,
            jobs=len(own),
            seconds=fmean(job.seconds for job in own),
            node_hours=_total(job.node_hours for job in own),
            typical=sum(job.typical for job in own),
        )
        for check, own in by_check.items()
    )
    between_s = known.between_s * len(sessions)
    nothing: dict[str, str] = {}
    for session in sessions:
        nothing |= session.missing
    for check in (name for session in sessions for name in session.checks):
        if check not in by_check:
            nothing.setdefault(check, "its cases were skipped when they came up last")
    return Cost(
        sessions=len(sessions),
        jobs=sum(map(len, jobs)),
        wall_s=sum(_wall(own, max_jobs, delivered) for own in jobs) + between_s,
        between_s=between_s,
        node_hours=_total(check.node_hours for check in checks),
        checks=checks,
        nothing=nothing,
    )


def allocations(sessions: Iterable[Planned]) -> Counter[str]:
    """Count the runs of each case by its text."""
    return Counter(str(case) for session in sessions for case in session.cases)


def _total(hours: Iterable[float | None]) -> float | None:
    """Add up hours; None if some are unknown."""
    known = list(hours)
    return None if None in known else sum(filter(None, known))


def _between(manifest: Mapping[str, object], cases: Sequence[Case]) -> list[float]:
    """Return the seconds per session of a run outside its cases."""
    sessions = len({case.session for case in cases})
    used = sum(case.elapsed_s or 0.0 for case in cases)
    try:
        began, ended = (
            datetime.fromisoformat(str(manifest[key])) for key in ("started", "ended")
        )
    except (KeyError, ValueError):
        return []
    return [max(0.0, (ended - began).total_seconds() - used) / sessions] if used else []


def _jobs(
    session: Planned,
    known: Recorded,
    stated: Stated,
    places: Mapping[str, Place],
    machine: Place,
) -> list[_Job]:
    """Return the jobs of a session; cases of an unknown class take the machine."""
    jobs = []
    for case in session.cases:
        text = str(case)
        if text in known.skipped:
            continue
        place = places.get(case.partition, machine)
        typical = _typical(stated.get(case.check, {}), case.case)
        times = known.times.get(text, ())[-_LAST_TIMES:]
        seconds = (
            fmean(times)
            if times
            else typical.seconds_on(case.check, place, session.variables)
        )
        nodes = known.nodes.get(text) or typical.nodes_on(place)
        jobs.append(_Job(case.check, seconds, nodes, typical=not times))
    return jobs


def _typical(of_check: Mapping[str, Typical], case: str) -> Typical:
    """Return the time of a case; its parameters may have values of the system only."""
    return of_check.get(case) or next(iter(of_check.values()), Typical(0.0))


def _wall(jobs: Sequence[_Job], max_jobs: int, delivered: int) -> float:
    """Return the time until the last job ends; jobs start in their order."""
    if max_jobs == 1:
        return sum(job.seconds for job in jobs)
    running: list[tuple[float, int]] = []
    now = 0.0
    for job in jobs:
        nodes = min(job.nodes or delivered, delivered)
        while running and (
            len(running) >= max_jobs
            or sum(used for _, used in running) + nodes > delivered
        ):
            now = heapq.heappop(running)[0]
        heapq.heappush(running, (now + job.seconds, nodes))
    return max((end for end, _ in running), default=0.0)
