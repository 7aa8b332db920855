# mypy: disable-error-code="misc,untyped-decorator,has-type"
"""Checks that run several programs in one job, which costs one start of a job."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from reframe.core.backends import getlauncher
from reframe.core.builtins import run_after, run_before, variable

from seatrial.checks.base import SeatrialCheck, cores_of
from seatrial.checks.rank_start import ALL_END
from seatrial.model.records import Sample
from seatrial.parsers.steps import StepOutput, split_steps
from seatrial.paths import home, suite_python

SCRIPT = "steps.sh"

_RUN_STEP = r"""#!/bin/bash
# Written by Seatrial: runs the steps of a job by the launcher in the arguments.
set -uo pipefail
. "$(dirname "$0")/start.sh"
launcher=("$@")

# Repeat a step if Slurm's controller refuses it for a moment, or if its MPI library
# crashes at start; all messages stay on standard error.
run_step() {
    local name=$1 attempt errors printed start status
    shift
    errors=$(mktemp -p .)
    echo "# step $name"
    for attempt in {1..30}; do
        printed=$(size 1)
        start=${EPOCHREALTIME/,/.}
        "${launcher[@]}" "$@" 2>"$errors"
        status=$?
        [ "$status" -eq 0 ] && echo "# done $name $start ${EPOCHREALTIME/,/.}"
        cat "$errors" >&2
        [ "$status" -eq 0 ] && rm "$errors" && return
        crashed_at_start "$name" "$printed" "$errors" && continue
        grep -qE 'Unable to (create step|confirm allocation)' "$errors" || break
        [ "$attempt" -lt 30 ] && sleep 2
    done
    exit "$status"
}

"""


@dataclass(frozen=True)
class Step:
    """A program on `num_nodes` nodes with `ppn` ranks each; `options` are srun's.

    `read` converts its output to samples, or raises ParseError. `prefix` is a program
    that starts the command.
    """

    name: str
    command: str
    num_nodes: int
    ppn: int
    read: Callable[[StepOutput], Iterable[Sample]]
    options: str = ""
    prefix: str = ""

    def line(self) -> str:
        """Return the line of the script that runs the step."""
        parts = ("run_step", self.name, self.srun_options(), self.prefix, self.command)
        return " ".join(filter(None, parts))

    def srun_options(self) -> str:
        """Return the options of srun for nodes and ranks, and its own."""
        nodes, ranks = f"--nodes={self.num_nodes}", self.num_nodes * self.ppn
        tasks = f"--ntasks={ranks} --ntasks-per-node={self.ppn}"
        return f"{nodes} {tasks} {self.options}".rstrip()


class SteppedCheck(SeatrialCheck):
    """A check that runs a list of steps on nodes with `ppn` cores or more."""

    oversubscribe = variable(bool, value=False)
    """Run on nodes with fewer cores than ranks, too; such numbers say little."""

    @abstractmethod
    def steps(self) -> list[Step]:
        """List the steps, with unique names, after nodes and ranks are known."""

    def programs_s(self) -> float:
        """Return the seconds that all steps may take."""
        return sum(self.run_s(step.num_nodes) for step in self.steps())

    def need_programs(self, feature: str, *names: str) -> None:
        """Skip the case if the MPI stack lacks one of the programs of a feature."""
        programs = self.current_environ.extras.get("programs", [])
        missing = [name for name in names if name not in programs]
        remedy = f"name its folder in programs.{feature} of mpi_stacks"
        if feature == "imb":
            remedy = "put it beside IMB-MPI1, which programs.imb of mpi_stacks names"
        elif feature == "npb":
            remedy += ", or add its class to mpi_npb_classes and run site.yml"
        self.skip_if(
            bool(missing),
            f"{self.current_environ.name} has no {', '.join(missing)}, of the feature "
            f"{feature}; install it, and {remedy}",
        )

    @run_after("setup")
    def need_cores(self) -> None:
        """Skip nodes that are too small."""
        cores = cores_of(self.current_partition)
        self.skip_if(
            cores < self.ppn and not self.oversubscribe,
            f"it takes {self.ppn} ranks on a node, which has {cores} cores",
        )

    @run_before("run")
    def write_steps(self) -> None:
        """Write the script that starts the steps in place of the launcher."""
        launcher = self.job.launcher.run_command(self.job)
        steps = self.steps()
        lines = "".join(f"{step.line()}\n" for step in steps)
        Path(self.stagedir, SCRIPT).write_text(_RUN_STEP + lines)
        self.keep_files = [*self.keep_files, SCRIPT]
        programs = dict.fromkeys(step.command.split()[0] for step in steps)
        self.executable = f"bash {SCRIPT}"
        self.executable_opts = [f"{launcher} # {', '.join(programs)}"]
        self.job.launcher = getlauncher("local")()

    def extract(self, text: str) -> list[Sample]:
        """Return the samples of all steps; each must have an end."""
        steps = self.steps()
        samples: list[Sample] = []
        outputs = split_steps(text, [step.name for step in steps])
        for step, output in zip(steps, outputs, strict=True):
            with output.located():
                samples += step.read(output)
        return samples


def conduct(check: SeatrialCheck, module: str, options: Sequence[str]) -> None:
    """Replace the program of a check by a module that starts it repeatedly.

    The job continues after the loss of a node or a rank.
    """
    job = check.job
    job.launcher.options = [item for item in job.launcher.options if item != ALL_END]
    program = [job.launcher.run_command(job), "--", check.executable]
    output = f"--output {check.output_file}"
    check.executable_opts = [output, *options, "--", *program, *check.executable_opts]
    check.executable = f"{suite_python(home())} -I -m {module}"
    job.launcher = getlauncher("local")()
    job.options += ["--no-kill"]
