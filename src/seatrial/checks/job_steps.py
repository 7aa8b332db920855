# mypy: disable-error-code="misc,untyped-decorator,has-type"
"""Checks that run several programs in one job, which costs one start of a job."""

import sys
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reframe.core.backends import getlauncher
from reframe.core.builtins import run_after, run_before

from seatrial.checks.base import ALL_END, SeatrialCheck, cores_of
from seatrial.model.records import Sample
from seatrial.parsers.steps import StepOutput, split_steps

SCRIPT = "steps.sh"

_RUN_STEP = r"""#!/bin/bash
# Written by Seatrial: the steps of a job, one after the other, by the launcher that is
# given as arguments.
set -uo pipefail
. "$(dirname "$0")/start.sh"
launcher=("$@")

# A controller that is away for a moment, or has just come back, refuses to make a
# step: nothing ran, so try again; what srun said stays on standard error. So does what
# it said of an MPI library that crashed at start.
run_step() {
    local name=$1 attempt errors printed start status
    shift
    errors=$(mktemp -p .)
    echo "# step $name"
    for attempt in {1..30}; do
        printed=$(size 1)
        start=${EPOCHREALTIME/,/.}
        if "${launcher[@]}" "$@" 2>"$errors"; then
            status=0
        else
            status=$?
        fi
        if [ "$status" -eq 0 ]; then
            echo "# done $name $start ${EPOCHREALTIME/,/.}"
        fi
        cat "$errors" >&2
        if [ "$status" -eq 0 ]; then
            rm "$errors"
            return
        fi
        crashed_at_start "$name" "$printed" "$errors" && continue
        grep -qE 'Unable to (create step|confirm allocation)' "$errors" || break
        [ "$attempt" -lt 30 ] && sleep 2
    done
    exit "$status"
}

"""


@dataclass(frozen=True)
class Step:
    """A program on `num_nodes` nodes with `ppn` ranks each; `options` are srun's."""

    name: str
    command: str
    num_nodes: int
    ppn: int = 1
    options: str = ""

    def srun_options(self) -> str:
        """Return what tells srun where the ranks of this step go."""
        place = (
            f"--nodes={self.num_nodes} --ntasks={self.num_nodes * self.ppn} "
            f"--ntasks-per-node={self.ppn}"
        )
        return f"{place} {self.options}".rstrip()


class SteppedCheck(SeatrialCheck):
    """A check whose job runs a list of steps.

    It is skipped where a node has fewer than `ppn` cores.
    """

    @abstractmethod
    def steps(self) -> list[Step]:
        """List the steps, with names of their own, when nodes and ranks are known."""

    @abstractmethod
    def extract_steps(self, outputs: Sequence[StepOutput]) -> list[Sample]:
        """Turn the outputs of all steps, in their order, into samples."""

    @run_after("setup")
    def need_cores(self) -> None:
        """Skip nodes that are too small."""
        cores = cores_of(self.current_partition)
        self.skip_if(
            0 < cores < self.ppn,
            f"it takes {self.ppn} ranks on a node, which has {cores} cores",
        )

    @run_before("run")
    def write_steps(self) -> None:
        """Let a script start the steps in place of the launcher."""
        launcher = self.job.launcher.run_command(self.job)
        steps = self.steps()
        lines = [
            f"run_step {step.name} {step.srun_options()} {step.command}"
            for step in steps
        ]
        Path(self.stagedir, SCRIPT).write_text(_RUN_STEP + "\n".join(lines) + "\n")
        self.keep_files = [*self.keep_files, SCRIPT]
        programs = dict.fromkeys(step.command.split()[0] for step in steps)
        self.executable = f"bash {SCRIPT}"
        self.executable_opts = [f"{launcher} # {', '.join(programs)}"]
        self.job.launcher = getlauncher("local")()

    def extract(self, text: str) -> list[Sample]:
        """Return the samples of all steps, which must all have come to their ends."""
        outputs = split_steps(text, [step.name for step in self.steps()])
        return self.extract_steps(outputs)


def doubled(most: int) -> list[int]:
    """Return the powers of two below `most`, and `most` itself."""
    return [*(1 << power for power in range((most - 1).bit_length())), most]


def conduct(check: SeatrialCheck, module: str, options: Sequence[str]) -> None:
    """Let `module` start the check's executable, by its launcher, as it sees fit.

    The job goes on without a node that Slurm gives up, and a rank that dies is its own
    affair.
    """
    check.job.launcher.options = [
        option for option in check.job.launcher.options if option != ALL_END
    ]
    launcher = check.job.launcher.run_command(check.job)
    program = [check.executable, *check.executable_opts]
    check.executable_opts = [
        f"--output {check.output_file}",
        *options,
        "--",
        launcher,
        "--",
        *program,
    ]
    check.executable = f"{sys.executable} -I -m {module}"
    check.job.launcher = getlauncher("local")()
    check.job.options += ["--no-kill"]
