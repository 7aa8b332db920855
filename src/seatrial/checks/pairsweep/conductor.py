"""The sweep over pairs: run it, and repeat it without the nodes that fail."""

import re
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from seatrial.checks import job_control
from seatrial.checks.pairsweep.file import SweepFile
from seatrial.checks.pairsweep.preflight import Failure, Preflight
from seatrial.checks.pairsweep.steps import Steps
from seatrial.checks.srun_steps import Ended
from seatrial.errors import Exit, SeatrialError

say = partial(job_control.say, "sweep")

MOST_HUNG = 3
"""A node that hangs with so many others is left out itself."""

MOST_FRUITLESS = 3
"""Attempts without any progress, after which the sweep gives up."""

_REPORT_S = 30.0
_USAGE = 2
_HUNG = re.compile(
    r"pairsweep: hung pair (?P<source>\S+) (?P<destination>\S+) rail (?P<rail>\d+) "
    r"round (?P<round>\d+) phase (?P<phase>\w+): (?P<reason>.*)"
)


@dataclass(frozen=True)
class Hung:
    """A pair that the program's watchdog named."""

    source: str
    destination: str
    rail: int
    round: int
    reason: str


class Conductor:
    """Leads one sweep over the nodes of this job."""

    def __init__(
        self,
        nodes: Sequence[str],
        steps: Steps,
        preflight: Preflight,
        file: SweepFile,
        program: Sequence[str],
        rails: int,
        stall_s: float,
    ) -> None:
        self._nodes = list(nodes)
        self._steps = steps
        self._preflight = preflight
        self._file = file
        self._program = program
        self._rails = rails
        self._stall_s = stall_s
        self._hung: dict[tuple[frozenset[str], int], Hung] = {}

    def run(self) -> None:
        """Sweep until every pair of the nodes that answer is measured or hangs.

        Raises SeatrialError if no node can run the program, or if attempts fail one
        after the other and nothing tells why.
        """
        say(f"{len(self._nodes)} nodes: can they start?")
        self._test()
        fruitless = 0
        while len(self._nodes) > 1:
            before = self._file.pairs()
            ended = self._sweep()
            if ended.status == 0:
                break
            if ended.status == _USAGE:
                raise SeatrialError(f"refused: {ended.reason}", Exit.FAILED)
            say(f"the sweep failed: {ended.reason}")
            learned = self._learn(ended)
            progress = learned or self._file.pairs() > before
            fruitless = 0 if progress else fruitless + 1
            if fruitless == MOST_FRUITLESS:
                raise SeatrialError(
                    f"the sweep failed {fruitless} times without progress, while all "
                    f"{len(self._nodes)} nodes answer; the last time: {ended.reason}",
                    Exit.FAILED,
                )
        say(f"{self._file.pairs()} pairs measured; do all nodes still answer?")
        self._test(stage="after")
        say("done")

    def _sweep(self) -> Ended:
        """Run the program on all nodes that answer, as long as its file grows."""
        watch = _Watch(self._file, self._stall_s, self._total())
        program = (*self._program, "--resume", str(self._file.path))
        ended = self._steps.run(self._nodes, program, watch, echo=True)
        if ended.status is None:
            errors = (f"error: no new row for {self._stall_s:g} s", *ended.errors)
            return replace(ended, errors=errors)
        return ended

    def _total(self) -> int:
        return len(self._nodes) * (len(self._nodes) - 1) // 2 * self._rails

    def _learn(self, ended: Ended) -> bool:
        """Identify the nodes or pairs that caused a failure; False if there are none.

        A node that dies makes MPI hang on others too. So no pair is blamed for that
        sweep: one that hangs by itself does so in the next.
        """
        nodes, known = len(self._nodes), len(self._hung)
        self._test(stage="sweep")
        if len(self._nodes) < nodes:
            return True
        for line in ended.errors:
            if match := _HUNG.search(line):
                self._note(
                    Hung(
                        match["source"],
                        match["destination"],
                        int(match["rail"]),
                        int(match["round"]),
                        f"{match['phase']}: {match['reason']}",
                    )
                )
        for node, partners in self._hung_partners().items():
            if len(partners) >= MOST_HUNG and node in self._nodes:
                reason = f"it hangs with {', '.join(sorted(partners))}"
                self._leave_out(Failure(node, "sweep", reason))
        return len(self._nodes) < nodes or len(self._hung) > known

    def _test(self, stage: str | None = None) -> None:
        """Leave out the nodes that do not answer; `stage` is when that was found."""
        self._nodes, failures = self._preflight.test(self._nodes)
        for failure in failures:
            if stage is not None:
                reason = f"{failure.stage}: {failure.reason}"
                failure = replace(failure, stage=stage, reason=reason)
            self._leave_out(failure)
        if not self._nodes:  # then the fault is none of theirs
            raise SeatrialError("no node can run the program, see above", Exit.FAILED)

    def _leave_out(self, failure: Failure) -> None:
        self._nodes = [node for node in self._nodes if node != failure.node]
        say(f"{failure.node} is left out, stage {failure.stage}: {failure.reason}")
        event = {"type": "event", "event": "left_out", "node": failure.node}
        event |= {"stage": failure.stage, "reason": failure.reason}
        self._file.append({**event, "time": time.time()})

    def _note(self, hung: Hung) -> None:
        """Record a pair that hangs, of which both ends told, once."""
        pair = frozenset((hung.source, hung.destination))
        if (pair, hung.rail) in self._hung:
            return
        self._hung[pair, hung.rail] = hung
        say(f"{hung.source} and {hung.destination} hang: {hung.reason}")
        again = self._file.is_measured(hung.source, hung.destination, hung.rail)
        mode = "quiet" if again else "sweep"
        row: dict[str, Any] = {"type": "pair", "mode": mode, "status": "hung"}
        row |= {"source": hung.source, "destination": hung.destination}
        row |= {"rail": hung.rail, "round": hung.round, "reason": hung.reason}
        self._file.append(row)

    def _hung_partners(self) -> dict[str, set[str]]:
        partners: dict[str, set[str]] = defaultdict(set)
        for hung in self._hung.values():
            partners[hung.source].add(hung.destination)
            partners[hung.destination].add(hung.source)
        return partners


class _Watch:
    """Watches the file of a running sweep, and prints its progress."""

    def __init__(self, file: SweepFile, stall_s: float, total: int) -> None:
        self._file = file
        self._stall_s = stall_s
        self._total = total
        self.begin()

    def begin(self) -> None:
        """Take the file as it is now."""
        self._size = self._file.size()
        self._grown = self._reported = time.monotonic()

    def overdue(self) -> bool:
        """Return True if nothing was written for too long."""
        now = time.monotonic()
        size = self._file.size()
        if size != self._size:
            self._size, self._grown = size, now
        if now - self._reported > _REPORT_S:
            self._reported = now
            say(f"{self._file.pairs()} of {self._total} pairs")
        return now - self._grown > self._stall_s
