"""`hpcc`: the HPC Challenge benchmark, which reads hpccinf.txt, writes hpccoutf.txt."""

import time
from collections.abc import Iterator

from seatrial.standins.hpcc_sections import sections
from seatrial.standins.hpcc_values import Problem, measure
from seatrial.standins.run import Run, UsageError

_BANNER = """\
########################################################################
This is the DARPA/DOE HPC Challenge Benchmark version 1.5.0 October 2012
Produced by a model of a machine: nothing was measured

See the source files for authors of specific codes.
Current time ({now}) is {clock}

Hostname: '{host}'
########################################################################
"""
_END = """\
########################################################################
End of HPC Challenge tests.
Current time ({now}) is {clock}

########################################################################
"""


def hpcc(run: Run) -> Iterator[str]:
    """Append a whole run to hpccoutf.txt; nothing is printed."""
    run.expect()
    problem = _read_input(run)
    values = measure(run, problem)
    now = {"now": int(time.time()), "clock": time.ctime(), "host": run.job.node}
    text = sections(problem, values)
    with open("hpccoutf.txt", "a", encoding="ascii") as file:
        if run.dying:
            file.write(_BANNER.format(**now) + text[: len(text) // 2])
        else:
            summary = _summary(values)
            file.write(_BANNER.format(**now) + text + summary + _END.format(**now))
    return iter(())


def _read_input(run: Run) -> Problem:
    """Read N, NB, P and Q; UsageError unless the grid has room for all ranks."""
    with open("hpccinf.txt", encoding="ascii") as file:
        lines = file.read().splitlines()
    n, block, rows, columns = (int(lines[at].split()[0]) for at in (5, 7, 10, 11))
    if rows * columns != run.job.ranks:
        raise UsageError(f"hpccinf.txt: {rows} x {columns} of {run.job.ranks} ranks")
    return Problem(n, block, rows, columns, run.job.ranks)


def _summary(values: dict[str, float]) -> str:
    """Write the summary, in which all numbers are printed by %g."""
    lines = [
        f"{name}={value}" if isinstance(value, int) else f"{name}={value:.6g}"
        for name, value in values.items()
    ]
    head = ["VersionMajor=1", "VersionMinor=5", "VersionMicro=0", "VersionRelease=f"]
    body = "\n".join([*head, "LANG=C", "Success=1", *lines])
    return f"Begin of Summary section.\n{body}\nEnd of Summary section.\n"


PROGRAMS = {"hpcc": hpcc}
