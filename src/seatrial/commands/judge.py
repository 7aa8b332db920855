"""`seatrial judge`: the verdict on a closed run, as a table, JSON or CSV."""

import click

from seatrial.commands._format import format_option
from seatrial.commands._judging import judged
from seatrial.paths import home
from seatrial.results import find_run
from seatrial.summary import (
    EXIT_OF,
    findings_table,
    format_findings,
    print_summary,
    stdout_console,
)


@click.command()
@click.argument("run")
@format_option("How to print the findings.")
@click.pass_context
def judge(ctx: click.Context, run: str, form: str) -> None:
    """Judge a closed run by the references of its system.

    RUN is the path of a run, its id, SYSTEM/latest or latest. Nothing is changed. A
    replay of recorded output fails or is undecided; it never passes.

    Exit status: 0 pass, 1 acceptance failed, 2 usage or environment, 3 undecided.

    Example: seatrial judge lab/latest --format csv
    """
    path = find_run(home(), run)
    _, _, judgement = judged(home(), path)
    if form == "table":
        console = stdout_console()
        console.print(findings_table(judgement.findings))
        print_summary(judgement, path, console, causes=False)
    else:
        click.echo(format_findings(judgement, form), nl=False)
    ctx.exit(EXIT_OF[judgement.verdict])
