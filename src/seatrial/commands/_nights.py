"""Commands of `seatrial nightly` that run and show nights, and answer alarms."""

import os
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

import click

from seatrial.commands import _options as options
from seatrial.commands._runs import is_elsewhere
from seatrial.errors import Exit, SeatrialError
from seatrial.output import echo
from seatrial.paths import home, results_dir

if TYPE_CHECKING:
    from seatrial.nightly.night import Site
    from seatrial.nightly.state import State

_MOST_SKIPPED = 5
_OF_JOB = ("SLURM_", "SBATCH_", "PMI")
"""Variables of the job of a driver, which are not those of its measurements."""


@click.command()
@click.argument("system", type=options.SYSTEM)
@click.option(
    "--resubmit", is_flag=True, help="First submit the job of the next night."
)
@options.stop_on_eof
@click.pass_context
def run(ctx: click.Context, system: str, resubmit: bool) -> None:
    """Measure idle nodes of SYSTEM tonight; find bad nodes, act, and notify people.

    Slurm starts this command; `seatrial nightly install` arranges for that. Outside the
    window, or if the night is measured already, nothing is measured.

    Exit status: 0; 1 an alarm is open; 2 usage or environment; 3 not measured.

    Example: seatrial nightly run lab
    """
    from seatrial.console import Terminal
    from seatrial.nightly.finish import finish
    from seatrial.nightly.night import measure_night

    if there(system, ["run", system, *["--resubmit"] * resubmit], "the night"):
        return
    site = _site(system)
    submitted = not resubmit or _submit(site)
    for name in [*os.environ]:
        if name.startswith(_OF_JOB) and name != "SLURM_CONF":
            del os.environ[name]
    reason = measure_night(site, Terminal())
    if not submitted:
        _submit(site)
    if reason:
        echo(f"not measured: {reason}")
    state, lines = finish(site)
    echo(*lines)
    _print(state, site.today())
    if state.open_alarms(site.today()):
        ctx.exit(Exit.FAILED)
    if reason:
        ctx.exit(Exit.UNDECIDED)


@click.command()
@click.argument("system", type=options.SYSTEM)
@options.stop_on_eof
@click.pass_context
def status(ctx: click.Context, system: str) -> None:
    """Show the nights of SYSTEM: alarms, coverage, watched and quarantined nodes.

    Exit status: 0; 1 an alarm is open; 2 usage or environment.

    Example: seatrial nightly status lab
    """
    if there(system, ["status", system], "the listing"):
        return
    site = _site(system)
    state = site.state()
    _print(state, site.today())
    if state.open_alarms(site.today()):
        ctx.exit(Exit.FAILED)


@click.command()
@click.argument("system", type=options.SYSTEM)
@click.argument("alarm")
@click.option("--ticket", is_flag=True, help="Print the text of a ticket in Markdown.")
@options.stop_on_eof
def explain(system: str, alarm: str, ticket: bool) -> None:
    """Explain ALARM of SYSTEM: evidence, onset, changes of the configuration.

    Example: seatrial nightly explain lab 2026-11-25-cn03
    """
    from seatrial.nightly import explanation

    more = ["--ticket"] if ticket else []
    if there(system, ["explain", system, alarm, *more], "the explanation"):
        return
    site = _site(system)
    state = site.state()
    found = state.alarm(alarm)
    if ticket:
        echo(*explanation.ticket(state, found))
    else:
        echo(*explanation.explained(state, found, site.today()))


@click.command()
@click.argument("system", type=options.SYSTEM)
@click.argument("alarm")
@click.option(
    "--until",
    required=True,
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DATE",
    help="Last day on which the alarm is quiet, e.g. 2026-12-24.",
)
@click.option("--reason", required=True, metavar="TEXT", help="Why it may last.")
@options.stop_on_eof
def ack(system: str, alarm: str, until: datetime, reason: str) -> None:
    """Acknowledge ALARM of SYSTEM: it is known, and quiet until a date.

    The ledger records it. After the date, the alarm is open again if it still lasts.

    Example: seatrial nightly ack lab 2026-11-25-cn03 --until 2026-12-01 --reason 'RMA'
    """
    from seatrial.runs.ledger import note_night

    last = until.date()
    more = ["--until", str(last), "--reason", reason]
    if there(system, ["ack", system, alarm, *more], "the entry"):
        return
    site = _site(system)
    state, today = site.state(), site.today()
    found = state.alarm(alarm)
    if last < today:
        raise SeatrialError(f"--until {last}: expected a day from {today} on")
    if state.standing(found, today) == "closed":
        raise SeatrialError(f"{alarm} ended in the night of {found.closed}")
    note_night(
        state.folder, "acknowledged", alarm=alarm, until=str(last), reason=reason
    )
    echo(f"{alarm}: quiet until {last}")


@click.command()
@click.argument("system", type=options.SYSTEM)
@click.argument("node")
@options.stop_on_eof
@click.pass_context
def retest(ctx: click.Context, system: str, node: str) -> None:
    """Measure NODE of SYSTEM now, with an idle partner of its class.

    A quarantined node is measured in its reservation. The numbers count as those of
    the next night.

    Exit status: 0; 1 an alarm of NODE is open; 2 usage or environment; 3 not measured.

    Example: seatrial nightly retest lab cn03
    """
    from seatrial.console import Terminal
    from seatrial.nightly.night import retest as measure

    if there(system, ["retest", system, node], "the re-test"):
        return
    site = _site(system)
    reason = measure(site, node, site.state(), None, Terminal())
    if reason:
        echo(f"not measured: {reason}")
        ctx.exit(Exit.UNDECIDED)
    state, today = site.state(), site.today()
    bad = [alarm for alarm in state.open_alarms(today) if node in alarm.nodes]
    for alarm in bad:
        echo(f"still open: {alarm.name}")
    if bad:
        ctx.exit(Exit.FAILED)


def there(system: str, arguments: list[str], task: str) -> bool:
    """Run `seatrial nightly` on the login node if only the inventory is here.

    Copies the files of reference-data/SYSTEM there first. Returns False if the system
    is here. Ends this program with the status of the command if that is not 0.
    """
    from seatrial.campaign.remote import copy_references, seatrial_there
    from seatrial.system.login_node import load_remote

    suite = home()
    if not is_elsewhere(suite, system):
        return False
    remote = load_remote(suite, system)
    copy_references(remote, suite, system)
    command, answers = ["nightly", *arguments], (Exit.FAILED, Exit.UNDECIDED)
    status = seatrial_there(remote, command, system, task, answers)
    if status:
        click.get_current_context().exit(status)
    return True


def _site(system: str) -> "Site":
    from seatrial.nightly.night import Site
    from seatrial.nightly.settings import load_settings
    from seatrial.system.description import load_system

    suite = home()
    described = load_system(suite, system)
    return Site(suite, results_dir(suite), described, load_settings(suite, system))


def _submit(site: "Site") -> bool:
    """Submit the job of the next night; return False, with a message, if that fails."""
    from seatrial.nightly.cron_jobs import submit_next
    from seatrial.nightly.crontab import driver_of
    from seatrial.nightly.night import now

    try:
        driver = driver_of(site.home, site.system.name, site.settings)
        echo(f"next night: job {submit_next(driver, now())}")
    except SeatrialError as error:
        echo(f"the job of the next night is not submitted: {error}")
        return False
    return True


def _print(state: "State", today: date) -> None:
    """Print a summary of the state."""
    from seatrial.console import Terminal
    from seatrial.model.units import counted
    from seatrial.names import node_set

    console = Terminal()
    rules, decision = state.settings.rules, state.decision
    nights = len(state.visits.nights)
    last = f"the last {state.visits.nights[-1]}" if nights else "none yet"
    console.print_line(
        f"{state.system}: {counted(nights, 'night')}, {last}; expected false alarms: "
        f"{rules.alarms_a_year:g} a year"
    )
    for alarm in state.alarms:
        standing = state.standing(alarm, today)
        if standing != "closed":
            what = alarm.shared or node_set(alarm.nodes)
            console.print_line(f"{standing}: {alarm.name}: {alarm.kind}: {what}")
    covered = f"{100 * state.coverage(today):.0f} % of the nodes"
    console.print_line(f"measured within {rules.every} nights: {covered}")
    gave_way = state.yielded.get(today, 0)
    if gave_way:
        cases = counted(gave_way, "case")
        console.print_line(f"tonight {cases} gave way, and measured nothing")
    unseen = [
        n for n, age in state.unseen(today).items() if age is None or age > rules.every
    ]
    listed = {
        "not measured for longer": unseen,
        "watched": [one.node for one in decision.watched],
        "quarantined": [*state.quarantined],
    }
    for words, nodes in listed.items():
        if nodes:
            console.print_line(f"{words}: {node_set(nodes)}")
    learning = decision.learning
    if learning:
        least = min(one.visits for one in learning)
        console.print_line(
            f"learning: {counted(len(learning), 'node')}; the shortest baseline has "
            f"{least} of {learning[0].needed} visits"
        )
    for run, why in state.unreadable.items():
        console.print_line(f"left out: {run}: {why}")
    recent = today - timedelta(days=rules.every)
    for entry in state.skipped[-_MOST_SKIPPED:]:
        if entry.time[:10] >= str(recent):
            console.print_line(f"skipped {entry.time}: {entry.reason}")
