"""Measure what a case costs besides its program: shared jobs, and one job each.

Trivial cases run in the lab: by ReFrame as it is, a job for each case, and by ReFrame
with the shared jobs of a campaign (`pack_minutes`). Both use the settings of the suite.

`python tools/overhead_speed.py RUN` shows the overhead of a closed run, and its longest
times without a program.
"""

import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from seatrial.checks.listing import pack_environment
from seatrial.model.cases import Case
from seatrial.runs.closed_run import Run, load_run
from seatrial.system.lab import cluster

CASES = 20
_LONGEST = 8
_CHECK = f"""
import reframe as rfm
import reframe.utility.sanity as sn
{{patch}}

@rfm.simple_test
class Trivial(rfm.RunOnlyRegressionTest):
    number = parameter(range({CASES}))
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "true"
    time_limit = "1m"
    keep_files = []

    @sanity_function
    def passes(self):
        return sn.assert_true(1)
"""
_PATCH = "from seatrial.checks.reframe_patches import patch_reframe\npatch_reframe()"


def seconds_a_case(prefix: str, config: Path, *, packed: bool) -> float:
    """Return the wall time of trivial cases on the lab's login node, for one case.

    `prefix` is the folder of the suite there, `config` the configuration of ssh. The
    time has a share of ReFrame's start.
    """
    check = _CHECK.format(patch=_PATCH if packed else "")
    policy = "async" if packed else "serial"
    environment = pack_environment(3600, 1) if packed else {}
    command = [
        *(f"{name}={value}" for name, value in environment.items()),
        f"{prefix}/venv/bin/reframe",
        *("-C", f"{prefix}/etc/lab/settings.yaml", "--system", "lab:batch"),
        *("-p", "openmpi", "-c", "trivial.py", "-r", f"--exec-policy={policy}"),
    ]
    script = f'cd "$(mktemp -d)" && cat >trivial.py && env {shlex.join(command)} >&2'
    started = time.monotonic()
    subprocess.run(
        ["ssh", "-F", config, "head", script],
        input=check,
        text=True,
        check=True,
        stderr=subprocess.DEVNULL,
    )
    return (time.monotonic() - started) / CASES


def rows_of_trivial_cases(prefix: str, home: Path) -> list[tuple[str, str, str]]:
    """Measure both ways in turn, three times; return rows: what, measured, target."""
    config = cluster.ssh_config(home)
    times = [
        [seconds_a_case(prefix, config, packed=packed) for packed in (False, True)]
        for _ in range(3)
    ]
    alone, packed = (statistics.median(own) for own in zip(*times, strict=True))
    what = f"a trivial case of {CASES}, median of 3"
    return [
        (f"{what}: ReFrame, a job each", f"{alone:.2f} s", ""),
        (f"{what}: shared jobs", f"{packed:.2f} s", "<= 0.7 s"),
    ]


class Gap(NamedTuple):
    """A time without a program, between two cases; '' is begin and end of the run."""

    seconds: float
    before: str
    after: str


def measuring_s(cases: Iterable[Case]) -> float:
    """Return the seconds in which at least one program ran, of cases that are done."""
    spans = _spans(cases)
    if not spans:
        return 0.0
    first, last = spans[0][0], max(end for _, end, _ in spans)
    return last - first - sum(gap.seconds for gap in _gaps(spans, first, last))


def gaps(run: Run) -> list[Gap]:
    """Return the times without a program of a closed run, the longest first."""
    started, ended = (
        datetime.fromisoformat(run.manifest[key]).timestamp()
        for key in ("started", "ended")
    )
    return sorted(_gaps(_spans(run.cases), started, ended), reverse=True)


def _spans(cases: Iterable[Case]) -> list[tuple[float, float, str]]:
    """Return begin and end of each program, and session and name of its case."""
    return sorted(
        (end - (case.payload_s or 0.0), end, f"{case.session} {case.key.listed}")
        for case in cases
        if case.start_time is not None and case.payload_s is not None
        for end in [case.start_time + (case.elapsed_s or 0.0)]
    )


def _gaps(
    spans: Iterable[tuple[float, float, str]], started: float, ended: float
) -> Iterator[Gap]:
    until, before = started, ""
    for begin, end, name in [*spans, (ended, ended, "")]:
        if begin > until:
            yield Gap(begin - until, before, name)
        if end > until:
            until, before = end, name


def rows_of_run(run: Run) -> list[tuple[str, str, str]]:
    """Return rows on the time that the suite adds to the programs of a closed run."""
    cases = [case for case in run.cases if case.payload_s is not None]
    measuring = measuring_s(cases)
    added = [(case.elapsed_s or 0.0) - (case.payload_s or 0.0) for case in cases]
    idle = sum(gap.seconds for gap in gaps(run))
    return [
        (
            f"overhead per case, median of {len(cases)}",
            f"{statistics.median(added):.2f} s (largest {max(added):.1f} s)",
            "<= 0.7 s",
        ),
        (
            "overhead of the campaign over the time in which a program ran",
            f"{idle:.0f} s of {measuring:.0f} s: {100 * idle / measuring:.1f} %",
            "<= 10 %",
        ),
        ("campaign, for each case", f"{(idle + measuring) / len(cases):.1f} s", ""),
    ]


def table_of(run: Run) -> Table:
    """Return the overhead of a closed run, and its longest times without a program."""
    table = Table("what", "measured", "target")
    for row in rows_of_run(run):
        table.add_row(*row)
    for gap in gaps(run)[:_LONGEST]:
        between = f"{gap.before or 'begin'} - {gap.after or 'end'}"
        table.add_row(f"no program: {between}", f"{gap.seconds:.1f} s", "")
    return table


if __name__ == "__main__":
    Console().print(table_of(load_run(Path(sys.argv[1]))))
