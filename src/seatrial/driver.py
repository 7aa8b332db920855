"""The driver: a campaign as small ReFrame sessions, from the first to a closed run."""

import platform
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console

import seatrial
from seatrial.campaign import Block, Campaign
from seatrial.collect import Collected, collect, missing_case
from seatrial.errors import Exit, SeatrialError
from seatrial.features import needed, why_not
from seatrial.interrupts import interruptible
from seatrial.listing import ListedCase, describe_checks, list_cases
from seatrial.paths import checks_dir
from seatrial.progress import Display, Durations
from seatrial.recorded_system import SYSTEM_FOLDER, recorded_states
from seatrial.recordings import recordings
from seatrial.results import closed_runs, read_cases
from seatrial.runfolder import RunFolder, copy_files, disk_errors, utc_text
from seatrial.session import Outcome, Session, run_session
from seatrial.system import NodeState, System, node_states, usable_nodes

_EARLIER_RUNS = 3


@dataclass(frozen=True)
class Order:
    """What to run where; `partial` if some checks of the campaign are left out.

    `replay` is a folder of recordings, to be taken in place of programs.
    """

    home: Path
    results: Path
    system: System
    campaign: Campaign
    run_id: str
    partial: bool = False
    replay: Path | None = None


def run_campaign(order: Order, console: Console) -> Path:
    """Run a campaign on this machine; give the path of the closed run.

    Raises SeatrialError if Slurm does not answer, no node is up, a check is unknown
    or cannot be loaded, the disk is full, or the user interrupts. The folder of the
    run then stays open: it is never taken for a complete run.
    """
    system = order.system
    if order.replay is None:
        states = node_states(system)
    else:
        recordings(order.replay)  # an error if there are none
        states = recorded_states(system, order.replay)
    for state in states:
        if not state.present:
            console.print(
                f"node {state.node.name} is absent: {state.reason}; "
                "the rest runs without it",
                markup=False,
            )
    listed = _listed(order)
    lacking = _without_cases(order, listed)
    folder = RunFolder(order.results, system.name, order.run_id)
    sessions = _sessions(order, folder.path, listed, usable_nodes(system, states))
    folder.create()
    with disk_errors(folder.path):
        copy_files(system.files, system.folder, folder.path / SYSTEM_FOLDER)
    with _stoppable(folder.path):
        return _run(order, folder, sessions, lacking, states, console)


def _run(
    order: Order,
    folder: RunFolder,
    sessions: list[Session],
    lacking: dict[str, str],
    states: tuple[NodeState, ...],
    console: Console,
) -> Path:
    started = time.time()
    everything = Collected()
    records = []
    cases = [case for session in sessions for case in session.cases]
    known = {} if order.replay else _durations(order)
    with disk_errors(folder.path), Display(console, cases, known) as display:
        for session in sessions:
            outcome = Outcome(time.time(), time.time())
            collected = Collected()
            if session.cases:
                outcome = run_session(
                    session, order.system, checks_dir(order.home), order.home, display
                )
                display.note("collecting results")
                collected = collect(session, outcome, order.system)
            collected.cases += [
                missing_case(session, check, lacking[check])
                for check in session.block.checks
                if check in lacking
            ]
            everything.cases += collected.cases
            everything.measurements += collected.measurements
            records.append(_session_record(session, outcome, collected))
    shutil.rmtree(folder.path / "work", ignore_errors=True)
    manifest = _manifest(order, states, records, started)
    return folder.close(manifest, everything.cases, everything.measurements)


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


def _sessions(
    order: Order, folder: Path, listed: tuple[ListedCase, ...], nodes: int | None
) -> list[Session]:
    """Plan the sessions: all blocks once, then all again for the next repeat."""
    sessions = []
    for repeat in range(1, order.campaign.repeats + 1):
        for block in order.campaign.blocks:
            name = f"{block.name}-{repeat}"
            sessions.append(
                Session(
                    run_id=order.run_id,
                    block=block,
                    repeat=repeat,
                    cases=_cases_of(block, listed),
                    raw=folder / "raw" / name,
                    work=folder / "work" / name,
                    num_nodes=nodes,
                    replay=order.replay,
                )
            )
    return sessions


def _cases_of(block: Block, listed: tuple[ListedCase, ...]) -> tuple[ListedCase, ...]:
    return tuple(case for case in listed if case.check in block.checks)


def _durations(order: Order) -> Durations:
    """Learn from the last closed runs of this system how long each case takes."""
    durations: dict[str, list[float]] = defaultdict(list)
    for run in closed_runs(order.results, order.system.name)[-_EARLIER_RUNS:]:
        with suppress(SeatrialError):
            for case in read_cases(run):
                if case.elapsed_s is not None and not case.replay:
                    listed = ListedCase(case.case, case.partition, case.environment)
                    durations[str(listed)].append(case.elapsed_s)
    return durations


def _session_record(
    session: Session, outcome: Outcome, collected: Collected
) -> dict[str, Any]:
    return {
        "name": session.name,
        "block": session.block.name,
        "repeat": session.repeat,
        "variables": session.block.variables,
        "started": utc_text(outcome.started),
        "ended": utc_text(outcome.ended),
        "cases": len(collected.cases),
    }


def _manifest(
    order: Order,
    states: tuple[NodeState, ...],
    sessions: list[dict[str, Any]],
    started: float,
) -> dict[str, Any]:
    system, campaign = order.system, order.campaign
    return {
        "schema": 1,
        "run": order.run_id,
        "system": system.name,
        "description": system.description,
        "campaign": campaign.name,
        "checks": list(campaign.checks),
        "partial": order.partial,
        "started": utc_text(started),
        "ended": utc_text(),
        "demonstration": system.demonstration,
        "replay": None if order.replay is None else str(order.replay),
        "software": {
            "seatrial": seatrial.__version__,
            "git_commit": system.suite.get("git_commit"),
            "dirty": system.suite.get("dirty"),
            "reframe": version("reframe-hpc"),
            "python": platform.python_version(),
            "slurm": system.software.get("slurm"),
            "stacks": system.software.get("stacks", []),
            "spack": system.software.get("spack"),
        },
        "nodes": [
            {
                "name": state.node.name,
                "facts": state.node.facts,
                "state": "present" if state.present else "absent",
                "reason": state.reason,
            }
            for state in states
        ],
        "sessions": sessions,
        "minimum_samples": campaign.minimum_samples,
    }


@contextmanager
def _stoppable(folder: Path) -> Iterator[None]:
    """Let an interrupt end the run, and say what became of it."""
    try:
        with interruptible():
            yield
    except KeyboardInterrupt:
        raise SeatrialError(
            f"interrupted: the jobs of this run are cancelled; {folder} stays open "
            "and will not be judged",
            Exit.INTERRUPTED,
        ) from None
