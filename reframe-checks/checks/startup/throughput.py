# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""Short jobs, one by one and as an array."""

import shlex

import reframe as rfm
from reframe.core.backends import getlauncher
from reframe.core.builtins import run_after, run_before, variable

from seatrial.checks.base import SeatrialCheck, Tag
from seatrial.model.records import Sample
from seatrial.parsers.errors import ParseError
from seatrial.parsers.throughput import parse_throughput
from seatrial.paths import home, suite_python


@rfm.simple_test
class Throughput(SeatrialCheck):
    """How many short jobs does Slurm start and finish in a second?

    A job on one node submits `jobs` jobs, one sbatch after the other, then `tasks` as
    one array. All run `true` on one core of the other nodes. `submit_rate` is the rate
    of the sbatch commands. `job_rate` and `array_rate` count from the first submission
    until no job is in the queue, which is read twice a second. Accounting must show
    each job as completed.

    The number of jobs is fixed, and only one request is on its way at any time. The
    burst of sbatch exceeds the limit of requests, the average of the case does not. Run
    it on free nodes: other jobs in the queue delay these.
    """

    jobs = variable(int, value=20)
    tasks = variable(int, value=100)
    patience_s = variable(float, value=120.0)
    """Seconds until jobs in the queue fail the case."""

    descr = "short jobs that Slurm takes and finishes in a second"
    tool = "sbatch, sacct"
    experiments = ()
    typical_s = 30
    step_s = 420
    num_nodes = 1
    valid_prog_environs = ["+mpi"]
    reference_file = "startup.yaml"
    tags = {Tag.COMPUTE}
    judged = ["submit_rate", "job_rate", "array_rate"]

    @run_after("setup")
    def need_another_node(self):
        """Skip a class of one node, and all stacks but the first."""
        partition = self.current_partition
        nodes = len(partition.extras.get("nodes", []))
        nodes = self.usable_nodes.get(partition.name, nodes)
        self.skip_if(nodes < 2, "short jobs take a second node, there is 1")
        stacks = [stack.name for stack in partition.environs if "mpi" in stack.features]
        self.skip_if(
            self.current_environ.name != stacks[0],
            f"jobs of Slurm do not depend on MPI: measured with {stacks[0]}",
        )

    @run_before("run")
    def start_conductor(self):
        """Submit from the job itself, with the options that give it its nodes."""
        options = [f"--option={shlex.quote(o)}" for o in self.current_partition.access]
        self.executable = f"{suite_python(home())} -I -m seatrial.checks.throughput"
        self.executable_opts = [
            f"--jobs {self.jobs}",
            f"--tasks {self.tasks}",
            f"--patience {self.patience_s:g}",
            *options,
        ]
        self.job.launcher = getlauncher("local")()

    def extract(self, text):
        """Return the rates."""
        row = parse_throughput(text)
        if (row.jobs, row.tasks) != (self.jobs, self.tasks):
            wanted = f"expected {self.jobs} and {self.tasks}"
            raise ParseError(0, f"{row.jobs} jobs, {row.tasks} tasks, {wanted}")
        return [
            Sample("submit_rate", row.jobs / row.submit_s, n=row.jobs),
            Sample("job_rate", row.jobs / row.jobs_s, n=row.jobs),
            Sample("array_rate", row.tasks / row.array_s, n=row.tasks),
        ]
