# mypy: disable-error-code="misc,untyped-decorator,has-type"
"""The base class of the checks that run one of our own C benchmarks."""

from reframe.core.builtins import run_before, variable

from seatrial.checks.base import SeatrialCheck


class OwnBenchmark(SeatrialCheck):
    """A benchmark of benchmarks/mpi, which verifies every message it measured.

    The program is the class's `executable`, and the feature an environment must have.
    It makes fewer iterations where a size would take longer than
    `milliseconds_per_size`.
    """

    iterations = variable(int, value=1000)
    warmup = variable(int, value=100)
    milliseconds_per_size = variable(int, value=250)

    min_tasks = 2

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
