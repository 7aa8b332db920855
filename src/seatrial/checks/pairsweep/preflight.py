"""Find the nodes that can run the program, by tests of groups with a time limit.

A program of many nodes that does not start does not identify the bad node. So all nodes
are tested at once first, and in smaller and smaller groups only if that fails: a few
steps for a sound machine, and for a bad node as many as its group can be halved.
"""

from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import msgspec

from seatrial.checks.job_control import Limit
from seatrial.checks.srun_steps import Ended, Step
from seatrial.checks.step_launcher import Launcher
from seatrial.errors import SeatrialError

STAGES = ("start", "init", "hello")
"""Stages of a rank: it runs, MPI is up, it has exchanged greetings with all others."""

_PARALLEL = 16
_MOST_ALONE = 64
_BASES = 3


@dataclass(frozen=True)
class Failure:
    """A node that cannot take part: the stage it did not reach, and the reason."""

    node: str
    stage: str
    reason: str


class _Row(msgspec.Struct):
    """A line of the program."""

    type: Literal["preflight"]
    host: str
    stage: str


@dataclass(frozen=True)
class Preflight:
    """Tests nodes with `PROGRAM --preflight`."""

    launcher: Launcher
    program: Sequence[str]
    ppn: int
    limit_s: float

    def test(self, nodes: Sequence[str]) -> tuple[list[str], list[Failure]]:
        """Return the nodes that can run the program together, and the failures.

        Raises SeatrialError if no step can be made at all, or if the program has other
        names of the nodes than Slurm.
        """
        groups, failures = self._narrow([list(nodes)])
        if len(groups) > 1:
            groups, apart = self._join(groups)
            failures += apart
        good = {node for group in groups for node in group}
        return [node for node in nodes if node in good], failures

    def _narrow(
        self, groups: list[list[str]], witness: Sequence[str] = ()
    ) -> tuple[list[list[str]], list[Failure]]:
        """Return the groups that pass, each with `witness`, and the nodes that fail."""
        passed, failures = [], []
        apart = f"alone it works, together with {witness[0]} not: " if witness else ""
        while groups:
            tests = [[*witness, *group] for group in groups]
            with ThreadPoolExecutor(_PARALLEL) as pool:
                results = list(pool.map(self._result, tests))
            smaller = []
            for group, nodes, (ended, reached) in zip(
                groups, tests, results, strict=True
            ):
                stages = min(reached.get(node, 0) for node in nodes)
                if ended.status == 0 and stages == len(STAGES):
                    passed.append(group)
                elif len(group) == 1:
                    stage = STAGES[min(reached.get(group[0], 0), len(STAGES) - 1)]
                    failures.append(Failure(group[0], stage, apart + ended.reason))
                else:
                    smaller += _parts(group, reached)
            groups = smaller
        return passed, failures

    def _join(self, groups: list[list[str]]) -> tuple[list[list[str]], list[Failure]]:
        """Select the groups that work together, out of those that pass alone.

        A node may be able to do everything but reach the others. Each group is
        tested with one node of the largest; if most fail, that one is to blame.
        """
        count = sum(map(len, groups))
        best: tuple[list[list[str]], list[Failure]] = ([], [])
        most = 1
        for base in sorted(groups, key=len, reverse=True)[:_BASES]:
            others = [group for group in groups if group is not base]
            joined, failures = self._narrow(others, base[:1])
            together = len(base) + sum(map(len, joined))
            if together > most:
                most, best = together, ([base, *joined], failures)
            if 2 * together > count:
                return best
        if most == 1:
            reason = "alone it works, but no two of the nodes work together"
            nodes = [node for group in groups for node in group]
            return [], [Failure(node, "hello", reason) for node in nodes]
        return best

    def _result(self, nodes: Sequence[str]) -> tuple[Ended, dict[str, int]]:
        """Test one group; return its end, and the number of stages of each node."""
        with TemporaryDirectory(prefix="seatrial-") as folder:
            program = (*self.program, "--preflight")
            place = (Path(folder), Limit(self.limit_s))
            step = Step(nodes, program, *place, name="preflight", ranks=self.ppn)
            ended = self.launcher.run(step)
        stages: dict[str, list[str]] = defaultdict(list)
        for line in ended.output:
            with suppress(msgspec.DecodeError):  # a line of another program
                row = msgspec.json.decode(line, type=_Row)
                stages[row.host].append(row.stage)
        if foreign := sorted(stages.keys() - {*nodes}):
            raise SeatrialError(
                f"{self.program[0]} runs on {foreign[0]!r}, which Slurm calls none of "
                f"{', '.join(nodes)}; expected host names that are names of nodes"
            )
        return ended, {
            node: sum(reports.count(stage) >= self.ppn for stage in STAGES)
            for node, reports in stages.items()
        }


def _parts(group: list[str], reached: dict[str, int]) -> list[list[str]]:
    """Divide a group that failed: silent nodes one by one, otherwise in halves."""
    silent = [node for node in group if not reached.get(node)]
    talking = [node for node in group if reached.get(node)]
    if talking and 0 < len(silent) <= _MOST_ALONE:
        return [talking, *([node] for node in silent)]
    middle = len(group) // 2
    return [group[:middle], group[middle:]]
