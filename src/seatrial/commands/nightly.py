"""`seatrial nightly`: plan the nights of a system, install and remove them."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from seatrial import paths
from seatrial.commands import _options as options
from seatrial.commands._nights import ack, explain, retest, run, status, there
from seatrial.commands._rows import write_json
from seatrial.errors import SeatrialError
from seatrial.output import echo

if TYPE_CHECKING:
    from seatrial.nightly.crontab import Driver
    from seatrial.nightly.forecast import Forecast
    from seatrial.nightly.settings import Settings


@click.group()
def nightly() -> None:
    """Measure some nodes every night, and find what became worse.

    reference-data/SYSTEM/nightly.yaml declares the nights. From the machine that holds
    inventories/SYSTEM, the commands work over ssh on the login node, with the files of
    reference-data/SYSTEM of this machine.

    Example: seatrial nightly plan lab
    """


@nightly.command()
@click.argument("system", type=options.SYSTEM)
@options.form("Format of the output.", ("table", "json"))
@options.stop_on_eof
def plan(system: str, form: str) -> None:
    """Print the nights of SYSTEM as declared: nodes, time, node-hours, false alarms.

    Time and node-hours come from earlier nights; before the first, from the times that
    the checks of the campaign state. Nothing is changed.

    Exit status: 0; 2 usage, or nights that cannot work, with what would.

    Example: seatrial nightly plan lab
    """
    from seatrial.console import Terminal
    from seatrial.nightly.forecast_table import as_json, print_forecast

    if there(system, ["plan", system, "--format", form], "the plan"):
        return
    home = paths.home()
    expected = _forecast(home, system, _settings(home, system))
    if form == "json":
        write_json(as_json(expected))
    else:
        print_forecast(expected, Terminal())
    _refuse(expected.problems)


@nightly.command()
@click.argument("system", type=options.SYSTEM)
@click.option("--yes", is_flag=True, help="Install without a question.")
@options.stop_on_eof
def install(system: str, yes: bool) -> None:
    """Install the nights of SYSTEM in your scrontab.

    Checks the settings, the budget and the names of Slurm first. Then it shows the
    changed lines of the scrontab, asks, writes them, and reads them back. All other
    lines stay. Where Slurm has no scrontab, a job takes its place that submits the job
    of the next night.

    Exit status: 0; 2 usage, a problem, or no consent: then nothing was installed.

    Example: seatrial nightly install lab --yes
    """
    from seatrial.nightly.cron_jobs import NoScrontabError, read_scrontab
    from seatrial.nightly.crontab import driver_of
    from seatrial.nightly.preflight import check_slurm, require_own
    from seatrial.system.description import load_system

    if there(system, ["install", system, *["--yes"] * yes], "the installation"):
        return
    home = paths.home()
    settings = _settings(home, system)
    driver = driver_of(home, system, settings)
    require_own(driver.log.parent)
    nodes = [node.name for node in load_system(home, system).nodes]
    found = check_slurm(settings, driver.limit, nodes)
    _refuse(found.problems)
    expected = _forecast(home, system, settings)
    _refuse(expected.problems)
    absent = [f"{check}: {why}" for check, why in expected.nothing.items()]
    for note in (*found.notes, *(f"no job of {text}" for text in absent)):
        echo(f"note: {note}")
    try:
        text = read_scrontab()
    except NoScrontabError as reason:
        echo(f"no scrontab: {reason}; a job that submits the next one takes its place")
        _install_job(driver, yes=yes)
    else:
        _install_section(driver, text, yes=yes)
    echo(f"the next night opens at {expected.opening:%Y-%m-%d %H:%M}")


@nightly.command()
@click.argument("system", type=options.SYSTEM)
@options.stop_on_eof
def remove(system: str) -> None:
    """Remove the nights of SYSTEM from your scrontab; runs and ledger stay.

    Shows the changed lines. All other lines stay as they are. A waiting job that
    submits itself again is cancelled.

    Exit status: 0, also if nothing was installed; 2 usage or environment.

    Example: seatrial nightly remove lab
    """
    from seatrial.nightly import crontab
    from seatrial.nightly.cron_jobs import (
        NoScrontabError,
        cancel_waiting,
        read_scrontab,
        write_scrontab,
    )

    if there(system, ["remove", system], "the removal"):
        return
    try:
        text = read_scrontab()
    except NoScrontabError:
        text = ""
    rest = crontab.without(text, system)
    if rest != text:
        echo(*crontab.difference(text, rest))
        write_scrontab(text, rest, system)
        echo(f"{system}: removed from the scrontab")
    jobs = cancel_waiting(system)
    if jobs:
        echo(f"{system}: cancelled job {', '.join(jobs)}, which waited for a night")
    if rest == text and not jobs:
        echo(f"{system}: no nights are installed")


for _command in (run, status, explain, ack, retest):
    nightly.add_command(_command)


def _settings(home: Path, system: str) -> "Settings":
    """Read the nights of a system that Slurm runs; SeatrialError for any other."""
    from seatrial.nightly.settings import load_settings
    from seatrial.system.description import load_system

    if not load_system(home, system).only_slurm:
        raise SeatrialError(
            f"{system}: some nodes are not Slurm's; expected a system with Slurm: it "
            "starts the nights"
        )
    return load_settings(home, system)


def _forecast(home: Path, system: str, settings: "Settings") -> "Forecast":
    from datetime import datetime

    from seatrial.calibration.plan import campaign_cost
    from seatrial.nightly.forecast import forecast
    from seatrial.nightly.state import CAMPAIGN
    from seatrial.system.description import load_system

    classes = load_system(home, system).classes
    return forecast(
        paths.results_dir(home),
        system,
        settings,
        {name: described.nodes for name, described in classes.items()},
        campaign_cost(home, system, CAMPAIGN),
        datetime.now(),
    )


def _refuse(problems: list[str]) -> None:
    if problems:
        raise SeatrialError("\n".join(problems))


def _install_section(driver: "Driver", text: str, *, yes: bool) -> None:
    from seatrial.nightly import crontab
    from seatrial.nightly.cron_jobs import cancel_waiting, write_scrontab

    new = crontab.merged(text, driver)
    if new == text:
        echo(f"{driver.system}: the scrontab has these nights already")
    else:
        if crontab.is_disabled(text, driver.system):
            echo("note: Slurm disabled the entry, since its job was cancelled")
        echo(*crontab.difference(text, new))
        _ask("Write this scrontab?", yes=yes)
        driver.log.parent.mkdir(parents=True, exist_ok=True)
        write_scrontab(text, new, driver.system)
        echo(f"{driver.system}: installed in the scrontab")
    for job in cancel_waiting(driver.system):
        echo(f"cancelled job {job}: the scrontab takes its place")


def _install_job(driver: "Driver", *, yes: bool) -> None:
    import shlex
    from datetime import datetime

    from seatrial.nightly import cron_jobs

    now = datetime.now()
    command = cron_jobs.sbatch_command(driver, driver.settings.window.next_opening(now))
    echo(f"+{shlex.join(command)}")
    _ask("Submit this job?", yes=yes)
    for job in cron_jobs.cancel_waiting(driver.system):
        echo(f"cancelled job {job}, which waited for the next night")
    driver.log.parent.mkdir(parents=True, exist_ok=True)
    job = cron_jobs.submit_next(driver, now)
    if job not in cron_jobs.waiting(driver.system):
        raise SeatrialError(
            f"job {job}: expected it to wait for the next night; look at it with "
            f"`scontrol show job {job}`"
        )
    echo(f"{driver.system}: job {job} waits for the next night")


def _ask(question: str, *, yes: bool) -> None:
    """Ask for consent on a terminal; SeatrialError without one, or without consent."""
    if yes:
        return
    if not _is_terminal():
        raise SeatrialError(
            "no terminal to ask on; nothing was installed; add --yes to install this"
        )
    if not click.confirm(question):
        raise SeatrialError("no consent; nothing was installed")


def _is_terminal() -> bool:
    return sys.stdin.isatty()
