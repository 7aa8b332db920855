# mypy: disable-error-code="misc,untyped-decorator,has-type"
"""Programs that run on any number of nodes: placement of the ranks, and scaling.

A job runs one program in several steps: on all nodes, which is judged, and if `scaling`
is on, on 1, 2, 4 and so on, and with the ranks in block and in cyclic order.
"""

from dataclasses import dataclass
from typing import Any

import reframe.utility.typecheck as typ
from reframe.core.builtins import run_after, variable

from seatrial.checks.job_steps import SteppedCheck
from seatrial.checks.node_numbers import doubled
from seatrial.checks.npb_ranks import most_ranks


@dataclass(frozen=True)
class Spot:
    """Nodes and ranks of a step; `placement` is block, cyclic, or '' for Slurm's."""

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
        """Return a name that is unique within a job."""
        placement = f"-{self.placement}" if self.placement else ""
        suffix = "" if self.judged else ",scaling"
        return f"{self.num_nodes}x{self.ppn}{placement}{suffix}"

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the parameters of its samples; none if judged, else with a number."""
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

    It has the largest number of ranks that the program supports within `num_nodes` and
    `ppn`, evenly spread over as many nodes as possible.
    """

    scaling = variable(typ.Bool, value=False)
    """Run on 1, 2, 4, ... nodes and in both orders too."""
    ppn = 1
    """Ranks per node; 0: one for every core."""
    ranks = variable(int, value=0)
    """Exact number of ranks, on as few nodes as hold them; 0: all that fit."""

    def can_run(self, ranks: int) -> bool:
        """Return True if the program runs on this number of ranks."""
        return True

    def takes(self) -> str:
        """Describe the numbers of ranks that the program runs on."""
        return "any number of ranks"

    @run_after("setup")
    def place(self) -> None:
        """Choose nodes and ranks; skip the case if the program cannot run on them."""
        super().place()
        there = f"{self.num_nodes} nodes x {self.ppn}"
        if self.ranks:
            wrong_ranks = not self.can_run(self.ranks)
            self.skip_if(wrong_ranks, f"it takes {self.takes()}, not {self.ranks}")
            spread = exactly(self.ranks, self.num_nodes, self.ppn)
            wanted = f"{self.ranks} ranks, evenly spread"
        else:
            spread = most_ranks(self.num_nodes, self.ppn, self.can_run)
            wanted = self.takes()
        self.skip_if(spread is None, f"it takes {wanted}, there are {there}")
        self.num_nodes, self.ppn = spread
        self.num_tasks, self.num_tasks_per_node = self.num_nodes * self.ppn, self.ppn

    def spots(self) -> list[Spot]:
        """List the spots to run on; the first one is judged."""
        all_nodes = Spot(self.num_nodes, self.ppn, self.placement, judged=True)
        counts = doubled(self.num_nodes) if self.scaling else []
        spreads = (most_ranks(nodes, self.ppn, self.can_run) for nodes in counts)
        return [all_nodes] + [
            Spot(nodes, ppn, placement)
            for nodes, ppn in dict.fromkeys(filter(None, spreads))
            for placement in (("block", "cyclic") if nodes > 1 and ppn > 1 else ("",))
        ]


def exactly(ranks: int, nodes: int, ppn: int) -> tuple[int, int] | None:
    """Return the fewest nodes that hold the ranks evenly, and ranks per node."""
    for count in range(-(-ranks // ppn), min(nodes, ranks) + 1):
        if ranks % count == 0:
            return count, ranks // count
    return None
