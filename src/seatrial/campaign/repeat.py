"""Plan the repeat of a run: exactly the cases that lost nodes spoiled."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import seatrial
from seatrial.campaign.schedule import Agenda, parse_agenda
from seatrial.campaign.spoiled_cases import spoiled_cases
from seatrial.checks.listing import list_cases
from seatrial.errors import SeatrialError
from seatrial.model.cases import ListedCase
from seatrial.paths import checks_dir
from seatrial.runs.closed_run import AGENDA_FILE, Run
from seatrial.runs.ledger import LEDGER, read_ledger
from seatrial.runs.ledger_entries import parse_ledger
from seatrial.runs.open_run import utc_text
from seatrial.system.description import System


def repeat_agenda(home: Path, system: System, run: Run, run_id: str) -> Agenda:
    """Plan a run of the spoiled cases of a closed run, in the sessions they had.

    Raises SeatrialError if there are none, if the run was repeated, is a stability
    phase, is not in the ledger beside it, or is of another version, or if the checks
    lack one of its cases.
    """
    _require_own(run)
    content = run.kept.get(AGENDA_FILE)
    cases: dict[str, list[ListedCase]] = defaultdict(list)
    for case in spoiled_cases(run.cases):
        cases[case.session].append(case.key.listed)
    if content is None or not cases:
        raise SeatrialError(
            f"{run.path}: no lost node spoiled a case of this run; expected one that "
            "`seatrial judge` names; what failed for its own reasons is not repeated"
        )
    agenda = parse_agenda(content, run.path / AGENDA_FILE)
    if agenda.stability:
        raise SeatrialError(
            f"{run.path}: a stability phase; the jobs that lost nodes spoiled are its "
            "events, and are not made again; expected a run of another campaign"
        )
    _require_listed(home, system, run, cases)
    sessions = [
        replace(
            planned,
            checks=tuple(dict.fromkeys(case.check for case in cases[planned.name])),
            cases=tuple(cases[planned.name]),
            missing={},
        )
        for planned in agenda.sessions
        if planned.name in cases
    ]
    return replace(
        agenda,
        run=run_id,
        created=utc_text(),
        sessions=tuple(sessions),
        partial=True,
        nodes={name: known.nodes for name, known in system.classes.items()},
        repeat_of=str(run.manifest["run"]),
    )


def _require_own(run: Run) -> None:
    """Refuse a run of another version or folder, and one that was repeated."""
    name = run.manifest["run"]
    version = (run.manifest.get("software") or {}).get("seatrial")
    if version != seatrial.__version__:
        raise SeatrialError(
            f"{run.path}: a run of Seatrial {version or 'of unknown version'}; this is "
            f"{seatrial.__version__}, whose checks may differ; run the campaign again"
        )
    ledger = parse_ledger(read_ledger(run.path.parent) or b"")
    if ledger.started(name) is None:
        raise SeatrialError(
            f"{run.path}: not in {run.path.parent / LEDGER}; expected a run that was "
            "measured in this folder"
        )
    for entry in ledger.entries:
        if entry.event == "started" and entry.repeat_of == name:
            raise SeatrialError(
                f"{run.path}: run {entry.run} repeats it already; a run is repeated "
                f"once; what a loss spoiled in that one: `seatrial repeat {entry.run}`"
            )


def _require_listed(
    home: Path, system: System, run: Run, cases: dict[str, list[ListedCase]]
) -> None:
    listed = list_cases(system.settings, system.name, checks_dir(home), home)
    gone = {case for own in cases.values() for case in own}.difference(listed)
    if gone:
        raise SeatrialError(
            f"{run.path}: the system has no case {min(map(str, gone))} any more; run "
            "the campaign again"
        )
