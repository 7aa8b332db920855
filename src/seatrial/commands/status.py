"""`seatrial status`: show the progress of open runs, once or live."""

import time
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from seatrial import interrupts, paths
from seatrial.commands import _options as options
from seatrial.commands._rows import write_json
from seatrial.commands._runs import run_there
from seatrial.errors import SeatrialError
from seatrial.output import complain, echo

if TYPE_CHECKING:
    from rich.console import RenderableType

    from seatrial.campaign.status import Status
    from seatrial.judge.stability_standing import Standing

_REDRAW_S = 2.0
_RELOAD_S = 60.0
"""Seconds between two pages of a stability phase."""


@click.command()
@click.argument("system", type=options.SYSTEM, required=False)
@click.option("--run-id", metavar="ID", help="Only this open run.")
@click.option(
    "--watch", is_flag=True, help="Update until all runs are closed; Ctrl-C ends."
)
@click.option(
    "--page",
    type=options.FILE,
    help="Write the live page of the newest stability phase to this file; with "
    "--watch again and again.",
)
@options.form("Format of the output.", ("table", "json"))
@options.stop_on_eof
def status(
    system: str | None, run_id: str | None, watch: bool, page: Path | None, form: str
) -> None:
    """Show the progress of the open runs of SYSTEM, or of all systems.

    For each run: whether its driver is active, finished sessions and cases, running
    cases with start and nodes, waiting jobs with the reason, failed cases by node,
    retries, interrupted tries, and the time left. Nothing is changed.

    The command reads the folder of the run on the login node, over ssh from the machine
    that holds inventories/SYSTEM. If the output is a file or a pipe, --watch prints a
    line for each change.

    A stability phase has more lines: events by cause, standing of its criteria. --page
    writes them with operating curves as HTML, on the login node; JSON has `phase`.

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
        if page is not None:
            raise SeatrialError(
                "--page writes where the run is; expected the login node of "
                f"{system}; the page can be served from there"
            )
        arguments = ["status", system, "--format", form]
        arguments += [] if run_id is None else ["--run-id", run_id]
        arguments += ["--watch"] if watch else []
        run_there(home, system, arguments, "status")
        return
    chosen = _Chosen(home, results, system, run_id, page, watch)
    if run_id is not None and not chosen.folders():
        raise SeatrialError(f"no open run {run_id!r}; {chosen.newest()}")
    systems = known_systems(home) if system is None else []
    others = [name for name in systems if _is_elsewhere(home, results, name)]
    chosen.write_page()
    if form == "json":
        write_json(chosen.records())
    elif watch:
        _watch(chosen)
    else:
        if chosen.folders() or not others:
            Terminal().print(_shown(chosen))
        for other in others:
            echo(f"{other}, on its login node:")
            try:
                run_there(home, other, ["status", other], "status")
            except SeatrialError as error:
                complain(f"{other}: {error}")
        return
    for other in others:
        complain(f"not asked: {other}; use `seatrial status {other}`")


@dataclass(frozen=True)
class _Chosen:
    """The open runs of a system and of an id; None for any.

    `page` receives the live page of a stability phase; a browser reloads it if the
    command goes on (`watch`).
    """

    home: Path
    results: Path
    system: str | None
    run_id: str | None
    page: Path | None = None
    watch: bool = False

    def folders(self) -> list[Path]:
        from seatrial.runs.open_run import open_runs

        opened = open_runs(self.results, self.system)
        return [path for path in opened if self.run_id in (None, path.stem)]

    def statuses(self) -> list["Status"]:
        """Read their states; skip a run that was closed meanwhile."""
        from seatrial.campaign.known_durations import known_durations
        from seatrial.campaign.status import read_status

        states = (
            read_status(folder, known_durations(self.results, folder.parent.name))
            for folder in self.folders()
        )
        return [state for state in states if state is not None]

    def records(self) -> list[dict[str, Any]]:
        """Return their states for programs, with `phase`, that of a stability phase."""
        records = []
        for state in self.statuses():
            phase = _standing(Path(state.path), self.home)
            records.append(asdict(state) | {"phase": phase and asdict(phase)})
        return records

    def write_page(self) -> None:
        """Write the page of the newest stability phase, if it is asked for.

        Raises SeatrialError if there is none.
        """
        if self.page is None:
            return
        from seatrial.report.stability_page import stability_page
        from seatrial.runs.open_run import disk_errors, write_file

        refresh_s = _RELOAD_S if self.watch else 0.0
        for folder in reversed(self.folders()):
            text = stability_page(folder, self.home, refresh_s)
            if text is not None:
                with disk_errors(self.page.parent):
                    write_file(self.page, text.encode())
                return
        if not self.watch:
            raise SeatrialError(f"no stability phase is open; {self.newest()}")

    def newest(self) -> str:
        from seatrial.runs.closed_run import closed_runs

        runs = closed_runs(self.results, self.system)
        if not runs:
            return "none was ever closed"
        return f"the newest closed one is {runs[-1].parent.name}/{runs[-1].name}"


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
    """Redraw the open runs until all are closed; in a file, print each change."""
    from rich.live import Live

    from seatrial.campaign.status_table import status_line
    from seatrial.console import Terminal

    console = Terminal()
    live = Live(console=console, auto_refresh=False) if console.is_terminal else None
    before: list[str] = []
    next_page = time.monotonic() + _RELOAD_S
    with (
        suppress(KeyboardInterrupt),  # the usual end of --watch
        interrupts.interruptible(),
        live or nullcontext(),
    ):
        while chosen.folders():
            if live:
                live.update(_shown(chosen), refresh=True)
            else:
                lines = [*map(status_line, chosen.statuses())]
                for line in lines:
                    if line not in before:
                        console.print_line(f"{datetime.now():%H:%M:%S} {line}")
                before = lines
            if time.monotonic() >= next_page:
                chosen.write_page()
                next_page = time.monotonic() + _RELOAD_S
            time.sleep(_REDRAW_S)
        if live:
            live.update(_shown(chosen), refresh=True)
        else:
            console.print(_shown(chosen))


def _shown(chosen: _Chosen) -> "RenderableType":
    from rich.console import Group
    from rich.text import Text

    from seatrial.campaign.status_table import status_table

    statuses = chosen.statuses()
    if not statuses:
        return Text(f"no run is open; {chosen.newest()}")
    parts: list[RenderableType] = []
    for status in statuses:
        parts.append(status_table(status))
        if phase := _standing(Path(status.path), chosen.home):
            from seatrial.judge.stability_standing import standing_lines

            parts.append(Text("\n".join(standing_lines(phase))))
    return Group(*parts)


def _standing(folder: Path, home: Path) -> "Standing | None":
    """Read the standing of an open stability phase; other campaigns need no judge."""
    from seatrial.campaign.schedule import read_agenda

    try:
        phase = read_agenda(folder).stability
    except SeatrialError:
        if folder.exists():
            raise
        return None  # closed meanwhile
    if phase is None:
        return None
    from seatrial.judge.stability_standing import standing_of

    return standing_of(folder, home)
