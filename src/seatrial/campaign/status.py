"""The progress of an open run, from its folder, its lock, and Slurm."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from seatrial.campaign.node_log import Loss, in_words
from seatrial.campaign.schedule import Agenda, Planned, read_agenda
from seatrial.campaign.session_log import CaseState, Running, live_cases, running
from seatrial.errors import SeatrialError
from seatrial.model.cases import Case
from seatrial.progress import Durations, TimeLeft, duration
from seatrial.runs.closed_run import MANIFEST, case_from, read_cases, read_json
from seatrial.runs.closed_sessions import read_starts
from seatrial.runs.lock import driver_of
from seatrial.runs.open_run import SESSIONS_FOLDER, WORK_FOLDER
from seatrial.runs.raw_output import INTERRUPTED
from seatrial.system import slurm


@dataclass(frozen=True)
class Status:
    """Progress of an open run.

    `alive`: its driver is at work; `driver` is that or the last one: host, pid, start.
    `closing`: all is measured, and only the folder is to be finished. `done` counts
    cases by what became of their last try, `retries` the tries before it. `orphans`
    are jobs of a driver that is gone, `interrupted` folders of tries that were cut
    off. `clock` says where the clock went back. `left_s` is None where nothing is
    known. `lost` tells of nodes that were lost in closed sessions, by name.
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
    retries: int
    interrupted: tuple[str, ...]
    clock: tuple[str, ...]
    left_s: float | None


@dataclass(frozen=True)
class _Session:
    """A planned session: its record and its cases if it is closed, else those so far.

    `took` are durations in seconds by text of the case.
    """

    planned: Planned
    record: dict[str, Any] | None
    states: tuple[CaseState, ...]
    took: tuple[tuple[str, float], ...] = ()


def read_status(folder: Path, known: Durations) -> Status | None:
    """Read how far an open run is; None if it was closed meanwhile.

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
    sessions = [
        _session(folder, planned, driver is not None) for planned in agenda.sessions
    ]
    states = [state for session in sessions for state in session.states]
    if closing:
        states = [state for state, _ in _last_tries(read_cases(folder))]
    jobs = _jobs(folder, agenda)
    at_work = tuple(
        running(state, session.planned.name, jobs or [])
        for session in sessions
        for state in session.states
        if state.result is None and not closing
    )
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
        sessions_closed=sum(closing or each.record is not None for each in sessions),
        cases=sum(len(each.cases) + len(each.missing) for each in agenda.sessions),
        done=_done(states),
        running=at_work,
        slurm_answers=jobs is not None,
        orphans=() if driver else tuple(job.job_id for job in jobs or []),
        failed_by_node=_failed_by_node(states),
        lost=_lost(sessions),
        retries=sum(max(state.attempt - 1, 0) for state in states),
        interrupted=_interrupted(folder),
        clock=tuple(_clock(agenda, sessions)),
        left_s=0.0 if closing else _left(sessions, at_work, known),
    )


def _session(folder: Path, planned: Planned, alive: bool) -> _Session:
    """Read one session; what a dead driver left of one does not count."""
    file = folder / SESSIONS_FOLDER / f"{planned.name}.json"
    if file.is_file():
        record = read_json(file)
        try:
            tries = _last_tries(case_from(row) for row in record["cases"])
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise SeatrialError(f"{file}: damaged: {error!r}") from error
        states = tuple(state for state, _ in tries)
        took = tuple((state.case, took) for state, took in tries if took is not None)
        return _Session(planned, record, states, took)
    if not alive:
        return _Session(planned, None, ())
    log = folder / "raw" / planned.name / "reframe.txt"
    return _Session(planned, None, live_cases(log, folder / WORK_FOLDER / planned.name))


def _last_tries(cases: Iterable[Case]) -> list[tuple[CaseState, float | None]]:
    """Return each case as its last try left it, and the seconds that this took."""
    last: dict[tuple[str, str], Case] = {}
    for case in cases:
        key = case.session, _text(case)
        if key not in last or case.attempt > last[key].attempt:
            last[key] = case
    return [
        (CaseState(_text(case), case.result, case.attempt, case.nodes), case.elapsed_s)
        for case in last.values()
    ]


def _text(case: Case) -> str:
    return str(case.key.listed)


def _jobs(folder: Path, agenda: Agenda) -> list[slurm.Job] | None:
    """Ask Slurm for the jobs of a run; None if it does not answer."""
    if agenda.replay is not None:
        return []
    return slurm.jobs(f"seatrial:{agenda.run}:", folder.stat().st_uid)


def _done(states: Sequence[CaseState]) -> dict[str, int]:
    counts = Counter(state.result for state in states)
    return {"pass": counts["pass"], "fail": counts["fail"], "skip": counts["skip"]}


def _failed_by_node(states: Sequence[CaseState]) -> dict[str, int]:
    """Count the failed cases of each node, most first."""
    failed = (state for state in states if state.result == "fail")
    counts = Counter(node for state in failed for node in state.nodes)
    return dict(sorted(counts.items(), key=lambda each: (-each[1], each[0])))


def _lost(sessions: Sequence[_Session]) -> dict[str, str]:
    """Describe each node that was lost in closed sessions."""
    losses: dict[str, list[Loss]] = {}
    for session in sessions:
        for row in (session.record or {}).get("lost", ()):
            losses.setdefault(row["node"], []).append(Loss.of(row))
    return {name: in_words(losses[name]) for name in sorted(losses)}


def _interrupted(folder: Path) -> tuple[str, ...]:
    found = (folder / "raw").glob(f"*{INTERRUPTED}*")
    return tuple(sorted(str(path.relative_to(folder)) for path in found))


def _left(
    sessions: Sequence[_Session], at_work: Sequence[Running], known: Durations
) -> float | None:
    """Estimate the seconds that the sessions which are not closed take yet."""
    waiting = []
    for session in sessions:
        if session.record is None:
            ended = {state.case for state in session.states if state.result}
            waiting += [c for c in session.planned.cases if str(c) not in ended]
    left = TimeLeft(waiting, known)
    for session in sessions:
        for case, seconds in session.took:
            left.learn(case, seconds)
    for each in at_work:
        if each.waits is None and each.since is not None:
            left.start(each.case, spent=time.time() - each.since)
    return left.seconds()


def _clock(agenda: Agenda, sessions: Sequence[_Session]) -> Iterator[str]:
    """Say where the clock went back: the sessions followed each other in time."""
    last, before = datetime.fromisoformat(agenda.created), "the run was planned"
    moments = [
        (datetime.fromisoformat(session.record[key]), f"{session.planned.name} {key}")
        for session in sessions
        if session.record is not None
        for key in ("started", "ended")
    ]
    moments.append((datetime.fromtimestamp(time.time(), last.tzinfo), "this look"))
    for moment, what in moments:
        if moment < last:
            back = duration((last - moment).total_seconds())
            yield f"{what} {moment.isoformat()}, {back} before {before}"
        last, before = moment, what
