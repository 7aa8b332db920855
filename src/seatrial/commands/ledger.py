"""`seatrial ledger`: list the runs that were started; declare repairs and removals."""

import click

from seatrial import paths
from seatrial.commands import _options as options
from seatrial.commands._rows import write_json
from seatrial.commands._runs import run_there
from seatrial.errors import SeatrialError
from seatrial.names import node_set
from seatrial.output import echo

_reason = click.option(
    "--reason", required=True, metavar="TEXT", help="Reason, shown with every verdict."
)


@click.group()
def ledger() -> None:
    """List the runs of a system that were started; declare repairs and removals.

    The ledger is ledger.jsonl in the results folder of the login node. From the machine
    that holds inventories/SYSTEM, the commands work over ssh.

    Example: seatrial ledger show lab
    """


@ledger.command()
@click.argument("system", type=options.SYSTEM)
@options.form("Format of the output.", ("table", "json"))
@click.pass_context
def show(ctx: click.Context, system: str, form: str) -> None:
    """List all runs of SYSTEM that were started, with their state, and all repairs.

    The last line has the SHA-256 of the last entry, the head. A person who keeps it can
    prove later that no entry up to that one was changed or removed.

    Exit status: 0; 1 if the ledger is broken; 2 usage or environment.

    Example: seatrial ledger show lab --format json
    """
    from seatrial.console import Terminal
    from seatrial.errors import Exit
    from seatrial.runs.ledger import is_there, read_ledger
    from seatrial.runs.ledger_entries import parse_ledger

    folder = paths.results_dir(paths.home()) / system
    if _is_elsewhere(system):
        arguments = ["ledger", "show", system, "--format", form]
        run_there(paths.home(), system, arguments, "the listing")
        return
    content = read_ledger(folder)
    if content is None:
        raise SeatrialError(f"{folder}: no ledger; no run was started here")
    book = parse_ledger(content)
    rows = []
    for entry in book.entries:
        if entry.event == "started":
            removed = book.last("removed", entry.run)
            closed = book.last("closed", entry.run) is not None
            state = "closed" if closed else "not closed"
            if not is_there(folder, entry.run):
                state = (removed and removed.reason) or "its folder is gone"
            state += f"; repeats run {entry.repeat_of}" if entry.repeat_of else ""
            rows.append((entry.time, entry.campaign, entry.number, entry.run, state))
        elif entry.event == "repaired":
            rows.append((entry.time, "", 0, entry.node, f"repaired: {entry.reason}"))
    head = book.heads[-1] if book.heads else ""
    if form == "json":
        names = ("time", "campaign", "number", "name", "state")
        listed = [dict(zip(names, row, strict=True)) for row in rows]
        write_json({"entries": listed, "head": head, "problem": book.problem})
    else:
        console = Terminal()
        for when, campaign, number, name, state in rows:
            numbered = f"{campaign} {number}: " if number else ""
            console.print_line(f"{when} {numbered}{name}: {state}")
        console.print_whole(f"head: {head}")
    if book.problem:
        problem = f"{folder}: the ledger is broken: {book.problem}"
        raise SeatrialError(problem, Exit.FAILED)


@ledger.command()
@click.argument("system", type=options.SYSTEM)
@click.argument("node")
@_reason
def repaired(system: str, node: str, reason: str) -> None:
    """Declare that NODE of SYSTEM was repaired.

    Verdicts on runs that close later count only the numbers of NODE that were taken
    after this, and name the repair. The entry cannot be removed.

    Example: seatrial ledger repaired lab cn03 --reason 'new cable on mlx5_0'
    """
    from seatrial.runs.ledger import note_repair
    from seatrial.system.description import is_provisioned, load_system

    if _is_elsewhere(system):
        _there("repaired", system, node, reason)
        return
    if is_provisioned(paths.home(), system):
        nodes = [known.name for known in load_system(paths.home(), system).nodes]
        if node not in nodes:
            raise SeatrialError(
                f"{node}: no node of {system}; expected one of {node_set(nodes)}"
            )
    note_repair(paths.results_dir(paths.home()) / system, node, reason)
    echo(f"{node}: its numbers from before now do not count")


@ledger.command()
@click.argument("system", type=options.SYSTEM)
@click.argument("run")
@_reason
def removed(system: str, run: str, reason: str) -> None:
    """Declare why the folder of RUN of SYSTEM was removed.

    A run whose folder is gone without a reason fails every later verdict. The run stays
    listed, and counts.

    Example: seatrial ledger removed lab 20261121T063015Z-smoke --reason 'disk was full'
    """
    from seatrial.runs.ledger import note_removed

    if _is_elsewhere(system):
        _there("removed", system, run, reason)
        return
    note_removed(paths.results_dir(paths.home()) / system, run, reason)


def _there(command: str, system: str, name: str, reason: str) -> None:
    arguments = ["ledger", command, system, name, "--reason", reason]
    run_there(paths.home(), system, arguments, "the entry")


def _is_elsewhere(system: str) -> bool:
    """Return True if the ledger of a system is on another machine, its login node.

    Raises SeatrialError for a system that has neither files nor runs here.
    """
    from seatrial.runs.ledger import LEDGER
    from seatrial.system.description import is_provisioned, unknown_system

    home = paths.home()
    folder = paths.results_dir(home) / system
    if is_provisioned(home, system) or (folder / LEDGER).exists():
        return False
    elsewhere = (home / "inventories" / system).is_dir()
    if not elsewhere and not folder.is_dir():
        raise unknown_system(home, system)
    return elsewhere
