# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""HPC Challenge: the whole node and the whole network in one run."""

from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_before, variable

from seatrial.checks.base import SeatrialCheck, Tag
from seatrial.checks.hpcc_input import (
    OTHER_TESTS_S,
    hpcc_input,
    hpl_seconds,
    order_within,
    process_grid,
)
from seatrial.checks.sized import SizedCheck, check_matrix
from seatrial.model.records import Sample
from seatrial.parsers.hpcc import parse_hpcc_partly

NUMBERS = [
    "HPL_Tflops",
    "PTRANS_GBs",
    *(f"{ranks}RandomAccess_GUPs" for ranks in ("MPI", "Star", "Single")),
    *(f"{ranks}STREAM_Triad" for ranks in ("Star", "Single")),
    *(f"{ranks}FFT_Gflops" for ranks in ("MPI", "Star", "Single")),
    *(f"{ranks}DGEMM_Gflops" for ranks in ("Star", "Single")),
    *(f"{statistic}PingPongLatency_usec" for statistic in ("Min", "Avg", "Max")),
    *(f"{statistic}PingPongBandwidth_GBytes" for statistic in ("Min", "Avg", "Max")),
    *(f"{order}OrderedRingLatency_usec" for order in ("Naturally", "Randomly")),
    *(f"{order}OrderedRingBandwidth_GBytes" for order in ("Naturally", "Randomly")),
]


@rfm.simple_test
class Hpcc(SizedCheck, SeatrialCheck):
    """Do all nodes compute right, and what does each get when all talk at once?

    The HPL residual must pass. Ping-pong measures the worst pair of ranks; the rings,
    in rank order and in random order, measure one rank while every rank sends: a random
    ring crosses the whole fabric. HPCC fixes the sizes: 8 B and 2,000,000 B. PTRANS,
    RandomAccess, STREAM, FFT and DGEMM are verified and reported, for one rank
    (Single), for a rank while all are busy (Star), and for all together (MPI). 16 ranks
    are the papers' E34.

    N = 1000 verifies the results in a second. Rates are meaningful only with an N that
    fills the memory: `memory_fraction` is the share of the memory of all nodes for the
    matrix, and HPCC derives the sizes of the other tests from it. HPL takes 2/3 N^3
    operations, so half the memory takes half the time of 0.8 and reaches nearly the
    same rate. `ppn` 0 is a rank on every core. MPIFFT needs a power of two of ranks,
    and is left out with others.
    """

    n = variable(int, value=1000)
    """Order of the matrix, unless `memory_fraction` is set."""
    block = variable(int, value=80)
    longest_s = variable(int, value=0)
    """Typical seconds of HPL at most, with `memory_fraction`; 0: no bound."""

    descr = "HPCC: HPL residual, ping-pong and rings over all ranks"
    valid_prog_environs = ["+hpcc"]
    reference_file = "hpcc.yaml"
    executable = "hpcc"
    min_tasks = 2
    output_file = "hpccoutf.txt"
    env_vars = {"OMP_NUM_THREADS": 1}
    tags = {Tag.NETWORK, Tag.COMPUTE}
    tool = "HPCC 1.5"
    experiments = ("E34",)
    typical_s = 15
    step_s_per_node = 0.5
    judged = [
        "HPL_Tflops",
        "MaxPingPongLatency_usec",
        "MinPingPongBandwidth_GBytes",
        "NaturallyOrderedRingLatency_usec",
        "NaturallyOrderedRingBandwidth_GBytes",
        "RandomlyOrderedRingLatency_usec",
        "RandomlyOrderedRingBandwidth_GBytes",
    ]

    def case_parameters(self):
        """Add the order of a matrix by memory to the parameters."""
        chosen = {"memory_fraction": self.memory_fraction, "n": self.n}
        return {**super().case_parameters(), **(chosen if self.memory_fraction else {})}

    def fill(self, room):
        """Choose the order of the matrix."""
        memory = room.nodes * room.node_bytes
        self.n = order_within(memory, room.ranks, self.block, self.longest_s)
        return OTHER_TESTS_S + hpl_seconds(self.n, room.ranks)

    @run_before("run")
    def write_input(self):
        """Write hpccinf.txt for this number of ranks."""
        check_matrix(self.n, self.block)
        text = hpcc_input(self.n, self.block, self.num_tasks)
        Path(self.stagedir, "hpccinf.txt").write_text(text, encoding="ascii")
        self.keep_files = ["hpccinf.txt"]

    def extract(self, text):
        """Return the numbers of the summary; missing ones fail the case as judged."""
        ranks = self.num_tasks
        whole = ranks & (ranks - 1) == 0
        names = [name for name in NUMBERS if whole or name != "MPIFFT_Gflops"]
        grid = process_grid(ranks)
        problem = (ranks, self.n, self.block, grid)
        numbers, missing = parse_hpcc_partly(text, names, *problem)
        self.judged = [*dict.fromkeys([*self.judged, *missing])]
        return [Sample(name, value) for name, value in numbers.items()]
