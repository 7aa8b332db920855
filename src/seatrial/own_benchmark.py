# mypy: disable-error-code="misc,untyped-decorator,has-type"
"""The base class of the checks that run one of our own C benchmarks."""

from reframe.core.builtins import run_after, run_before, variable

from seatrial.check import SeatrialCheck


class OwnBenchmark(SeatrialCheck):
    """A benchmark of benchmarks/mpi, which verifies every message it measured.

    The program is the class's `executable`, and the feature an environment must have.
    It makes fewer iterations where a size would take longer than
    `milliseconds_per_size`.
    """

    iterations = variable(int, value=1000)
    warmup = variable(int, value=100)
    milliseconds_per_size = variable(int, value=250)

    needs_nodes = 1
    """Nodes that the benchmark needs; with fewer, the case is skipped."""
    most_nodes = 0
    """Nodes that it takes of those there are; 0: all."""
    min_tasks = 2

    @run_after("setup")
    def need_nodes(self) -> None:
        """Skip a system, or a choice of nodes, that is too small; take no more."""
        self.skip_if(
            self.num_nodes < self.needs_nodes,
            f"it takes {self.needs_nodes} nodes, there are {self.num_nodes}",
        )

        if self.most_nodes:
            self.num_nodes = min(self.num_nodes, self.most_nodes)
            self.num_tasks = self.num_nodes * self.ppn

    @run_before("run")
    def common_options(self) -> None:
        """Measure, then verify; JSON Lines for the parser."""
        self.executable_opts = [
            *self.executable_opts,
            f"--iterations {self.iterations}",
            f"--warmup {self.warmup}",
            f"--time {self.milliseconds_per_size}",
            "--validate",
            "--json",
        ]
