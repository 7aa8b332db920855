# mypy: disable-error-code="misc,untyped-decorator,has-type"
"""Programs that run on any number of nodes: how many ranks where, and how they scale.

A job runs one program several times, as steps: on all nodes, which is judged, and if
`scaling` is on, on 1, 2, 4 and so on, and with the ranks in block and in cyclic order.
As cases of their own these would be as many jobs, for every program and MPI stack; as
steps they cost one start of a job, and share its nodes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import reframe.utility.typecheck as typ
from reframe.core.builtins import run_after, variable

from seatrial.checks.job_steps import SteppedCheck, doubled


@dataclass(frozen=True)
class Spot:
    """Where a program runs: `placement` is block, cyclic, or '' for Slurm's choice.

    `parameters` are those of its samples, which are judged only without.
    """

    num_nodes: int
    ppn: int
    placement: str = ""
    judged: bool = False

    @property
    def ranks(self) -> int:
        """Return the number of ranks."""
        return self.num_nodes * self.ppn

    @property
    def name(self) -> str:
        """A name of its own within a job."""
        parts = (f"{self.num_nodes}x{self.ppn}", self.placement)
        return "-".join(filter(None, parts)) + ("" if self.judged else ",scaling")

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters that tell a sample of this spot from that of all nodes.

        One of them is a number, which the report draws curves over.
        """
        if self.judged:
            return {}
        placement = {"placement": self.placement} if self.placement else {}
        return {"num_nodes": self.num_nodes, **placement}

    @property
    def srun_options(self) -> str:
        """Return the options of srun beyond nodes and ranks."""
        return f"--distribution={self.placement}" if self.placement else ""


class ScalingCheck(SteppedCheck):
    """A program of all nodes that can also be measured on fewer.

    `num_nodes` and `ppn` are what there is; of these, the largest number of ranks is
    taken that the program can run, evenly spread over as many nodes as it goes.
    """

    scaling = variable(typ.Bool, value=False)
    """Run on 1, 2, 4, ... nodes and in both orders, too."""
    ppn = 1
    """Ranks per node; 0: one for every core."""
    ranks = variable(int, value=0)
    """Exactly so many ranks, on as few nodes as hold them; 0: all that fit."""

    def can_run(self, ranks: int) -> bool:
        """Return True if the program runs on this number of ranks."""
        return True

    def takes(self) -> str:
        """Describe the numbers of ranks that the program runs on."""
        return "any number of ranks"

    @run_after("setup")
    def place(self) -> None:
        """Choose nodes and ranks; skip the case if there is no way."""
        super().place()
        there = f"{self.num_nodes} nodes x {self.ppn}"
        self.skip_if(
            self.ranks > 0 and not self.can_run(self.ranks),
            f"it takes {self.takes()}, not {self.ranks}",
        )
        if self.ranks:
            found = exactly(self.ranks, self.num_nodes, self.ppn)
            wanted = f"{self.ranks} ranks, evenly spread"
        else:
            found = most_ranks(self.num_nodes, self.ppn, self.can_run)
            wanted = self.takes()
        self.skip_if(found is None, f"it takes {wanted}, there are {there}")
        self.num_nodes, self.ppn = found
        self.num_tasks, self.num_tasks_per_node = self.num_nodes * self.ppn, self.ppn

    def spots(self) -> list[Spot]:
        """List where to run: first the one that is judged."""
        all_nodes = Spot(self.num_nodes, self.ppn, self.placement, judged=True)
        if not self.scaling:
            return [all_nodes]
        spots = [
            replace(spot, placement=placement)
            for spot in self._fewer()
            for placement in (("block", "cyclic") if _matters(spot) else ("",))
        ]
        return [all_nodes, *spots]

    def _fewer(self) -> list[Spot]:
        """List numbers of nodes, each once, up to all."""
        found = (
            most_ranks(nodes, self.ppn, self.can_run)
            for nodes in doubled(self.num_nodes)
        )
        return [Spot(*spread) for spread in dict.fromkeys(filter(None, found))]


def _matters(spot: Spot) -> bool:
    """Return True if block and cyclic order differ."""
    return spot.num_nodes > 1 and spot.ppn > 1


def most_ranks(
    nodes: int, ppn: int, can_run: Callable[[int], bool]
) -> tuple[int, int] | None:
    """Return nodes and ranks per node, at most these, with most ranks that can run.

    Of several ways it is the one with most nodes; None if there is no way.
    """
    best = (0, 0, 0)
    for count in range(nodes, 0, -1):
        for each in range(ppn, 0, -1):
            if count * each <= best[0]:
                break
            if can_run(count * each):
                best = (count * each, count, each)
                break
    return best[1:] if best[0] else None


def exactly(ranks: int, nodes: int, ppn: int) -> tuple[int, int] | None:
    """Spread so many ranks evenly over as few nodes as hold them; None: no way."""
    for count in range(-(-ranks // ppn), min(nodes, ranks) + 1):
        if ranks % count == 0:
            return count, ranks // count
    return None
