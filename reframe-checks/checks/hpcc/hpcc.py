# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""HPC Challenge: the whole node and the whole network in one run."""

from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_before, variable

from seatrial.check import SeatrialCheck, Tag
from seatrial.hpcc_input import hpcc_input, process_grid
from seatrial.parsers.hpcc import parse_hpcc
from seatrial.records import Sample


@rfm.simple_test
class Hpcc(SeatrialCheck):
    """Do all nodes compute right, and what does each get when all talk at once?

    The HPL residual must pass. Ping-pong gives the worst pair of ranks; the rings,
    in rank order and in random order, give what one rank gets while every rank
    sends: a random ring crosses the whole fabric. HPCC fixes the sizes: 8 B and
    2,000,000 B. N = 1000 proves the result and takes a second; the rate of HPL
    means something only with an N that fills the memory.
    """

    n = variable(int, value=1000)
    block = variable(int, value=80)

    descr = "HPCC: HPL residual, ping-pong and rings over all ranks"
    valid_prog_environs = ["+hpcc"]
    reference_file = "hpcc.yaml"
    executable = "hpcc"
    min_tasks = 2
    output_file = "hpccoutf.txt"
    env_vars = {"OMP_NUM_THREADS": 1}
    tags = {Tag.NETWORK, Tag.COMPUTE}
    judged = [
        "HPL_Tflops",
        "MaxPingPongLatency_usec",
        "MinPingPongBandwidth_GBytes",
        "NaturallyOrderedRingLatency_usec",
        "NaturallyOrderedRingBandwidth_GBytes",
        "RandomlyOrderedRingLatency_usec",
        "RandomlyOrderedRingBandwidth_GBytes",
    ]

    @run_before("run")
    def write_input(self):
        """Write hpccinf.txt for this number of ranks."""
        text = hpcc_input(self.n, self.block, self.num_tasks)
        Path(self.stagedir, "hpccinf.txt").write_text(text, encoding="ascii")
        self.keep_files = ["hpccinf.txt"]

    def extract(self, text):
        """Give the judged numbers of the summary."""
        ranks = self.num_tasks
        grid = process_grid(ranks)
        numbers = parse_hpcc(text, self.judged, ranks, self.n, self.block, grid)
        return [Sample(name, value) for name, value in numbers.items()]
