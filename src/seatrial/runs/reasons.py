"""Signed reasons for missing numbers, and waivers: reasons.yaml beside the seal."""

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from seatrial.errors import SeatrialError
from seatrial.model.causes import CAUSES
from seatrial.model.yaml_file import Text, YamlFile
from seatrial.runs.closed_run import Run
from seatrial.runs.maintenance import Maintenance, MaintenanceKeys, read_windows
from seatrial.runs.ssh_signature import REASONS, REASONS_NAMESPACE, Sealed


class _Entry(Struct, frozen=True, forbid_unknown_fields=True):
    reason: Text
    case: Text | None = None
    node: Text | None = None
    session: Text | None = None


class _Waiver(Struct, frozen=True, forbid_unknown_fields=True):
    criterion: Text
    who: Text
    clause: Text
    reason: Text
    until: Annotated[datetime.date, Meta(description="a date as 2026-11-21")]
    place: Text | None = None


class _Cause(Struct, frozen=True, forbid_unknown_fields=True):
    event: Text
    cause: Text
    who: Text
    reason: Text


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    schema: Literal[1]
    run: Text
    manifest: Text
    reasons: tuple[_Entry, ...] = ()
    waivers: tuple[_Waiver, ...] = ()
    causes: tuple[_Cause, ...] = ()
    maintenance: tuple[MaintenanceKeys, ...] = ()


_GRANTED = ("waivers", "causes", "maintenance")
"""Lists that need a key which grants the namespace by name."""


@dataclass(frozen=True)
class Reason:
    """A reason why numbers of a run are missing, and the person who signed it.

    `case` is a check or the name of a case; '' stands for all cases, nodes or sessions.
    """

    run: str
    case: str
    node: str
    session: str
    reason: str
    signer: str

    def excuses(self, run: str, check: str, case: str, session: str) -> bool:
        """Return True if it is about a case of a session, or some nodes of it."""
        return (
            self.run == run
            and self.case in ("", check, case)
            and self.session in ("", session)
        )

    def __str__(self) -> str:
        parts = (self.case, self.node, self.session, f"run {self.run}")
        about = ", ".join(filter(None, parts))
        return f"{about}: {self.reason} (signed by {self.signer})"


@dataclass(frozen=True)
class Waiver:
    """A signed acceptance of a criterion that a run does not meet.

    `criterion` is the name of a criterion, of a check if it has none, or of a kind of
    findings; `place` '' stands for all of its places. It counts for runs that began on
    the day `until` or earlier.
    """

    run: str
    criterion: str
    place: str
    who: str
    clause: str
    reason: str
    until: str
    signer: str

    def covers(self, manifest: Mapping[str, Any]) -> bool:
        """Return True unless it had ended when the run began."""
        return str(manifest["started"])[:10] <= self.until

    def __str__(self) -> str:
        where = f" at {self.place}" if self.place else ""
        return (
            f"{self.criterion}{where}: {self.reason} (clause {self.clause}, granted by "
            f"{self.who} until {self.until}, signed by {self.signer})"
        )


@dataclass(frozen=True)
class Correction:
    """A signed correction of the cause of an event of a stability phase.

    The cause that the rules found stays visible beside it.
    """

    event: str
    cause: str
    who: str
    reason: str
    signer: str

    def __str__(self) -> str:
        return (
            f"{self.event}: {self.cause}, {self.reason} ({self.who}, signed by "
            f"{self.signer})"
        )


@dataclass(frozen=True)
class Signed:
    """Signed entries on runs, and the reasons why other files do not count.

    `corrections` are of causes of events, `maintenance` of stability phases.
    """

    reasons: tuple[Reason, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    problems: tuple[str, ...] = ()
    corrections: tuple[Correction, ...] = ()
    maintenance: tuple[Maintenance, ...] = ()


def signed_reasons(runs: Iterable[Run], signers: Path | None) -> Signed:
    """Return the reasons and waivers of some runs."""
    read = [_of_run(run, signers) for run in runs]
    return Signed(
        tuple(reason for one in read for reason in one.reasons),
        tuple(waiver for one in read for waiver in one.waivers),
        tuple(problem for one in read for problem in one.problems),
        tuple(change for one in read for change in one.corrections),
        tuple(window for one in read for window in one.maintenance),
    )


def _of_run(run: Run, signers: Path | None) -> Signed:
    """Return the reasons and waivers of a run.

    They count if a known signer signed the file, and if it names the run and its
    manifest. All but reasons need a key whose line grants the namespace by name: a key
    that seals runs accepts no failure, and excuses none. The words name no folder: they
    are the same on any machine.
    """
    if run.reasons is None:
        return Signed()
    try:
        signer = _signer(run.reasons, signers)
        file = YamlFile(run.reasons.file, run.reasons.content)
        content = file.convert(_File)
        for key, expected in (("run", run.manifest["run"]), ("manifest", run.digest)):
            if getattr(content, key) != expected:
                file.expected(expected, getattr(content, key), (key,))
        for number, entry in enumerate(content.reasons):
            if not (entry.case or entry.node or entry.session):
                file.expected("a case, node or session", None, ("reasons", number))
        for number, change in enumerate(content.causes):
            place = ("causes", number, "cause")
            file.one_of("causes", CAUSES, change.cause, place)
        tuple(read_windows(file, content.maintenance))
    except SeatrialError as error:
        return Signed(problems=(_problem("reasons and waivers", error, run, signers),))
    reasons = tuple(
        Reason(
            run=content.run,
            case=entry.case or "",
            node=entry.node or "",
            session=entry.session or "",
            reason=entry.reason,
            signer=signer,
        )
        for entry in content.reasons
    )
    further = [key for key in _GRANTED if getattr(content, key)]
    try:
        granted = _signer(run.reasons, signers, by_name=True) if further else ""
        windows = tuple(read_windows(file, content.maintenance, granted))
    except SeatrialError as error:
        problem = _problem(" and ".join(further), error, run, signers)
        return Signed(reasons, problems=(problem,))
    waivers = tuple(_waiver(content.run, one, granted) for one in content.waivers)
    corrections = tuple(
        Correction(one.event, one.cause, one.who, one.reason, granted)
        for one in content.causes
    )
    return Signed(reasons, waivers, corrections=corrections, maintenance=windows)


def _waiver(run: str, entry: _Waiver, signer: str) -> Waiver:
    return Waiver(
        run=run,
        criterion=entry.criterion,
        place=entry.place or "",
        who=entry.who,
        clause=entry.clause,
        reason=entry.reason,
        until=entry.until.isoformat(),
        signer=signer,
    )


def _problem(what: str, error: Exception, run: Run, signers: Path | None) -> str:
    """Describe why signed entries do not count, without the folders of this machine."""
    words = str(error).replace(f"{run.path}/", "")
    if signers is not None:
        words = words.replace(f"{signers.parent}/", "")
    return f"signed {what} do not count: {words}"


def _signer(reasons: Sealed, signers: Path | None, *, by_name: bool = False) -> str:
    """Return the known signer; SeatrialError if there is none."""
    if not reasons.signature:
        raise SeatrialError(
            f"{reasons.file}: not signed; sign it with `ssh-keygen -Y sign -f KEY -n "
            f"{REASONS_NAMESPACE} {REASONS}`"
        )
    if signers is None:
        raise SeatrialError(
            f"{reasons.file}: no known signers; expected allowed_signers in "
            "reference-data/SYSTEM or reference-data"
        )
    signature = reasons.check(signers, by_name=by_name)
    if signature.signer is None:
        problem = signature.problem or (
            f"{signers} does not name its key {signature.key_type} "
            f"{signature.fingerprint}"
        )
        raise SeatrialError(f"{reasons.file}: signed, but {problem}")
    return signature.signer
