# mypy: disable-error-code="misc,untyped-decorator,has-type"
# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""The base class of the checks that run perftest, below MPI."""

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean, quantiles

import reframe.utility.typecheck as typ
from reframe.core.builtins import variable

from seatrial.checks.job_steps import Step
from seatrial.checks.perftest_pair import PROGRAM
from seatrial.checks.verbs_check import VerbsCheck
from seatrial.model.records import Sample
from seatrial.parsers.perftest import parse_perftest_sampled
from seatrial.parsers.steps import StepOutput
from seatrial.paths import home, suite_python

PAIR = "seatrial.checks.perftest_pair"


@dataclass(frozen=True)
class PerftestRun:
    """A program with its options, and its samples, which have no place yet.

    `name` is unique within a job. `read` raises ParseError.
    """

    name: str
    command: str
    read: Callable[[str], Iterable[Sample]]


class PerftestCheck(VerbsCheck):
    """A check that runs a program of perftest over every rail of two nodes.

    The first node has the client, which sends (or reads), the second the server; each
    run is a step of two ranks. Device, port and GID index are those of the rail.
    perftest needs no MPI: a case of each stack shows what its MPI adds.
    """

    sizes = variable(typ.List[int])
    iterations = variable(int)
    run_limit = variable(int, value=120)
    """Seconds for a run, on both sides; then it hangs."""

    valid_prog_environs = ["+mpi"]
    step_s = 30
    needs_nodes = 2
    most_nodes = 2

    @abstractmethod
    def runs(self) -> list[PerftestRun]:
        """List the runs over one rail."""

    def steps(self) -> list[Step]:
        """Return a step for each run over each rail."""
        return [
            Step(
                f"{run.name},{rail}",
                f"{self._pair(rail)} {run.command} {self._device(rail)}",
                num_nodes=2,
                ppn=1,
                read=partial(self._read, run, rail),
            )
            for rail in self.rails
            for run in self.runs()
        ]

    def _pair(self, rail: str) -> str:
        """Return the command that starts a side on each node."""
        python = f"{suite_python(home())} -I -m {PAIR}"
        options = f"--meet perftest.port --limit {self.run_limit} --rail {rail}"
        return f"{python} {options} --"

    def _device(self, rail: str) -> str:
        """Return the options for the device, the port and the GID index of a rail."""
        device, _, ib_port = rail.partition(":")
        gid = f" -x {self.gid_indexes[rail]}" if rail in self.gid_indexes else ""
        return f"-F -d {device} -i {ib_port or 1}{gid}"

    def _read(
        self, run: PerftestRun, rail: str, output: StepOutput
    ) -> Iterable[Sample]:
        """Return the samples of a run with their place."""
        source, destination = self.nodes
        for sample in run.read(output.text):
            yield replace(sample, source=source, destination=destination, hca=rail)

    def _cause(self) -> str:
        """Quote the side that failed first: the launcher then ends the other."""
        text = Path(self.stagedir, self.job.stderr).read_text(errors="replace")
        match = re.search(rf"^{PROGRAM}: .*", text, re.MULTILINE)
        return f"says: {match[0]!r}" if match else super()._cause()


class PerftestLatency(PerftestCheck):
    """A check of the latency of one operation, as its samples show it.

    perftest has no iterations to warm up. So the first `warmup` samples do not count;
    the mean is that of the next `iterations`.
    """

    iterations = 10_000
    warmup = variable(int, value=1000)

    def latency(self, command: str, title: str, metric: str, size: int) -> PerftestRun:
        """Return a run of a program with messages of a size; `title` is its own."""
        count = self.warmup + self.iterations + 1  # perftest prints one sample less

        def read(text: str) -> list[Sample]:
            timed = parse_perftest_sampled(text, title, size, count)[self.warmup :]
            cuts = quantiles(timed, n=100, method="inclusive")
            values = {"mean": fmean(timed), "p50": cuts[49], "p99": cuts[98]}
            return [
                Sample(metric, value, size, statistic=statistic, n=len(timed))
                for statistic, value in values.items()
            ]

        return PerftestRun(f"{metric},{size}", f"{command} -n {count} -U", read)
