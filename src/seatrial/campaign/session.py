"""One ReFrame session as a subprocess: started, watched, and stopped if need be."""

import ctypes
import json
import os
import queue
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import yaml

from seatrial.campaign.job_watch import LostJobError, Watch
from seatrial.campaign.node_log import NodeLog
from seatrial.campaign.node_watch import NodesLostError, NodeWatch
from seatrial.campaign.schedule import Planned
from seatrial.checks.listing import reframe_command, reframe_environment
from seatrial.errors import SeatrialError
from seatrial.interrupts import postponed
from seatrial.model.cases import ListedCase
from seatrial.progress import Display
from seatrial.runs.open_run import probe_space
from seatrial.system import slurm
from seatrial.system.description import System

_STOP_S = 20.0
_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
LINE = re.compile(
    r"\[ +(?P<status>RUN|OK|FAIL|SKIP|XFAIL|XPASS|ABORT|ERROR) +\] "
    r"(?:\( *\d+/\d+\) )?(?P<case>.+?) /(?P<hash>[0-9a-f]{8}) (?P<place>@\S+)"
    r"(?: \[(?P<reason>.*)\])?"
)
"""A line of ReFrame on one of its cases."""
_DEBUG_LOG = re.compile(r"^Log file\(s\) saved in '(.*/rfm-\w+\.log)'$", re.MULTILINE)


@dataclass(frozen=True)
class Session:
    """A planned session on its way: where it writes, and under which conditions.

    `replay` is the folder of the recordings that are to stand in for the programs.
    `inherited` is a file descriptor that ReFrame keeps open as long as it lives.
    Where nodes are lost a session goes on in another `part`, of one partition and
    environment: `tries` counts by case how often it ended in those before. Unless it
    `may_cut` the session, a job waits for lost nodes.
    """

    run_id: str
    planned: Planned
    raw: Path
    work: Path
    num_nodes: int | None = None
    retries: int = 0
    max_jobs: int = 1
    replay: Path | None = None
    inherited: int | None = None
    part: int = 1
    tries: Mapping[str, int] = field(default_factory=dict)
    may_cut: bool = True

    @property
    def name(self) -> str:
        """Its name within the run, for example pairs-2."""
        return self.planned.name

    @property
    def comment(self) -> str:
        """The comment of its jobs."""
        return f"{comment_of(self.run_id)}{self.name}"

    @property
    def report(self) -> Path:
        """The file of ReFrame's own report."""
        part = f"-{self.part}" if self.part > 1 else ""
        return self.raw / f"report{part}.json"


def comment_of(run_id: str) -> str:
    """Give how the comments of all jobs of a run begin."""
    return f"seatrial:{run_id}:"


@dataclass
class Outcome:
    """What is known only while it runs: why cases are skipped, why jobs wait.

    `skipped` is by text of the case, `pending` by job id. `blocked` says by job id
    which lost nodes a job waits for. If that ended ReFrame, `cut` says so.
    """

    started: float
    ended: float = 0.0
    skipped: dict[str, str] = field(default_factory=dict)
    pending: dict[str, str] = field(default_factory=dict)
    blocked: dict[str, str] = field(default_factory=dict)
    cut: str = ""


def session_command(session: Session, system: System, checks: Path) -> list[str]:
    """Give the ReFrame command of a session; anyone can run it by hand."""
    settings = system.settings
    policy = "serial"
    most = session.max_jobs // len(system.partitions)
    if most > 1:
        policy = "async"
        settings = _limited(system.settings, session.work, most)
    name, chosen = system.name, []
    if session.part > 1:
        first = session.planned.cases[0]
        name, chosen = first.partition, ["-p", f"^{re.escape(first.environment)}$"]
    command = [
        *reframe_command(settings, name, checks),
        *chosen,
        "-n",
        f"^({'|'.join(dict.fromkeys(map(_pattern, session.planned.cases)))})$",
        "-r",
        f"--exec-policy={policy}",
        f"--max-retries={session.retries}",
        "--keep-stage-files",
        f"--prefix={session.work}",
        f"--perflogdir={session.raw / 'perflogs'}",
        f"--report-file={session.report}",
    ]
    if system.uses_slurm:
        command += ["-J", f"comment={session.comment}"]
    if session.num_nodes is not None:
        command += ["-S", f"num_nodes={session.num_nodes}"]
    if session.replay is not None:
        command += ["-S", f"replay={session.replay}"]
        command += ["-S", f"replay_session={session.name}"]
    for name, value in session.planned.variables.items():
        command += ["-S", f"{name}={value}"]
    return command


def _pattern(case: ListedCase) -> str:
    """Match a check with its parameters alone; an @ means something else to ReFrame."""
    return re.escape(case.case.replace(" ", "")).replace("@", ".")


def _limited(settings: Path, work: Path, max_jobs: int) -> Path:
    """Write settings with another limit of jobs in the queue, for every partition."""
    content = yaml.safe_load(settings.read_text(encoding="utf-8"))
    for partition in content["systems"][0]["partitions"]:
        partition["max_jobs"] = max_jobs
    work.mkdir(parents=True, exist_ok=True)
    limited = work / "settings.json"
    limited.write_text(json.dumps(content), encoding="utf-8")
    return limited


def run_session(
    session: Session,
    system: System,
    checks: Path,
    home: Path,
    display: Display,
    nodes: NodeLog,
) -> Outcome:
    """Run a session to its end and follow its progress; `nodes` notes lost nodes.

    A job that waits for lost nodes ends it: then the outcome is `cut`. Raises
    SeatrialError if ReFrame ends without a report, if the disk is full, or as
    `Watch` does, which looks after the session's jobs. On any exception,
    Ctrl-C included, ReFrame is stopped and the session's jobs are cancelled.
    """
    session.raw.mkdir(parents=True, exist_ok=session.part > 1)
    log = session.raw / "reframe.txt"
    outcome = Outcome(time.time())
    process = None
    try:
        with postponed():
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
                pass_fds=() if session.inherited is None else (session.inherited,),
                preexec_fn=_end_with_driver,
            )
        with log.open("a", buffering=1, encoding="utf-8") as copy:
            watch = None
            if system.uses_slurm:
                watch = Watch(
                    *(session.comment, outcome.started, outcome.pending, display),
                    all_jobs=system.only_slurm,
                    nodes=NodeWatch(
                        *(session.comment, nodes, outcome.blocked, display),
                        may_stop=session.may_cut,
                    ),
                )
            _follow(process, copy, outcome, display, watch)
    except BaseException:
        if process is not None:
            _stop(process)
        if system.uses_slurm:
            slurm.cancel(comment_of(session.run_id))
        raise
    outcome.ended = time.time()
    probe_space(session.raw)
    if outcome.cut:
        slurm.cancel(session.comment)
        if not session.report.is_file():
            raise LostJobError(f"{outcome.cut}; ReFrame did not end in time")
    if not session.report.is_file():
        text = log.read_text(encoding="utf-8")
        tail = "\n  ".join(text.strip().splitlines()[-10:])
        raise SeatrialError(
            f"ReFrame ended without a report in session {session.name}; expected "
            f"{session.report}; its last words:\n  {tail}"
        )
    _remove_debug_log(log)
    return outcome


def _end_with_driver() -> None:
    """Let the kernel end ReFrame, which then cancels its jobs, when its driver dies."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _follow(
    process: subprocess.Popen[str],
    copy: IO[str],
    outcome: Outcome,
    display: Display,
    watch: Watch | None,
) -> None:
    """Read ReFrame's output to its end; while it is silent, look at Slurm.

    ReFrame is stopped if a job waits for lost nodes; what it says then is read, too.
    """
    assert process.stdout is not None
    lines: queue.Queue[str | None] = queue.Queue()
    reader = threading.Thread(target=_read, args=(process.stdout, lines), daemon=True)
    reader.start()
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


def _read(stream: IO[str], lines: "queue.Queue[str | None]") -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def _show(line: str, outcome: Outcome, display: Display) -> None:
    match = LINE.match(line)
    if match is None:
        return
    case = f"{match['case']} {match['place']}"
    if match["status"] == "RUN":
        display.start(case)
        return
    if match["reason"]:
        outcome.skipped[case] = match["reason"]
    display.finish(case, match["status"])


def _remove_debug_log(log: Path) -> None:
    """Remove the debug log that ReFrame leaves in the folder of temporary files."""
    text = log.read_text(encoding="utf-8", errors="replace")
    for name in _DEBUG_LOG.findall(text)[-1:]:
        file = Path(name)
        if file.parent == Path(tempfile.gettempdir()) and not file.is_symlink():
            with suppress(OSError):
                file.unlink()


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
