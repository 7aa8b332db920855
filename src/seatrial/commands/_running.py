"""Start or resume a run, here or on the login node of its system."""

from dataclasses import dataclass
from pathlib import Path

from seatrial import paths
from seatrial.campaign.campaign_file import (
    load_campaign,
    only_checks,
    with_repeats,
)
from seatrial.campaign.remote import repeat_remotely, resume_remotely, run_remotely
from seatrial.campaign.runner import Order, repeat_run, resume_run, run_campaign
from seatrial.campaign.schedule import read_agenda
from seatrial.console import Terminal
from seatrial.criteria.criteria import Criteria
from seatrial.criteria.reframe_references import write_reference_files
from seatrial.errors import SeatrialError
from seatrial.model.manifest import is_unfinished
from seatrial.names import checked_name
from seatrial.runs.closed_run import load_run
from seatrial.runs.open_run import RunFolder, new_run_id, newest_open, open_runs
from seatrial.runs.recorded_system import recorded_system
from seatrial.system.description import is_provisioned, load_system
from seatrial.system.login_node import load_remote


@dataclass(frozen=True)
class Request:
    """A run that the command line asks for, new or open.

    `folder` holds the runs on the login node, below the prefix.
    """

    home: Path
    results: Path
    system: str
    run_id: str | None
    judge: bool = True
    beside: bool = False
    folder: str = "results"

    def prepare_criteria(self) -> None:
        """Read the criteria, and write ReFrame's reference files from them.

        Raises SeatrialError for a broken criterion now, not after hours. A system
        without criteria is measured only if it is not judged.
        """
        file = paths.criteria_file(self.home, self.system)
        if self.judge or file.exists():
            criteria = Criteria.load(file)
            write_reference_files(self.home, criteria, self.system)


def new_run(
    request: Request,
    campaign: str,
    checks: tuple[str, ...],
    repeats: int | None,
    replay: Path | None,
) -> Path:
    """Run a campaign, or some of its checks; return the closed run."""
    home, results, system = request.home, request.results, request.system
    whole = load_campaign(home, campaign)
    chosen = only_checks(whole, checks) if checks else whole
    partial = chosen != whole
    chosen = with_repeats(chosen, repeats)
    run_id = request.run_id or new_run_id(f"{campaign}-replay" if replay else campaign)
    if is_unfinished(checked_name(run_id, "--run-id")):
        raise SeatrialError(f"--run-id {run_id}: expected a name that is not of a copy")
    if replay is not None:
        request.prepare_criteria()
        with recorded_system(home, system, replay) as described:
            order = Order(home, results, described, chosen, run_id, partial, replay)
            return run_campaign(order, Terminal())
    beside = request.beside
    if is_provisioned(home, system):
        described = load_system(home, system)
        request.prepare_criteria()
        order = Order(home, results, described, chosen, run_id, partial, beside=beside)
        return run_campaign(order, Terminal())
    remote = load_remote(home, system)
    request.prepare_criteria()
    return run_remotely(
        remote,
        home,
        system,
        campaign,
        checks,
        run_id,
        results,
        repeats,
        request.folder,
        beside=beside,
    )


def repeated_run(
    home: Path, path: Path, run_id: str | None, *, judge: bool, beside: bool
) -> Path:
    """Run the spoiled cases of a closed run again, where it ran; return that run."""
    run = load_run(path)
    system, results = str(run.manifest["system"]), path.parent.parent
    run_id = run_id or new_run_id(f"{run.manifest['campaign']}-repeat")
    checked_name(run_id, "--run-id")
    request = Request(home, results, system, run_id, judge)
    if is_provisioned(home, system):
        described = load_system(home, system)
        request.prepare_criteria()
        return repeat_run(home, described, run, run_id, Terminal(), beside=beside)
    remote = load_remote(home, system)
    request.prepare_criteria()
    return repeat_remotely(remote, home, path, run_id, beside=beside)


def resumed_run(request: Request) -> Path:
    """Run the rest of an open run; return the closed run."""
    home, results, system = request.home, request.results, request.system
    run_id, beside = request.run_id, request.beside
    if not is_provisioned(home, system):
        remote = load_remote(home, system)
        request.prepare_criteria()
        return resume_remotely(remote, system, run_id, results, beside=beside)
    folder = RunFolder(results, system, run_id or newest_open(results, system))
    if folder.final.is_dir():
        return folder.tidied()
    if not folder.path.is_dir():
        known = ", ".join(run.stem for run in open_runs(results, system)) or "none"
        raise SeatrialError(
            f"no open run {run_id!r} of system {system!r} below {results}; open runs: "
            f"{known}"
        )
    replay = read_agenda(folder.path).replay
    if replay is None:
        described = load_system(home, system)
        request.prepare_criteria()
        return resume_run(home, described, folder, Terminal(), beside=beside)
    with recorded_system(home, system, Path(replay)) as described:
        return resume_run(home, described, folder, Terminal())
