"""Check runs against the ledger: their numbers, gaps, and what cannot be shown.

A run alone shows what its kept copy says. In a folder of runs, the ledger and the
other runs there must agree with it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from seatrial.model.manifest import Place
from seatrial.runs.closed_run import Run
from seatrial.runs.ledger import LEDGER, place_in
from seatrial.runs.ledger_beside import Beside, Sibling
from seatrial.runs.ledger_entries import Entry, Ledger, parse_ledger
from seatrial.runs.ledger_view import LedgerView, ListedRun, Repair, State

_T = TypeVar("_T")

OLD = (
    "this run is not in a ledger: an older Seatrial made it; it cannot show how many "
    "runs came before it"
)
ALONE = (
    "no ledger is beside this run: its own copy ends when the run closed, and cannot "
    "show later runs"
)


def ledger_view(
    runs: Sequence[Run], criteria_sha256: str, beside: Beside | None = None
) -> LedgerView | None:
    """Return what the ledger says about runs that are judged together.

    None for replays and imports, which are no runs of the machine.
    """
    if any(run.manifest.get(key) for run in runs for key in ("replay", "imported")):
        return None
    around = beside or Beside()
    views = [
        _view(
            run,
            len(runs),
            criteria_sha256,
            around if run.path.parent == around.folder else Beside(),
        )
        for run in runs
    ]
    last = max(views, key=lambda view: (view.count > 0, view.number, view.count))
    notes = [text for view in views for text in view.notes]
    joined = {str(run.manifest["run"]) for run in runs}
    known = [one.number for one in last.runs if one.run in joined]
    left_out = [
        one.run
        for one in last.runs
        if known and min(known) < one.number < max(known) and one.run not in joined
    ]
    if left_out:
        notes.append(f"judged together without the runs between: {', '.join(left_out)}")
    return replace(
        last,
        repairs=_unique(repair for view in views for repair in view.repairs),
        problems=_unique(text for view in views for text in view.problems),
        notes=_unique(notes),
    )


def _view(run: Run, together: int, criteria_sha256: str, beside: Beside) -> LedgerView:
    place = place_in(run.manifest)
    if place is None:
        return _of_old(run, beside)
    content = run.kept.get(LEDGER, b"")
    kept = parse_ledger(content)
    view = _Checked(run, place, kept)
    if not view.holds(kept, "the copy that it keeps"):
        return LedgerView(problems=tuple(view.problems))
    longest = content
    if beside.ledger is not None:
        owned, where = parse_ledger(beside.ledger), "the ledger beside it"
        if view.holds(owned, where) and view.continues(content, beside.ledger, where):
            longest = beside.ledger
        _check_siblings(view, owned, beside)
    elif (
        _same_book(content, beside.kept)
        and len(beside.kept) > len(content)
        and view.continues(content, beside.kept, "the copy of a later run")
    ):
        longest = beside.kept
    ledger = parse_ledger(longest)
    if beside.ledger is None:
        view.notes += [ALONE, *_of_others(ledger, beside)]
    return _numbered(view, ledger, together, criteria_sha256, beside)


def _of_old(run: Run, beside: Beside) -> LedgerView:
    """Return the view of a run without a number: older than the ledger, or hidden."""
    first = next(iter(parse_ledger(beside.ledger or b"").entries), None)
    if first is None or _seconds(run.manifest["started"]) < _seconds(first.time):
        return LedgerView(notes=(OLD,))
    problem = f"{_name(run)} is not in the ledger beside it, which began before it"
    return LedgerView(problems=(problem,))


@dataclass
class _Checked:
    """The problems and notes of one run."""

    run: Run
    place: Place
    kept: Ledger
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def holds(self, ledger: Ledger, where: str) -> bool:
        """Check a ledger, and that it records the start of the run."""
        if ledger.problem:
            self.problems.append(f"{where} is broken: {ledger.problem}")
        started = ledger.started(str(self.run.manifest["run"]))
        listed = (
            ledger.holds(self.place)
            and started is not None
            and (started.entry, started.number) == (self.place.entry, self.place.number)
            and started.campaign == self.run.manifest["campaign"]
        )
        if not listed:
            self.problems.append(
                f"{_name(self.run)} is entry {self.place.entry} of its ledger, and "
                f"{where} has no such entry: it was cut off, rewritten or begun anew"
            )
        elif ledger.torn:
            self.notes.append(f"{where}: its last line is incomplete")
        return listed

    def continues(self, old: bytes, new: bytes, where: str) -> bool:
        """Check that a ledger begins with all lines of an older copy."""
        whole = new.startswith(old)
        if not whole:
            self.problems.append(
                f"{where} is not a continuation of the copy in {_name(self.run)}: "
                "entries were removed or rewritten after it closed"
            )
        return whole


def _check_siblings(view: _Checked, owned: Ledger, beside: Beside) -> None:
    """Check that the ledger lists all measured runs of the campaign in its folder."""
    own = view.run.manifest
    began = _seconds(owned.entries[0].time) if owned.entries else 0.0
    for sibling in beside.siblings:
        if not sibling.measured or sibling.campaign != own["campaign"]:
            continue
        if sibling.place is not None:
            start = owned.started(sibling.run)
            same = start is not None and start.entry == sibling.place.entry
            listed = same and owned.holds(sibling.place)
        else:
            listed = not sibling.digest or _seconds(sibling.started) < began
        if not listed and sibling.run != own["run"]:
            view.problems.append(
                f"run {sibling.run} is not in the ledger beside it: the ledger was cut "
                "off, rewritten or begun anew, or the run is of another folder; a run "
                "of another folder does not belong here"
            )


def _of_others(ledger: Ledger, beside: Beside) -> list[str]:
    """Return a note on runs in the same folder that another ledger lists."""
    others = [
        sibling.run
        for sibling in beside.siblings
        if sibling.place is not None
        and sibling.place.entry <= len(ledger.entries)
        and not ledger.holds(sibling.place)
    ]
    text = "runs of another ledger in this folder, which are not counted: "
    return [text + ", ".join(others)] if others else []


def _numbered(
    view: _Checked, ledger: Ledger, together: int, criteria: str, beside: Beside
) -> LedgerView:
    """Number the runs of the campaign from the first with the same criteria."""
    run = view.run.manifest["run"]
    starts = [
        entry
        for entry in ledger.entries
        if entry.event == "started" and entry.campaign == view.run.manifest["campaign"]
    ]
    own = next(entry for entry in starts if entry.run == run)
    same = {own.criteria, criteria}
    frozen = next(entry for entry in starts if entry.criteria in same)
    since = starts[frozen.number - 1 :]
    owner = beside.ledger is not None
    siblings = {sibling.run: sibling for sibling in beside.siblings}
    siblings[run] = Sibling(run, view.run.digest)
    listed = []
    for number, entry in enumerate(since, 1):
        state, reason = _state(ledger, entry, siblings.get(entry.run), owner=owner)
        listed.append(ListedRun(entry.run, number, entry.time, state, reason))
    view.problems += _gaps(ledger, listed, siblings, owner=owner)
    view.notes += [
        f"run {one.run} was removed{': ' * bool(one.reason)}{one.reason}"
        for one in listed
        if one.state == "removed" or (one.state == "gone" and not owner)
    ]
    torn = sum(entry.event == "torn" for entry in ledger.entries)
    if torn:
        view.notes.append(f"{torn} incomplete entries were cut off the ledger")
    number = own.number - frozen.number + 1
    return LedgerView(
        # Runs that are judged together are looks at the same data.
        number=max(1, number - (together - 1)),
        count=len(since),
        before=frozen.number - 1,
        runs=tuple(listed),
        repairs=tuple(_repairs(view.kept)),
        problems=tuple(view.problems),
        notes=tuple(view.notes),
    )


def _state(
    ledger: Ledger, entry: Entry, sibling: Sibling | None, *, owner: bool
) -> tuple[State, str]:
    """Return state and reason of a listed run."""
    if sibling is not None:
        return ("closed" if sibling.digest else "not closed"), ""
    removed = ledger.last("removed", entry.run)
    if removed is not None:
        return ("removed" if removed.reason else "gone"), removed.reason
    if owner:
        return "gone", ""
    closed = ledger.last("closed", entry.run)
    return ("closed" if closed else "not closed"), ""


def _gaps(
    ledger: Ledger,
    listed: Sequence[ListedRun],
    here: Mapping[str, Sibling],
    *,
    owner: bool,
) -> Iterator[str]:
    """Yield what is missing or was replaced since it was recorded."""
    for one in listed:
        closed = ledger.last("closed", one.run)
        digest = here[one.run].digest if one.run in here else ""
        if digest and closed and closed.manifest != digest:
            yield (
                f"run {one.run} is not the one that closed: its manifest has the "
                f"SHA-256 {digest}, the ledger says {closed.manifest}"
            )
        if owner and one.state == "gone":
            yield (
                f"run {one.run} is in the ledger, and its folder is gone; restore it, "
                f"or state why: `seatrial ledger removed SYSTEM {one.run} --reason "
                "TEXT`"
            )


def _repairs(ledger: Ledger) -> Iterator[Repair]:
    for entry in ledger.entries:
        if entry.event == "repaired":
            yield Repair(entry.node, _seconds(entry.time), entry.reason)


def _same_book(one: bytes, other: bytes) -> bool:
    """Return True if two ledgers begin with the same entry."""
    return one.partition(b"\n")[0] == other.partition(b"\n")[0]


def _unique(items: Iterable[_T]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys(items))


def _seconds(text: str) -> float:
    """Return a time in UTC seconds since the epoch; 0 if it is none."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


def _name(run: Run) -> str:
    return f"run {run.manifest['run']}"
