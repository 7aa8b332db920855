"""`xhpl`: High-Performance Linpack 2.3, which reads HPL.dat and prints."""

import time
from collections.abc import Iterator

from seatrial.standins.run import Run, UsageError

_RESIDUAL = "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)="
_TEXT = """\
{wide}
HPLinpack 2.3  --  High-Performance Linpack benchmark  --   December 2, 2018
Produced by a model of a machine: nothing was measured
{wide}

N      : {n:7d}
NB     : {block:7d}
P      : {rows:7d}
Q      : {columns:7d}

- Computational tests pass if scaled residuals are less than                16.0

{wide}
T/V                N    NB     P     Q               Time                 Gflops
{thin}
WR11C2R4{n:12d} {block:5d} {rows:5d} {columns:5d} {seconds:18.2f}    {gflops:19.4e}
HPL_pdgesv() start time {began}

HPL_pdgesv() end time   {ended}

{thin}
{name} {residual:16.8e} ...... PASSED
{wide}

Finished      1 tests with the following results:
              1 tests completed and passed residual checks,
              0 tests completed and failed residual checks,
              0 tests skipped because of illegal input values.
{thin}

End of Tests.
{wide}"""


def hpl(run: Run) -> Iterator[str]:
    """Print one problem; nodes that wait for each other reach 85 % of their sum."""
    run.expect()
    n, block, rows, columns = _read_input(run)
    nodes = run.job.nodes
    scale = 1.0 if len(nodes) == 1 else 0.85
    gflops = scale * run.machine.rate("gflops", "compute", nodes)
    run.seconds = n * n * (2 / 3 * n + 3 / 2) / gflops / 1e9
    now = time.time()
    text = _TEXT.format(
        wide="=" * 80,
        thin="-" * 80,
        name=_RESIDUAL,
        n=n,
        block=block,
        rows=rows,
        columns=columns,
        seconds=run.seconds,
        gflops=gflops,
        began=time.ctime(now),
        ended=time.ctime(now + run.seconds),
        residual=2e-3 * (1 + run.machine.jitter(0.5)),
    )
    return iter(text.split("\n"))


def _read_input(run: Run) -> tuple[int, int, int, int]:
    """Read N, NB, P and Q; UsageError unless the grid has all ranks."""
    with open("HPL.dat", encoding="ascii") as file:
        lines = file.read().splitlines()
    n, block, rows, columns = (int(lines[at].split()[0]) for at in (5, 7, 10, 11))
    if rows * columns != run.job.ranks:
        raise UsageError(f"HPL.dat: {rows} x {columns} of {run.job.ranks} ranks")
    return n, block, rows, columns


PROGRAMS = {"xhpl": hpl}
