"""`seatrial fabric watch` and `locate`: errors and slow pairs of a loaded fabric."""

from pathlib import Path

import click

from seatrial import paths
from seatrial.commands import _options as options
from seatrial.commands._fabric import discovered, fabric_option, save_text
from seatrial.commands._rows import write_rows
from seatrial.errors import Exit


@click.command()
@click.argument("system", type=options.SYSTEM)
@fabric_option
@options.count("--minutes", default=10, help="Time between the two readings.")
@click.option(
    "--before", type=options.PRESENT_FILE, help="Take this file for the first reading."
)
@click.option("--output", type=options.FILE, help="File for the last reading.")
@options.form("Format of the ports.")
@options.stop_on_eof
@click.pass_context
def watch(
    ctx: click.Context,
    system: str,
    fabric_file: Path | None,
    minutes: int,
    before: Path | None,
    output: Path | None,
    form: str,
) -> None:
    """Read the error counters of all ports of SYSTEM twice, and print what grew.

    Load the fabric in between: an error rate is bounded by the bits that passed. Runs
    ibqueryerrors on this machine, as root; counters are never cleared. With --before
    only the second reading is made, now.

    Exit status: 0 no error, 1 errors on a port, 2 usage, or a tool that failed, 3 a
    counter was cleared by somebody else, or is full.

    Example: seatrial fabric watch SYSTEM --fabric fabric.json --minutes 60
    """
    from seatrial.commands._fabric_watch import (
        COLUMNS,
        as_rows,
        exit_status,
        print_changes,
        watched,
    )
    from seatrial.fabric.counters import write_reading
    from seatrial.fabric.declaration import declared_for

    declared_for(paths.home(), system)
    found = discovered((), fabric_file)
    last, changes = watched(found, before, 60 * minutes)
    if output is not None:
        write_reading(output, last)
    if form == "table":
        print_changes(changes)
    else:
        write_rows(as_rows(changes), form, COLUMNS)
    ctx.exit(exit_status(changes))


@click.command()
@click.argument("runs", type=options.RUN, nargs=-1, required=True, metavar="RUN...")
@fabric_option
@click.option(
    "--routes",
    "routes_file",
    type=options.PRESENT_FILE,
    help="Output of `dump_fts`: the forwarding tables of the switches.",
)
@click.option("--adaptive", is_flag=True, help="Switches choose among shortest paths.")
@options.repeated(
    "--fixed", type=options.RUN, help="Also this run, without adaptive routing."
)
@click.option(
    "--counters",
    nargs=2,
    type=options.PRESENT_FILE,
    help="Readings of `seatrial fabric watch`, from before and after the run.",
)
@options.option("--hca", default="", help="Rail to look at, such as mlx5_0.")
@click.option(
    "--pairs",
    "pairs_file",
    type=options.FILE,
    help="Write pairs that tell apart what the numbers do not.",
)
@options.form("Format of the suspects.")
@click.pass_context
def locate(
    ctx: click.Context,
    runs: tuple[str, ...],
    fabric_file: Path | None,
    routes_file: Path | None,
    adaptive: bool,
    fixed: tuple[str, ...],
    counters: tuple[Path, Path] | None,
    hca: str,
    pairs_file: Path | None,
    form: str,
) -> None:
    """Name the nodes, cables and switches that explain the slow pairs of RUN.

    It takes the bandwidths of PairSweep, and the fabric and forwarding tables that the
    run kept; of several runs all bandwidths, and the fabric of the first. Without
    tables or --adaptive, the routes are a guess: hosts of a leaf go over its up-links
    in turn. Parts that the pairs do not tell apart are named together; --pairs writes
    those that tell. Method and limits: docs/fabric.md.

    Exit status: 0 no part is named, 1 some are, 2 usage or damaged files.

    Example: seatrial fabric locate RUN --routes dump_fts.txt
    """
    from seatrial.commands._fabric_locate import (
        COLUMNS,
        Routing,
        located_in,
        print_suspects,
        rows_of,
    )

    routing = Routing(routes_file, adaptive, hca, fixed)
    answer = located_in(runs, fabric_file, routing, counters)
    if form == "table":
        print_suspects(answer)
    else:
        write_rows(rows_of(answer), form, COLUMNS)
    if pairs_file is not None:
        save_text(answer.pairs_text(), pairs_file)
    ctx.exit(Exit.FAILED if answer.suspects else Exit.PASS)
