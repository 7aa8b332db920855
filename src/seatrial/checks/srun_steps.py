"""A job step: started by srun on chosen nodes, and ended by a time limit."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from seatrial.checks.job_control import Limit
from seatrial.errors import SeatrialError
from seatrial.parsers.mpi_start import StartCrash, crash_at_start

_LOOK_S = 2.0
_END_S = 10.0
_ABORT_S = 5.0
NOT_OURS = re.compile(r"node configuration is not available|[Ii]nvalid node")
"""Message of srun after Slurm has removed a node from the job."""
_ABORT = re.compile(r"Job step aborted: Waiting")
"""Message of srun when it ends a step; it hangs then if a node is dead."""
_ERROR = re.compile(r"\berror\b|^(pairsweep\w*|memlat|taskset|seatrial\S*): ")
_OUR_DOING = re.compile(
    r"CANCELLED AT \S+ \*\*\*|_step_signal|Terminated Step|for cpu binding"
)
_PREFLIGHT = r'{"type": ?"preflight".*'
"""Lines that the tests of nodes print; no timed loop runs in them."""


@dataclass(frozen=True)
class Ended:
    """End of a step: exit status, None if it was killed, and its lines."""

    status: int | None
    output: tuple[str, ...]
    errors: tuple[str, ...]

    @property
    def reason(self) -> str:
        """Return one line with the cause: the first error, else the last line."""
        end = "no end in time" if self.status is None else f"exit status {self.status}"
        stripped = filter(None, map(str.strip, self.errors))
        lines = [line for line in stripped if not _OUR_DOING.search(line)]
        errors = [line for line in lines if _ERROR.search(line)] or lines[-1:]
        return f"{end}; {errors[0]}" if errors else end


@dataclass(eq=False)
class Step:
    """A step of this job: a program with `ranks` ranks on each of its nodes.

    `folder` receives its output as `out` and `err`; `echo` copies standard error at
    once. `watch` ends the step. `name` is for the record of its crashes, `options` are
    those of srun; with `is_told` the program reads standard input.
    """

    nodes: Sequence[str]
    program: Sequence[str]
    folder: Path
    watch: Limit
    _: KW_ONLY
    name: str
    ranks: int = 1
    options: Sequence[str] = ()
    is_told: bool = False
    echo: bool = False

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.crashes = 0
        self.patience = Limit(0)
        self.start_time = self.elapsed_s = 0.0
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, job_name: str, command: Sequence[str]) -> None:
        """Start srun in a process group of its own; SeatrialError if it is missing."""
        self.job_name = job_name
        self._echoed = 0
        self.is_late = self.is_aborting = False
        self._signals = [signal.SIGTERM, signal.SIGKILL]
        self._look, self._grace = Limit(_LOOK_S), Limit(0)
        with (
            (self.folder / "out").open("wb") as output,
            (self.folder / "err").open("wb") as errors,
        ):
            try:
                self.process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE if self.is_told else subprocess.DEVNULL,
                    stdout=output,
                    stderr=errors,
                    start_new_session=True,
                )
            except OSError as error:
                raise SeatrialError(f"{command[0]}: {error.strerror}") from None
        self.start_time = time.time()
        self.watch.begin()

    def tell(self, line: str | None) -> None:
        """Send a line to all tasks; None ends their input. They may be gone already."""
        if self.process is None or self.process.stdin is None:
            return
        with suppress(OSError, ValueError):
            if line is None:
                self.process.stdin.close()
            else:
                self.process.stdin.write(line.encode() + b"\n")
                self.process.stdin.flush()

    def output(self) -> str:
        """Return the standard output of the program until now."""
        return _read(self.folder / "out")

    def errors(self) -> str:
        """Return standard error, of srun too."""
        return _read(self.folder / "err")

    def crash(self, ended: Ended) -> StartCrash | None:
        """Return the crash at start of the MPI library, if the step ended by one."""
        if ended.status in (0, None):
            return None
        return crash_at_start(self.errors(), self.output(), _PREFLIGHT)

    def is_running(self) -> bool:
        """Return True while srun runs."""
        return self.process is not None and self.process.poll() is None

    def has_ended(self) -> bool:
        """Return True if it has ended; end it, without waiting, if it is overdue."""
        assert self.process is not None
        running = self.process.poll() is None
        if self.echo:
            text = self.errors()
            sys.stderr.write(text[self._echoed :])
            sys.stderr.flush()
            self._echoed = len(text)
        if running and not self._is_given_up():
            return False
        self.elapsed_s = time.time() - self.start_time
        return True

    def may_leave_tasks(self) -> bool:
        """Return True if srun ended with an error: tasks may run on without it."""
        return self.process is not None and self.process.returncode != 0

    def _is_given_up(self) -> bool:
        """End an overdue step by signals; return True if srun outlives them all.

        On a dead node srun waits half a minute for the end of a step that it aborts:
        then it is killed.
        """
        if self.is_late or self.is_aborting:
            if not self._grace.overdue():
                return False
        elif self.watch.overdue():
            self.is_late = True
        else:
            if self._look.overdue():
                self._look = Limit(_LOOK_S)
                if _ABORT.search(self.errors()):
                    self.is_aborting, self._grace = True, Limit(_ABORT_S)
                    self._signals = [signal.SIGKILL]  # it ends its tasks already
            return False
        if not self._signals:
            return True
        assert self.process is not None
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, self._signals.pop(0))
        self._grace = Limit(_END_S)
        return False

    def is_taken(self) -> bool:
        """Return True if Slurm has removed a node of the step from the job."""
        return bool(NOT_OURS.search(self.errors()))

    def ended(self) -> Ended:
        """Return the end of the step; one that srun aborted ended by itself."""
        assert self.process is not None
        status = None if self.is_late else self.process.returncode
        output, errors = self.output().splitlines(), self.errors().splitlines()
        return Ended(status, tuple(output), tuple(errors))


def _read(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""
