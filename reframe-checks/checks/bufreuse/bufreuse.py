# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""Re-use of message buffers, with MPI's registration cache on and off."""

import reframe as rfm
import reframe.utility.typecheck as typ
from reframe.core.builtins import parameter, run_after, run_before, variable

from seatrial.checks.base import Tag
from seatrial.checks.own_benchmark import OwnBenchmark
from seatrial.model.records import Sample
from seatrial.parsers.bufreuse import median_ratio, parse_bufreuse
from seatrial.parsers.errors import ParseError


@rfm.simple_test
class BufferReuse(OwnBenchmark):
    """How much slower are messages from ever new buffers than from the same one?

    Two ranks on two nodes play ping-pong with 1024 buffers each way; a share of the
    messages re-uses one buffer. A ratio is the median latency without re-use over that
    with full re-use; `reuse_ratio_eager` and `reuse_ratio_rendezvous` are its medians
    over the sizes. Eager messages are copied, so new buffers cost them caches and TLB;
    the adapter may move rendezvous messages, and needs a registration of each new
    buffer. A registration cache avoids that of used buffers only; `registration_cache`
    of `mpi_stacks` in the inventory sets it on and off. 2 KiB to 64 KiB are three sizes
    each on both sides of a common limit of eager messages; 1 MiB would need 2 GiB of
    each rank.
    """

    registration_cache = parameter(["on", "off"])
    iterations = 1024  # every buffer has its turn once
    milliseconds_per_size = 100  # here: of every share of re-use
    buffers = variable(int, value=1024)
    min_size = variable(int, value=2048)
    max_size = variable(int, value=65536)
    eager_limit = variable(int, value=8192)
    """Largest eager message of the MPI stack, in bytes."""
    shares = variable(typ.List[int], value=[100, 0])
    """Percentages of re-use, falling; those in between show the way from 100 to 0."""

    descr = "latency without re-use of buffers over that with it"
    tool = "bufreuse"
    experiments = ("E45",)
    typical_s = 5
    valid_prog_environs = ["+bufreuse"]
    reference_file = "bufreuse.yaml"
    executable = "bufreuse"
    needs_nodes = 2
    most_nodes = 2
    tags = {Tag.NETWORK}
    judged = ["reuse_ratio_eager", "reuse_ratio_rendezvous"]

    @run_after("setup")
    def set_registration_cache(self):
        """Set the variables in the inventory of this stack."""
        known = self.current_environ.extras.get("registration_cache", {})
        self.skip_if(
            self.registration_cache not in known,
            f"mpi_stacks names no way to set the registration cache of "
            f"{self.current_environ.name} {self.registration_cache}",
        )
        self.env_vars = {**self.env_vars, **known[self.registration_cache]}

    @run_before("run")
    def choose_sizes(self):
        """Set the options for sizes and shares of re-use."""
        self.executable_opts += [
            f"--buffers {self.buffers}",
            f"--sizes {self.min_size}:{self.max_size}",
            f"--eager-limit {self.eager_limit}",
            f"--reuse {','.join(map(str, self.shares))}",
        ]

    def extract(self, text):
        """Return ratios and latencies, after a check of the run's settings."""
        rows = parse_bufreuse(text)
        self.verify_rows(
            rows,
            buffers=self.buffers,
            eager_limit_bytes=self.eager_limit,
            iterations=self.iterations,
        )
        self.verify_span(rows, "size_bytes", self.min_size, self.max_size)
        shares = [row.reuse_percent for row in rows[: len(self.shares)]]
        if shares != self.shares:
            raise ParseError(0, f"shares {shares}, expected {self.shares}")
        return [
            *(
                Sample(f"reuse_ratio_{kind}", median_ratio(rows, kind), statistic="p50")
                for kind in ("eager", "rendezvous")
            ),
            *(
                Sample("reuse_ratio", row.ratio, row.size_bytes, "p50", row.n)
                for row in rows
                if row.reuse_percent == 0
            ),
            *(
                Sample(
                    "latency",
                    row.p50_us,
                    row.size_bytes,
                    "p50",
                    row.n,
                    parameters={"reuse_percent": row.reuse_percent},
                )
                for row in rows
            ),
        ]
