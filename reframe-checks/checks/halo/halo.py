# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""Halo exchange: the communication of a stencil code, by our own benchmark."""

import reframe as rfm
from reframe.core.builtins import parameter, run_before, variable

from seatrial.checks.base import Tag
from seatrial.checks.own_benchmark import OwnBenchmark
from seatrial.model.records import Sample
from seatrial.parsers.halo2d import parse_halo2d


@rfm.simple_test
class Halo(OwnBenchmark):
    """How long does one halo exchange take when all nodes do it at once?

    The ranks form a periodic grid; each exchanges rows, then columns, with its four
    neighbours, as a stencil code does, by one of the protocols of MPI.
    `exchange_time` is the median over all timed exchanges, each taken on its slowest
    rank; the size is one edge in bytes. 16 B shows latency, 8 KiB the switch from
    eager to rendezvous that a real sub-domain of 1024 x 1024 meets. halo2d verifies
    every cell that it received, and makes fewer iterations where a size would take
    longer than `milliseconds_per_size`.
    """

    protocol = parameter(
        ["sendrecv", "irecv_isend", "persistent", "neighbor_alltoall", "put_fence"]
    )
    warmup = 200
    milliseconds_per_size = 100
    repetitions = variable(int, value=5)

    descr = "periodic 2-D halo exchange over all ranks"
    tool = "halo2d"
    experiments = ("E05", "E06")
    typical_s = 5
    valid_prog_environs = ["+halo2d"]
    reference_file = "halo.yaml"
    executable = "halo2d"
    min_subdomain = 0
    max_subdomain = 1024
    tags = {Tag.NETWORK}
    judged = ["exchange_time_16B", "exchange_time_8KiB"]

    @run_before("run")
    def choose_protocol(self):
        """Set the options for protocol and sizes."""
        self.executable_opts += [
            f"--protocol {self.protocol}",
            f"--sizes {self.min_subdomain}:{self.max_subdomain}",
            f"--repetitions {self.repetitions}",
        ]

    def extract(self, text):
        """Return the time of every size, after a check of the run's settings."""
        rows = parse_halo2d(text)
        self.verify_rows(rows, protocol=self.protocol, np=self.num_tasks)
        self.verify_span(rows, "subdomain", self.min_subdomain, self.max_subdomain)
        return [
            Sample("exchange_time", row.p50_us, row.size_bytes, "p50", row.n)
            for row in rows
        ]
