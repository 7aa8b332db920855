"""Job steps of single nodes: many at the same time, each in a folder of its own.

One thread starts and watches them all: the node it runs on is measured too, and a
thousand threads that wake up ten times a second would take a core of it.
"""

import itertools
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from seatrial.checks.mpi_start import record
from seatrial.checks.pairsweep.steps import (
    ABORT,
    ABORT_S,
    NOT_MADE,
    NOT_OURS,
    Ended,
    Limit,
    cancel_step,
    controller_answers,
    wait_for_controller,
)
from seatrial.errors import SeatrialError
from seatrial.parsers.mpi_start import TRIES

_POLL_S = 0.25
_LOOK_S = 2.0
_END_S = 10.0
_PAUSE_S = 2.0


class NodeStep:
    """A program on one node: what is run, and where it goes."""

    def __init__(
        self,
        node: str,
        program: Sequence[str],
        folder: Path,
        *,
        socket: int | None = None,
        ranks: int = 1,
        mpi: bool = False,
        is_told: bool = False,
    ) -> None:
        """`socket`: the one that the program has; `is_told`: it reads what to do."""
        self.node = node
        self.program = program
        self.folder = folder
        self.socket = socket
        self.ranks = ranks
        self.mpi = mpi
        self.is_told = is_told
        self.inputs: set[str] = set()
        self.crashes = 0
        self.start_time = 0.0
        self.elapsed_s = 0.0
        self.name = ""
        self.process: subprocess.Popen[bytes] | None = None
        self.limit = Limit(0)
        self.patience = Limit(0)
        self.look = Limit(0)
        self.aborting: Limit | None = None
        self.ending: Limit | None = None

    def output(self) -> str:
        """Give what the program has written to standard output until now."""
        return _read(self.folder / "out")

    def tell(self, line: str | None) -> None:
        """Send a line to the program; None ends its input. It may be gone already."""
        if self.process is None or self.process.stdin is None:
            return
        with suppress(OSError, ValueError):
            if line is None:
                self.process.stdin.close()
            else:
                self.process.stdin.write(line.encode() + b"\n")
                self.process.stdin.flush()

    def has_results(self) -> bool:
        """Return True if the program has written to a file of its own."""
        return any(
            file.stat().st_size
            for file in self.folder.iterdir()
            if file.name not in self.inputs
        )

    def errors(self) -> str:
        """Give what was written to standard error, by srun too."""
        return _read(self.folder / "err")

    def ended(self) -> Ended:
        """Say how it ended; one that srun gave up did so by itself."""
        assert self.process is not None
        is_late = self.ending is not None and self.aborting is None
        status = None if is_late else self.process.returncode
        output, errors = self.output().splitlines(), self.errors().splitlines()
        return Ended(status, tuple(output), tuple(errors))

    @property
    def is_lost(self) -> bool:
        """Tell, of a step that failed, whether its node is of no more use.

        It hangs there, srun waits in vain for it, or Slurm has taken the node.
        """
        is_taken = bool(NOT_OURS.search(self.errors()))
        return self.ending is not None or self.aborting is not None or is_taken


class Launcher:
    """Starts steps of this job by srun, and ends those that take too long.

    A step that Slurm could not make is tried again for `patience_s`.
    """

    def __init__(self, srun: Sequence[str], patience_s: float, nodes: int) -> None:
        self._srun = srun
        self._patience_s = patience_s
        self._numbers = itertools.count(1)
        _allow_files(nodes)

    def start(self, steps: Sequence[NodeStep], limit_s: float) -> None:
        """Start all of them; each may take so many seconds."""
        for step in steps:
            step.folder.mkdir(parents=True, exist_ok=True)
            step.inputs = {"out", "err", *(each.name for each in step.folder.iterdir())}
            step.patience = Limit(self._patience_s)
            self._start(step, limit_s)

    def wait(
        self,
        steps: Sequence[NodeStep],
        limit_s: float,
        is_ready: Callable[[NodeStep], bool] = lambda step: False,
    ) -> dict[str, Ended]:
        """Wait until each has ended or is ready; say by node how it ended.

        Those that are ready run on, and are not in the answer. The time of each
        begins anew. Raises SeatrialError if the controller stays away.
        """
        ended: dict[str, Ended] = {}
        for step in steps:
            step.limit = Limit(limit_s)
        running = [*steps]
        while running:
            time.sleep(_POLL_S)
            refused = []
            for step in [*running]:
                if not self._has_ended(step):
                    if is_ready(step):
                        running.remove(step)
                    continue
                running.remove(step)
                how = step.ended()
                if self._may_be_made(step, how) or self._crashed_at_start(step, how):
                    refused.append(step)
                else:
                    gave_up = step.crashes == TRIES
                    ended[step.node] = how.given_up() if gave_up else how
            if refused:
                self._try_again(refused, limit_s)
                running += refused
        return ended

    def end(self, steps: Sequence[NodeStep]) -> None:
        """End what still runs of these steps."""
        self.wait([step for step in steps if _is_running(step)], 0)

    def _start(self, step: NodeStep, limit_s: float) -> None:
        step.name = f"seatrial-{next(self._numbers)}"
        command = [
            *self._srun,
            *(f"--job-name={step.name}", "--overlap", "--kill-on-bad-exit=1"),
            *("--nodes=1", f"--ntasks={step.ranks}"),
            *(f"--ntasks-per-node={step.ranks}", f"--nodelist={step.node}"),
            *(f"--chdir={step.folder}", "--cpu-bind=none"),
            *(() if step.mpi else ("--mpi=none",)),
            *step.program,
        ]
        stdin = subprocess.PIPE if step.is_told else subprocess.DEVNULL
        with (
            (step.folder / "out").open("wb") as output,
            (step.folder / "err").open("wb") as errors,
        ):
            try:
                step.process = subprocess.Popen(
                    command,
                    stdin=stdin,
                    stdout=output,
                    stderr=errors,
                    start_new_session=True,
                )
            except OSError as error:
                raise SeatrialError(f"{command[0]}: {error.strerror}") from None
        step.start_time = time.time()
        step.ending = step.aborting = None
        step.limit = Limit(limit_s)

    def _has_ended(self, step: NodeStep) -> bool:
        """Tell whether a step has ended; end it without waiting where it is overdue."""
        assert step.process is not None
        if step.process.poll() is not None:
            step.elapsed_s = time.time() - step.start_time
            if step.process.returncode != 0:
                cancel_step(step.name)
            return True
        if step.aborting is None and step.look.overdue():
            step.look = Limit(_LOOK_S)
            if ABORT.search(step.errors()):
                step.aborting = Limit(ABORT_S)
        if step.aborting is not None and step.aborting.overdue():
            step.ending = Limit(0)  # it ends its tasks already
        if step.ending is None:
            if step.limit.overdue():
                step.ending = Limit(_END_S)
                _signal(step.process, signal.SIGTERM)
        elif step.ending.overdue():
            _signal(step.process, signal.SIGKILL)
        return False

    def _may_be_made(self, step: NodeStep, how: Ended) -> bool:
        """Tell whether Slurm did not make the step, and may do so later."""
        refusals = " ".join(filter(NOT_MADE.search, how.errors))
        if not refusals or how.output or how.status == 0:
            return False
        return not (NOT_OURS.search(refusals) or step.patience.overdue())

    def _crashed_at_start(self, step: NodeStep, how: Ended) -> bool:
        """Record a crash of the MPI library at start; True if a try is left."""
        crash = how.crash if step.mpi and not step.has_results() else None
        if crash is None:
            return False
        step.crashes += 1
        name = f"{step.folder.name} {step.node}"
        return record(Path(), name, step.crashes, crash, step.errors())

    def _try_again(self, steps: Sequence[NodeStep], limit_s: float) -> None:
        if controller_answers():
            time.sleep(_PAUSE_S)
        else:
            wait_for_controller()
            for step in steps:
                step.patience.begin()
        for step in steps:
            self._start(step, limit_s)


def _is_running(step: NodeStep) -> bool:
    return step.process is not None and step.process.poll() is None


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _read(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def _allow_files(nodes: int) -> None:
    """Allow a descriptor for each node, besides the usual ones."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = nodes + 256
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
