# mypy: disable-error-code="misc,untyped-decorator,has-type"
"""The base classes of the checks that run one of our own C benchmarks."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from reframe.core.builtins import run_after, run_before, variable

from seatrial.checks.base import SeatrialCheck, cores_of
from seatrial.parsers.balance import BalanceRow
from seatrial.parsers.errors import ParseError
from seatrial.parsers.mpair import MpairRow


class OwnBenchmark(SeatrialCheck):
    """A benchmark of benchmarks/mpi, which verifies every message it measured.

    It makes fewer iterations if a size would take longer than `milliseconds_per_size`.
    """

    iterations = variable(int, value=1000)
    warmup = variable(int, value=100)
    milliseconds_per_size = variable(int, value=250)

    min_tasks = 2

    @run_before("run")
    def common_options(self) -> None:
        """Set the options that all benchmarks share."""
        self.executable_opts = [
            *self.executable_opts,
            f"--iterations {self.iterations}",
            f"--warmup {self.warmup}",
            f"--time {self.milliseconds_per_size}",
            "--validate",
            "--json",
        ]

    def verify_rows(self, rows: Sequence[Any], **wanted: Any) -> None:
        """Raise ParseError unless the rows are valid, and of the requested run."""
        wanted["validation"] = "pass"
        for row in rows:
            values = {name: getattr(row, name) for name in wanted}
            if values != wanted:
                raise ParseError(0, f"a run of {values}, expected {wanted}")

    def verify_span(self, rows: Sequence[Any], name: str, low: int, high: int) -> None:
        """Raise ParseError unless a field goes from `low` to `high`."""
        span = (getattr(rows[0], name), getattr(rows[-1], name))
        if span != (low, high):
            raise ParseError(0, f"{name} from {span[0]} to {span[1]}")


class PairsBenchmark(OwnBenchmark):
    """A benchmark of pairs of ranks between two nodes, in blocks.

    Sizes double from `min_size` to `max_size`; bandwidth is of `windows` windows of
    `window` messages, or fewer.
    """

    milliseconds_per_size = 10
    min_size = variable(int, value=8)
    max_size = variable(int, value=65536)
    window = variable(int, value=64)
    windows = variable(int, value=100)
    most_ranks = variable(int, value=256)
    """Maximum of ranks per node."""

    needs_nodes = 2
    most_nodes = 2

    @abstractmethod
    def ranks_per_node(self, cores: int) -> int:
        """Return ppn for the cores of a node, at most `most_ranks`."""

    @run_after("setup")
    def place(self) -> None:
        """Choose ranks per node from the cores that ReFrame's settings name."""
        cores = cores_of(self.current_partition)
        self.ppn = self.ranks_per_node(min(cores, self.most_ranks))
        super().place()

    @run_before("run")
    def choose_sizes(self) -> None:
        """Set the options for sizes and windows."""
        self.executable_opts += [
            f"--sizes {self.min_size}:{self.max_size}",
            f"--window {self.window}",
            f"--windows {self.windows}",
        ]

    def verify_pairs(self, rows: list[MpairRow] | list[BalanceRow], pairs: int) -> None:
        """Raise ParseError unless the rows are of the requested pairs between nodes."""
        own = {"window": self.window, "windows": self.windows}
        self.verify_rows(rows, np=self.num_tasks, pairs=pairs, **own)
        self.verify_span(rows, "size_bytes", self.min_size, self.max_size)
        for row in rows:
            if row.source == row.destination:
                raise ParseError(0, f"pairs within {row.source}")
