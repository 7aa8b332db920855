"""The driver: a campaign as small ReFrame sessions, from the first to a closed run.

Each session closes by itself. A run that was cut off, by whatever it was, is resumed:
what is closed stays as it is, the rest runs.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rich.console import Console

import seatrial
from seatrial.campaign.campaign_file import Campaign
from seatrial.campaign.concurrent_runs import other_runs, starting
from seatrial.campaign.job_watch import LostJobError
from seatrial.campaign.manifest import run_manifest
from seatrial.campaign.schedule import (
    Agenda,
    Planned,
    frozen,
    plan_sessions,
    read_agenda,
)
from seatrial.campaign.session import Session, comment_of
from seatrial.campaign.session_parts import run_parts
from seatrial.checks.listing import describe_checks, list_cases
from seatrial.errors import Exit, SeatrialError
from seatrial.interrupts import interruptible, postponed
from seatrial.model.cases import ListedCase
from seatrial.paths import WEIGHTS_FILE, checks_dir, criteria_file, restrict_umask
from seatrial.progress import Display
from seatrial.runs.closed_run import SYSTEM_FOLDER, known_durations
from seatrial.runs.closed_sessions import (
    close_session,
    closed_session,
    note_start,
    read_starts,
    session_table,
    set_aside,
)
from seatrial.runs.lock import driver_lock
from seatrial.runs.open_run import (
    WORK_FOLDER,
    RunFolder,
    copy_files,
    disk_errors,
    try_folder,
    utc_text,
    write_file,
)
from seatrial.runs.raw_output import recordings
from seatrial.runs.recorded_system import recorded_states
from seatrial.system import slurm
from seatrial.system.description import NodeState, System, node_states
from seatrial.system.features import needed, why_not

_CLOCK_TOLERANCE_S = 1.0
_MOST_LOSSES = 2
"""How often one session may lose its jobs before the run stops."""


@dataclass(frozen=True)
class Order:
    """What to run where; `partial` if some checks of the campaign are left out.

    `replay` is a folder of recordings, to be taken in place of programs. `beside`
    allows another run of the system at the same time.
    """

    home: Path
    results: Path
    system: System
    campaign: Campaign
    run_id: str
    partial: bool = False
    replay: Path | None = None
    beside: bool = False


def run_campaign(order: Order, console: Console) -> Path:
    """Run a campaign on this machine; give the path of the closed run.

    Raises SeatrialError if Slurm does not answer, no node is up, a check is unknown
    or cannot be loaded, another run of the system is at work, the disk is full, or the
    user interrupts. The folder of the run then stays open: it is never taken for a
    complete run.
    """
    folder = RunFolder(order.results, order.system.name, order.run_id)
    try_folder(folder.final.parent)
    if order.replay is not None:
        recordings(order.replay)  # an error if there are none
    states = _states(order.system, order.replay, console)
    listed = _listed(order)
    lacking = _without_cases(order, listed)
    agenda = Agenda(
        run=order.run_id,
        system=order.system.name,
        created=utc_text(),
        campaign=frozen(order.campaign),
        sessions=plan_sessions(order.campaign, listed, lacking),
        partial=order.partial,
        replay=None if order.replay is None else str(order.replay),
    )
    with ExitStack() as start:
        if order.replay is None:
            alone = starting(order.system, folder, console, beside=order.beside)
            start.enter_context(alone)
        folder.create(agenda.write())
        return _drive(order.home, order.system, states, folder, console, start)


def resume_run(
    home: Path,
    system: System,
    folder: RunFolder,
    console: Console,
    *,
    beside: bool = False,
) -> Path:
    """Go on with a run that was cut off; give the path of the closed run.

    Jobs that it left behind are cancelled first. Raises SeatrialError as
    `run_campaign` does, and if another driver is at work on it.
    """
    agenda = read_agenda(folder.path)
    states = _states(system, _replay_of(agenda), console)
    with ExitStack() as start:
        if agenda.replay is None:
            start.enter_context(starting(system, folder, console, beside=beside))
        return _drive(home, system, states, folder, console, start)


def _drive(
    home: Path,
    system: System,
    states: tuple[NodeState, ...],
    folder: RunFolder,
    console: Console,
    start: ExitStack,
) -> Path:
    restrict_umask()
    with _stoppable(folder.path), driver_lock(folder.path) as lock:
        start.close()
        agenda = read_agenda(folder.path)
        if folder.written:
            return folder.finish()
        if system.uses_slurm and read_starts(folder.path):
            _cancel_orphans(agenda.run, console)
        with disk_errors(folder.path):
            _begin(folder.path, home, system, agenda)
            run = _Run(home, system, states, folder, agenda, lock)
            run.sessions(console)
            with postponed():
                return run.close()


@dataclass
class _Run:
    """A run on its way."""

    home: Path
    system: System
    states: tuple[NodeState, ...]
    folder: RunFolder
    agenda: Agenda
    lock: int

    def sessions(self, console: Console) -> None:
        """Run every session that is not closed, one after the other."""
        closed = {
            planned.name: closed_session(self.folder.path, planned.name)
            for planned in self.agenda.sessions
        }
        left = [each for each in self.agenda.sessions if closed[each.name] is None]
        done = len(self.agenda.sessions) - len(left)
        if done:
            console.print(
                f"{done} of {len(self.agenda.sessions)} sessions are closed already",
                markup=False,
            )
        ended = max(
            (_seconds(each.record["ended"]) for each in closed.values() if each),
            default=0.0,
        )
        cases = [case for planned in left for case in planned.cases]
        results = self.folder.final.parent.parent
        known = {} if self.agenda.replay else known_durations(results, self.system.name)
        with Display(console, cases, known) as display:
            for planned in left:
                ended = self._tried(planned, display, ended)

    def _look_again(self, display: Display) -> tuple[NodeState, ...]:
        """See which nodes are there by now; a controller that is away comes back."""
        if self.system.uses_slurm:
            with suppress(SeatrialError):
                before = self.states
                self.states = node_states(self.system)
                for state in self.states:
                    if not state.present and state not in before:
                        display.warn(_absent(state))
        return self.states

    def _tried(self, planned: Planned, display: Display, earlier: float) -> float:
        """Run one session, anew if Slurm loses its jobs."""
        for _ in range(_MOST_LOSSES):
            try:
                return self._session(planned, display, earlier)
            except LostJobError as loss:
                display.warn(f"{str(loss).partition(';')[0]}; the session starts anew")
        return self._session(planned, display, earlier)

    def _session(self, planned: Planned, display: Display, earlier: float) -> float:
        """Run one session and close it; give the latest end of all so far."""
        path = self.folder.path
        interrupted = set_aside(path, planned.name)
        beside = self._beside()
        session = Session(
            run_id=self.agenda.run,
            planned=planned,
            raw=path / "raw" / planned.name,
            work=path / WORK_FOLDER / planned.name,
            retries=self.agenda.campaign["retries"],
            max_jobs=self.agenda.campaign["max_jobs"],
            replay=_replay_of(self.agenda),
            inherited=self.lock,
        )
        finished = run_parts(
            *(session, self.system, checks_dir(self.home), self.home, display),
            states=lambda: self._look_again(display),
        )
        outcome = finished.outcome
        record = {
            "name": planned.name,
            "block": planned.block,
            "repeat": planned.repeat,
            "variables": planned.variables,
            "started": utc_text(outcome.started),
            "ended": utc_text(outcome.ended),
            "absent": finished.absent,
            "lost": [loss.as_dict() for loss in finished.losses],
            "interrupted": interrupted,
        }
        beside |= self._beside()
        if beside:
            record["beside"] = sorted(beside)
        if outcome.started < earlier - _CLOCK_TOLERANCE_S:
            back = earlier - outcome.started
            record["clock_went_back_s"] = round(back)
            display.warn(f"the clock went back by {back:.0f} s since the last session")
        with postponed():
            found = finished.collected
            close_session(path, record, found.cases, found.measurements)
        return max(earlier, outcome.ended)

    def _beside(self) -> set[str]:
        """Return the other runs of the system that are at work now."""
        if self.agenda.replay is not None:
            return set()
        others = other_runs(self.system, self.folder)
        return {other.run for other in others if other.at_work}

    def close(self) -> Path:
        """Put the closed sessions together and close the run for good."""
        path = self.folder.path
        closed = []
        for planned in self.agenda.sessions:
            session = closed_session(path, planned.name)
            assert session is not None, "all of them have run"
            closed.append(session)
        import polars as pl

        tables = [session_table(path, planned.name) for planned in self.agenda.sessions]
        cases = [case for session in closed for case in session.cases]
        starts = read_starts(path)
        manifest = run_manifest(self.agenda, self.system, self.states, closed, starts)
        return self.folder.close(manifest, cases, pl.concat(tables))


def _states(
    system: System, replay: Path | None, console: Console
) -> tuple[NodeState, ...]:
    """Look at the delivered nodes, and say which are absent."""
    states = node_states(system) if replay is None else recorded_states(system, replay)
    for state in states:
        if not state.present:
            console.print(_absent(state), markup=False)
    return states


def _absent(state: NodeState) -> str:
    return f"node {state.node.name} is absent: {state.reason}; the rest runs without it"


def _begin(path: Path, home: Path, system: System, agenda: Agenda) -> None:
    """Record a start of the driver, and system and criteria if they are new.

    Weights are those of the agenda: a change of them during a run counts for nothing.
    """
    number = len(read_starts(path)) + 1
    kept = path / SYSTEM_FOLDER
    criteria = criteria_file(home, system.name)
    files = (*system.files, *([criteria] if criteria.is_file() else []))
    changed = [
        file
        for file in files
        if not (kept / file.name).is_file()
        or (kept / file.name).read_bytes() != file.read_bytes()
    ]
    if changed:
        # What the system was like before stays as it is, and what it had to reach.
        kept = kept / f"start-{number}" if kept.is_dir() and number > 1 else kept
        for file in files:
            copy_files([file], file.parent, kept)
    weights = agenda.campaign.get("weights")
    if weights:
        write_file(path / SYSTEM_FOLDER / WEIGHTS_FILE, weights["text"].encode())
    start = {
        "started": utc_text(),
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "seatrial": seatrial.__version__,
        "git_commit": system.suite.get("git_commit"),
    }
    note_start(path, start)


def _cancel_orphans(run_id: str, console: Console) -> None:
    """Cancel the jobs that a driver of this run left behind, and see them gone."""
    jobs = slurm.cancel_all(comment_of(run_id))
    if jobs:
        console.print(f"cancelled jobs left behind: {', '.join(jobs)}", markup=False)


def _replay_of(agenda: Agenda) -> Path | None:
    return None if agenda.replay is None else Path(agenda.replay)


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _listed(order: Order) -> tuple[ListedCase, ...]:
    """List the cases of the system, whichever checks the campaign names."""
    system, home = order.system, order.home
    return list_cases(system.settings, system.name, checks_dir(home), home)


def _without_cases(order: Order, listed: tuple[ListedCase, ...]) -> dict[str, str]:
    """Tell what the system lacks for each check of the campaign that has no case.

    Raises SeatrialError if a check is unknown.
    """
    missing = set(order.campaign.checks) - {case.check for case in listed}
    if not missing:
        return {}
    needs = needed(describe_checks(checks_dir(order.home), order.home))
    unknown = sorted(missing - needs.keys())
    if unknown:
        raise SeatrialError(
            f"campaign {order.campaign.name!r} names unknown checks: "
            f"{', '.join(unknown)}; known checks: {', '.join(sorted(needs))}"
        )
    return {name: why_not(needs[name], order.system.features) for name in missing}


@contextmanager
def _stoppable(folder: Path) -> Iterator[None]:
    """Let an interrupt end the run, and say what became of it."""
    try:
        with interruptible():
            yield
    except KeyboardInterrupt:
        became = "the run was closed before that"
        if folder.exists():
            became = (
                f"the jobs of this run are cancelled; {folder} stays open and is not "
                f"judged; go on with `seatrial run {folder.parent.name} --resume`"
            )
        raise SeatrialError(f"interrupted: {became}", Exit.INTERRUPTED) from None
