# mypy: disable-error-code="misc,untyped-decorator,has-type"
# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""The base class of the checks that run the OSU Micro-Benchmarks."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reframe.core.builtins import run_after, variable

from seatrial.checks.job_steps import Step, SteppedCheck
from seatrial.model.records import Sample
from seatrial.parsers.osu import OsuRow, parse_osu
from seatrial.parsers.steps import StepOutput

Place = tuple[str | None, str | None]
"""Source and destination of a number."""

_NOT_VALIDATED = {
    "osu_barrier",
    "osu_put_latency",
    "osu_get_latency",
    "osu_put_bw",
    "osu_get_bw",
}
"""Benchmarks that cannot validate: they know no -c."""


FLOATS = '$(grep -qs mpi_float "$(command -v {0})" && echo "-T mpi_float")'
"""Lets a reduction be of MPI_FLOAT, where the program has the choice.

Its default has become MPI_CHAR, of which 7.4 calls correct sums wrong with -c.
"""


@dataclass(frozen=True)
class OsuRun:
    """One benchmark on `num_nodes` nodes of `ppn` ranks.

    `latency`, `bandwidth` and `rate` name the metrics of what it prints; sizes are
    doubled from `smallest` to `largest`; `parameters` go with its samples, which are
    judged only without; `options` are the benchmark's, `window` is its -W.
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
        """All message sizes in bytes; none of a barrier."""
        if self.program == "osu_barrier":
            return ()
        count = (self.largest // self.smallest).bit_length()
        return tuple(self.smallest << power for power in range(count))

    @property
    def is_collective(self) -> bool:
        """True for a collective: it has the option -f (fastest and slowest rank)."""
        point_to_point = ("_latency", "bw", "_mbw_mr", "_multi_lat")
        return not self.program.endswith(point_to_point)

    @property
    def name(self) -> str:
        """A name of its own within a job."""
        values = (f"{key}={value}" for key, value in self.parameters.items())
        return ",".join((self.program, *values))

    def command(self, more: str) -> str:
        """Return program and options, with more options before the benchmark's own."""
        span = f"-m {self.smallest}:{self.largest}" if self.sizes else ""
        window = f"-W {self.window}" if self.window else ""
        full = "-f" if self.is_collective else ""
        parts = [self.program, span, window, full, self.options, more]
        return " ".join(filter(None, parts))

    def parse(self, text: str, *, validated: bool) -> tuple[OsuRow, ...]:
        """Read what it printed; ParseError unless that is what was asked for."""
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

    def samples(self, text: str, place: Place) -> Iterator[Sample]:
        """Return every number of the timed run."""
        source, destination = place
        for row in self.parse(text, validated=False):
            for metric, value in (
                (self.latency, row.latency_us),
                (self.bandwidth, row.mb_per_s),
                (self.rate, row.msg_per_s),
            ):
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


class OsuCheck(SteppedCheck):
    """A check that runs OSU benchmarks, timed, and then once more validated.

    Timed runs have as many iterations as OSU chooses, which is what published numbers
    have; `iterations` sets another number for all sizes. With -c a barrier goes with
    every iteration, so that run is short and gives no numbers, but all of its rows
    must pass.
    """

    iterations = variable(int, value=0)

    valid_prog_environs = ["+osu"]
    reference_file = "osu.yaml"
    preamble = r"\s*#.*"
    time_limit = "15m"

    @abstractmethod
    def runs(self) -> list[OsuRun]:
        """List the runs, when nodes and ranks are known."""

    @run_after("setup", always_last=True)
    def need_benchmarks(self) -> None:
        """Skip a stack that lacks one of the programs."""
        programs = dict.fromkeys(run.program for run in self.runs())
        self.need_programs("osu", *programs)

    def steps(self) -> list[Step]:
        """Time every run, then validate it with few iterations."""
        chosen = f"-i {self.iterations}" if self.iterations else ""
        steps = []
        for run in self.runs():
            where = (run.num_nodes, run.ppn)
            timed = self.wrapped(run.command(chosen))
            steps.append(Step(run.name, timed, *where, self.srun_options(run)))
            if run.program not in _NOT_VALIDATED:
                command = run.command("-c -u 1 -i 1 -x 0")
                steps.append(Step(f"{run.name},validated", command, *where))
        return steps

    def wrapped(self, command: str) -> str:
        """Return the command of a timed step; a check may put something before it."""
        return command

    def srun_options(self, run: OsuRun) -> str:
        """Return further options of srun for a timed step."""
        return ""

    def extract_steps(self, outputs: Sequence[StepOutput]) -> list[Sample]:
        """Return the numbers of all timed runs; each must be validated, too."""
        samples: list[Sample] = []
        remaining = iter(outputs)
        for run in self.runs():
            place = self.place_of(run)
            timed = next(remaining)
            with timed.located():
                self.verify_timed(timed.text, run)
                samples += run.samples(timed.text, place)
            if run.program not in _NOT_VALIDATED:
                validation = next(remaining)
                with validation.located():
                    run.parse(validation.text, validated=True)
        return samples

    def verify_timed(self, text: str, run: OsuRun) -> None:
        """Raise ParseError if what `wrapped` adds is not as it must be."""

    def place_of(self, run: OsuRun) -> Place:
        """Name the two nodes of a pair, or the one twice; nothing of a collective."""
        if run.is_collective or not self.nodes:
            return None, None
        return self.nodes[0], self.nodes[1 if run.num_nodes > 1 else 0]
