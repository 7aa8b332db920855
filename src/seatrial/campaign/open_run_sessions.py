"""Run the sessions of an open run one after the other, then close it."""

import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

from rich.console import Console

import seatrial
from seatrial.campaign.collected import Collected
from seatrial.campaign.concurrent_runs import other_runs
from seatrial.campaign.job_watch import LostJobError
from seatrial.campaign.known_durations import known_durations
from seatrial.campaign.node_log import Loss, in_words
from seatrial.campaign.run_settings import close_settings, keep_settings
from seatrial.campaign.schedule import Agenda, Planned
from seatrial.campaign.session_command import Session
from seatrial.campaign.session_counters import (
    SessionCounters,
    Snapshot,
    keep_counters,
    measurements,
)
from seatrial.campaign.session_parts import run_parts
from seatrial.checks.sources import own_metrics
from seatrial.errors import SeatrialError
from seatrial.interrupts import postponed
from seatrial.model.manifest import NEWEST_SCHEMA
from seatrial.paths import checks_dir
from seatrial.progress import Display
from seatrial.runs.closed_sessions import (
    ClosedSession,
    close_session,
    closed_session,
    read_starts,
    session_blocks,
    session_counters,
    set_aside,
)
from seatrial.runs.counters_table import counters_parquet
from seatrial.runs.open_run import WORK_FOLDER, RunFolder, utc_text
from seatrial.runs.settings_table import Moment
from seatrial.system.description import NodeState, System, node_states

_CLOCK_TOLERANCE_S = 1.0
_MOST_LOSSES = 2
"""Retries of a session whose jobs Slurm lost; then the run stops."""


@dataclass
class OpenRun:
    """An open run; `lock` is the file descriptor of its lock."""

    home: Path
    system: System
    states: tuple[NodeState, ...]
    folder: RunFolder
    agenda: Agenda
    lock: int
    counters: SessionCounters | None = None

    def sessions(self, console: Console) -> None:
        """Run every session that is not closed, one after the other."""
        sessions, path = self.agenda.sessions, self.folder.path
        states = [(planned, closed_session(path, planned.name)) for planned in sessions]
        left = [planned for planned, closed in states if closed is None]
        times = [closed.record["ended"] for _, closed in states if closed is not None]
        ends = (datetime.fromisoformat(time).timestamp() for time in times)
        ended = max(ends, default=0.0)
        if times:
            done = f"{len(times)} of {len(sessions)} sessions are closed already"
            console.print(done, markup=False)
        cases = [case for planned in left for case in planned.cases]
        results = self.folder.final.parent.parent
        known = {} if self.agenda.replay else known_durations(results, self.system.name)
        with Display(console, cases, known) as display:
            self.counters = self._counters(display)
            self._keep_settings("start", display)
            for planned in left:
                ended = self._attempt(planned, display, ended)
            self._keep_settings("end", display)

    def _keep_settings(self, moment: Moment, display: Display) -> None:
        if self.agenda.replay is None:
            keep_settings(self.system, self.folder.path, moment, display.warn)

    def _counters(self, display: Display) -> SessionCounters | None:
        if self.agenda.replay is not None:
            return None
        return SessionCounters(
            self.system, self.folder.path / WORK_FOLDER, display.warn
        )

    def _read_counters(self, session: Session, moment: Moment) -> Snapshot | None:
        if self.counters is None:
            return None
        return self.counters.read(session.planned, session.raw, moment)

    def _look_again(self, display: Display) -> tuple[NodeState, ...]:
        """Return the nodes' states; the last ones if the controller does not answer."""
        if self.system.uses_slurm:
            with suppress(SeatrialError):
                before = self.states
                self.states = node_states(self.system)
                for state in self.states:
                    if not state.present and state not in before:
                        display.warn(absence(state))
        return self.states

    def _attempt(self, planned: Planned, display: Display, earlier: float) -> float:
        """Run one session; again if Slurm loses its jobs."""
        for _ in range(_MOST_LOSSES):
            try:
                return self._session(planned, display, earlier)
            except LostJobError as loss:
                display.warn(f"{str(loss).partition(';')[0]}; the session starts anew")
        return self._session(planned, display, earlier)

    def _session(self, planned: Planned, display: Display, earlier: float) -> float:
        """Run one session and close it; return the latest end of all so far."""
        path = self.folder.path
        interrupted = set_aside(path, planned.name)
        beside = self._beside()
        session = Session(
            run_id=self.agenda.run,
            system=self.system,
            home=self.home,
            planned=planned,
            raw=path / "raw" / planned.name,
            work=path / WORK_FOLDER / planned.name,
            retries=self.agenda.campaign["retries"],
            max_jobs=self.agenda.campaign["max_jobs"],
            pack_s=60.0 * self.agenda.campaign.get("pack_minutes", 0),
            replay=replay_of(self.agenda),
            inherited=self.lock,
            by_place=self.agenda.is_of_places,
            round_s=self.agenda.round_s,
        )
        before = self._read_counters(session, "start")
        finished = run_parts(session, display, lambda: self._look_again(display))
        outcome = finished.outcome
        keys = ("name", "block", "repeat", "variables")
        record = {
            **{key: getattr(planned, key) for key in keys},
            "started": utc_text(outcome.started),
            "ended": utc_text(outcome.ended),
            "absent": finished.absent,
            "lost": [vars(loss) for loss in finished.losses],
            "interrupted": interrupted,
        }
        beside |= self._beside()
        if beside:
            record["beside"] = sorted(beside)
        if outcome.started < earlier - _CLOCK_TOLERANCE_S:
            back = earlier - outcome.started
            record["clock_went_back_s"] = round(back)
            display.warn(f"the clock went back by {back:.0f} s since the last session")
        results = finished.collected
        if results.loads.absent:
            record["absent_sensors"] = results.loads.absent
        with postponed():
            counters = self._counted(session, before, results)
            close_session(path, record, results.cases, results.blocks(), counters)
        display.explain(
            (case.check, case.result, case.reason) for case in results.cases
        )
        return max(earlier, outcome.ended)

    def _counted(
        self, session: Session, before: Snapshot | None, results: Collected
    ) -> bytes | None:
        """Read the counters after a session; add what its ports counted to results.

        Returns the table of its ports; None if they have no counters.
        """
        after = self._read_counters(session, "end")
        if self.counters is None or before is None or after is None:
            return None
        ports = self.counters.table(session.name, before, after)
        same = {key: getattr(session.planned, key) for key in ("block", "repeat")}
        same |= {"run": self.agenda.run, "session": session.name}
        results.measurements += measurements(
            ports, {**same, "system": self.system.name}
        )
        return counters_parquet(ports)

    def _beside(self) -> set[str]:
        """Return the ids of the system's other runs that are at work."""
        if self.agenda.replay is not None:
            return set()
        others = other_runs(self.system, self.folder)
        return {other.run for other in others if other.at_work}

    def close(self) -> Path:
        """Merge the closed sessions and close the run for good."""
        path = self.folder.path
        closed = []
        for planned in self.agenda.sessions:
            session = closed_session(path, planned.name)
            assert session is not None, "all of them have run"
            closed.append(session)
        names = [planned.name for planned in self.agenda.sessions]
        blocks = chain.from_iterable(session_blocks(path, name) for name in names)
        tables = [session_counters(path, name) for name in names]
        keep_counters(path, [table for table in tables if table is not None])
        cases = [case for session in closed for case in session.cases]
        manifest = {
            **self._manifest(closed),
            "settings": close_settings(self.system, path),
        }
        return self.folder.close(manifest, cases, blocks)

    def _manifest(self, closed: Sequence[ClosedSession]) -> dict[str, Any]:
        """Describe the run without checksums; system and states are the last ones."""
        agenda, system = self.agenda, self.system
        weights = agenda.campaign.get("weights")  # agendas of older versions have none
        starts = read_starts(self.folder.path)
        places = [start["ledger"] for start in starts if "ledger" in start]
        leafs = starts[0].get("leafs", {}) if starts else {}
        own = [vars(m) for m in own_metrics(checks_dir(self.home)).values()]
        return {
            "schema": NEWEST_SCHEMA,
            "run": agenda.run,
            "system": system.name,
            "description": system.description,
            "campaign": agenda.campaign["name"],
            "checks": agenda.campaign["checks"],
            "weights": weights and {key: weights[key] for key in ("name", "sha256")},
            "partial": agenda.partial,
            "started": agenda.created,
            "ended": utc_text(),
            "demonstration": system.demonstration,
            "model": system.model,
            "replay": agenda.replay,
            "software": {
                "seatrial": seatrial.__version__,
                **{key: system.suite.get(key) for key in ("git_commit", "dirty")},
                "reframe": version("reframe-hpc"),
                "python": platform.python_version(),
                "slurm": system.software.get("slurm"),
                "stacks": system.software.get("stacks", []),
                "spack": system.software.get("spack"),
            },
            "nodes": [_node(state, closed, leafs) for state in self.states],
            "starts": starts,
            "sessions": [session.record for session in closed],
            **({"ledger": places[0]} if places else {}),
            **({"repeat_of": agenda.repeat_of} if agenda.repeat_of else {}),
            **({"own_metrics": own} if own else {}),
        }


def absence(state: NodeState) -> str:
    """Format the absence of a node and its reason."""
    return f"node {state.node.name} is absent: {state.reason}; the rest runs without it"


def replay_of(agenda: Agenda) -> Path | None:
    """Return the folder of recordings that a run replays; None if it measures."""
    return None if agenda.replay is None else Path(agenda.replay)


def _node(
    state: NodeState, closed: Sequence[ClosedSession], leafs: Mapping[str, str]
) -> dict[str, Any]:
    """Describe a delivered node: present in the whole run, absent or lost.

    Its leaf is that of the inventory, else of `leafs`. A node that was
    absent in some sessions, and came back, was absent; one that Slurm gave up during a
    session, or an administrator drained, is lost.
    """
    name = state.node.name
    leaf = {"leaf": leafs[name]} if name in leafs else {}
    records = [session.record for session in closed]
    absences = [row["absent"][name] for row in records if name in row["absent"]]
    reason = absences[-1] if absences else ""
    share = f"in {len(absences)} of {len(closed)} sessions"
    if 0 < len(absences) < len(closed):
        reason = f"{share}: {reason}"
    # Sessions that an older version closed have no key `lost`.
    rows = [row for record in records for row in record.get("lost", ())]
    losses = [Loss(**row) for row in rows if row["node"] == name]
    if losses:
        reason = in_words(losses) + (f"; absent {share}" if absences else "")
    return {
        "name": name,
        "facts": {**leaf, **state.node.facts},
        "state": "lost" if losses else "absent" if absences else "present",
        "reason": reason,
    }
