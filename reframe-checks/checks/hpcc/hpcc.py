# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""HPC Challenge: the whole node and the whole network in one run."""

import math
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_before, variable

from seatrial.check import SeatrialCheck, Tag
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
        rows, columns = process_grid(self.num_tasks)
        text = INPUT.format(n=self.n, block=self.block, rows=rows, columns=columns)
        Path(self.stagedir, "hpccinf.txt").write_text(text, encoding="ascii")
        self.keep_files = ["hpccinf.txt"]

    def extract(self, text):
        """Give the judged numbers of the summary."""
        numbers = parse_hpcc(text, self.judged, self.num_tasks, self.n)
        return [Sample(name, value) for name, value in numbers.items()]


def process_grid(ranks: int) -> tuple[int, int]:
    """Split the ranks into rows and columns, as square as they go, rows first."""
    rows = next(p for p in range(math.isqrt(ranks), 0, -1) if ranks % p == 0)
    return rows, ranks // rows


INPUT = """\
HPLinpack benchmark input file
Seatrial
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
{n}          Ns
1            # of NBs
{block}      NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
{rows}       Ps
{columns}    Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### This line (no. 32) is ignored (it serves as a separator). ######
0            Number of additional problem sizes for PTRANS
1200 10000   values of N
0            number of additional blocking sizes for PTRANS
40 9 8       values of NB
"""
