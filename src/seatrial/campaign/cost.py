"""The cost of a campaign: its jobs, how long they take, their node-hours.

Cases and times are those that were recorded; what never ran is taken from the
catalogue, and marked.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from math import prod
from pathlib import Path
from statistics import fmean, median

from seatrial.campaign.campaign_file import Block, Campaign
from seatrial.campaign.schedule import Planned, plan_sessions
from seatrial.checks.catalogue import Entry
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
    `skipped` cases found no use when they came up last. `between_s` is what a session
    takes beside its jobs.
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
    """The jobs of one check: how many, seconds of each, node-hours of all.

    `stated`: some of the times are those that the check states, not recorded ones.
    `node_hours` is None where the number of nodes is unknown.
    """

    check: str
    jobs: int
    seconds: float
    node_hours: float | None
    stated: bool


@dataclass(frozen=True)
class Cost:
    """What a campaign costs. `wall_s` takes into account how many jobs run at a time.

    `between_s` of it is what sessions take beside their jobs. `nothing` tells for the
    checks without a job why.
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
    nodes: int | None
    stated: bool


def recorded(results: Path, system: str, campaign: str) -> Recorded:
    """Read the newest closed runs of a system; replays are left out."""
    times: dict[str, list[float]] = defaultdict(list)
    nodes: dict[str, int] = {}
    newest: dict[str, tuple[bool, list[ListedCase]]] = {}
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
            by_check: dict[str, dict[str, ListedCase]] = defaultdict(dict)
            for case in cases:
                listed = case.key.listed
                by_check[case.check][str(listed)] = listed
                skipped[str(listed)] = case.result == "skip"
                if case.elapsed_s is not None and case.result != "skip":
                    times[str(listed)].append(case.elapsed_s)
                    nodes[str(listed)] = len(case.nodes)
            own = manifest.get("campaign") == campaign
            for check, found in by_check.items():
                if own or not newest.get(check, (False,))[0]:
                    newest[check] = (own, list(found.values()))
    return Recorded(
        times=times,
        nodes=nodes,
        newest={check: found for check, (_, found) in newest.items()},
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
    entries: Mapping[str, Entry],
) -> tuple[Planned, ...]:
    """Lay out the campaign's sessions.

    `listed` are all cases of the system, None where only records know them; then
    `entries` of the catalogue say how many cases a check has that was never run.
    Raises SeatrialError if a check is in none of them, or a parameter has no such
    value.
    """
    if listed is not None:
        return plan_sessions(campaign, listed, missing)
    cases = [case for check in campaign.checks for case in known.newest.get(check, ())]
    never = [check for check in campaign.checks if check not in known.newest]
    unknown = [check for check in never if check not in entries]
    if unknown:
        raise SeatrialError(
            f"campaign {campaign.name!r} names unknown checks: {', '.join(unknown)}"
        )
    for check in never:
        chosen = _chosen(campaign, check)
        number = prod(map(len, chosen.values())) if chosen else entries[check].cases
        cases += [
            ListedCase(f"{check} (choice {each})", "?", "?")
            for each in range(1, number + 1)
        ]
    blocks = tuple(_without(block, never) for block in campaign.blocks)
    controls = campaign.controls and _without(campaign.controls, never)
    return plan_sessions(
        replace(campaign, blocks=blocks, controls=controls), cases, missing
    )


def cost(
    sessions: Sequence[Planned],
    known: Recorded,
    entries: Mapping[str, Entry],
    max_jobs: int,
    delivered: int,
) -> Cost:
    """Add up jobs, time and node-hours.

    At most `max_jobs` run at a time, in their order, and together on no more than the
    `delivered` nodes (0: unknown). A case that was skipped when it came up last is
    no job. Retries are not counted.
    """
    jobs = [_jobs(each, known, entries, delivered) for each in sessions]
    checks: dict[str, list[_Job]] = defaultdict(list)
    for job in (job for session in jobs for job in session):
        checks[job.check].append(job)
    costs = tuple(_check_cost(check, found) for check, found in checks.items())
    hours = [each.node_hours for each in costs if each.node_hours is not None]
    between_s = known.between_s * len(sessions)
    nothing = {check: why for each in sessions for check, why in each.missing.items()}
    for check in dict.fromkeys(name for each in sessions for name in each.checks):
        if check not in checks:
            nothing.setdefault(check, "its cases were skipped when they came up last")
    return Cost(
        sessions=len(sessions),
        jobs=sum(map(len, jobs)),
        wall_s=sum(_wall(each, max_jobs, delivered) for each in jobs) + between_s,
        between_s=between_s,
        node_hours=sum(hours) if len(hours) == len(costs) else None,
        checks=costs,
        nothing=nothing,
    )


def allocations(sessions: Iterable[Planned]) -> Counter[str]:
    """Count how often each case runs, by its text."""
    return Counter(str(case) for session in sessions for case in session.cases)


def _between(manifest: Mapping[str, object], cases: Sequence[Case]) -> list[float]:
    """Return the seconds per session of a run beside its cases."""
    sessions = len({case.session for case in cases})
    try:
        began, ended = (
            datetime.fromisoformat(str(manifest[key])) for key in ("started", "ended")
        )
    except (KeyError, ValueError):
        return []
    used = sum(case.elapsed_s or 0.0 for case in cases)
    if not used:
        return []
    return [max(0.0, (ended - began).total_seconds() - used) / sessions]


def _chosen(campaign: Campaign, check: str) -> Mapping[str, Sequence[str]]:
    blocks = [*campaign.blocks, *([campaign.controls] if campaign.controls else [])]
    found = [each.parameters[check] for each in blocks if check in each.parameters]
    return found[0] if found else {}


def _without(block: Block, checks: Sequence[str]) -> Block:
    """Remove the chosen parameters of some checks."""
    kept = {
        name: found for name, found in block.parameters.items() if name not in checks
    }
    return replace(block, parameters=kept)


def _jobs(
    session: Planned, known: Recorded, entries: Mapping[str, Entry], delivered: int
) -> list[_Job]:
    jobs = []
    for case in session.cases:
        text = str(case)
        if text in known.skipped:
            continue
        times = known.times.get(text)
        entry = entries.get(case.check)
        seconds = fmean(times[-_LAST_TIMES:]) if times else 0.0
        if not times and entry is not None:
            seconds = entry.typical_s
        nodes = known.nodes.get(text) or delivered or None
        jobs.append(_Job(case.check, seconds, nodes, stated=not times))
    return jobs


def _check_cost(check: str, jobs: Sequence[_Job]) -> CheckCost:
    hours = [job.seconds * job.nodes / 3600 for job in jobs if job.nodes is not None]
    return CheckCost(
        check=check,
        jobs=len(jobs),
        seconds=fmean(job.seconds for job in jobs),
        node_hours=sum(hours) if len(hours) == len(jobs) else None,
        stated=any(job.stated for job in jobs),
    )


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
