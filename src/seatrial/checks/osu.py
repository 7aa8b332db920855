# mypy: disable-error-code="misc,untyped-decorator,has-type"
# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""The base class of the checks that run the OSU Micro-Benchmarks."""

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from reframe.core.builtins import run_after, variable

from seatrial.checks.job_steps import Step, SteppedCheck
from seatrial.model.records import Sample
from seatrial.parsers.osu import OsuRow, parse_osu
from seatrial.parsers.steps import StepOutput

_NOT_VALIDATED = re.compile(r"osu_(barrier|(put|get)_(latency|bw))")
"""Benchmarks without the option -c, which validates."""

FLOATS = '$(grep -qs mpi_float "$(command -v {0})" && echo "-T mpi_float")'
"""Selects MPI_FLOAT for a reduction, if the program can: 7.4 fails correct sums of its
default MPI_CHAR with -c."""


@dataclass(frozen=True)
class OsuRun:
    """One benchmark on `num_nodes` nodes of `ppn` ranks.

    `latency`, `bandwidth` and `rate` are the metrics of its columns; sizes double from
    `smallest` to `largest`; `options` are the benchmark's, `window` is its -W.
    """

    program: str
    largest: int
    num_nodes: int
    ppn: int
    smallest: int = 1
    latency: str = "latency"
    bandwidth: str = "bw"
    rate: str = "msg_rate"
    options: str = ""
    window: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return all message sizes in bytes; none for a barrier."""
        if self.program == "osu_barrier":
            return ()
        count = (self.largest // self.smallest).bit_length()
        return tuple(self.smallest << power for power in range(count))

    @property
    def is_collective(self) -> bool:
        """Return True for a collective, which has -f (fastest and slowest rank)."""
        point_to_point = ("_latency", "bw", "_mbw_mr", "_multi_lat")
        return not self.program.endswith(point_to_point)

    @property
    def name(self) -> str:
        """Return a name that is unique within a job."""
        values = (f",{key}={value}" for key, value in self.parameters.items())
        return self.program + "".join(values)

    def command(self, more: str) -> str:
        """Return program and options, with more options before the benchmark's own."""
        span = f"-m {self.smallest}:{self.largest}" if self.sizes else ""
        window = f"-W {self.window}" if self.window else ""
        full = "-f" if self.is_collective else ""
        parts = [self.program, span, window, full, self.options, more]
        return " ".join(filter(None, parts))

    def parse(self, text: str, *, validated: bool) -> tuple[OsuRow, ...]:
        """Read the output; ParseError unless it is of this run."""
        rated = self.program == "osu_mbw_mr"
        return parse_osu(
            text,
            self.program,
            self.sizes,
            full=self.is_collective,
            validated=validated,
            pairs=self.num_nodes * self.ppn // 2 if rated else None,
            window=self.window if rated else None,
        )

    def samples(self, text: str, nodes: Sequence[str]) -> Iterator[Sample]:
        """Return the numbers of the timed run, with the nodes if it is of a pair."""
        metrics = (self.latency, self.bandwidth, self.rate)
        source = destination = None
        if nodes and not self.is_collective:
            source, destination = nodes[0], nodes[1 if self.num_nodes > 1 else 0]
        for row in self.parse(text, validated=False):
            values = (row.latency_us, row.mb_per_s, row.msg_per_s)
            for metric, value in zip(metrics, values, strict=True):
                if value is not None:
                    yield Sample(
                        metric,
                        value,
                        row.size_bytes,
                        n=row.iterations or 1,
                        source=source,
                        destination=destination,
                        parameters=dict(self.parameters),
                    )

    def validate(self, output: StepOutput) -> list[Sample]:
        """Return no samples; raise ParseError unless all rows are valid."""
        self.parse(output.text, validated=True)
        return []


class OsuCheck(SteppedCheck):
    """A check that runs OSU benchmarks, timed, and then once more validated.

    Timed runs have OSU's default iterations, as published numbers do; `iterations` sets
    another number for all sizes. With -c every iteration has a barrier, so that run is
    short and has no numbers, but all of its rows must pass.
    """

    iterations = variable(int, value=0)

    valid_prog_environs = ["+osu"]
    reference_file = "osu.yaml"
    preamble = r"\s*#.*"
    step_s = 30

    @abstractmethod
    def runs(self) -> list[OsuRun]:
        """List the runs, after nodes and ranks are known."""

    @run_after("setup", always_last=True)
    def need_benchmarks(self) -> None:
        """Skip a stack that lacks one of the programs."""
        programs = dict.fromkeys(run.program for run in self.runs())
        self.need_programs("osu", *programs)

    def steps(self) -> list[Step]:
        """Return the timed step of each run, and its validation."""
        steps = []
        for run in self.runs():
            steps.append(self.timed_step(run))
            if not _NOT_VALIDATED.fullmatch(run.program):
                name = f"{run.name},validated"
                command = run.command("-c -u 1 -i 1 -x 0")
                steps.append(Step(name, command, run.num_nodes, run.ppn, run.validate))
        return steps

    def timed_step(self, run: OsuRun) -> Step:
        """Return the timed step of a run."""
        command = run.command(f"-i {self.iterations}" if self.iterations else "")
        read = partial(self.read, run)
        return Step(run.name, command, run.num_nodes, run.ppn, read)

    def read(self, run: OsuRun, output: StepOutput) -> Iterable[Sample]:
        """Return the numbers of a timed step."""
        return run.samples(output.text, self.nodes)

    def wrapped(self, command: str) -> str:
        """Return the command of a timed step; a check may add a prefix."""
        return command

    def srun_options(self, run: OsuRun) -> str:
        """Return further options of srun for a timed step."""
        return ""
