"""Job steps: started by srun on chosen nodes, limited in time, and ended for good."""

import itertools
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Protocol

from seatrial.checks.mpi_start import record
from seatrial.errors import SeatrialError
from seatrial.parsers.mpi_start import GAVE_UP, StartCrash, crash_at_start

_POLL_S = 0.1
_END_S = 10.0
_ASK_S = 30.0
_PAUSE_S = 2.0
_CONTROLLER_S = 900.0
NOT_MADE = re.compile(r"Unable to (create step|confirm allocation)")
"""What srun says when Slurm makes no step of it."""
NOT_OURS = re.compile(r"node configuration is not available|[Ii]nvalid node")
"""What it says then if Slurm has taken a node from the job."""
ABORT = re.compile(r"Job step aborted: Waiting")
"""What it says when it ends a step, of which a dead node never lets it see the end."""
ABORT_S = 5.0
_TELLING = re.compile(r"\berror\b|^(pairsweep|memlat|taskset|seatrial\S*): ")
_OUR_DOING = re.compile(
    r"CANCELLED AT \S+ \*\*\*|_step_signal|Terminated Step|for cpu binding"
)
_NOT_NOW = re.compile(r"node not available")
_PREFLIGHT = r'{"type": ?"preflight".*'
"""What the tests of nodes print: they time nothing."""


@dataclass(frozen=True)
class Ended:
    """How a step ended: its exit status, None if it had to be ended; its lines."""

    status: int | None
    output: tuple[str, ...]
    errors: tuple[str, ...]

    @property
    def reason(self) -> str:
        """Say in one line why it failed: its first error, else its last words."""
        end = "no end in time" if self.status is None else f"exit status {self.status}"
        lines = [line.strip() for line in self.errors]
        said = [line for line in lines if line and not _OUR_DOING.search(line)]
        telling = [line for line in said if _TELLING.search(line)] or said[-1:]
        return f"{end}; {telling[0]}" if telling else end

    @property
    def crash(self) -> StartCrash | None:
        """Return the crash at start of the MPI library, if it ended by one."""
        if self.status in (0, None):
            return None
        return crash_at_start(
            "\n".join(self.errors), "\n".join(self.output), _PREFLIGHT
        )

    def given_up(self) -> "Ended":
        """Return the same with the reason that its MPI library crashed every time."""
        return replace(self, errors=(f"error: {GAVE_UP}", *self.errors))


class Watch(Protocol):
    """Decides while a step runs whether it has to be ended."""

    def begin(self) -> None:
        """Take note that the step begins, or begins again."""

    def overdue(self) -> bool:
        """Tell whether the step has to be ended now."""


class Limit:
    """Ends a step after some seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.begin()

    def begin(self) -> None:
        """Count from now."""
        self._deadline = time.monotonic() + self._seconds

    def overdue(self) -> bool:
        """Tell whether the time is over."""
        return time.monotonic() > self._deadline


class Steps:
    """Starts job steps of this job, with the same number of ranks on every node.

    A step that Slurm could not make is tried again for `patience_s`.
    """

    def __init__(self, launcher: Sequence[str], ppn: int, patience_s: float) -> None:
        self._launcher = launcher
        self._ppn = ppn
        self._patience_s = patience_s
        self._numbers = itertools.count(1)

    def run(
        self,
        nodes: Sequence[str],
        program: Sequence[str],
        watch: Watch,
        echo: bool = False,
    ) -> Ended:
        """Run a program on these nodes until it ends, or until `watch` ends it.

        `echo` copies what it says on standard error at once. If the MPI library
        crashes at start, the program is started again. Raises SeatrialError if srun is
        missing, or the controller stays away.
        """
        patience = Limit(self._patience_s)
        crashes = 0
        while True:
            watch.begin()
            ended = self._run(nodes, program, watch, echo)
            if crash := ended.crash:
                crashes += 1
                step = "preflight" if "--preflight" in program else program[0]
                if record(Path(), step, crashes, crash, "\n".join(ended.errors)):
                    continue
                return ended.given_up()
            not_made = " ".join(filter(NOT_MADE.search, ended.errors))
            if ended.output or not (not_made or ended.status is None):
                return ended
            if not controller_answers():
                wait_for_controller()
                patience.begin()
            elif not not_made or patience.overdue():
                return ended
            elif NOT_OURS.search(not_made):
                return ended  # Slurm has taken a node from the job
            elif len(nodes) > 1 and _NOT_NOW.search(not_made):
                return ended  # which one is for others to find out, and to wait for
            else:
                time.sleep(_PAUSE_S)

    def _run(
        self, nodes: Sequence[str], program: Sequence[str], watch: Watch, echo: bool
    ) -> Ended:
        name = f"seatrial-{next(self._numbers)}"
        process = self._start(name, nodes, program)
        assert process.stdout is not None
        assert process.stderr is not None
        output = _Lines(process.stdout, echo=False)
        errors = _Lines(process.stderr, echo)
        in_time = True
        try:
            while in_time:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_POLL_S)
                    break
                in_time = not watch.overdue()
                if errors.tells_abort.overdue():
                    break  # else srun waits for dead nodes for half a minute
        finally:
            if process.poll() is None:
                end_process(process, is_aborting=errors.tells_abort.overdue())
            if process.returncode != 0:
                cancel_step(name)
        status = process.returncode if in_time else None
        return Ended(status, output.taken(), errors.taken())

    def _start(
        self, name: str, nodes: Sequence[str], program: Sequence[str]
    ) -> subprocess.Popen[str]:
        """Start srun in a process group of its own.

        Steps overlap: an earlier one that does not end on a dead node must not keep
        the processors of the others.
        """
        command = [
            *self._launcher,
            *(f"--job-name={name}", "--overlap", "--kill-on-bad-exit=1"),
            *(f"--nodes={len(nodes)}", f"--ntasks={len(nodes) * self._ppn}"),
            *(f"--ntasks-per-node={self._ppn}", f"--nodelist={','.join(nodes)}"),
            *program,
        ]
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise SeatrialError(f"{command[0]}: {error.strerror}") from None


class _Lines(threading.Thread):
    """Takes the lines of a stream as they come.

    `tells_abort` is overdue some time after srun said that it aborts the step.
    """

    def __init__(self, stream: IO[str], echo: bool) -> None:
        super().__init__(daemon=True)
        self.tells_abort = Limit(math.inf)
        self._stream = stream
        self._echo = echo
        self._lines: list[str] = []
        self.start()

    def run(self) -> None:
        """Read to the end."""
        for line in self._stream:
            self._lines.append(line.rstrip("\n"))
            if ABORT.search(line):
                self.tells_abort = Limit(ABORT_S)
            if self._echo:
                sys.stderr.write(line)
                sys.stderr.flush()

    def taken(self) -> tuple[str, ...]:
        """Give all lines; those of a child that lives on are not waited for."""
        self.join(_END_S)
        return tuple(self._lines)


def controller_answers() -> bool:
    """Tell whether Slurm's controller answers now."""
    return _ask("scontrol", "ping") is not None


def wait_for_controller() -> None:
    """Wait until the controller answers; SeatrialError if it stays away."""
    print("Slurm's controller does not answer; waiting for it", flush=True)
    patience = Limit(_CONTROLLER_S)
    while not controller_answers():
        if patience.overdue():
            raise SeatrialError(
                f"Slurm's controller did not answer for {_CONTROLLER_S / 60:.0f} "
                "minutes; start slurmctld and run again"
            )
        time.sleep(_PAUSE_S)


def host_names(node_list: str) -> list[str]:
    """Give the names of a node list such as `cn[01-04]`; SeatrialError if it has none.

    This asks no controller.
    """
    names = (_ask("scontrol", "show", "hostnames", node_list) or "").split()
    if not names:
        raise SeatrialError(f"`scontrol show hostnames {node_list}` names no node")
    return names


def end_process(process: subprocess.Popen[Any], is_aborting: bool = False) -> None:
    """End srun: let it end its tasks unless it does already, then make sure."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if number == signal.SIGTERM and is_aborting:
            continue
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_END_S)
            return


def cancel_step(name: str) -> None:
    """Let Slurm end what is left of a step whose srun is gone."""
    job = os.environ.get("SLURM_JOB_ID", "")
    listed = _ask("squeue", "--steps", "--noheader", f"--jobs={job}", "--format=%i %j")
    for line in (listed or "").splitlines():
        step, _, found = line.strip().partition(" ")
        if found == name:
            _ask("scancel", step)


def _ask(*command: str) -> str | None:
    """Give what a command of Slurm prints; None if it fails or does not answer."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_ASK_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout
