"""The NAS Parallel Benchmarks, in the format of NPB-MPI 3.4.1."""

import math
import os
from collections.abc import Iterator

from seatrial.standins.npb_problems import CLASSES, problem_of
from seatrial.standins.run import Run

_SHARE = 0.02
"""Rate of an NPB on a node, over that of HPL."""

_MESSAGES = {"BT": 24, "CG": 60, "EP": 0, "FT": 30, "IS": 12, "LU": 80, "MG": 40}
"""Messages in a row of each iteration."""

_SOLVER = "rhs xsolve ysolve zsolve bpack exch xcomm ycomm zcomm totcomp totcomm"
_TIMERS = {
    "BT": f"total i/o {_SOLVER}",
    "CG": "total conjg rcomm ncomm totcomp totcomm",
    "EP": "total gpairs randn rcomm totcomp totcomm",
    "FT": "total setup fft evolve checksum fftlow fftcopy transpose transpose1_loc "
    "transpose1_glo transpose1_fin - - - sync - totcomp totcomm",
    "IS": "total rcomp rcomm verify",
    "LU": "total rhs blts buts - - exch lcomm ucomm rcomm totcomp totcomm",
    "MG": "total init psinv resid rprj3 interp norm2u3 comm3 rcomm totcomp totcomm",
    "SP": f"total {_SOLVER}",
}
"""Names of a program's timers, in its order; `-` is one that it does not print."""

_RESULT = """

 NAS Parallel Benchmarks 3.4 -- {name} Benchmark

 Size: {size} (class {of_class})
 Iterations: {iterations}
 Total number of processes: {ranks}

 Numbers of a model of a machine: nothing was measured.


 {name} Benchmark Completed.
 Class           = {of_class:>24}
 Size            = {size:>24}
 Iterations      = {iterations:>24}
 Time in seconds = {seconds:>24.2f}
 Total processes = {ranks:>24}
 Active processes= {ranks:>24}
 Mop/s total     = {total:>24.2f}
 Mop/s/process   = {each:>24.2f}
 Operation type  = {kind:>24}
 Verification    =               SUCCESSFUL
 Version         =                    3.4.1
 Compile date    =              25 Nov 2026


 Please send feedbacks and/or the results of this run to:

 NPB Development Team
 Internet: npb@nas.nasa.gov
"""


def npb(run: Run) -> Iterator[str]:
    """Print the result, and the timers if there is a file timer.flag."""
    run.expect()
    name, of_class = run.program.upper().split(".")[:2]
    size, iterations, operations = problem_of(name, of_class)
    compute, communicate = _times(run, name, iterations, operations)
    run.seconds = compute + communicate
    total = operations / run.seconds / 1e6
    kinds = {"EP": "Random numbers generated", "IS": "keys ranked"}
    yield _RESULT.format(
        name=name,
        of_class=of_class,
        size=size,
        iterations=iterations,
        ranks=run.job.ranks,
        seconds=run.seconds,
        total=total,
        each=total / run.job.ranks,
        kind=kinds.get(name, "floating point"),
    )
    if os.path.exists("timer.flag"):
        yield from _timers(name, run.job.ranks, compute, communicate)


def _times(
    run: Run, name: str, iterations: int, operations: float
) -> tuple[float, float]:
    """Return the seconds in computation, and in communication with waiting."""
    job, machine = run.job, run.machine
    area = "compute" if name == "EP" else "memory"
    rate = _SHARE * machine.rate("gflops", area, job.nodes) * 1e9
    compute = operations / rate
    latency_us = machine.numbers["shared_latency_us"]
    if len(job.nodes) > 1:
        latency_us = machine.numbers["latency_us"] * machine.worst(job.nodes, "latency")
    steps = math.ceil(math.log2(job.ranks)) if job.ranks > 1 else 0
    messages = 10 + iterations * _MESSAGES.get(name, 24)
    waiting = 0.03 * compute if job.ranks > 1 else 0.0
    return compute, messages * steps * latency_us / 1e6 * machine.noise() + waiting


def _timers(name: str, ranks: int, compute: float, communicate: float) -> Iterator[str]:
    """Return the table of timers: minimum, maximum and mean over the ranks."""
    total = compute + communicate
    yield f"\n\n nprocs = {ranks:>5}           minimum     maximum     average"
    spread = 0.0 if ranks == 1 else 0.01
    for number, timer in enumerate(_TIMERS[name].split(), start=1):
        if timer == "-":
            continue
        seconds = 0.1 * compute
        if timer in ("total", "totcomp", "rcomp", "totcomm"):
            whole = {"total": total, "totcomm": communicate}
            seconds = whole.get(timer, compute)
        elif timer == "rcomm" and name == "IS":
            seconds = communicate
        elif timer.endswith("comm") or timer in ("exch", "sync"):
            seconds = 0.3 * communicate
        cells = (seconds * (1 - spread), seconds * (1 + spread), seconds)
        shown = "".join(f"{value:>12.4f}" for value in cells)
        yield f" timer {number:>2}({timer:<8}) :{shown}"


PROGRAMS = {
    f"{name.lower()}.{of_class}.x": npb for name in _TIMERS for of_class in CLASSES
}
