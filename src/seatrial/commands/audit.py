"""`seatrial audit`: compare the settings of all nodes with the declaration."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from seatrial import paths
from seatrial.commands import _options as options
from seatrial.commands._rows import write_rows
from seatrial.output import echo

if TYPE_CHECKING:
    from seatrial.audit.collect import Collected
    from seatrial.audit.hardware_file import HardwareFile
    from seatrial.audit.rows import Row

_STYLES = {"ok": "green", "odd": "yellow", "unknown": "yellow"}


@click.command()
@click.argument("system", type=options.SYSTEM)
@options.form("Format of the rows.")
@click.option("--all", "everything", is_flag=True, help="Print what is ok, too.")
@options.out(help="Keep the raw outputs of the nodes in this folder.")
@click.option(
    "--raw", type=options.FOLDER, help="Read a folder of --out instead of the nodes."
)
@click.option(
    "--ssh",
    is_flag=True,
    help="Read by ssh (playbooks/audit.yml), as root if Ansible may become it.",
)
@options.stop_on_eof
@click.pass_context
def audit(
    ctx: click.Context,
    system: str,
    form: str,
    everything: bool,
    out: Path | None,
    raw: Path | None,
    ssh: bool,
) -> None:
    """Compare firmware, driver and settings of all nodes of SYSTEM.

    Every value is compared with the declaration of the inventory, and with the nodes
    of the same class. It reads only, by one short Slurm job for each class; what
    needs root is unknown without it.

    Exit status: 0 as declared, 1 drift, pending or absent, 2 usage or inventory,
    3 a declared value is unknown.

    Example: seatrial audit lab
    """
    from seatrial.audit.audit import audit as compare
    from seatrial.audit.audit import exit_status
    from seatrial.audit.collect import save

    collected, declaration = _read(system, raw, by_ssh=ssh)
    if declaration.unchecked:
        note = "audit: not checked, as mstflint is not installed here: "
        echo(note + ", ".join(declaration.unchecked), err=True)
    if out is not None:
        save(out, collected)
    rows = compare(collected, declaration)
    for error in collected.errors:
        echo(f"audit: {error}", err=True)
    if form == "table":
        _print(rows, everything=everything)
    else:
        from seatrial.audit.deviations import counted
        from seatrial.audit.rows import Row

        shown = [asdict(row) for row in rows if everything or row.verdict != "ok"]
        if form == "csv":
            shown = [{**one, "peers": counted(one["peers"])} for one in shown]
        write_rows(shown, form, tuple(Row.__annotations__))
    ctx.exit(exit_status(rows))


def _read(
    system: str, raw: Path | None, *, by_ssh: bool
) -> "tuple[Collected, HardwareFile]":
    """Read the declaration, and then the nodes, or a folder of their outputs."""
    from seatrial.audit.audit import SETTINGS, through_slurm, through_ssh
    from seatrial.audit.collect import of_folder
    from seatrial.audit.hardware_file import NAME, HardwareFile
    from seatrial.console import Terminal
    from seatrial.system.login_node import load_remote, login_variables

    home = paths.home()
    inventory = home / "inventories" / system
    if raw is not None:
        collected = of_folder(raw)
        return collected, HardwareFile(inventory / NAME, collected.classes)
    remote = load_remote(home, system)
    settings = login_variables(inventory, home, SETTINGS)
    names = [one["name"] for one in settings["classes"]]
    declaration = HardwareFile(inventory / NAME, names)
    with Terminal(stderr=True).status(f"reading the nodes of {system}"):
        if by_ssh:
            return through_ssh(home, system, declaration), declaration
        return through_slurm(remote, settings, declaration), declaration


def _print(rows: "list[Row]", *, everything: bool) -> None:
    """Print a table, worst first; nodes with the same row share a line."""
    from rich.text import Text

    from seatrial.audit.deviations import deviations, untold
    from seatrial.audit.rows import VERDICTS
    from seatrial.console import Terminal, folding_table
    from seatrial.model.units import counted

    lines = deviations(rows, everything=everything)
    table = folding_table("", "nodes", "of", "key", "declared", "actual", "peers")
    for line in lines:
        verdict = Text(line.verdict, style=_STYLES.get(line.verdict, "red"))
        texts = (line.nodes, line.subject, line.key, line.declared, line.found)
        table.add_row(verdict, *texts, line.peers)
    console = Terminal()
    if lines:
        console.print(table)
    silent = "" if everything else untold(rows)
    if silent:
        console.print_line(f"Not declared, and unknown: {silent}")
    counts = Counter[str](row.verdict for row in rows)
    nodes = len({row.node for row in rows})
    parts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS)
    console.print_line(f"{counted(nodes, 'node')}: {parts}")
