"""One night: choose idle nodes and measure them.

A night that cannot measure is skipped, and the ledger has the reason. Notification and
pages follow in any case, and the next night starts as usual.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from seatrial.calibration.plan import campaign_cost
from seatrial.campaign.campaign_file import load_campaign
from seatrial.campaign.runner import Order, run_campaign
from seatrial.campaign.schedule import read_agenda
from seatrial.campaign.session_command import comment_of
from seatrial.criteria.criteria import Criteria
from seatrial.criteria.reframe_references import write_reference_files
from seatrial.errors import Exit, SeatrialError
from seatrial.history.records import Alarm
from seatrial.nightly.choice import Choice, choose, free_nodes
from seatrial.nightly.forecast import usage_of
from seatrial.nightly.part import part_of
from seatrial.nightly.settings import Settings
from seatrial.nightly.slurm_actions import reservation_of
from seatrial.nightly.state import CAMPAIGN, State, read_state
from seatrial.paths import criteria_file
from seatrial.runs.ledger import note_night
from seatrial.runs.lock import driver_of
from seatrial.runs.open_run import new_run_id, open_runs
from seatrial.system import slurm
from seatrial.system.description import System

_FEW = 8
"""Nodes of an alarm that are measured each night."""

_RESERVE = timedelta(minutes=5)
"""Part of the window that is left for the judge."""


@dataclass(frozen=True)
class Site:
    """A system with its nights, the home of the suite, and the folder of all runs."""

    home: Path
    results: Path
    system: System
    settings: Settings

    @property
    def folder(self) -> Path:
        """The folder of the runs of the system."""
        return self.results / self.system.name

    @property
    def classes(self) -> Mapping[str, Sequence[str]]:
        """The nodes of each class."""
        return {name: of.nodes for name, of in self.system.classes.items()}

    def today(self) -> date:
        """Return the night that is open now, else the date."""
        return self.settings.window.night(now()) or now().date()

    def free_nodes(self) -> set[str]:
        """Return the nodes that are free for us.

        Raises SeatrialError if Slurm does not answer.
        """
        return free_nodes(
            {
                name: (of.nodes, self.settings.reservation or _reservation(of.access))
                for name, of in self.system.classes.items()
            }
        )

    def state(self) -> State:
        """Read the state of the nights."""
        return read_state(self.results, self.system.name, self.settings, self.classes)


def _reservation(access: Sequence[str] | None) -> str:
    """Return the reservation that the jobs of a class name; '' without."""
    options = [one.partition("=") for one in access or ()]
    return next((value for key, _, value in options if key == "--reservation"), "")


def now() -> datetime:
    """Return the local time: nights begin and end by it."""
    return datetime.now()


def measure_night(site: Site, console: Console) -> str:
    """Measure the nodes of tonight; return '', or the reason why not.

    The ledger records the reason.
    """
    try:
        reason = _measure(site, console)
    except (SeatrialError, OSError) as error:
        if isinstance(error, SeatrialError) and error.exit_code == Exit.INTERRUPTED:
            raise
        reason = str(error).splitlines()[0]
    if reason:
        with suppress(SeatrialError):
            note_night(site.folder, "skipped", reason=reason)
    return reason


def _measure(site: Site, console: Console) -> str:
    window, moment = site.settings.window, now()
    night = window.night(moment)
    if night is None:
        return f"{moment:%H:%M} is outside the window, {window}"
    state = site.state()
    if night in state.in_window:
        runs = dict(zip(state.visits.nights.tolist(), state.visits.runs, strict=True))
        return f"the night of {night} is measured already: {runs[night]}"
    cancel_left(site, console)
    for node in state.quarantined:
        why = retest(site, node, state, closing(site, night), console)
        if why:
            console.print(f"not tested again: {why}", markup=False)
    choice = chosen(state, site.free_nodes(), night, affordable(site))
    for name, why in choice.left_out.items():
        console.print(f"{name} is left out: {why}", markup=False)
    if choice.over_budget:
        console.print(
            f"{choice.over_budget} of {choice.needed} due nodes are left for later "
            "nights: the node-hours do not pay for them",
            markup=False,
        )
    if choice.nodes:
        run_part(site, choice.nodes, (), closing(site, night), console)
    return "" if choice.nodes else "; ".join(choice.left_out.values())


def closing(site: Site, night: date) -> datetime:
    """Return the local time at which the jobs of a night must have ended."""
    return site.settings.window.closing(night) - _RESERVE


def chosen(state: State, free: set[str], night: date, most: int) -> Choice:
    """Choose the nodes of a night, at most `most`, from free ones."""
    settings = state.settings
    return choose(
        state.classes,
        free - state.quarantined.keys(),
        {one.node for one in state.decision.watched}
        | {n for one in state.alarms if _is_suspect(one) for n in one.nodes},
        {node: n for node, n in state.unseen(night).items() if n is not None},
        every=settings.rules.every,
        most=most,
    )


def _is_suspect(alarm: Alarm) -> bool:
    """Return True if the nodes of an alarm are measured each night, until it ends."""
    few = len(alarm.nodes) <= _FEW
    return alarm.closed is None and few and alarm.kind in ("node", "common")


def affordable(site: Site) -> int:
    """Return the nodes that the node-hours of a night pay for, as `plan` counts them.

    All nodes, if a case of the campaign neither ran nor states its time.
    """
    home, name, nodes = site.home, site.system.name, len(site.system.nodes)
    usage = usage_of(
        site.results, name, lambda: campaign_cost(home, name, CAMPAIGN), nodes
    )
    hours = site.settings.node_hours
    return nodes if usage is None else int(hours / usage.node_hours)


def run_part(
    site: Site,
    nodes: Mapping[str, Sequence[str]],
    options: Sequence[str],
    until: datetime | None,
    console: Console,
) -> Path:
    """Run the campaign on some nodes, with further options of Slurm; return the run."""
    limits = [*site.settings.jobs, *options]
    if until is not None:
        limits.append(f"--deadline={until:%Y-%m-%dT%H:%M:%S}")
    campaign = load_campaign(site.home, CAMPAIGN)
    criteria = criteria_file(site.home, site.system.name)
    if criteria.is_file():
        whole = Criteria.load(criteria)
        write_reference_files(site.home, whole, site.system.name)
    with TemporaryDirectory(prefix="seatrial-night-") as folder:
        part = part_of(site.system, nodes, limits, Path(folder))
        run = new_run_id(CAMPAIGN)
        order = Order(site.home, site.results, part, campaign, run)
        return run_campaign(order, console)


def retest(
    site: Site, node: str, state: State, until: datetime | None, console: Console
) -> str:
    """Measure a node and a free partner of its class; return why not, '' if done.

    A quarantined node is measured in its reservation.
    """
    name = next((n for n, nodes in site.classes.items() if node in nodes), None)
    if name is None:
        return f"{node}: no node of {site.system.name}"
    free, out = site.free_nodes(), node in state.quarantined
    if not out and node not in free:
        return f"{node} is not idle"
    partners = [other for other in site.classes[name] if other in free - {node}]
    if not partners:
        return f"{node} has no idle partner in {name}"
    options = [f"--reservation={reservation_of(node)}"] if out else []
    try:
        run_part(site, {name: [node, partners[0]]}, options, until, console)
    except SeatrialError as error:
        if error.exit_code == Exit.INTERRUPTED:
            raise
        return f"{node}: {error}"
    return ""


def cancel_left(site: Site, console: Console) -> None:
    """Cancel the jobs of nights without a running driver."""
    for path in open_runs(site.results, site.system.name):
        with suppress(SeatrialError):
            agenda = read_agenda(path)
            if agenda.campaign["name"] == CAMPAIGN and driver_of(path) is None:
                jobs = slurm.cancel_all(comment_of(agenda.run))
                if jobs:
                    text = f"cancelled jobs of {agenda.run}: {', '.join(jobs)}"
                    console.print(text, markup=False)
