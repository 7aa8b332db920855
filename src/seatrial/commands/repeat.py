"""`seatrial repeat`: run the cases again that lost nodes spoiled."""

from pathlib import Path

import click

from seatrial.commands import _options as options
from seatrial.commands._runs import judged
from seatrial.errors import SeatrialError
from seatrial.output import echo
from seatrial.paths import home


@click.command()
@click.argument("run", type=options.RUN)
@click.option("--run-id", help="Name of the repeat (default: time and campaign).")
@click.option(
    "--beside",
    is_flag=True,
    help="Run beside another run of the system; the report says so.",
)
@click.option("--no-judge", is_flag=True, help="Measure, but do not judge.")
@options.stop_on_eof
@click.pass_context
def repeat(
    ctx: click.Context, run: str, run_id: str | None, beside: bool, no_judge: bool
) -> None:
    """Run the cases of RUN again that lost nodes spoiled, then judge both runs.

    RUN is the folder of a closed run, its id, SYSTEM/latest or latest. The cases are
    those that `seatrial judge` names: with the nodes that they lost, by Slurm's
    evidence. What failed for its own reasons is not repeated, and a run is repeated
    once. The repeat is a run of its own beside RUN, which does not change; the ledger
    and page one of the report count it. An interrupted repeat goes on with
    `seatrial run SYSTEM --resume`.

    Exit status: as of `seatrial run`.

    Example: seatrial repeat lab/latest
    """
    from seatrial.commands._running import repeated_run
    from seatrial.console import Terminal
    from seatrial.judge.summary import exit_of, print_summary

    suite = home()
    path = _folder(suite, run)
    new = repeated_run(suite, path, run_id, judge=not no_judge, beside=beside)
    echo(f"repeat: {new}")
    if not no_judge:
        _, judgement = judged(suite, path)
        print_summary(judgement, str(path), Terminal())
        ctx.exit(exit_of(judgement))


def _folder(suite: Path, text: str) -> Path:
    """Find the folder of a closed run; SeatrialError for an open one, or a pack."""
    from seatrial.model.manifest import OPEN_SUFFIX
    from seatrial.paths import results_dir
    from seatrial.runs.closed_run import find_run

    if Path(text).is_file():
        raise SeatrialError(
            f"{text}: a packed run; expected the folder of the run where it was made"
        )
    closed = text.rstrip("/").removesuffix(OPEN_SUFFIX)
    system, _, name = closed.rpartition("/")
    folders = [Path(closed + OPEN_SUFFIX)]
    if not Path(closed).is_absolute():
        below = f"{system or '*'}/{name}{OPEN_SUFFIX}"
        folders += results_dir(suite).glob(below)
    opened = [folder for folder in folders if folder.is_dir()]
    if opened:
        raise SeatrialError(
            f"{opened[0]}: this run is open; go on with it first: `seatrial run "
            f"{opened[0].resolve().parent.name} --resume`"
        )
    return find_run(suite, text)
