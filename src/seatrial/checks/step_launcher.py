"""Starts and watches many job steps, and starts again those that Slurm refused.

One thread does that for all: the node it runs on is measured too, and a thousand
threads that wake up ten times a second would take a core of it.
"""

import itertools
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from seatrial.checks.job_control import Limit, controller_answers, wait_for_controller
from seatrial.checks.mpi_start import record
from seatrial.checks.srun_steps import NOT_OURS, Ended, Step
from seatrial.parsers.mpi_start import TRIES

_POLL_S = 0.25
_PAUSE_S = 2.0
_NOT_MADE = re.compile(r"Unable to (create step|confirm allocation)")
"""Message of srun when Slurm creates no step."""
_NOT_NOW = re.compile(r"node not available")

AnyStep = TypeVar("AnyStep", bound=Step)


class Launcher:
    """Starts steps of this job by srun, and ends those that take too long.

    A step that Slurm could not make is tried again for `patience_s`, one whose MPI
    library crashed at start `TRIES` times in all.
    """

    def __init__(self, srun: Sequence[str], patience_s: float) -> None:
        self._srun = srun
        self._patience_s = patience_s
        self._numbers = itertools.count(1)

    def start(self, steps: Sequence[Step]) -> None:
        """Start all of them."""
        for step in steps:
            step.patience = Limit(self._patience_s)
            self._start(step)

    def wait(
        self,
        steps: Sequence[AnyStep],
        is_ready: Callable[[AnyStep], bool] = lambda step: False,
    ) -> dict[AnyStep, Ended]:
        """Wait until each has ended or is ready; return how they ended.

        Those that are ready run on, and are left out. Raises SeatrialError if the
        controller stays away.
        """
        ended: dict[AnyStep, Ended] = {}
        running = [*steps]
        while running:
            time.sleep(_POLL_S)
            again = []
            for step in [*running]:
                if not step.has_ended():
                    if is_ready(step):
                        running.remove(step)
                    continue
                running.remove(step)
                how = step.ended()
                if self._may_be_made(step, how) or self._crashed_at_start(step, how):
                    again.append(step)
                else:
                    gave_up = step.crashes == TRIES
                    ended[step] = how.given_up() if gave_up else how
            if again:
                self._try_again(again)
                running += again
        return ended

    def end(self, steps: Sequence[Step]) -> None:
        """End what still runs of these steps."""
        running = [step for step in steps if step.is_running()]
        for step in running:
            step.watch = Limit(0)
        while running := [step for step in running if not step.has_ended()]:
            time.sleep(_POLL_S)

    def _start(self, step: Step) -> None:
        """Start a step.

        Steps overlap: an earlier one that does not end on a dead node must not keep
        the processors of the others.
        """
        name = f"seatrial-{next(self._numbers)}"
        command = [
            *self._srun,
            f"--job-name={name}",
            "--overlap",
            "--kill-on-bad-exit=1",
            f"--nodes={len(step.nodes)}",
            f"--ntasks={len(step.nodes) * step.ranks}",
            f"--ntasks-per-node={step.ranks}",
            f"--nodelist={','.join(step.nodes)}",
            *step.options,
            *step.program,
        ]
        step.start(name, command)

    def _may_be_made(self, step: Step, how: Ended) -> bool:
        """Return True if Slurm did not make the step, and may do so later."""
        refusals = " ".join(filter(_NOT_MADE.search, how.errors))
        if not refusals or how.output or how.status == 0:
            return False
        if len(step.nodes) > 1 and _NOT_NOW.search(refusals):
            return False  # which node that is, tests of fewer nodes find out
        if NOT_OURS.search(refusals):
            return False
        return not step.patience.overdue() or not controller_answers()

    def _crashed_at_start(self, step: Step, how: Ended) -> bool:
        """Record a crash of the MPI library at start; return True if a try is left."""
        crash = step.crash(how)
        if crash is None:
            return False
        step.crashes += 1
        return record(Path(), step.name, step.crashes, crash, step.errors())

    def _try_again(self, steps: Sequence[Step]) -> None:
        if controller_answers():
            time.sleep(_PAUSE_S)
        else:
            wait_for_controller()
            for step in steps:
                step.patience.begin()
        for step in steps:
            self._start(step)
