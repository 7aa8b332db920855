"""`seatrial run`: a campaign on a system, from ReFrame sessions to a verdict."""

import re
from pathlib import Path

import click

from seatrial import interrupts, paths
from seatrial.campaign import load_campaign, only_checks
from seatrial.commands._judging import judged
from seatrial.driver import Order, run_campaign
from seatrial.errors import SeatrialError
from seatrial.recorded_system import recorded_system
from seatrial.recordings import NO_MEASUREMENT
from seatrial.references import References
from seatrial.remote import load_remote, run_remotely
from seatrial.runfolder import new_run_id
from seatrial.summary import EXIT_OF, print_summary, stdout_console
from seatrial.system import is_provisioned, load_system

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@click.command()
@click.argument("system")
@click.option("--campaign", required=True, help="Its name, e.g. smoke or acceptance.")
@click.option(
    "--checks",
    multiple=True,
    metavar="CLASS",
    help="Only this check of the campaign; may be repeated.",
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
@click.option("--no-judge", is_flag=True, help="Take the numbers only.")
@click.option("--stop-on-eof", is_flag=True, hidden=True)
@click.pass_context
def run(
    ctx: click.Context,
    system: str,
    campaign: str,
    checks: tuple[str, ...],
    results: Path | None,
    replay: Path | None,
    run_id: str | None,
    no_judge: bool,
    stop_on_eof: bool,
) -> None:
    """Run a campaign on SYSTEM, then judge it.

    On the login node of SYSTEM this runs ReFrame there. On the machine that holds
    inventories/SYSTEM it does the same over ssh and copies the run back. A replay runs
    right here, without Slurm and MPI; it is no measurement, and never passes.

    Exit status: 0 pass, 1 acceptance failed, 2 usage or environment, 3 undecided,
    130 interrupted (jobs are cancelled, the run stays open).

    Example: seatrial run lab --campaign acceptance --checks ImbRing
    """
    home = paths.home()
    folder = (results or paths.results_dir(home)).resolve()
    chosen = load_campaign(home, campaign)
    whole = chosen
    if checks:
        chosen = only_checks(chosen, checks)
    named = run_id is not None
    run_id = run_id or new_run_id(f"{campaign}-replay" if replay else campaign)
    if not _RUN_ID.fullmatch(run_id) or run_id.endswith(".open"):
        raise SeatrialError(
            f"--run-id {run_id!r}: expected letters, digits, dot, dash, underscore"
        )
    if replay is not None:
        _read_references(home, system, no_judge)
        with recorded_system(home, system, replay) as described:
            order = Order(
                home, folder, described, chosen, run_id, chosen != whole, replay
            )
            path = run_campaign(order, stdout_console())
    elif is_provisioned(home, system):
        described = load_system(home, system)
        _read_references(home, system, no_judge)
        if stop_on_eof:
            interrupts.stop_on_eof()
        order = Order(home, folder, described, chosen, run_id, chosen != whole)
        path = run_campaign(order, stdout_console())
    else:
        remote = load_remote(home, system)
        _read_references(home, system, no_judge)
        path = run_remotely(remote, system, campaign, checks, run_id, folder)
    if no_judge:
        if replay is not None:
            click.echo(NO_MEASUREMENT)
        if not named:  # who named the run knows where it is
            click.echo(f"run: {path}")
        return
    _, _, judgement = judged(home, path)
    print_summary(judgement, path, stdout_console())
    ctx.exit(EXIT_OF[judgement.verdict])


def _read_references(home: Path, system: str, no_judge: bool) -> None:
    """Find a broken reference before the run, not hours later."""
    if not no_judge:
        References.load(paths.references_dir(home, system))
