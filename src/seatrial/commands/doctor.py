"""`seatrial doctor`: find what a first run on a system would trip over."""

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from seatrial import paths
from seatrial.commands import _options as options
from seatrial.commands._rows import write_rows
from seatrial.errors import Exit

if TYPE_CHECKING:
    from seatrial.system.doctor.finding import Diagnosis

_STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command()
@click.argument("system", type=options.SYSTEM)
@options.form("Format of the findings.")
@options.stop_on_eof
@click.pass_context
def doctor(ctx: click.Context, system: str, form: str) -> None:
    """Find what a first run on SYSTEM would trip over, with remedies.

    It looks at the login node over ssh, and at one node of each class by a Slurm job of
    a few seconds. It writes one file to seatrial_prefix and removes it. Run it before
    playbooks/site.yml, and again when a run fails at its start.

    Exit status: 0 go (warnings may be left), 1 no go, 2 usage or inventory.

    Example: seatrial doctor lab
    """
    from seatrial.console import Terminal
    from seatrial.system.doctor.diagnosis import diagnose
    from seatrial.system.doctor.probe import SETTINGS, probe
    from seatrial.system.login_node import load_remote, login_variables

    home = paths.home()
    remote = load_remote(home, system)
    settings = login_variables(home / "inventories" / system, home, SETTINGS)
    console = Terminal(stderr=True)
    with console.status(f"looking at {remote.host} and a node of each class"):
        findings = diagnose(probe(remote, settings), settings)
    if form == "table":
        _print(findings)
    else:
        columns = ("topic", "subject", "verdict", "text", "remedy")
        write_rows(map(asdict, findings), form, columns)
    failed = any(finding.verdict == "fail" for finding in findings)
    ctx.exit(Exit.FAILED if failed else Exit.PASS)


def _print(findings: "list[Diagnosis]") -> None:
    """Print a table, and the remedies below it."""
    from rich.text import Text

    from seatrial.console import Terminal, folding_table

    table = folding_table("", "topic", "of", "finding")
    for finding in findings:
        verdict = Text(finding.verdict, style=_STYLES[finding.verdict])
        table.add_row(verdict, finding.topic, finding.subject, finding.text)
    console = Terminal()
    console.print(table)
    bad = [finding for finding in findings if finding.remedy]
    for finding in bad:
        console.print_line(f"{finding.topic}, {finding.subject}: {finding.remedy}")
    counts = Counter[str](finding.verdict for finding in findings)
    word, style = ("no go", "red") if counts["fail"] else ("go", "green")
    parts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in _STYLES)
    console.print_line((word, style), f": {parts}")
