"""`seatrial judge`: print the verdict on a closed run."""

import click

from seatrial.commands import _options as options
from seatrial.commands._runs import judged, run_path, shown_path
from seatrial.output import write_data
from seatrial.paths import home


@click.command()
@click.argument("run", type=options.RUN)
@options.repeated(
    "--with",
    "further",
    metavar="RUN",
    help="Judge this run of the same campaign together with it; may be repeated.",
)
@options.criteria
@options.form("Format of the findings.")
@click.pass_context
def judge(
    ctx: click.Context,
    run: str,
    further: tuple[str, ...],
    criteria: str | None,
    form: str,
) -> None:
    """Judge a closed run by the criteria of its system.

    RUN is the path of a run or the file of a packed one, its id, SYSTEM/latest or
    latest. Nothing is changed. The same runs and criteria give the same digest. Each
    run of --with is one more look at the data, which may spend a smaller part of the
    risks. A decision is kept once it is reached. A replay of recorded output never
    passes.

    The table leaves out criteria that are skipped because the campaign does not run
    their check; json and csv have them.

    Exit status: 0 pass or pass with waivers, 1 acceptance failed, 2 usage or
    environment, 3 undecided. A verdict "not shown" gives 1 if the seller bears the
    burden of proof, else 3.

    Example: seatrial judge lab/latest --format csv
    """
    from seatrial.console import Terminal
    from seatrial.judge.summary import (
        exit_of,
        format_findings,
        print_findings,
        print_summary,
    )

    suite = home()
    path = run_path(run)
    _, judgement = judged(suite, path, [*map(run_path, further)], criteria)
    if form == "table":
        console = Terminal()
        print_findings(judgement.applicable, console)
        print_summary(judgement, shown_path(path), console, causes=False)
    else:
        write_data(format_findings(judgement, form))
    ctx.exit(exit_of(judgement))
