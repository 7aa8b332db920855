"""Checks whose programs are started by a Python module of ours, within the job."""

import sys
from collections.abc import Sequence

from reframe.core.backends import getlauncher

from seatrial.checks.base import ALL_END, SeatrialCheck


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
        *("--", launcher, "--", *program),
    ]
    check.executable = f"{sys.executable} -I -m {module}"
    check.job.launcher = getlauncher("local")()
    check.job.options += ["--no-kill"]
