"""Starts and watches many job steps, and repeats those that Slurm refused.

One thread does that for all: the node it runs on is measured too, and a thousand
threads that wake up ten times a second would take a core of it.
"""

import itertools
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from seatrial.checks.job_control import (
    Limit,
    cancel_steps,
    controller_answers,
    wait_for_controller,
)
from seatrial.checks.mpi_start import record
from seatrial.checks.srun_steps import NOT_OURS, Ended, Step
from seatrial.names import node_set
from seatrial.parsers.mpi_start import GAVE_UP, TRIES

_POLL_S = 0.25
_PAUSE_S = 2.0
_NOT_MADE = re.compile(r"Unable to (create step|confirm allocation)")
"""Message of srun when Slurm creates no step."""
_NOT_NOW = re.compile(r"node not available")

AnyStep = TypeVar("AnyStep", bound=Step)


class Launcher:
    """Starts steps of this job by srun, and ends those that take too long.

    It repeats a step that Slurm could not make for `patience_s`, and a crash of the MPI
    library at start up to `TRIES` tries.
    """

    def __init__(self, srun: Sequence[str], patience_s: float) -> None:
        self._srun = srun
        self._patience_s = patience_s
        self._numbers = itertools.count(1)

    def run(self, step: Step) -> Ended:
        """Run a step to its end, again if the controller is away afterwards.

        Raises SeatrialError if srun is missing, or the controller stays away.
        """
        while True:
            try:
                self.start([step])
                ended = self.wait([step])[step]
            finally:
                self.end([step])
            if ended.status is not None or ended.output or controller_answers():
                return ended
            wait_for_controller()

    def start(self, steps: Sequence[Step]) -> None:
        """Start all steps."""
        for step in steps:
            step.patience = Limit(self._patience_s)
            self._start(step)

    def wait(
        self,
        steps: Sequence[AnyStep],
        is_ready: Callable[[AnyStep], bool] = lambda step: False,
    ) -> dict[AnyStep, Ended]:
        """Wait until each step has ended or is ready; return the ends.

        Steps that are ready run on, and are left out. Raises SeatrialError if the
        controller stays away.
        """
        ended: dict[AnyStep, Ended] = {}
        running = [*steps]
        while running:
            time.sleep(_POLL_S)
            again = []
            ends = _ends(running)
            running = [s for s in running if s not in ends and not is_ready(s)]
            for step in ends:
                end = step.ended()
                if self._may_be_made(step, end) or self._crashed_at_start(step, end):
                    again.append(step)
                elif step.crashes == TRIES:
                    errors = (f"error: {GAVE_UP}", *end.errors)
                    ended[step] = replace(end, errors=errors)
                else:
                    ended[step] = end
            if again:
                self._try_again(again)
                running += again
        return ended

    def end(self, steps: Sequence[Step]) -> None:
        """End the steps that still run."""
        running = [step for step in steps if step.is_running()]
        for step in running:
            step.watch = Limit(0)
        while running:
            ends = _ends(running)
            running = [step for step in running if step not in ends]
            if running:
                time.sleep(_POLL_S)

    def _start(self, step: Step) -> None:
        """Start a step; it may overlap an earlier one that hangs on a dead node."""
        name = f"seatrial-{next(self._numbers)}"
        command = [
            *self._srun,
            f"--job-name={name}",
            "--overlap",
            "--kill-on-bad-exit=1",
            f"--nodes={len(step.nodes)}",
            f"--ntasks={len(step.nodes) * step.ranks}",
            f"--ntasks-per-node={step.ranks}",
            f"--nodelist={node_set(step.nodes)}",
            *step.options,
            *step.program,
        ]
        step.start(name, command)

    def _may_be_made(self, step: Step, end: Ended) -> bool:
        """Return True if Slurm did not make the step, and may do so later."""
        refusals = " ".join(filter(_NOT_MADE.search, end.errors))
        if not refusals or end.output or end.status == 0:
            return False
        is_group = len(step.nodes) > 1  # tests of fewer nodes find the missing one
        if NOT_OURS.search(refusals) or (is_group and _NOT_NOW.search(refusals)):
            return False
        return not step.patience.overdue() or not controller_answers()

    def _crashed_at_start(self, step: Step, end: Ended) -> bool:
        """Record a crash of the MPI library at start; return True if a try is left."""
        crash = step.crash(end)
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


def _ends(steps: Sequence[AnyStep]) -> dict[AnyStep, None]:
    """Return the steps that have ended, in order, and cancel the tasks they left."""
    ends = [step for step in steps if step.has_ended()]
    if names := {step.job_name for step in ends if step.may_leave_tasks()}:
        cancel_steps(names)
    return dict.fromkeys(ends)
