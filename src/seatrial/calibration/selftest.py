"""The self-test on a living system: plant a fault, run a campaign, see who is blamed.

A self-test always lifts its fault, even when it is interrupted. The fault is recorded
before it is planted: after `kill -9` the next self-test refuses to begin.
"""

import fcntl
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from seatrial.calibration.selftest_faults import Fault
from seatrial.errors import SeatrialError
from seatrial.interrupts import interruptible, postponed
from seatrial.judge.findings import Finding, Judgement
from seatrial.runs.open_run import utc_text

CONTROL = "none (control)"

Runner = Callable[[Fault | None], Judgement]
"""Runs the campaign as a fault needs it, and judges it; without a fault, all of it."""


@dataclass(frozen=True)
class Trial:
    """A fault, and what the judge said of the machine that had it.

    `found` is None for the control, which has none. `wrongly` are the places that are
    blamed and have no fault. `seconds` is from planting to verdict.
    """

    fault: str
    what: str
    node: str
    checks: tuple[str, ...]
    expected: str
    run: str
    verdict: str
    found: bool | None
    wrongly: tuple[str, ...]
    seconds: float

    @property
    def as_it_should(self) -> bool:
        """Whether the fault was found without a false accusation."""
        return self.found is not False and not self.wrongly


def selftest(
    folder: Path,
    faults: Iterable[Fault],
    run: Runner,
    tell: Callable[[Trial], None],
    again: str,
) -> list[Trial]:
    """Run without a fault, then with each; `tell` is called after each.

    `folder` keeps what stands; `again` is the command that lifts it by hand. Raises
    SeatrialError if a fault of an earlier self-test still stands, if another self-test
    runs, or if a fault cannot be planted or lifted.
    """
    trials = []
    with _alone(folder), interruptible():
        refuse_standing(folder, again)
        for fault in (None, *faults):
            started = time.monotonic()
            if fault is None:
                judgement = run(None)
            else:
                with planted(folder, fault, again):
                    judgement = run(fault)
            trials.append(trial(fault, judgement, time.monotonic() - started))
            tell(trials[-1])
    return trials


@contextmanager
def planted(folder: Path, fault: Fault, again: str) -> Iterator[None]:
    """Plant a fault during the block; it is recorded first and always lifted."""
    record = _record(folder)
    record.write_text(
        json.dumps({"fault": fault.name, "node": fault.node, "since": utc_text()})
    )
    try:
        fault.plant()
        yield
    finally:
        with postponed():
            try:
                fault.lift()
            except (SeatrialError, OSError) as error:
                raise SeatrialError(
                    f"{fault.name} on {fault.node} ({fault.what}) is NOT lifted: "
                    f"{error}\nLift it by hand: {again}"
                ) from error
            record.unlink()


def refuse_standing(folder: Path, again: str) -> None:
    """Raise SeatrialError if a fault of an earlier self-test still stands."""
    fault = standing(folder)
    if fault:
        raise SeatrialError(
            f"{fault['fault']} on {fault['node']} still stands since {fault['since']}: "
            f"an earlier self-test was killed; nothing was planted. Lift it: {again}"
        )


def lift_standing(folder: Path, faults: Callable[[str], Mapping[str, Fault]]) -> str:
    """Lift what an earlier self-test left; say what was done.

    `faults` gives the faults that are known of a node. SeatrialError if it cannot be
    lifted, or if a self-test runs.
    """
    with _alone(folder), interruptible():
        planted = standing(folder)
        if not planted:
            return "no fault of a self-test stands"
        known = faults(planted["node"])
        if planted["fault"] not in known:
            raise SeatrialError(
                f"{_record(folder)}: {planted['fault']} on {planted['node']} is "
                f"unknown now; expected one of {', '.join(known)}; lift it yourself, "
                "then remove that file"
            )
        fault = known[planted["fault"]]
        with postponed():
            fault.lift()
            _record(folder).unlink()
        return f"{fault.name} on {fault.node} ({fault.what}) is lifted"


def standing(folder: Path) -> dict[str, str]:
    """Return the name, node and time of the standing fault; empty without one."""
    record = _record(folder)
    if not record.exists():
        return {}
    unknown = dict.fromkeys(("fault", "node", "since"), "unknown")
    with suppress(ValueError):
        return unknown | dict(json.loads(record.read_text()))
    return unknown


def trial(fault: Fault | None, judgement: Judgement, seconds: float) -> Trial:
    """Compare what a judgement blames with the truth."""
    failed = [f for f in judgement.findings if f.verdict == "fail"]
    node = fault.node if fault else ""
    blamed = {*judgement.convicted} - {node}
    if fault is None:
        wrongly = {f.place or f"{f.case or f.kind}" for f in failed}
        found = None
    else:
        # Of two nodes either may be the cause: then only the rail is told.
        alone = bool(fault.rail) and len(judgement.nodes) == 2
        touched = [f for f in failed if _touches(fault, f, alone=alone)]
        wrongly = {f.place for f in failed if f.place and f not in touched}
        found = _found(fault, failed, judgement)
        if alone:
            blamed -= {end for f in touched for end in f.node.split(" - ")}
    return Trial(
        fault=fault.name if fault else CONTROL,
        what=fault.what if fault else "",
        node=node,
        checks=fault.checks if fault else (),
        expected=fault.expected if fault else "no node is blamed",
        run=judgement.run,
        verdict=judgement.verdict,
        found=found,
        wrongly=tuple(sorted(wrongly | blamed)),
        seconds=round(seconds, 1),
    )


def _touches(fault: Fault, finding: Finding, *, alone: bool) -> bool:
    """Return True if a place is the node with the fault, or a pair with it.

    Of a fault of one rail, other rails of the node are sound. Two nodes that are
    `alone` share every number between them.
    """
    if fault.rail:
        named = fault.rail in f"{finding.place} {finding.reason}"
        return named and (alone or fault.node in finding.node.split(" - "))
    return fault.node in finding.node.split(" - ")


def _found(fault: Fault, failed: list[Finding], judgement: Judgement) -> bool:
    if fault.rail:
        names = (f"{f.place}: {f.reason}" for f in failed)
        return any(fault.node in name and fault.rail in name for name in names)
    if fault.absent:
        return any(f.kind == "inventory" and f.node == fault.node for f in failed)
    return fault.node in judgement.convicted


def _record(folder: Path) -> Path:
    return folder / "planted.json"


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the lock of a system's self-tests; SeatrialError if another one runs."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SeatrialError(
                f"{folder / 'lock'}: another self-test of this system is at work; wait "
                "for its end"
            ) from None
        yield
