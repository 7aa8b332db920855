"""`seatrial run`: a campaign on a system, from ReFrame sessions to a verdict."""

from dataclasses import replace
from pathlib import Path

import click

from seatrial import interrupts, paths
from seatrial.campaign.campaign_file import known_campaigns, load_campaign, only_checks
from seatrial.campaign.remote import load_remote, resume_remotely, run_remotely
from seatrial.campaign.runner import Order, resume_run, run_campaign
from seatrial.campaign.schedule import read_agenda
from seatrial.commands._judging import judged
from seatrial.commands._names import CAMPAIGN, SYSTEM
from seatrial.console import Terminal
from seatrial.criteria.criteria import Criteria
from seatrial.errors import SeatrialError
from seatrial.judge.summary import EXIT_OF, print_summary
from seatrial.names import checked_name
from seatrial.output import echo
from seatrial.runs.closed_run import is_unfinished
from seatrial.runs.open_run import RunFolder, new_run_id, newest_open, open_runs
from seatrial.runs.raw_output import NO_MEASUREMENT
from seatrial.runs.recorded_system import recorded_system
from seatrial.system.description import is_provisioned, load_system


@click.command()
@click.argument("system", type=SYSTEM)
@click.option("--campaign", type=CAMPAIGN, help="Its name, e.g. smoke or acceptance.")
@click.option(
    "--resume",
    is_flag=True,
    help="Go on with a run that was cut off: the newest, or that of --run-id.",
)
@click.option(
    "--checks",
    multiple=True,
    metavar="CLASS",
    help="Only this check of the campaign; may be repeated.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    help="How often every block runs (default: as the campaign says).",
)
@click.option(
    "--results",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of all runs (default: SEATRIAL_RESULTS, else results/).",
)
@click.option(
    "--replay",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    metavar="DIR",
    help="Take recorded output from DIR, a run for example, in place of programs.",
)
@click.option("--run-id", help="Name of the run (default: time and campaign).")
@click.option(
    "--beside",
    is_flag=True,
    help="Run although another run of SYSTEM is at work; the report says so.",
)
@click.option("--no-judge", is_flag=True, help="Take the numbers only.")
@click.option("--stop-on-eof", is_flag=True, hidden=True)
@click.pass_context
def run(
    ctx: click.Context,
    system: str,
    campaign: str | None,
    resume: bool,
    checks: tuple[str, ...],
    repeats: int | None,
    results: Path | None,
    replay: Path | None,
    run_id: str | None,
    beside: bool,
    no_judge: bool,
    stop_on_eof: bool,
) -> None:
    """Run a campaign on SYSTEM, then judge it.

    On the login node of SYSTEM this runs ReFrame there. On the machine that holds
    inventories/SYSTEM it does the same over ssh and copies the run back. A replay runs
    right here, without Slurm and MPI; it is no measurement, and never passes.

    A run that was cut off, whatever by, stays open. With --resume its closed sessions
    stay as they are, jobs that it left behind are cancelled, and the rest runs. A run
    that is closed on the login node, and could not be copied back, is fetched by
    --resume --run-id ID.

    While another run of SYSTEM is at work, no other begins: see --beside.

    Exit status: 0 pass, 1 acceptance failed, 2 usage or environment, 3 undecided,
    130 interrupted (jobs are cancelled, the run stays open).

    Example: seatrial run lab --campaign acceptance --checks ImbRing
    """
    home = paths.home()
    folder = (results or paths.results_dir(home)).resolve()
    named = run_id is not None
    if stop_on_eof:
        interrupts.stop_on_eof()
    if resume:
        if campaign or checks or replay or repeats:
            raise SeatrialError(
                "--resume goes on with what the run was begun with; expected no "
                "--campaign, --checks, --repeats or --replay beside it"
            )
        path = _resumed(home, folder, system, run_id, no_judge, beside=beside)
    else:
        if campaign is None:
            known = ", ".join(known_campaigns(home)) or "none"
            raise SeatrialError(
                f"expected --campaign NAME, or --resume; known campaigns: {known}"
            )
        path = _new_run(
            *(home, folder, system, campaign, checks, repeats, replay, run_id),
            no_judge,
            beside=beside,
        )
    if no_judge:
        if replay is not None:
            echo(NO_MEASUREMENT)
        if not named:  # who named the run knows where it is
            echo(f"run: {path}")
        return
    _, judgement = judged(home, path)
    print_summary(judgement, str(path), Terminal())
    ctx.exit(EXIT_OF[judgement.verdict])


def _new_run(
    home: Path,
    results: Path,
    system: str,
    campaign: str,
    checks: tuple[str, ...],
    repeats: int | None,
    replay: Path | None,
    run_id: str | None,
    no_judge: bool,
    *,
    beside: bool,
) -> Path:
    whole = load_campaign(home, campaign)
    chosen = only_checks(whole, checks) if checks else whole
    partial = chosen != whole
    chosen = replace(chosen, repeats=repeats or chosen.repeats)
    run_id = run_id or new_run_id(f"{campaign}-replay" if replay else campaign)
    if is_unfinished(checked_name(run_id, "--run-id")):
        raise SeatrialError(f"--run-id {run_id}: expected a name that is not of a copy")
    if replay is not None:
        _read_criteria(home, system, no_judge)
        with recorded_system(home, system, replay) as described:
            order = Order(home, results, described, chosen, run_id, partial, replay)
            return run_campaign(order, Terminal())
    if is_provisioned(home, system):
        described = load_system(home, system)
        _read_criteria(home, system, no_judge)
        order = Order(
            *(home, results, described, chosen, run_id, partial), beside=beside
        )
        return run_campaign(order, Terminal())
    remote = load_remote(home, system)
    _read_criteria(home, system, no_judge)
    return run_remotely(
        *(remote, system, campaign, checks, run_id, results, repeats), beside=beside
    )


def _resumed(
    home: Path,
    results: Path,
    system: str,
    run_id: str | None,
    no_judge: bool,
    *,
    beside: bool = False,
) -> Path:
    if not is_provisioned(home, system):
        remote = load_remote(home, system)
        _read_criteria(home, system, no_judge)
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
        _read_criteria(home, system, no_judge)
        return resume_run(home, described, folder, Terminal(), beside=beside)
    with recorded_system(home, system, Path(replay)) as described:
        return resume_run(home, described, folder, Terminal())


def _read_criteria(home: Path, system: str, no_judge: bool) -> None:
    """Find a broken criterion before the run, not hours later."""
    if not no_judge:
        Criteria.load(paths.criteria_file(home, system))
