"""The driver: run a campaign as small ReFrame sessions, up to a closed run.

Each session closes by itself: a resumed run keeps closed sessions and runs the rest.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import asdict
from rich.console import Console

import seatrial
from seatrial.campaign.campaign_file import Campaign
from seatrial.campaign.concurrent_runs import starting
from seatrial.campaign.open_run_sessions import OpenRun, absence, replay_of
from seatrial.campaign.repeat import repeat_agenda
from seatrial.campaign.schedule import (
    Agenda,
    frozen,
    plan_sessions,
    read_agenda,
)
from seatrial.campaign.selected_cases import selected_cases
from seatrial.campaign.session_command import comment_of
from seatrial.errors import Exit, SeatrialError
from seatrial.fabric.leafs import kept_leafs
from seatrial.interrupts import interruptible, postponed
from seatrial.names import node_set
from seatrial.paths import WEIGHTS_FILE, criteria_file, restrict_umask
from seatrial.plain_files import sha256_plain
from seatrial.runs.closed_run import SYSTEM_FOLDER, Run
from seatrial.runs.closed_sessions import note_start, read_starts
from seatrial.runs.ledger import begin
from seatrial.runs.lock import driver_lock
from seatrial.runs.open_run import (
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
from seatrial.system.description import System, node_states
from seatrial.system.slurm_topology import node_leafs


@dataclass(frozen=True)
class Order:
    """A campaign on a system; `partial` if some checks of the campaign are left out.

    `replay` is a folder of recordings that replace the programs. `beside` allows
    another run of the system at the same time.
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
    """Run a campaign on this machine; return the path of the closed run.

    Raises SeatrialError if Slurm does not answer, no node is up, a check is unknown
    or cannot be loaded, another run of the system is at work, the disk is full, or the
    user interrupts. The folder of the run then stays open: it is never taken for a
    complete run.
    """
    folder = RunFolder(order.results, order.system.name, order.run_id)
    try_folder(folder.final.parent)
    if order.replay is not None:
        recordings(order.replay)  # an error if there are none
    system, home = order.system, order.home
    cases, missing = selected_cases(home, system, order.campaign)
    agenda = Agenda(
        run=order.run_id,
        system=order.system.name,
        created=utc_text(),
        campaign=frozen(order.campaign),
        sessions=plan_sessions(order.campaign, cases, missing),
        partial=order.partial,
        replay=None if order.replay is None else str(order.replay),
        nodes={name: known.nodes for name, known in system.classes.items()},
    )
    return _drive(home, system, folder, agenda, console, beside=order.beside, new=True)


def repeat_run(
    home: Path,
    system: System,
    run: Run,
    run_id: str,
    console: Console,
    *,
    beside: bool = False,
) -> Path:
    """Run the spoiled cases of a closed run again; return the path of that run.

    Raises SeatrialError as `run_campaign` and `repeat_agenda` do.
    """
    folder = RunFolder(run.path.parent.parent, system.name, run_id)
    try_folder(folder.final.parent)
    agenda = repeat_agenda(home, system, run, run_id)
    return _drive(home, system, folder, agenda, console, beside=beside, new=True)


def resume_run(
    home: Path,
    system: System,
    folder: RunFolder,
    console: Console,
    *,
    beside: bool = False,
) -> Path:
    """Resume an interrupted run; return the path of the closed run.

    Jobs that it left behind are cancelled first. Raises SeatrialError as
    `run_campaign` does, and if another driver is at work on it.
    """
    agenda = read_agenda(folder.path)
    return _drive(home, system, folder, agenda, console, beside=beside)


def _drive(
    home: Path,
    system: System,
    folder: RunFolder,
    agenda: Agenda,
    console: Console,
    *,
    beside: bool,
    new: bool = False,
) -> Path:
    """Start or resume a run as its only driver; run its sessions, then close it."""
    replay = replay_of(agenda)
    states = node_states(system) if replay is None else recorded_states(system, replay)
    for state in states:
        if not state.present:
            console.print(absence(state), markup=False)
    with ExitStack() as start:
        if replay is None:
            start.enter_context(starting(system, folder, console, beside=beside))
        if new:
            folder.create(agenda.write())
        restrict_umask()
        with _stoppable(folder.path), driver_lock(folder.path) as lock:
            start.close()
            agenda = read_agenda(folder.path)
            if folder.written:
                return folder.finish()
            if system.uses_slurm and read_starts(folder.path):
                jobs = ", ".join(slurm.cancel_all(comment_of(agenda.run)))
                if jobs:
                    console.print(f"cancelled jobs left behind: {jobs}", markup=False)
            with disk_errors(folder.path):
                _begin(folder.path, home, system, agenda, console)
                run = OpenRun(home, system, states, folder, agenda, lock)
                run.sessions(console)
                with postponed():
                    return run.close()


def _begin(
    path: Path, home: Path, system: System, agenda: Agenda, console: Console
) -> None:
    """Record a start of the driver, and system and criteria if they are new.

    The first start records leafs that the inventory does not name. Weights are those of
    the agenda: changes of them during a run are ignored.
    """
    starts = read_starts(path)
    number = len(starts) + 1
    kept = path / SYSTEM_FOLDER
    criteria = criteria_file(home, system.name)
    files = (*system.files, *([criteria] if criteria.is_file() else []))
    copies = [(file, kept / file.name) for file in files]
    if not all(c.is_file() and c.read_bytes() == f.read_bytes() for f, c in copies):
        # The files of earlier starts stay as they are.
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
    if not starts and (leafs := _other_leafs(system, console)):
        start["leafs"] = leafs
    if agenda.replay is None:
        place = begin(
            path.parent,
            agenda.run,
            campaign=agenda.campaign["name"],
            criteria=sha256_plain(criteria) if criteria.is_file() else "",
            partial=agenda.partial,
            repeat_of=agenda.repeat_of,
        )
        if not any("ledger" in earlier for earlier in starts):
            start["ledger"] = asdict(place)
    note_start(path, start)


def _other_leafs(system: System, console: Console) -> dict[str, str]:
    """Return the leaf of each node if the inventory names no leafs.

    They come from the fabric that the system keeps, else from Slurm's topology.
    """
    if any("leaf" in node.facts for node in system.nodes):
        return {}
    names = [node.name for node in system.nodes]
    source, leafs = "the fabric", kept_leafs(system.folder, names)
    if not leafs and system.uses_slurm:
        source, leafs = "Slurm's topology", node_leafs(names)
    without = [name for name in names if name not in leafs]
    if leafs and without:
        console.print(
            f"no leaf is known of {node_set(without)}: {source} has each in no "
            "leaf switch, or in several; the judge looks for slow leafs without them",
            markup=False,
        )
    return leafs


@contextmanager
def _stoppable(folder: Path) -> Iterator[None]:
    """End the run on an interrupt, with a message about its state."""
    try:
        with interruptible():
            yield
    except KeyboardInterrupt:
        state = "the run was closed before that"
        if folder.exists():
            state = (
                f"the jobs of this run are cancelled; {folder} stays open and is not "
                f"judged; go on with `seatrial run {folder.parent.name} --resume`"
            )
        raise SeatrialError(f"interrupted: {state}", Exit.INTERRUPTED) from None
