"""The sweep over pairs: run it, and repeat it without the nodes that fail."""

import re
import time
from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from seatrial.checks import job_control
from seatrial.checks.job_control import Limit
from seatrial.checks.pairsweep.adaptive import Adaptive, Rounds, levels_of
from seatrial.checks.pairsweep.file import SweepFile
from seatrial.checks.pairsweep.preflight import Failure, Preflight
from seatrial.checks.srun_steps import Ended, Step
from seatrial.checks.step_launcher import Launcher
from seatrial.errors import Exit, SeatrialError
from seatrial.parsers.pairsweep_rows import PairKey, pair_key

say = partial(job_control.say, "sweep")

MOST_HUNG = 3
"""A node that hangs with this number of others is left out itself."""

MOST_FRUITLESS = 3
"""Attempts without any progress, after which the sweep gives up."""

_REPORT_S = 30.0
_USAGE = 2
_HUNG = re.compile(
    r"pairsweep: hung pair (?P<source>\S+) (?P<destination>\S+) rail (?P<rail>\d+) "
    r"round (?P<round>\d+) phase (?P<reason>\w+: .*)"
)


@dataclass
class Conductor:
    """Conducts one sweep over the nodes of this job; `stall_s` ends it.

    `adaptive` draws the pairs, or `rounds` has them; without both the program measures
    those of its options.
    """

    nodes: list[str]
    launcher: Launcher
    preflight: Preflight
    file: SweepFile
    stall_s: float
    adaptive: Adaptive | None = None
    rounds: Rounds | None = None
    _hung: set[PairKey] = field(default_factory=set)
    _hung_partners: dict[str, set[str]] = field(
        default_factory=lambda: defaultdict(set)
    )

    def run(self) -> None:
        """Sweep until every pair of the nodes that answer is measured or hangs.

        Raises SeatrialError if no node can run the program, or if attempts fail one
        after the other without an identified cause.
        """
        say(f"{len(self.nodes)} nodes: can they start?")
        self._test()
        if self.adaptive is None:
            self._measure(self.rounds)
        else:
            self._adapt(self.adaptive)
        say(f"{self.file.pairs()} pairs measured; do all nodes still answer?")
        self._test(stage="after")
        say("done")

    def _adapt(self, adaptive: Adaptive) -> None:
        """Measure the first rounds, then those of suspects while there are new ones."""
        rounds, phase = adaptive.first(), 1
        while rounds and len(self.nodes) > 1:
            pairs = sum(map(len, rounds))
            say(f"phase {phase}: {pairs} pairs in {len(rounds)} rounds")
            event = {"type": "event", "event": "phase", "phase": phase}
            event |= {"rounds": len(rounds), "pairs": pairs, "time": time.time()}
            self.file.append(event)
            self._measure(rounds)
            rows = self.file.measured().values()
            levels = [level for row in rows for level in levels_of(row)]
            rounds, phase = adaptive.further(levels, self.nodes), phase + 1

    def _measure(self, rounds: Rounds | None = None) -> None:
        """Run the program until it comes to its end, without the nodes that fail.

        With `rounds` it measures their pairs only, as far as both nodes answer.
        """
        fruitless = 0
        while len(self.nodes) > 1:
            before = self.file.pairs()
            ended = self._sweep(rounds)
            if ended.status == 0:
                break
            if ended.status == _USAGE:
                raise SeatrialError(f"refused: {ended.reason}", Exit.FAILED)
            say(f"the sweep failed: {ended.reason}")
            progress = self._learn(ended) or self.file.pairs() > before
            fruitless = 0 if progress else fruitless + 1
            if fruitless == MOST_FRUITLESS:
                raise SeatrialError(
                    f"the sweep failed {fruitless} times without progress, while all "
                    f"{len(self.nodes)} nodes answer; the last time: {ended.reason}",
                    Exit.FAILED,
                )

    def _sweep(self, rounds: Rounds | None) -> Ended:
        """Run the program on all nodes that answer, as long as its file grows."""
        ranks, count = self.preflight.ppn, len(self.nodes)
        total = count * (count - 1) // 2 * ranks
        program = (*self.preflight.program, "--resume", str(self.file.path))
        if rounds is not None:
            total = self.file.pairs() + sum(map(len, rounds)) * ranks
            program = (*program, "--pairs", str(self._list(rounds)))
        watch = _Watch(self.file, self.stall_s, total)
        with TemporaryDirectory(prefix="seatrial-") as folder:
            step = Step(
                self.nodes,
                program,
                Path(folder),
                watch,
                name=program[0],
                ranks=ranks,
                echo=True,
            )
            ended = self.launcher.run(step)
        if ended.status is None:
            errors = (f"error: no new row for {self.stall_s:g} s", *ended.errors)
            return replace(ended, errors=errors)
        return ended

    def _list(self, rounds: Rounds) -> Path:
        """Write the pairs of nodes that answer beside the output, where all see it."""
        here = set(self.nodes)
        path = self.file.path.with_suffix(".pairs")
        path.write_text(
            "".join(
                f"{a} {b} {number}\n"
                for number, pairs in enumerate(rounds, 1)
                for a, b in pairs
                if {a, b} <= here
            )
        )
        return path

    def _learn(self, ended: Ended) -> bool:
        """Identify the nodes or pairs that caused a failure; False if there are none.

        A node that dies makes MPI hang on others too. So no pair is blamed for that
        sweep: one that hangs by itself does so in the next.
        """
        nodes, known = len(self.nodes), len(self._hung)
        self._test(stage="sweep")
        if len(self.nodes) < nodes:
            return True
        for match in filter(None, map(_HUNG.search, ended.errors)):
            self._record_hung(**match.groupdict())
        for node, partners in self._hung_partners.items():
            if len(partners) >= MOST_HUNG and node in self.nodes:
                reason = f"it hangs with {', '.join(sorted(partners))}"
                self._leave_out(Failure(node, "sweep", reason))
        return len(self.nodes) < nodes or len(self._hung) > known

    def _test(self, stage: str | None = None) -> None:
        """Leave out the nodes that do not answer; `stage` is that of the sweep."""
        self.nodes, failures = self.preflight.test(self.nodes)
        for failure in failures:
            if stage is not None:
                reason = f"{failure.stage}: {failure.reason}"
                failure = replace(failure, stage=stage, reason=reason)
            self._leave_out(failure)
        if not self.nodes:  # then the fault is none of theirs
            raise SeatrialError("no node can run the program, see above", Exit.FAILED)

    def _leave_out(self, failure: Failure) -> None:
        self.nodes = [node for node in self.nodes if node != failure.node]
        say(f"{failure.node} is left out, stage {failure.stage}: {failure.reason}")
        event = {"type": "event", "event": "left_out", **vars(failure)}
        self.file.append({**event, "time": time.time()})

    def _record_hung(
        self, source: str, destination: str, rail: str, round: str, reason: str
    ) -> None:
        """Record a pair that hangs once; both of its ends report it."""
        key = pair_key(source, destination, int(rail))
        if key in self._hung:
            return
        self._hung.add(key)
        self._hung_partners[source].add(destination)
        self._hung_partners[destination].add(source)
        say(f"{source} and {destination} hang: {reason}")
        mode = "quiet" if self.file.is_measured(key) else "sweep"
        row: dict[str, Any] = {"type": "pair", "mode": mode, "status": "hung"}
        row |= {"source": source, "destination": destination}
        row |= {"rail": int(rail), "round": int(round), "reason": reason}
        self.file.append(row)


class _Watch(Limit):
    """Ends a sweep when its file stops growing, and prints its progress."""

    def __init__(self, file: SweepFile, stall_s: float, total: int) -> None:
        self._file = file
        self._total = total
        super().__init__(stall_s)

    def begin(self) -> None:
        """Restart the time, at the current size of the file."""
        super().begin()
        self._size = self._file.size()
        self._report = Limit(_REPORT_S)

    def overdue(self) -> bool:
        """Return True if nothing was written for too long."""
        if self._file.size() != self._size:
            super().begin()
            self._size = self._file.size()
        if self._report.overdue():
            self._report.begin()
            say(f"{self._file.pairs()} of {self._total} pairs")
        return super().overdue()
