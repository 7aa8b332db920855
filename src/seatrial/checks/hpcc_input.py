"""The input files of HPL and HPCC for a number of ranks, and N by memory."""

import math

GFLOPS_OF_A_CORE = 10
"""Typical rate of a core in HPL: a quarter of the peak of 2.5 GHz with AVX2."""
OTHER_TESTS_S = 180
"""Typical seconds of all tests but HPL; HPCC stops RandomAccess after 60 s each."""
MATRIX_S_OF_HPL = 0.15
"""Time to write the matrix and to check the result, as a share of that of HPL."""
_TO_FILE, _TO_STDOUT = 8, 6
_HPL = """\
HPLinpack benchmark input file
Seatrial
HPL.out      output file name (if any)
{device}            device out (6=stdout,7=stderr,file)
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
"""
_PTRANS = """\
##### This line (no. 32) is ignored (it serves as a separator). ######
0            Number of additional problem sizes for PTRANS
1200 10000   values of N
0            number of additional blocking sizes for PTRANS
40 9 8       values of NB
"""


def hpcc_input(n: int, block: int, ranks: int) -> str:
    """Write hpccinf.txt: one HPL problem of order n, in blocks, on all ranks."""
    return _hpl(n, block, ranks, _TO_FILE) + _PTRANS


def hpl_input(n: int, block: int, ranks: int) -> str:
    """Write HPL.dat: one problem of order n, in blocks, on all ranks."""
    return _hpl(n, block, ranks, _TO_STDOUT)


def _hpl(n: int, block: int, ranks: int, device: int) -> str:
    rows, columns = process_grid(ranks)
    return _HPL.format(n=n, block=block, rows=rows, columns=columns, device=device)


def process_grid(ranks: int) -> tuple[int, int]:
    """Return rows and columns of a nearly square grid of the ranks."""
    rows = next(p for p in range(math.isqrt(ranks), 0, -1) if ranks % p == 0)
    return rows, ranks // rows


def order_for_memory(memory_bytes: float, block: int) -> int:
    """Return a large N, a multiple of the block, for a matrix within the memory.

    HPL holds one matrix of N x N doubles, and HPCC sizes its other tests by it. N is
    rounded down, by less than 1/64, so that a small change of the memory does not
    change it. Raises ValueError if not even one block fits.
    """
    order = _rounded(math.isqrt(int(memory_bytes) // 8), block)
    if not order:
        raise ValueError(f"{memory_bytes:.0f} bytes do not hold a block of {block}")
    return order


def order_for_time(seconds: float, cores: int, block: int) -> int:
    """Return a large N, rounded as by memory, that takes at most these seconds."""
    operations = seconds * 1e9 * GFLOPS_OF_A_CORE * cores
    return max(block, _rounded(int(math.cbrt(1.5 * operations)), block))


def order_within(memory_bytes: float, cores: int, block: int, longest_s: float) -> int:
    """Return a large N within the memory and, unless it is 0, within a time."""
    n = order_for_memory(memory_bytes, block)
    return min(n, order_for_time(longest_s, cores, block)) if longest_s else n


def hpl_seconds(n: int, cores: int) -> float:
    """Return the seconds of HPL (2/3 n^3 operations) at the typical rate of a core."""
    return 2 / 3 * n**3 / (1e9 * GFLOPS_OF_A_CORE * cores)


def _rounded(order: int, block: int) -> int:
    blocks = order // block
    step = 1 << max(0, blocks.bit_length() - 7)
    return blocks // step * step * block
