"""`seatrial run`: run a campaign on a system and judge it."""

from pathlib import Path

import click

from seatrial import paths
from seatrial.commands import _options as options
from seatrial.commands._runs import judged
from seatrial.errors import SeatrialError
from seatrial.output import echo


@click.command()
@click.argument("system", type=options.SYSTEM)
@click.option(
    "--campaign", type=options.CAMPAIGN, help="Name of the campaign, e.g. smoke."
)
@click.option(
    "--resume",
    is_flag=True,
    help="Continue an interrupted run: the newest, or that of --run-id.",
)
@options.repeated(
    "--checks",
    metavar="CLASS",
    help="Run only this check of the campaign; may be repeated.",
)
@options.count(
    "--repeats", help="Repeats of every block (default: those of the campaign)."
)
@options.results
@click.option(
    "--replay",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    metavar="DIR",
    help="Read recorded output from DIR, for example a run; start no programs.",
)
@click.option("--run-id", help="Name of the run (default: time and campaign).")
@click.option(
    "--beside",
    is_flag=True,
    help="Run beside another run of SYSTEM; the report says so.",
)
@click.option("--no-judge", is_flag=True, help="Measure, but do not judge.")
@options.stop_on_eof
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
) -> None:
    """Run a campaign on SYSTEM, then judge it.

    ReFrame runs on the login node of SYSTEM. From the machine that holds
    inventories/SYSTEM, the command starts it over ssh and copies the run back. A replay
    runs on this machine, without Slurm and MPI; it is no measurement and never passes.

    An interrupted run stays open. --resume keeps its closed sessions, cancels the jobs
    that it left, and runs the rest. If a run is closed on the login node but was not
    copied back, --resume --run-id ID fetches it.

    A second run of SYSTEM does not start while one is active, except with --beside.

    Exit status: 0 pass, 1 acceptance failed, 2 usage or environment, 3 undecided,
    130 interrupted (jobs are cancelled, the run stays open). A verdict "not shown"
    gives 1 if the seller bears the burden of proof, else 3.

    Example: seatrial run lab --campaign acceptance --checks ImbRing
    """
    from seatrial.campaign.schedule import read_agenda
    from seatrial.campaign.spoiled_cases import in_lines, spoiled_cases
    from seatrial.commands._running import Request, new_run, resumed_run
    from seatrial.runs.closed_run import read_cases
    from seatrial.runs.raw_output import NO_MEASUREMENT

    home = paths.home()
    folder = (results or paths.results_dir(home)).resolve()
    request = Request(home, folder, system, run_id, not no_judge, beside)
    if not resume:
        path = new_run(request, _required(home, campaign), checks, repeats, replay)
    elif campaign or checks or replay or repeats:
        raise SeatrialError(
            "--resume goes on with what the run was begun with; expected no "
            "--campaign, --checks, --repeats or --replay beside it"
        )
    else:
        path = resumed_run(request)
    if not no_judge:
        ctx.exit(_judge(home, path))
    spoiled = [] if read_agenda(path).stability else spoiled_cases(read_cases(path))
    for line in in_lines(spoiled):
        echo(f"{line}; make it again: `seatrial repeat {system}/{path.name}`")
    if replay is not None:
        echo(NO_MEASUREMENT)
    if run_id is None:
        echo(f"run: {path}")


def _required(home: Path, campaign: str | None) -> str:
    """Return the name of the campaign; SeatrialError without one."""
    if campaign is None:
        known = ", ".join(paths.known_campaigns(home)) or "none"
        raise SeatrialError(
            f"expected --campaign NAME, or --resume; known campaigns: {known}"
        )
    return campaign


def _judge(home: Path, path: Path) -> int:
    """Judge a run and print the verdict; return the exit status."""
    from seatrial.console import Terminal
    from seatrial.judge.summary import exit_of, print_summary

    _, judgement = judged(home, path)
    print_summary(judgement, str(path), Terminal())
    return exit_of(judgement)
