# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""Start of programs on more and more nodes, by srun and by MPI_Init."""

from functools import partial
from statistics import median

import reframe as rfm
from reframe.core.builtins import run_after, variable

from seatrial.checks.base import Tag
from seatrial.checks.job_steps import Step, SteppedCheck
from seatrial.checks.node_numbers import spread
from seatrial.model.records import Sample
from seatrial.parsers.affinity import parse_ready
from seatrial.parsers.errors import ParseError
from seatrial.parsers.mpi_startup import parse_osu_init, verify_started

PROGRAMS = {
    "osu_init": "osu_init",
    "pairsweep": "pairsweep --preflight",
    "IMB-MPI1": "IMB-MPI1 Barrier -npmin {ranks} -iter 1",
}
"""Programs that only start, in order of preference."""


@rfm.simple_test
class Startup(SteppedCheck):
    """How long does it take until a program runs, on one node and on all?

    `launch_time` is the time of srun, or of the stack's mpirun where that starts its
    ranks, for the program true: the launcher alone. `mpi_launch_time`
    is its time for a program that does nothing between MPI_Init and MPI_Finalize; the
    difference is the cost of process manager and MPI library. Both are the median of
    `repeats` starts, on more and more nodes up to all, in one job; the numbers of all
    nodes are judged. `ppn` is the number of ranks per node.

    The program is osu_init, our own pairsweep --preflight, which also exchanges
    greetings between all ranks, or IMB's Barrier with one repetition. Stacks are
    comparable if they have the same program. osu_init also prints the time of MPI_Init
    on the slowest rank: `mpi_init_time`, with a resolution of 1 ms.
    """

    repeats = variable(int, value=3)
    counts = variable(int, value=6)
    """Numbers of nodes at most, 2 or more. 6: on 32 nodes 1, 2, 4 and so on, on 1,024
    nodes 1, 4, 16 and so on."""

    descr = "time of srun and MPI_Init on more and more nodes up to all"
    valid_prog_environs = ["+mpi"]
    reference_file = "startup.yaml"
    preamble = r'\s*#.*|{"type": ?"preflight".*'
    """Time whole starts only; a start that crashed has no number."""
    tags = {Tag.NETWORK}
    tool = "srun"
    experiments = ()
    typical_s = 15
    step_s = 0
    judged = ["launch_time", "mpi_launch_time"]

    @run_after("setup")
    def choose_program(self):
        """Choose the first program that the stack has."""
        extras, features = self.current_environ.extras, self.current_environ.features
        known = {*extras.get("programs", []), *features}
        known |= {"IMB-MPI1"} if "imb" in features else set()
        programs = [name for name in PROGRAMS if name in known]
        self.skip_if(
            not programs,
            f"{self.current_environ.name} has none of {', '.join(PROGRAMS)}; add a "
            "compiler, programs.osu or programs.imb to mpi_stacks",
        )
        self.program = programs[0]

    def steps(self):
        """Return the starts of both programs on more and more nodes."""
        return [
            Step(
                f"{program}-{nodes}-{repeat}",
                PROGRAMS.get(program, program).format(ranks=nodes * self.ppn),
                nodes,
                self.ppn,
                partial(self.read, program, nodes),
            )
            for nodes in spread(self.num_nodes, self.counts)
            for program in ("true", self.program)
            for repeat in range(1, self.repeats + 1)
        ]

    def read(self, program, nodes, output):
        """Return the times of one start; raise ParseError if ranks are missing."""
        metric, times = "mpi_launch_time", {}
        if program == "true":
            metric = "launch_time"
        elif program == "osu_init":
            init = parse_osu_init(output.text, nodes * self.ppn)
            times["mpi_init_time"] = init.max_ms / 1000
        else:
            verify_started(output.text, program, nodes * self.ppn)
        times[metric] = output.seconds
        parameters = {} if nodes == self.num_nodes else {"num_nodes": nodes}
        return [
            Sample(metric, seconds, parameters=parameters)
            for metric, seconds in times.items()
        ]

    def extract(self, text):
        """Return the median times of all starts."""
        times = {}
        for sample in super().extract(text):
            key = (sample.metric, *sample.parameters.items())
            times.setdefault(key, []).append(sample.value)
        return [
            Sample(
                metric,
                median(seconds),
                statistic="p50",
                n=len(seconds),
                parameters=dict(parameters),
            )
            for (metric, *parameters), seconds in times.items()
        ]


@rfm.simple_test
class FullLaunch(SteppedCheck):
    """How long does it take until a rank on every core of the machine can compute?

    `ready_time` is the time from srun until all ranks are past MPI_Init and a barrier,
    by the clock of the first node, which runs srun and rank 0. It is the median of
    `repeats` starts with a rank on every core of all nodes. `Startup` measures whole
    starts of one rank per node, up to MPI_Finalize, and shows how they grow with the
    nodes. `FullLaunch` measures the wait of a full job.
    """

    repeats = variable(int, value=3)

    descr = "time until a rank on every core of all nodes is past MPI_Init"
    valid_prog_environs = ["+affinity"]
    reference_file = "startup.yaml"
    preamble = r'{"type": ?"run".*'
    tags = {Tag.NETWORK}
    tool = "affinity --ready, srun"
    experiments = ()
    typical_s = 8
    step_s = 60
    ppn = 0
    judged = ["ready_time"]

    def steps(self):
        """Return the starts on all nodes."""
        command = "affinity --ready --json"
        return [
            Step(f"full-{repeat}", command, self.num_nodes, self.ppn, self.read)
            for repeat in range(1, self.repeats + 1)
        ]

    def read(self, output):
        """Return the time of one start; ParseError if the clocks are of two nodes."""
        ready_s = parse_ready(output.text, self.num_tasks).ready_s - output.start
        if not 0 < ready_s < output.seconds:
            reason = f"ranks ready after {ready_s:.6f} s of {output.seconds:.6f} s"
            raise ParseError(0, f"{reason}: rank 0 is not on the node of srun")
        return [Sample("ready_time", ready_s)]

    def extract(self, text):
        """Return the median time of all starts."""
        seconds = [sample.value for sample in super().extract(text)]
        return [Sample("ready_time", median(seconds), statistic="p50", n=len(seconds))]
