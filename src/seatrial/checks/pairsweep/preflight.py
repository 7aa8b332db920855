"""Find the nodes that can run the program, by tests of groups with a time limit.

A program of many nodes that does not start tells little about which of them is to
blame. So the nodes are tested all at once first, and in smaller and smaller groups
only where that fails: a few steps for a sound machine, and for a bad node as many as
its group can be halved.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from seatrial.checks.job_control import Limit
from seatrial.checks.pairsweep.steps import Steps
from seatrial.checks.srun_steps import Ended
from seatrial.errors import SeatrialError

STAGES = ("start", "init", "hello")
"""What a rank does one after the other: it runs, MPI is up, all have said hello."""

_PARALLEL = 16
_MOST_ALONE = 64
_BASES = 3


@dataclass(frozen=True)
class Failure:
    """A node that cannot take part: the stage it did not reach, and why."""

    node: str
    stage: str
    reason: str


@dataclass(frozen=True)
class _Result:
    """A test of a group: what became of the step, and how far each node came."""

    ended: Ended
    reached: dict[str, int]

    def passed(self, nodes: Iterable[str]) -> bool:
        return self.ended.status == 0 and all(
            self.reached.get(node) == len(STAGES) for node in nodes
        )


class Preflight:
    """Tests nodes with `PROGRAM --preflight`."""

    def __init__(
        self, steps: Steps, program: Sequence[str], ppn: int, limit_s: float
    ) -> None:
        self._steps = steps
        self._program = (*program, "--preflight")
        self._ppn = ppn
        self._limit_s = limit_s

    def test(self, nodes: Sequence[str]) -> tuple[list[str], list[Failure]]:
        """Return the nodes that can run the program together, and the failures.

        Raises SeatrialError if no step can be made at all, or if the program calls
        the nodes other than Slurm does.
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
        while groups:
            tests = [[*witness, *group] for group in groups]
            with ThreadPoolExecutor(_PARALLEL) as pool:
                results = list(pool.map(self._result, tests))
            smaller = []
            for group, nodes, result in zip(groups, tests, results, strict=True):
                if result.passed(nodes):
                    passed.append(group)
                elif len(group) == 1:
                    failures.append(_failure(group[0], result, witness))
                else:
                    smaller += _parts(group, result)
            groups = smaller
        return passed, failures

    def _join(self, groups: list[list[str]]) -> tuple[list[list[str]], list[Failure]]:
        """Find out which of the groups that pass alone work together.

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

    def _result(self, nodes: Sequence[str]) -> _Result:
        """Test one group."""
        ended = self._steps.run(nodes, self._program, Limit(self._limit_s))
        reports: dict[str, list[str]] = defaultdict(list)
        for row in filter(None, map(_row, ended.output)):
            reports[row["host"]].append(row["stage"])
        if foreign := sorted(reports.keys() - {*nodes}):
            raise SeatrialError(
                f"{self._program[0]} runs on {foreign[0]!r}, which Slurm calls none of "
                f"{', '.join(nodes)}; expected host names that are names of nodes"
            )
        reached = {
            host: next(
                (i for i, s in enumerate(STAGES) if stages.count(s) < self._ppn),
                len(STAGES),
            )
            for host, stages in reports.items()
        }
        return _Result(ended, reached)


def _row(line: str) -> dict[str, str] | None:
    """Read a line of the program; None for what others print."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    known = isinstance(row, dict) and row.get("type") == "preflight"
    return row if known and {"host", "stage"} <= row.keys() else None


def _parts(group: list[str], result: _Result) -> list[list[str]]:
    """Divide a group that failed: silent nodes one by one, otherwise in halves."""
    silent = [node for node in group if not result.reached.get(node)]
    talking = [node for node in group if result.reached.get(node)]
    if talking and 0 < len(silent) <= _MOST_ALONE:
        return [talking, *([node] for node in silent)]
    middle = len(group) // 2
    return [group[:middle], group[middle:]]


def _failure(node: str, result: _Result, witness: Sequence[str]) -> Failure:
    stage = STAGES[min(result.reached.get(node, 0), len(STAGES) - 1)]
    reason = result.ended.reason
    if witness:
        reason = f"alone it works, together with {witness[0]} not: {reason}"
    return Failure(node, stage, reason)
