"""One ReFrame session as a subprocess: started, watched, and stopped if need be."""

import os
import queue
import re
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from seatrial import slurm
from seatrial.campaign import Block
from seatrial.errors import SeatrialError
from seatrial.listing import ListedCase, reframe_command, reframe_environment
from seatrial.progress import Display
from seatrial.runfolder import probe_space
from seatrial.system import System

CONTROLLER_LIMIT_S = 1800.0
"""How long a run waits for a controller that does not answer."""

_FIRST_LOOK_S = 2.0
_NEXT_LOOK_S = 10.0
_STOP_S = 20.0
_LINE = re.compile(
    r"\[ +(?P<status>RUN|OK|FAIL|SKIP|XFAIL|XPASS|ABORT|ERROR) +\] "
    r"(?:\( *\d+/\d+\) )?(?P<case>.+?) /[0-9a-f]{8} (?P<place>@\S+)"
    r"(?: \[(?P<reason>.*)\])?"
)


@dataclass(frozen=True)
class Session:
    """A block in one repeat: what ReFrame is asked to run, and where it writes.

    `replay` is the folder of the recordings that are to stand in for the programs.
    """

    run_id: str
    block: Block
    repeat: int
    cases: tuple[ListedCase, ...]
    raw: Path
    work: Path
    num_nodes: int | None = None
    replay: Path | None = None

    @property
    def name(self) -> str:
        """Its name within the run, for example pairs-2."""
        return f"{self.block.name}-{self.repeat}"

    @property
    def report(self) -> Path:
        """The file of ReFrame's own report."""
        return self.raw / "report.json"


@dataclass
class Outcome:
    """What is known only while it runs: why cases are skipped, why jobs wait.

    `skipped` is by text of the case, `pending` by job id.
    """

    started: float
    ended: float = 0.0
    skipped: dict[str, str] = field(default_factory=dict)
    pending: dict[str, str] = field(default_factory=dict)


def session_command(session: Session, system: System, checks: Path) -> list[str]:
    """Give the ReFrame command of a session; anyone can run it by hand."""
    names = "|".join(session.block.checks)
    command = [
        *reframe_command(system.settings, system.name, checks),
        "-n",
        f"^({names})(%|$)",
        "-r",
        "--exec-policy=serial",
        "--keep-stage-files",
        f"--prefix={session.work}",
        f"--perflogdir={session.raw / 'perflogs'}",
        f"--report-file={session.report}",
    ]
    if system.uses_slurm:
        command += ["-J", f"comment=seatrial:{session.run_id}:{session.name}"]
    if session.num_nodes is not None:
        command += ["-S", f"num_nodes={session.num_nodes}"]
    if session.replay is not None:
        command += ["-S", f"replay={session.replay}"]
        command += ["-S", f"replay_session={session.name}"]
    for name, value in session.block.variables.items():
        command += ["-S", f"{name}={value}"]
    return command


def run_session(
    session: Session, system: System, checks: Path, home: Path, display: Display
) -> Outcome:
    """Run a session to its end and follow its progress.

    Raises SeatrialError if ReFrame ends without a report, if the disk is full, or if
    Slurm's controller does not answer for `CONTROLLER_LIMIT_S`. On any exception,
    Ctrl-C included, ReFrame is stopped and the session's jobs are cancelled.
    """
    session.raw.mkdir(parents=True)
    log = session.raw / "reframe.txt"
    outcome = Outcome(time.time())
    process = subprocess.Popen(
        session_command(session, system, checks),
        cwd=session.raw,
        env=reframe_environment(home, system.name),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        with log.open("w", encoding="utf-8") as copy:
            watch = Watch(session, outcome, display) if system.uses_slurm else None
            _follow(process, copy, outcome, display, watch)
    except BaseException:
        _stop(process)
        if system.uses_slurm:
            slurm.cancel(f"seatrial:{session.run_id}:")
        raise
    outcome.ended = time.time()
    probe_space(session.raw)
    if not session.report.is_file():
        text = log.read_text(encoding="utf-8")
        tail = "\n  ".join(text.strip().splitlines()[-10:])
        raise SeatrialError(
            f"ReFrame ended without a report in session {session.name}; expected "
            f"{session.report}; its last words:\n  {tail}"
        )
    return outcome


def _follow(
    process: subprocess.Popen[str],
    copy: IO[str],
    outcome: Outcome,
    display: Display,
    watch: "Watch | None",
) -> None:
    """Read ReFrame's output to its end; while it is silent, look at Slurm."""
    assert process.stdout is not None
    lines: queue.Queue[str | None] = queue.Queue()
    reader = threading.Thread(target=_read, args=(process.stdout, lines), daemon=True)
    reader.start()
    while True:
        try:
            line = lines.get(timeout=1.0)
        except queue.Empty:
            if watch is not None:
                watch.silent()
            continue
        if line is None:
            break
        copy.write(line)
        _show(line.rstrip("\n"), outcome, display)
    process.wait()


def _read(stream: IO[str], lines: "queue.Queue[str | None]") -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def _show(line: str, outcome: Outcome, display: Display) -> None:
    match = _LINE.match(line)
    if match is None:
        return
    case = f"{match['case']} {match['place']}"
    if match["status"] == "RUN":
        display.start(case)
        return
    if match["reason"]:
        outcome.skipped[case] = match["reason"]
    display.finish(case, match["status"])


class Watch:
    """Looks at Slurm now and then: why our jobs wait, and whether it answers."""

    def __init__(self, session: Session, outcome: Outcome, display: Display) -> None:
        self._comment = f"seatrial:{session.run_id}:{session.name}"
        self._pending = outcome.pending
        self._display = display
        self._next = time.monotonic() + _FIRST_LOOK_S
        self._missing_since: float | None = None

    def silent(self) -> None:
        """Take note; raise SeatrialError after `CONTROLLER_LIMIT_S` without answer."""
        now = time.monotonic()
        if now < self._next:
            return
        reasons = slurm.pending_reasons(self._comment)
        self._next = time.monotonic() + _NEXT_LOOK_S
        if reasons is None:
            self._missing(now)
            return
        if self._missing_since is not None:
            self._display.warn("Slurm's controller answers again; the run goes on")
        self._missing_since = None
        self._pending.update(reasons)
        for job_id, reason in reasons.items():
            self._display.note(f"job {job_id} waits: {reason}")

    def _missing(self, now: float) -> None:
        minutes = f"{CONTROLLER_LIMIT_S / 60:.0f} minutes"
        if self._missing_since is None:
            self._missing_since = now
            self._display.warn(
                "Slurm's controller does not answer; waiting for slurmctld, up to "
                + minutes
            )
        if now - self._missing_since > CONTROLLER_LIMIT_S:
            raise SeatrialError(
                f"Slurm's controller did not answer for {minutes}; start slurmctld "
                "and run again"
            )


def _stop(process: subprocess.Popen[str]) -> None:
    """Let ReFrame cancel its jobs, then make sure that it is gone."""
    for number in (signal.SIGINT, signal.SIGKILL):
        if process.poll() is not None:
            return
        os.killpg(process.pid, number)
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            continue
