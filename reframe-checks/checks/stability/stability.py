# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""The jobs of a stability phase."""

import os

import reframe as rfm
from reframe.core.builtins import parameter, run_after, run_before, variable

from seatrial.checks.base import Tag
from seatrial.checks.job_mix import (
    MIX_VARIABLE,
    SMALLEST,
    job_of,
    nodes_of,
    parse_mix,
)
from seatrial.checks.job_steps import Step, SteppedCheck
from seatrial.checks.time_limits import start_s
from seatrial.model.records import Sample
from seatrial.parsers.errors import ParseError
from seatrial.parsers.halo2d import parse_halo2d

WHOLE = "100%"
MIX = parse_mix(os.environ.get(MIX_VARIABLE) or SMALLEST)


@rfm.simple_test
class StabilityJob(SteppedCheck):
    """Does a job of this size and time end well under the load of a stability phase?

    The campaign (key `stability`) gives name, size, seconds and number of a job:
    `50%x600-3` is the third job of ten minutes on half of the nodes of its class. All
    ranks of the job exchange halos, in steps of `step_seconds`. Every step verifies
    each cell. A file of `file_mib` in the folder of the job, on the file system of the
    results, must have the same checksum at the end. The number is the time of an
    exchange of 8 KiB in the slowest step. It has no limit unless a criterion names it,
    because other jobs load the network at the same time.
    """

    mix = parameter([*MIX])
    step_seconds = variable(int, value=20)
    file_mib = variable(int, value=16)
    ppn = 2

    descr = "a job of the mix: verified halo exchanges, and a file that stays the same"
    tool = "halo2d"
    experiments = ()
    typical_s = 4
    valid_prog_environs = ["+halo2d"]
    reference_file = "stability.yaml"
    calibrate = True  # its number needs no limit
    needs_criteria = False  # criteria of kind stability count its failures
    executable = "bash"
    tags = {Tag.NETWORK}
    judged = ["exchange_time_8KiB"]

    @run_after("init")
    def take_place(self):
        """Choose class and MPI stack as the campaign does, and the nodes."""
        self.size, self.seconds, _ = job_of(self.mix)
        node_class, _, stack = MIX[self.mix].partition("+")
        if stack:
            self.valid_systems = [f"*:{node_class}"]
            self.valid_prog_environs = [stack]

    @run_after("setup")
    def place(self):
        """Set the number of nodes by the job's size."""
        if self.size != WHOLE:  # that takes all nodes that are up
            delivered = len(self.current_partition.extras.get("nodes", []))
            self.num_nodes = nodes_of(self.size, delivered)
        super().place()

    @run_before("run")
    def keep_a_file(self):
        """Write a file before the steps, and compare it at the end."""
        self.prerun_cmds += [
            f"head -c {self.file_mib}M /dev/urandom >stability.data",
            "sha256sum stability.data >stability.sum",
        ]
        self.postrun_cmds += [
            "if ! sha256sum --status --check stability.sum; then",
            '    echo "stability.data: file changed on the file system" >&2',
            "    seatrial_status=1",
            '    echo "status=1" >>seatrial.job',
            "fi",
            "rm -f stability.data",
        ]

    @property
    def count(self):
        """Return the number of steps."""
        return max(1, round(self.seconds / self.step_seconds))

    def programs_s(self):
        """Return twice the seconds of the job, and the starts of its steps."""
        return 2 * self.seconds + self.count * start_s(self.num_nodes)

    def extract(self, text):
        """Return the time of an exchange in the slowest step."""
        return [max(super().extract(text), key=lambda sample: sample.value)]

    def steps(self):
        """List the steps of halo2d: together they take the seconds of the job."""
        count = self.count
        time_ms = round(1000 * self.seconds / count / 2)  # two sizes
        command = (
            "halo2d --protocol irecv_isend --sizes 512:1024 --repetitions 1 "
            f"--iterations 400000 --warmup 10 --time {time_ms} --validate --json"
        )
        return [
            Step(f"step-{number}", command, self.num_nodes, self.ppn, self.read)
            for number in range(1, count + 1)
        ]

    def read(self, output):
        """Return the time of the largest size of a step."""
        rows = parse_halo2d(output.text)
        if any(row.validation != "pass" for row in rows):
            raise ParseError(0, "validation is off")
        row = rows[-1]
        return [Sample("exchange_time", row.p50_us, row.size_bytes, "p50", row.n)]
