"""Measure what a case costs besides its program: shared jobs, and one job each.

Trivial cases run in the lab: by ReFrame as it is, a job for each case, and by ReFrame
with the shared jobs of a campaign (`pack_minutes`). Both use the settings of the suite.
"""

import shlex
import statistics
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from seatrial.checks.listing import pack_environment
from seatrial.model.cases import Case
from seatrial.system.lab import cluster

CASES = 20
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
_PATCH = "from seatrial.checks.packed_jobs import pack_jobs\npack_jobs()"


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


def measuring_s(cases: Iterable[Case]) -> float:
    """Return the seconds in which at least one program ran, of cases that are done."""
    spans = sorted(
        (end - (case.payload_s or 0.0), end)
        for case in cases
        if case.start_time is not None and case.payload_s is not None
        for end in [case.start_time + (case.elapsed_s or 0.0)]
    )
    total, until = 0.0, 0.0
    for begin, end in spans:
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total
