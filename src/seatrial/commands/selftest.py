"""`seatrial selftest`: plant faults in a system, and check the verdicts."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from seatrial import paths
from seatrial.commands import _options as options
from seatrial.commands._rows import write_rows
from seatrial.commands._runs import judged
from seatrial.errors import Exit, SeatrialError
from seatrial.output import echo

if TYPE_CHECKING:
    from rich.table import Table

    from seatrial.calibration.selftest import Trial
    from seatrial.calibration.selftest_faults import Fault
    from seatrial.judge.judge import Judgement

_FOUND = {True: ("yes", "green"), False: ("NO", "red"), None: ("-", "")}


@click.command()
@click.argument("system", type=options.SYSTEM)
@options.repeated(
    "--fault",
    "names",
    metavar="NAME",
    help="Plant only this fault; may be repeated (default: all).",
)
@click.option("--node", help="Node for the faults of the lab (default: its last).")
@options.option("--campaign", type=options.CAMPAIGN, default="selftest")
@options.count("--repeats", help="Repeats of the campaign (default: its own).")
@click.option(
    "--lift", is_flag=True, help="Only remove the fault that a killed self-test left."
)
@options.form("Format of the results.")
@click.pass_context
def selftest(
    ctx: click.Context,
    system: str,
    names: tuple[str, ...],
    node: str | None,
    campaign: str,
    repeats: int | None,
    lift: bool,
    form: str,
) -> None:
    """Plant faults in SYSTEM, and check that each is found and no other node is blamed.

    Runs the campaign once without a fault, when no node may be blamed, then once with
    each fault: slow-link, slow-cpu, dead-daemon and wrong-setting on the lab; on
    another system the `selftest_faults` of its inventory. The fault is removed at every
    end of a run: Ctrl-C, SIGTERM, an error. After kill -9, use --lift. The runs are
    kept in build/selftest/SYSTEM, apart from the results.

    Exit status: 0 all faults found and no node blamed wrongly, 1 otherwise, 2 usage or
    environment, 130 interrupted.

    Example: seatrial selftest lab --fault slow-link --node cn02
    """
    from seatrial.calibration.selftest import lift_standing
    from seatrial.calibration.selftest import selftest as run_selftest
    from seatrial.campaign.campaign_file import load_campaign, only_checks
    from seatrial.commands._running import Request, new_run
    from seatrial.console import Terminal

    home = paths.home()
    folder = home / "build" / "selftest" / system
    again = f"seatrial selftest {system} --lift"
    if lift:
        echo(lift_standing(folder, lambda where: _known(home, system, where)))
        return
    faults = _chosen(home, system, node, names)
    only_checks(
        load_campaign(home, campaign),
        tuple(c for fault in faults for c in fault.checks),
    )
    results = folder.parent
    request = Request(home, results, system, None, judge=False, folder="selftest")

    def run(fault: "Fault | None") -> "Judgement":
        checks = _needed(faults) if fault is None else fault.checks
        times = repeats if fault is None else fault.repeats or repeats
        with _stdout_on_stderr():
            return judged(home, new_run(request, campaign, checks, times, None))[1]

    def print_line(trial: "Trial") -> None:
        echo(_line(trial), err=True)

    trials = run_selftest(folder, faults, run, print_line, again)
    if form == "table":
        Terminal().print(_table(trials))
    else:
        _print_rows(trials, form)
    if not all(trial.as_it_should for trial in trials):
        ctx.exit(Exit.FAILED)


def _chosen(
    home: Path, system: str, node: str | None, names: tuple[str, ...]
) -> list["Fault"]:
    """Return the named faults, or all; SeatrialError for an unknown name."""
    from seatrial.calibration.selftest_faults import known_faults

    known = known_faults(home, system, node)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SeatrialError(
            f"--fault {unknown[0]}: system {system!r} has no such fault; expected one "
            f"of {', '.join(known)}"
        )
    return [known[name] for name in dict.fromkeys(names or known)]


def _known(home: Path, system: str, node: str) -> Mapping[str, "Fault"]:
    """Return the faults of a node; an inventory names the node itself."""
    from seatrial.calibration.selftest_faults import known_faults

    try:
        return known_faults(home, system, node)
    except SeatrialError:
        return known_faults(home, system)


def _needed(faults: list["Fault"]) -> tuple[str, ...]:
    """Return the checks that the faults need; empty for all of the campaign."""
    if not all(fault.checks for fault in faults):
        return ()
    return tuple(dict.fromkeys(check for fault in faults for check in fault.checks))


@contextmanager
def _stdout_on_stderr() -> Iterator[None]:
    """Send standard output to standard error, that of children too."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def _line(trial: "Trial") -> str:
    verdict = f"{trial.fault}: {trial.verdict}"
    outcome = {True: ", found", False: ", NOT found", None: ""}[trial.found]
    wrongly = f", wrongly blamed: {', '.join(trial.wrongly)}" if trial.wrongly else ""
    return f"{verdict}{outcome}{wrongly} ({trial.seconds:.0f} s)"


def _table(trials: list["Trial"]) -> "Table":
    from rich.table import Table
    from rich.text import Text

    headings = ("fault", "node", "checks", "expected", "verdict", "found")
    table = Table(*headings, "blamed wrongly", box=None, pad_edge=False)
    table.add_column("time", justify="right")
    for trial in trials:
        outcome, colour = _FOUND[trial.found]
        table.add_row(
            ": ".join(filter(None, [trial.fault, trial.what])),
            trial.node or "-",
            ", ".join(trial.checks) or "-",
            trial.expected,
            trial.verdict,
            Text(outcome, colour),
            Text(", ".join(trial.wrongly), style="red") if trial.wrongly else "none",
            f"{trial.seconds:.0f} s",
        )
    return table


def _print_rows(trials: list["Trial"], form: str) -> None:
    rows = [asdict(trial) for trial in trials]
    if form == "csv":
        lists = ("checks", "wrongly")
        rows = [row | {key: " ".join(row[key]) for key in lists} for row in rows]
    write_rows(rows, form, [*rows[0]])
