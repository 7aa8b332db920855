"""The progress of an open run, from its folder, its lock, and Slurm."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

from seatrial.campaign.node_log import Loss, in_words
from seatrial.campaign.schedule import Agenda, Planned, read_agenda
from seatrial.campaign.session_command import comment_of
from seatrial.campaign.session_log import CaseState, Running, live_cases, running
from seatrial.campaign.spoiled_cases import in_lines, spoiled_cases
from seatrial.errors import SeatrialError
from seatrial.model.cases import Case, CaseResult
from seatrial.model.manifest import MANIFEST
from seatrial.progress import Durations, TimeLeft, duration
from seatrial.runs.closed_run import read_cases
from seatrial.runs.closed_sessions import read_session, read_starts
from seatrial.runs.lock import driver_of
from seatrial.runs.open_run import WORK_FOLDER
from seatrial.runs.raw_output import INTERRUPTED
from seatrial.system import slurm


@dataclass(frozen=True)
class Status:
    """Progress of an open run.

    `alive`: its driver is at work; `driver` is that or the last one: host, pid, start.
    `closing`: all is measured, only the folder is not finished. `done` counts cases by
    the result of their last try, `retries` the tries before it. `orphans` are jobs of a
    driver that is gone, `interrupted` folders of interrupted tries. `clock`: where the
    clock went back. `lost`: lost nodes of closed sessions, by name, `spoiled` the cases
    that they spoiled, in lines (of a stability phase none: there they are events).
    `left_s`: None if unknown.
    """

    run: str
    system: str
    path: str
    campaign: str
    replay: bool
    alive: bool
    driver: dict[str, Any]
    closing: bool
    sessions: int
    sessions_closed: int
    cases: int
    done: dict[str, int]
    running: tuple[Running, ...]
    slurm_answers: bool
    orphans: tuple[str, ...]
    failed_by_node: dict[str, int]
    lost: dict[str, str]
    spoiled: tuple[str, ...]
    retries: int
    interrupted: tuple[str, ...]
    clock: tuple[str, ...]
    left_s: float | None


@dataclass(frozen=True)
class _Session:
    """A planned session, and its cases so far; its record and cases if closed."""

    planned: Planned
    record: dict[str, Any] | None
    states: tuple[CaseState, ...]
    closed: tuple[Case, ...] = ()


def read_status(folder: Path, known: Durations) -> Status | None:
    """Read the progress of an open run; None if it was closed meanwhile.

    `known` are durations in seconds of cases in earlier runs. Raises SeatrialError if
    a file of the run is damaged.
    """
    try:
        return _read_status(folder, known)
    except SeatrialError:
        if not folder.exists():
            return None
        raise


def _read_status(folder: Path, known: Durations) -> Status:
    agenda = read_agenda(folder)
    driver = driver_of(folder)
    starts = read_starts(folder)
    closing = (folder / MANIFEST).is_file()
    sessions = [_session(folder, plan, driver is not None) for plan in agenda.sessions]
    states = [state for session in sessions for state in session.states]
    if closing:
        states = _last_tries(read_cases(folder))
    jobs: list[slurm.Job] | None = []
    if agenda.replay is None:
        jobs = slurm.jobs(comment_of(agenda.run), folder.stat().st_uid)
    at_work = tuple(
        running(state, session.planned.name, jobs or [])
        for session in sessions
        for state in session.states
        if state.result is None and not closing
    )
    results = Counter(state.result for state in states)
    interrupted = (folder / "raw").glob(f"*{INTERRUPTED}*")
    return Status(
        run=agenda.run,
        system=agenda.system,
        path=str(folder),
        campaign=agenda.campaign["name"],
        replay=agenda.replay is not None,
        alive=driver is not None,
        driver=driver or (starts[-1] if starts else {}),
        closing=closing,
        sessions=len(sessions),
        sessions_closed=sum(closing or row.record is not None for row in sessions),
        cases=sum(len(plan.cases) + len(plan.missing) for plan in agenda.sessions),
        done={result: results[result] for result in get_args(CaseResult)},
        running=at_work,
        slurm_answers=jobs is not None,
        orphans=() if driver else tuple(job.job_id for job in jobs or []),
        failed_by_node=_failed_by_node(states),
        lost=_lost(sessions),
        spoiled=() if agenda.stability else _spoiled(sessions),
        retries=sum(max(state.attempt - 1, 0) for state in states),
        interrupted=tuple(sorted(str(p.relative_to(folder)) for p in interrupted)),
        clock=tuple(_clock(agenda, sessions)),
        left_s=0.0 if closing else _left(sessions, at_work, known),
    )


def _session(folder: Path, planned: Planned, alive: bool) -> _Session:
    """Read one session; files that a dead driver left do not count."""
    closed = read_session(folder, planned.name)
    if closed is not None:
        states = tuple(_last_tries(closed.cases))
        return _Session(planned, closed.record, states, closed.cases)
    states = ()
    if alive:
        log = folder / "raw" / planned.name / "reframe.txt"
        states = live_cases(log, folder / WORK_FOLDER / planned.name)
    return _Session(planned, None, states)


def _last_tries(cases: Iterable[Case]) -> list[CaseState]:
    """Return the state of each case after its last try."""
    last: dict[tuple[str, str], CaseState] = {}
    for case in cases:
        text = str(case.key.listed)
        before = last.get((case.session, text))
        if before is None or case.attempt > before.attempt:
            last[case.session, text] = CaseState(
                text, case.result, case.attempt, case.nodes, elapsed_s=case.elapsed_s
            )
    return list(last.values())


def _failed_by_node(states: Sequence[CaseState]) -> dict[str, int]:
    """Count the failed cases of each node, most first."""
    failed = (state for state in states if state.result == "fail")
    nodes = sorted(node for state in failed for node in state.nodes)
    return dict(Counter(nodes).most_common())


def _lost(sessions: Sequence[_Session]) -> dict[str, str]:
    """Describe each node that was lost in closed sessions."""
    losses: dict[str, list[Loss]] = {}
    for session in sessions:
        for row in (session.record or {}).get("lost", ()):
            losses.setdefault(row["node"], []).append(Loss(**row))
    return {name: in_words(losses[name]) for name in sorted(losses)}


def _spoiled(sessions: Sequence[_Session]) -> tuple[str, ...]:
    """Describe the cases of closed sessions that lost nodes spoiled."""
    return tuple(in_lines(spoiled_cases(c for s in sessions for c in s.closed)))


def _left(
    sessions: Sequence[_Session], at_work: Sequence[Running], known: Durations
) -> float | None:
    """Estimate the seconds that the open sessions still take."""
    waiting = []
    for session in sessions:
        if session.record is None:
            ended = {state.case for state in session.states if state.result}
            waiting += [c for c in session.planned.cases if str(c) not in ended]
    left = TimeLeft(waiting, known)
    for state in (state for session in sessions for state in session.states):
        if state.elapsed_s is not None:
            left.learn(state.case, state.elapsed_s)
    for case in at_work:
        if case.waits is None and case.since is not None:
            left.start(case.case, spent=time.time() - case.since)
    return left.seconds()


def _clock(agenda: Agenda, sessions: Sequence[_Session]) -> Iterator[str]:
    """Report where the clock went back: sessions follow each other in time."""
    last, before = datetime.fromisoformat(agenda.created), "the run was planned"
    moments = [
        (datetime.fromisoformat(session.record[key]), f"{session.planned.name} {key}")
        for session in sessions
        if session.record is not None
        for key in ("started", "ended")
    ]
    moments.append((datetime.fromtimestamp(time.time(), last.tzinfo), "this look"))
    for moment, event in moments:
        if moment < last:
            back = duration((last - moment).total_seconds())
            yield f"{event} {moment.isoformat()}, {back} before {before}"
        last, before = moment, event
