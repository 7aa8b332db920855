"""`seatrial status`: show the progress of open runs, once or live."""

import time
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from seatrial import interrupts, paths
from seatrial.commands import _options as options
from seatrial.commands._rows import write_json
from seatrial.errors import SeatrialError
from seatrial.output import complain, echo

if TYPE_CHECKING:
    from rich.console import RenderableType

    from seatrial.campaign.status import Status
    from seatrial.console import Terminal

_REDRAW_S = 2.0


@click.command()
@click.argument("system", type=options.SYSTEM, required=False)
@click.option("--run-id", metavar="ID", help="Only this open run.")
@click.option(
    "--watch", is_flag=True, help="Update until all runs are closed; Ctrl-C ends."
)
@options.option(
    "--format",
    "form",
    type=click.Choice(["table", "json"]),
    default="table",
    help="Format of the output.",
)
@options.stop_on_eof
def status(system: str | None, run_id: str | None, watch: bool, form: str) -> None:
    """Show the progress of the open runs of SYSTEM, or of all systems.

    For each run: whether its driver is active, finished sessions and cases, running
    cases with start and nodes, waiting jobs with the reason, failed cases by node,
    retries, interrupted tries, and the time left. Nothing is changed.

    The command reads the folder of the run on the login node, over ssh from the machine
    that holds inventories/SYSTEM. If the output is a file or a pipe, --watch prints a
    line for each change.

    Exit status: 0, also without an open run; 2 usage or environment.

    Example: seatrial status lab --watch
    """
    from seatrial.console import Terminal
    from seatrial.system.description import known_systems

    if watch and form != "table":
        raise click.UsageError("--watch draws a table; it has no other --format")
    home = paths.home()
    results = paths.results_dir(home)
    if system is not None and _is_elsewhere(home, results, system):
        from seatrial.campaign.remote import seatrial_there
        from seatrial.system.login_node import load_remote

        arguments = ["status", system, "--format", form]
        arguments += [] if run_id is None else ["--run-id", run_id]
        arguments += ["--watch"] if watch else []
        seatrial_there(load_remote(home, system), arguments, system, "status")
        return
    chosen = _Chosen(results, system, run_id)
    if run_id is not None and not chosen.folders():
        raise SeatrialError(f"no open run {run_id!r}; {chosen.newest()}")
    systems = known_systems(home) if system is None else []
    others = [name for name in systems if _is_elsewhere(home, results, name)]
    if form == "json":
        write_json([asdict(state) for state in chosen.statuses()])
    elif watch:
        _watch(chosen)
    else:
        if chosen.folders() or not others:
            Terminal().print(_shown(chosen))
        for other in others:
            _ask(home, other)
        return
    for other in others:
        complain(f"not asked: {other}; use `seatrial status {other}`")


@dataclass(frozen=True)
class _Chosen:
    """The open runs of a system and of an id; None for any."""

    results: Path
    system: str | None
    run_id: str | None

    def folders(self) -> list[Path]:
        from seatrial.runs.open_run import open_runs

        opened = open_runs(self.results, self.system)
        return [path for path in opened if self.run_id in (None, path.stem)]

    def statuses(self) -> list["Status"]:
        """Read their states; skip a run that was closed meanwhile."""
        from seatrial.campaign.status import read_status
        from seatrial.runs.closed_run import known_durations

        states = (
            read_status(folder, known_durations(self.results, folder.parent.name))
            for folder in self.folders()
        )
        return [each for each in states if each is not None]

    def newest(self) -> str:
        from seatrial.runs.closed_run import closed_runs

        runs = closed_runs(self.results, self.system)
        if not runs:
            return "none was ever closed"
        return f"the newest closed one is {runs[-1].parent.name}/{runs[-1].name}"


def _ask(home: Path, system: str) -> None:
    """Show the open runs of a system on its login node, or the error."""
    from seatrial.campaign.remote import seatrial_there
    from seatrial.system.login_node import load_remote

    echo(f"{system}, on its login node:")
    try:
        seatrial_there(load_remote(home, system), ["status", system], system, "status")
    except SeatrialError as error:
        complain(f"{system}: {error}")


def _is_elsewhere(home: Path, results: Path, system: str) -> bool:
    """Return True if the runs of a system are on another machine, its login node.

    Replays run here. Raises SeatrialError for an unknown system.
    """
    from seatrial.runs.open_run import open_runs
    from seatrial.system.description import (
        is_provisioned,
        known_systems,
        unknown_system,
    )

    if is_provisioned(home, system) or open_runs(results, system):
        return False
    if (home / "inventories" / system).is_dir():
        return True
    if not (results / system).is_dir() and system not in known_systems(home):
        raise unknown_system(home, system)
    return False


def _watch(chosen: _Chosen) -> None:
    """Redraw the open runs until all are closed."""
    from rich.live import Live

    from seatrial.console import Terminal

    console = Terminal()
    if not console.is_terminal:
        _log(chosen, console)
        return
    live = Live(console=console, auto_refresh=False)
    try:
        with interrupts.interruptible(), live:
            while chosen.folders():
                live.update(_shown(chosen), refresh=True)
                time.sleep(_REDRAW_S)
            live.update(_shown(chosen), refresh=True)
    except KeyboardInterrupt:
        return  # the usual end of --watch


def _log(chosen: _Chosen, console: "Terminal") -> None:
    """Print a line for each change of a run until all are closed."""
    from seatrial.campaign.status_table import status_line

    before: list[str] = []
    try:
        with interrupts.interruptible():
            while chosen.folders():
                lines = [status_line(each) for each in chosen.statuses()]
                for line in lines:
                    if line not in before:
                        console.print_line(f"{datetime.now():%H:%M:%S} {line}")
                before = lines
                time.sleep(_REDRAW_S)
    except KeyboardInterrupt:
        return
    console.print(_shown(chosen))


def _shown(chosen: _Chosen) -> "RenderableType":
    from rich.console import Group
    from rich.text import Text

    from seatrial.campaign.status_table import status_table

    statuses = chosen.statuses()
    if not statuses:
        return Text(f"no run is open; {chosen.newest()}")
    return Group(*(status_table(each) for each in statuses))
