"""Checks whose programs are started by a Python module of ours, within the job."""

import sys
from collections.abc import Sequence

from reframe.core.backends import getlauncher

from seatrial.check import SeatrialCheck


def conduct(check: SeatrialCheck, module: str, options: Sequence[str]) -> None:
    """Let `module` start the check's executable, by its launcher, as it sees fit.

    The job goes on without a node that Slurm gives up.
    """
    launcher = check.job.launcher.run_command(check.job)
    program = [check.executable, *check.executable_opts]
    check.executable_opts = [
        f"--output {check.output_file}",
        *options,
        *("--", launcher, "--", *program),
    ]
    check.executable = f"{sys.executable} -I -m {module}"
    check.job.launcher = getlauncher("local")()
    check.job.options += ["--no-kill"]
