"""The process of a ReFrame session: start, watch, stop."""

import ctypes
import os
import queue
import re
import signal
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

from seatrial.campaign.job_watch import LostJobError, NodesLostError, NodeWatch, Watch
from seatrial.campaign.node_log import NodeLog, Wait
from seatrial.campaign.session_command import (
    Session,
    comment_of,
    session_command,
    session_environment,
)
from seatrial.errors import SeatrialError
from seatrial.interrupts import postponed
from seatrial.progress import Display
from seatrial.runs.open_run import probe_space
from seatrial.system import slurm

_STOP_S = 20.0
_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
LINE = re.compile(
    r"\[ +(?P<status>RUN|OK|FAIL|SKIP|XFAIL|XPASS|ABORT|ERROR) +\] "
    r"(?:\( *\d+/\d+\) )?(?P<case>.+?) /(?P<hash>[0-9a-f]{8}) (?P<place>@\S+)"
    r"(?: \[(?P<reason>.*)\])?"
)
"""A line of ReFrame about one of its cases."""
_RETRY = re.compile(r"\[=+\] Retrying \d+ failed check")
_DEBUG_LOG = re.compile(r"^Log file\(s\) saved in '(.*/rfm-\w+\.log)'$", re.MULTILINE)


@dataclass
class Outcome:
    """Facts that exist only while a session runs: reasons of skipped and waiting cases.

    `skipped` is by text of the case, `pending` by job id. `failed` cases may be tried
    again. `blocked`: the wait of a job for lost nodes, by job id; `cut`: the same if it
    ended the session.
    """

    started: float
    ended: float = 0.0
    skipped: dict[str, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    pending: dict[str, str] = field(default_factory=dict)
    blocked: dict[str, Wait] = field(default_factory=dict)
    cut: str = ""


def run_session(session: Session, display: Display, nodes: NodeLog) -> Outcome:
    """Run a session to its end and follow its progress; `nodes` notes lost nodes.

    A job that waits for lost nodes ends it: then the outcome is `cut`. Raises
    SeatrialError if ReFrame ends without a report, if the disk is full, or as `Watch`
    does for the session's jobs. On any exception, Ctrl-C included, ReFrame is stopped
    and the session's jobs are cancelled.
    """
    session.raw.mkdir(parents=True, exist_ok=True)
    log = session.raw / "reframe.txt"
    outcome = Outcome(time.time())
    process = None
    try:
        with postponed():
            process = _start(session)
        with log.open("a", buffering=1, encoding="utf-8") as copy:
            watch = _watch(session, outcome, display, nodes)
            _follow(process, copy, outcome, display, watch)
    except BaseException:
        if process is not None:
            _stop(process)
        if session.system.uses_slurm:
            slurm.cancel(comment_of(session.run_id))
        raise
    outcome.ended = time.time()
    probe_space(session.raw)
    if outcome.cut:
        slurm.cancel(session.comment)
        if not session.report.is_file():
            raise LostJobError(f"{outcome.cut}; ReFrame did not end in time")
    text = log.read_text(encoding="utf-8", errors="replace")
    if not session.report.is_file():
        tail = "\n  ".join(text.strip().splitlines()[-10:])
        raise SeatrialError(
            f"ReFrame ended without a report in session {session.name}; expected "
            f"{session.report}; its last lines:\n  {tail}"
        )
    _remove_debug_log(text)
    return outcome


def _start(session: Session) -> subprocess.Popen[str]:
    return subprocess.Popen(
        session_command(session),
        cwd=session.raw,
        env=session_environment(session),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        pass_fds=() if session.inherited is None else (session.inherited,),
        # SIGTERM at the driver's death: ReFrame then cancels its jobs.
        preexec_fn=partial(_LIBC.prctl, _PR_SET_PDEATHSIG, signal.SIGTERM),
    )


def _watch(
    session: Session, outcome: Outcome, display: Display, log: NodeLog
) -> Watch | None:
    system, comment = session.system, session.comment
    if not system.uses_slurm:
        return None
    nodes = NodeWatch(comment, log, outcome.blocked, display)
    started, pending = outcome.started, outcome.pending
    return Watch(comment, started, pending, display, system.only_slurm, nodes)


def _follow(
    process: subprocess.Popen[str],
    copy: IO[str],
    outcome: Outcome,
    display: Display,
    watch: Watch | None,
) -> None:
    """Read ReFrame's output to its end; look at Slurm while ReFrame is silent.

    ReFrame is stopped if a job waits for lost nodes; its last output is read, too.
    """
    lines: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        for line in process.stdout or ():
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=1.0)
        except queue.Empty:
            if watch is not None:
                try:
                    watch.silent()
                except NodesLostError as loss:
                    outcome.cut, watch = str(loss), None
                    _stop(process)
            continue
        if line is None:
            break
        if watch is not None:
            watch.heard()
        copy.write(line)
        _show(line.rstrip("\n"), outcome, display)
    process.wait()


def _show(line: str, outcome: Outcome, display: Display) -> None:
    match = LINE.match(line)
    if match is None:
        if _RETRY.match(line):
            display.try_again(outcome.failed)
            outcome.failed = []
        return
    case = f"{match['case']} {match['place']}"
    if match["status"] == "RUN":
        display.start(case)
        return
    if match["reason"]:
        outcome.skipped[case] = match["reason"]
    if display.finish(case, match["status"]):
        outcome.failed.append(case)


def _remove_debug_log(text: str) -> None:
    """Remove ReFrame's debug log from the folder of temporary files."""
    for name in _DEBUG_LOG.findall(text)[-1:]:
        file = Path(name)
        if file.parent == Path(tempfile.gettempdir()) and not file.is_symlink():
            with suppress(OSError):
                file.unlink()


def _stop(process: subprocess.Popen[str]) -> None:
    """Interrupt ReFrame so that it cancels its jobs; kill it if it does not end."""
    for number in (signal.SIGINT, signal.SIGKILL):
        if process.poll() is not None:
            return
        os.killpg(process.pid, number)
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            continue
