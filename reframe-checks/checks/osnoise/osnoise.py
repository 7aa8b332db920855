# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""Noise of the operating system on every core, by our own benchmark."""

import reframe as rfm
from reframe.core.builtins import run_before, variable

from seatrial.checks.base import SeatrialCheck, Tag, cores_of
from seatrial.model.records import Sample
from seatrial.parsers.errors import ParseError
from seatrial.parsers.osnoise import OsNoiseRow, parse_osnoise


@rfm.simple_test
class OsNoise(SeatrialCheck):
    """How much time do interrupts, daemons and other programs take from each core?

    All cores of all nodes repeat the same work at the same time, in quanta of 100 us,
    each thread on a core of its own. The fastest hundredth of a core's quanta is
    without noise; all time beyond it is lost. `os_noise` is the mean of a node's cores,
    `os_noise_core` that of its worst core. `detour_p99_9` and `detour_max` are losses
    of single quanta on the worst core, because all ranks wait for the slowest one.

    `noise_period` is the period of the costliest periodic noise, if there is some. It
    must recur 20 times or more in `seconds`. One core in a million (`odds`) with noise
    at random has a false one. Samples with the parameter `cpu` name the core.
    """

    seconds = variable(int, value=10)
    """Time of the measurement, from 1 to 3600."""
    quantum_us = variable(int, value=100)
    """Time of a quantum, from 60 to 10,000."""
    odds = variable(int, value=1_000_000)
    """One core in `odds` with noise at random has a false period."""

    descr = "noise of the operating system on all cores of all nodes at once"
    tool = "osnoise"
    experiments = ()
    typical_s = 12
    valid_prog_environs = ["+osnoise"]
    reference_file = "osnoise.yaml"
    executable = "osnoise"
    tags = {Tag.COMPUTE}
    judged = ["os_noise", "os_noise_core", "detour_p99_9", "detour_max"]

    def programs_s(self):
        """Add the time of the measurement, ten times for a busy node."""
        return super().programs_s() + 10 * self.seconds

    @run_before("run")
    def measure_all_cores(self):
        """Set the options; the task of a node may use all of its cores."""
        self.executable_opts = [
            f"--time {1000 * self.seconds}",
            f"--quantum {self.quantum_us}",
            f"--odds {self.odds}",
            "--node --validate --json",
        ]
        self.job.launcher.options += ["--cpu-bind=none"]

    def extract(self, text):
        """Return the noise of every node; refuse a run of a part of its cores."""
        rows = parse_osnoise(text, self.nodes)
        wanted = (1000 * self.seconds, self.quantum_us, self.odds)
        if (rows[0].time_ms, rows[0].quantum_us, rows[0].odds) != wanted:
            raise ParseError(0, f"a run of other settings than {wanted}")
        cores = cores_of(self.current_partition)
        for row in rows:
            # Slurm may keep some for the system; nodes of one machine share its cores.
            is_whole = 2 * row.cores > cores
            if not (is_whole or self.current_partition.extras.get("demonstration")):
                raise ParseError(
                    0, f"{row.host}: {row.cores} of {cores} cores were measured"
                )
        return [sample for row in rows for sample in samples_of(row)]


def samples_of(row: OsNoiseRow):
    """Return the noise of a node, and once more for the cores that are worst."""
    place = {"node": row.host.partition(".")[0], "n": row.n}
    yield Sample("os_noise", row.lost_percent, **place)
    for metric, value, statistic, cpu in (
        ("os_noise_core", row.worst_lost_percent, "max", row.worst_cpu),
        ("detour_p99_9", row.p99_9_us, "max", row.p99_9_cpu),
        ("detour_max", row.max_us, "max", row.max_cpu),
    ):
        yield Sample(metric, value, statistic=statistic, **place)
        named = {"parameters": {"cpu": cpu}}
        yield Sample(metric, value, statistic=statistic, **place, **named)
    if row.period_us is not None:
        found = {"cpu": row.period_cpu, "cores": row.periodic_cores}
        yield Sample("noise_period", row.period_us, parameters=found, **place)
        lost = row.period_lost_percent
        yield Sample("periodic_noise", lost, parameters=found, **place)
