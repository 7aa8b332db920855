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
from seatrial.campaign.session import comment_of
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
class Place:
    """Where a system is measured: the home of the suite, its runs, its nights."""

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

    def free_nodes(self) -> set[str] | None:
        """Return the nodes that are free for us; None if Slurm does not answer."""
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


def measure_night(place: Place, console: Console) -> str:
    """Measure the nodes of tonight; return '', or the reason why not.

    The ledger records the reason.
    """
    try:
        reason = _measure(place, console)
    except (SeatrialError, OSError) as error:
        if isinstance(error, SeatrialError) and error.exit_code == Exit.INTERRUPTED:
            raise
        reason = str(error).splitlines()[0]
    if reason:
        with suppress(SeatrialError):
            note_night(place.folder, "skipped", reason=reason)
    return reason


def _measure(place: Place, console: Console) -> str:
    window, moment = place.settings.window, now()
    night = window.night(moment)
    if night is None:
        return f"{moment:%H:%M} is outside the window, {window}"
    state = place.state()
    if night in state.in_window:
        runs = dict(zip(state.visits.nights.tolist(), state.visits.runs, strict=True))
        return f"the night of {night} is measured already: {runs[night]}"
    cancel_left(place, console)
    for node in state.quarantined:
        why = retest(place, node, closing(place, night), console)
        if why:
            console.print(f"not tested again: {why}", markup=False)
    free = place.free_nodes()
    if free is None:
        return "Slurm does not answer: no state of the nodes is known"
    choice = chosen(state, free, night, affordable(place))
    for name, why in choice.left_out.items():
        console.print(f"{name} is left out: {why}", markup=False)
    if choice.over_budget:
        console.print(
            f"{choice.over_budget} of {choice.needed} due nodes are left for later "
            "nights: the node-hours do not pay for them",
            markup=False,
        )
    if choice.nodes:
        run_part(place, choice.nodes, (), closing(place, night), console)
    return "" if choice.nodes else "; ".join(choice.left_out.values())


def closing(place: Place, night: date) -> datetime:
    """Return the local time at which the jobs of a night must have ended."""
    return place.settings.window.closing(night) - _RESERVE


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


def affordable(place: Place) -> int:
    """Return the nodes that the node-hours of a night pay for, as `plan` counts them.

    All nodes, if a case of the campaign neither ran nor states its time.
    """
    home, name, nodes = place.home, place.system.name, len(place.system.nodes)
    usage = usage_of(
        place.results, name, lambda: campaign_cost(home, name, CAMPAIGN), nodes
    )
    hours = place.settings.node_hours
    return nodes if usage is None else int(hours / usage.node_hours)


def run_part(
    place: Place,
    nodes: Mapping[str, Sequence[str]],
    options: Sequence[str],
    until: datetime | None,
    console: Console,
) -> Path:
    """Run the campaign on some nodes, with further options of Slurm; return the run."""
    limits = [*place.settings.jobs, *options]
    if until is not None:
        limits.append(f"--deadline={until:%Y-%m-%dT%H:%M:%S}")
    campaign = load_campaign(place.home, CAMPAIGN)
    criteria = criteria_file(place.home, place.system.name)
    if criteria.is_file():
        whole = Criteria.load(criteria)
        write_reference_files(place.home, whole, place.system.name)
    with TemporaryDirectory(prefix="seatrial-night-") as folder:
        part = part_of(place.system, nodes, limits, Path(folder))
        run = new_run_id(CAMPAIGN)
        order = Order(place.home, place.results, part, campaign, run)
        return run_campaign(order, console)


def retest(place: Place, node: str, until: datetime | None, console: Console) -> str:
    """Measure a node and a free partner of its class; return why not, '' if done.

    A quarantined node is measured in its reservation.
    """
    name = next((n for n, nodes in place.classes.items() if node in nodes), None)
    if name is None:
        return f"{node}: no node of {place.system.name}"
    free = place.free_nodes()
    if free is None:
        return "Slurm does not answer: no state of the nodes is known"
    out = node in place.state().quarantined
    if not out and node not in free:
        return f"{node} is not idle"
    partners = [other for other in place.classes[name] if other in free - {node}]
    if not partners:
        return f"{node} has no idle partner in {name}"
    options = [f"--reservation={reservation_of(node)}"] if out else []
    try:
        run_part(place, {name: [node, partners[0]]}, options, until, console)
    except SeatrialError as error:
        if error.exit_code == Exit.INTERRUPTED:
            raise
        return f"{node}: {error}"
    return ""


def cancel_left(place: Place, console: Console) -> None:
    """Cancel the jobs of nights without a running driver."""
    for path in open_runs(place.results, place.system.name):
        with suppress(SeatrialError):
            agenda = read_agenda(path)
            if agenda.campaign["name"] == CAMPAIGN and driver_of(path) is None:
                jobs = slurm.cancel_all(comment_of(agenda.run))
                if jobs:
                    text = f"cancelled jobs of {agenda.run}: {', '.join(jobs)}"
                    console.print(text, markup=False)
