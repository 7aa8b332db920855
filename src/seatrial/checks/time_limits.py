# mypy: disable-error-code="misc,untyped-decorator,has-type"
"""The time limit of a job, from its nodes, steps and sizes."""

import math

import reframe as rfm
from reframe.core.builtins import run_before

JOB_S = 180.0
"""Seconds for the start and the end of a job, and a controller that is away once."""

_START_S = 10.0
_LEVEL_S = 12.0


def start_s(nodes: int) -> float:
    """Return the seconds that the start of a program on some nodes may take.

    Launchers start nodes in a tree: the time grows with its levels.
    """
    return _START_S + _LEVEL_S * math.ceil(math.log2(nodes))


class TimeLimited(rfm.RegressionTestPlugin):
    """A check with a time limit that follows from the nodes of the case.

    A `time_limit` that a class, a campaign or `-S` sets precedes it.
    """

    step_s: float = 120.0
    """Seconds that one run of the program may take after its start."""
    step_s_per_node: float = 0.0
    """The same, for each node of the run."""

    num_nodes: int

    def programs_s(self) -> float:
        """Return the seconds that all programs of the case may take."""
        return self.run_s(self.num_nodes)

    def run_s(self, nodes: int) -> float:
        """Return the seconds that one start and run on some nodes may take."""
        return start_s(nodes) + self.step_s + self.step_s_per_node * nodes

    @run_before("run")
    def limit_time(self) -> None:
        """Set the time limit, unless one is set."""
        if self.time_limit is None:
            self.time_limit = f"{math.ceil(JOB_S + self.programs_s())}s"
