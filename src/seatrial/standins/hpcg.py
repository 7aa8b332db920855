"""`xhpcg`: HPCG 3.1, which reads hpcg.dat and writes HPCG-Benchmark_*.txt."""

import time
from collections.abc import Iterator

from seatrial.standins.run import Run

_SYMMETRY = "Departure from Symmetry |x'Ay-y'Ax|/(2*||x||*||A||*||y||)/epsilon"
_TEXT = """\
HPCG-Benchmark
version=3.1
Release date=March 28, 2019
Machine Summary=
Machine Summary::Distributed Processes={ranks}
Machine Summary::Threads per processes=1
Local Domain Dimensions=
Local Domain Dimensions::nx={x}
Local Domain Dimensions::ny={y}
Local Domain Dimensions::nz={z}
Linear System Information=
Linear System Information::Number of Equations={points}
Memory Use Information=
Memory Use Information::Total memory used for data (Gbytes)={memory_gb:.6g}
Spectral Convergence Tests::Result=PASSED
{symmetry}::Result=PASSED
Iteration Count Information::Result=PASSED
Reproducibility Information::Result=PASSED
Benchmark Time Summary::Total={seconds:.6g}
Floating Point Operations Summary::Total with convergence overhead={operations:.6g}
GFLOP/s Summary::Total with convergence overhead={rate:.6g}
GFLOP/s Summary::Total with convergence and optimization phase overhead={rating:.6g}
Final Summary=
Final Summary::HPCG result is VALID with a GFLOP/s rating of={rating:.6g}
Final Summary::Model of a machine=nothing was measured
"""
_OFFICIAL_S = 1800
_FLOPS_OF_A_BYTE = 0.17
_OPERATIONS_OF_A_POINT = 374 * 50
_BYTES_OF_A_POINT = 716


def hpcg(run: Run) -> Iterator[str]:
    """Write the file of a run; memory and network limit its rate."""
    run.expect()
    with open("hpcg.dat", encoding="ascii") as file:
        lines = file.read().splitlines()
    x, y, z = map(int, lines[2].split())
    least_s = int(lines[3].split()[0])
    points, nodes = x * y * z * run.job.ranks, run.job.nodes
    rate = _FLOPS_OF_A_BYTE * run.machine.rate("memory_gb_per_s", "memory", nodes)
    rate /= run.machine.worst(nodes, "latency")
    set_s = points * _OPERATIONS_OF_A_POINT / rate / 1e9
    sets = int(least_s / set_s) + 1
    run.seconds = sets * set_s
    text = _TEXT.format(
        symmetry=_SYMMETRY,
        ranks=run.job.ranks,
        points=points,
        x=x,
        y=y,
        z=z,
        memory_gb=points * _BYTES_OF_A_POINT / 1e9,
        seconds=run.seconds,
        operations=points * _OPERATIONS_OF_A_POINT * sets,
        rate=rate,
        rating=0.99 * rate,
    )
    end = f"Official results execution time (sec) must be at least={_OFFICIAL_S}\n"
    text += f"Final Summary::{end}" if run.seconds < _OFFICIAL_S else ""
    name = time.strftime("HPCG-Benchmark_3.1_%Y-%m-%d_%H-%M-%S.txt")
    with open(name, "w", encoding="ascii") as file:
        file.write(text[: len(text) // 2] if run.dying else text)
    return iter(())


PROGRAMS = {"xhpcg": hpcg}
