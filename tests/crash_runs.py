"""A short campaign whose driver can be killed, filled up or stopped at any moment.

Each driver is a child of its own, forked from a server which has imported everything
and started no thread. A shell script stands in for ReFrame, a folder for Slurm's
queue: a file is a job, its content the comment. All else is the real thing.
"""

import dataclasses
import errno
import json
import multiprocessing
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from rich.console import Console

from seatrial.campaign import concurrent_runs, runner, selected_cases, session
from seatrial.campaign.campaign_file import Block, Campaign
from seatrial.campaign.session_command import Session
from seatrial.commands import _running
from seatrial.errors import SeatrialError
from seatrial.model.cases import ListedCase
from seatrial.runs import ledger, lock
from seatrial.runs.open_run import RunFolder
from seatrial.system import slurm
from seatrial.system.description import System, load_system

RUN = "r1"
CAMPAIGN = Campaign(
    name="short",
    description="",
    repeats=1,
    blocks=(Block("a", ("Echo", "Flaky")), Block("b", ("Broken",))),
    retries=1,
)
LISTED = tuple(
    ListedCase(check, "lab:batch", "openmpi") for check in ("Echo", "Flaky", "Broken")
)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_HALF_WRITTEN = "crash_runs.half_written"
_REMOVES = ("os.remove", "os.rmdir")
_CHANGES = ("os.rename", "os.mkdir", *_REMOVES)


@dataclass(frozen=True)
class Scene:
    """Where the drivers of one run work: home of the suite, results, Slurm's queue.

    The run has two sessions in each of its `repeats`.
    """

    home: Path
    results: Path
    queue: Path
    repeats: int = 1

    @property
    def folder(self) -> RunFolder:
        """The folder of the run."""
        return RunFolder(self.results, "lab", RUN)

    @property
    def errors(self) -> Path:
        """The file of the error of the last driver."""
        return self.queue.with_name("errors.txt")

    @property
    def steps(self) -> Path:
        """The file with a line for each step of the last driver."""
        return self.queue.with_name("steps.txt")


@dataclass(frozen=True)
class Fault:
    """A fault that hits a driver right before its step of that number, counted from 1.

    A step is a change of the file system below the results, the second half of a
    write, or the start of ReFrame.
    `kill`: kill -9. `full`: no space left, from then on. `pause`: it stops, until it
    gets SIGCONT.
    """

    kind: str
    step: int


@dataclass(frozen=True)
class Start:
    """The way to start a driver.

    `stubborn`: its ReFrame ignores that it is told to end. `case_s`: how long a case
    takes. `clock_back`: seconds by which the clock goes back after two sessions.
    """

    fault: Fault | None = None
    stubborn: bool = False
    case_s: float = 0.005
    clock_back: float = 0.0


_only_one = threading.Lock()
"""Starting a process asks after all others: it must not take their status away."""

_server = multiprocessing.get_context("forkserver")
_server.set_forkserver_preload(["seatrial.commands._running", "polars", "pytest"])


def start(scene: Scene, how: Start = Start()) -> ForkServerProcess:
    """Start a driver: it resumes the run if there is one, else begins it."""
    scene.errors.unlink(missing_ok=True)
    process = _server.Process(target=_drive, args=(scene, how), daemon=True)
    with _only_one:
        process.start()
    return process


def finish(scene: Scene, how: Start = Start()) -> tuple[int, str]:
    """Start a driver and wait for its end; its exit status and its error."""
    process = start(scene, how)
    return ended(process), error_of(scene)


def ended(process: ForkServerProcess) -> int:
    """Wait for the end of a driver; its exit status, negative for a signal."""
    deadline = time.monotonic() + 60
    while alive(process):
        assert time.monotonic() < deadline, "the driver hangs"
        time.sleep(0.002)
    assert process.exitcode is not None
    return process.exitcode


def alive(process: ForkServerProcess) -> bool:
    """Return True while a driver runs."""
    with _only_one:
        return process.is_alive()


def error_of(scene: Scene) -> str:
    """The error of the last driver, if there was one."""
    return scene.errors.read_text() if scene.errors.is_file() else ""


def _drive(scene: Scene, how: Start) -> None:
    """Be a driver: what `seatrial run` does, without its command line."""
    console = Console(file=scene.queue.with_name("console.txt").open("a"))
    system = dataclasses.replace(load_system(scene.home, "lab"), uses_slurm=True)
    _stand_in(scene, how, system, console)
    _arm(scene, how.fault)
    try:
        if scene.folder.final.is_dir() or scene.folder.path.is_dir():
            request = _running.Request(
                scene.home, scene.results, "lab", RUN, judge=False
            )
            _running.resumed_run(request)
        else:
            campaign = dataclasses.replace(CAMPAIGN, repeats=scene.repeats)
            order = runner.Order(scene.home, scene.results, system, campaign, RUN)
            runner.run_campaign(order, console)
    except SeatrialError as error:
        scene.errors.write_text(str(error))
        sys.exit(int(error.exit_code))
    except OSError as error:  # as the command line takes it
        scene.errors.write_text(str(error.strerror))
        sys.exit(2 if error.errno == errno.ENOSPC else 1)
    except KeyboardInterrupt:
        sys.exit(130)


def _stand_in(scene: Scene, how: Start, system: System, console: Console) -> None:
    """Replace ReFrame, Slurm and, if asked for, the clock."""
    states = dict.fromkeys(("cn01", "cn02"), (True, ""))
    replaced: list[tuple[Any, str, Any]] = [
        (_running, "load_system", lambda *_: system),
        (_running, "Terminal", lambda: console),
        (selected_cases, "list_cases", lambda *_: LISTED),
        (session, "session_command", lambda each, *_: _reframe(each, scene, how)),
        (slurm, "node_states", lambda: states),
        (slurm, "jobs", lambda comment, user: _jobs(scene, comment)),
        (slurm, "job_end", lambda job_id: None),
        (slurm, "_run", lambda *command: _slurm(scene, *command)),
        (slurm, "_LOOK_S", 0.01),
        (Path, "open", _open),
        (ledger, "_write", _write_halves),
        (runner, "try_folder", lambda folder: None),
        (concurrent_runs, "_PATIENCE_S", 0.05),
        (concurrent_runs, "_LOOK_S", 0.01),
        (lock, "_LOOK_S", 0.01),
        (lock, "_GRACE_S", 0.05),
    ]
    if how.clock_back:
        replaced.append((time, "time", _clock(scene, how.clock_back)))
    for module, name, value in replaced:
        assert hasattr(module, name)
        setattr(module, name, value)


def _jobs(scene: Scene, comment: str) -> list[slurm.Job]:
    return [
        slurm.Job(file.name, "RUNNING", text, "cn01", "None", "")
        for file in sorted(scene.queue.iterdir())
        if (text := file.read_text()).startswith(comment)
    ]


def _slurm(scene: Scene, program: str, *jobs: str) -> subprocess.CompletedProcess[str]:
    """Stand in for the programs of Slurm: scancel alone is installed."""
    if program != "scancel":
        raise FileNotFoundError(program)
    for job in jobs:
        (scene.queue / job).unlink(missing_ok=True)
    return subprocess.CompletedProcess((program, *jobs), 0, "", "")


_path_open = Path.open


def _open(path: Path, mode: str = "r", *arguments: Any, **more: Any) -> Any:
    """Open a file; bytes are written to it in two halves, with a step between them."""
    file = _path_open(path, mode, *arguments, **more)
    if mode == "xb":
        write = file.write

        def write_halves(content: bytes) -> int:
            middle = len(content) // 2
            write(content[:middle])
            file.flush()
            sys.audit(_HALF_WRITTEN, str(path))
            return middle + write(content[middle:])

        # To mypy a method is not to be replaced; here it is the point.
        file.write = write_halves  # type: ignore[assignment,method-assign]
    return file


def _write_halves(descriptor: int, data: bytes) -> None:
    """Write to the ledger in two halves, with a step between them."""
    middle = len(data) // 2
    os.write(descriptor, data[:middle])
    file = str(Path(f"/proc/self/fd/{descriptor}").readlink())
    sys.audit(_HALF_WRITTEN, file)
    os.write(descriptor, data[middle:])


def _clock(scene: Scene, back: float) -> Callable[[], float]:
    """Build a clock that has gone back once two sessions are closed."""
    right = time.time
    sessions = scene.folder.path / "sessions"
    return lambda: right() - (back if len([*sessions.glob("*.json")]) >= 2 else 0)


def _reframe(each: Session, scene: Scene, how: Start) -> list[str]:
    """Return a script that acts like ReFrame and leaves the same files."""
    lines = [f"trap '' PIPE {'TERM' if how.stubborn else ''}"]
    runs: list[dict[str, Any]] = []
    cases = list(each.planned.cases)
    for attempt in (1, 2):
        tried = [(case, _case(each, case, attempt)) for case in cases]
        runs.append({"testcases": [entry for _, entry in tried]})
        for case, entry in tried:
            lines += _job(each, scene, case, entry, how.case_s)
        cases = [case for case, entry in tried if entry["result"] == "fail"]
    lines.append(_file(each.report, json.dumps({"runs": runs})))
    return ["/bin/sh", "-c", "\n".join(lines)]


def _case(each: Session, case: ListedCase, attempt: int) -> dict[str, Any]:
    """Return ReFrame's entry of a case; `Flaky` passes at its second try."""
    failed = case.check == "Broken" or (case.check == "Flaky" and attempt == 1)
    retry = f"_retry{attempt - 1}" if attempt > 1 else ""
    stage = each.work / "stage" / "lab" / "batch" / case.environment
    return {
        "display_name": case.case,
        **{"system": "lab", "partition": "batch", "environ": case.environment},
        **{"stagedir": f"{stage}/{case.check}{retry}", "keep_files": []},
        **{"job_stdout": "rfm_job.out", "job_stderr": "rfm_job.err"},
        "jobid": f"{each.name}.{case.check}.{case.environment}.{attempt}",
        **{"job_nodelist": ["cn01"], "job_submit_time": 1.0, "time_total": 2.0},
        "result": "fail" if failed else "pass",
        "fail_phase": "sanity" if failed else None,
        "fail_reason": "no rows" if failed else None,
        "perfvalues": {},
    }


def _job(
    each: Session,
    scene: Scene,
    case: ListedCase,
    entry: dict[str, Any],
    seconds: float,
) -> Iterator[str]:
    """The lines that submit a job, let it run, and say what became of it."""
    stage = Path(entry["stagedir"])
    job = scene.queue / f"{entry['jobid']}.{os.getpid()}"  # of this driver alone
    value = 1 + zlib.crc32(entry["jobid"].encode()) % 1000 / 8
    sample = {"metric": "latency", "value": value, "size_bytes": 8, "node": "cn01"}
    told = {"parameters": {"x": 1}, "nodes": ["cn01"], "samples": [sample]}
    what = f"{case.case} /{zlib.crc32(b'x'):08x} @{case.partition}+{case.environment}"
    yield f"echo '[ RUN      ] {what}'"
    yield f"mkdir -p {stage}"
    submitted = scene.queue.with_name(f"{job.name}.submitted")
    yield _file(submitted, each.comment)
    yield f"mv {submitted} {job}"  # a job has its comment from the start
    yield f"sleep {seconds}"
    yield _file(stage / "rfm_job.out", f"latency {value}\n" * 100)
    yield _file(stage / "seatrial.json", json.dumps(told))
    yield f"rm -f {job}"
    yield f"echo '[ {'OK' if entry['result'] == 'pass' else 'FAIL':>8} ] {what}'"


def _file(file: Path, text: str) -> str:
    return f"printf %s {shlex.quote(text)} > {file}"


def _arm(scene: Scene, fault: Fault | None) -> None:
    """Count the steps of this driver and let the fault happen."""
    results = str(scene.results)
    log = scene.steps.open("w", buffering=1)
    count = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        if not _is_step(event, arguments, results):
            return
        count += 1
        log.write(f"{event} {arguments[0]}\n")
        if fault is None or count < fault.step:
            return
        if fault.kind == "full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(arguments[0]))
        if count == fault.step:
            number = signal.SIGKILL if fault.kind == "kill" else signal.SIGSTOP
            os.kill(os.getpid(), number)

    sys.addaudithook(hook)


def _is_step(event: str, arguments: tuple[Any, ...], results: str) -> bool:
    if event == "subprocess.Popen":
        return True
    if event == "open":
        path, _, flags = arguments
        return str(path).startswith(results) and bool(flags & _WRITES)
    if event in (*_CHANGES, _HALF_WRITTEN):
        # shutil.rmtree names what it removes relative to a folder that is open.
        relative = event in _REMOVES and arguments[-1] != -1
        return relative or str(arguments[0]).startswith(results)
    return False


@contextmanager
def paused(scene: Scene, step: int) -> Iterator[ForkServerProcess]:
    """A driver that stands still right before a step, and goes on afterwards."""
    process = start(scene, Start(Fault("pause", step)))
    assert process.pid is not None
    try:
        while _state(process.pid) not in "TZX":
            time.sleep(0.001)
        yield process
    finally:
        os.kill(process.pid, signal.SIGCONT)


def _state(pid: int) -> str:
    """The state of a process as the kernel names it: T is stopped, Z has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "X"
