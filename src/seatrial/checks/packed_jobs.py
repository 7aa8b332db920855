"""Jobs of Slurm that several cases share, one after the other.

A job of its own costs each case its submission, its start and its end in accounting:
seconds, where the program may take one. In a packed session ReFrame submits all cases
at once. Cases with the same request share a job as long as their time limits fit into
it; they are divided among as many jobs as may be in the queue. The script of that job
runs the script of each case as Slurm would: in the folder of the case, with output
files and a time limit of its own. ReFrame sees one job per case.

The longer a program runs, the less often ReFrame looks, so it sees the end of a shared
job late. Therefore one more job waits in the queue. By its dependency it begins when
another ends, so it disturbs none.

`pack_jobs` replaces methods of ReFrame's scheduler for Slurm (submit, poll and
cancel_many in core/schedulers/slurm.py).
"""

import math
import os
import shlex
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reframe.core.exceptions import ReframeError
from reframe.core.schedulers import slurm

from seatrial.checks.listing import PACK_LONGEST_S, PACK_MOST_JOBS
from seatrial.checks.partition_limits import longest_job_s
from seatrial.runs.raw_output import PACK_FILE, read_pack

_KILL_S = 30
_MARGIN_S = 60
_LOOK_S = 2.0
_FILES_S = 60.0
"""Longest delay of a shared file system: seconds until the end of a case is seen."""
_ENDED_EARLY_S = 5.0
_OUT_OF_TIME = (124, 137)  # of timeout(1); 137: it had to kill the case
_NODE_LOST = ("NODE_FAIL", "BOOT_FAIL")
_NO_JOB = "0"  # ReFrame looks only at jobs that have a number
_OF_ONE_CASE = ("--job-name", "--output", "--error", "--time")
_SCRIPT_FILE = "seatrial_pack.sh"

_RUN_CASE = f"""\
# FOLDER SECONDS OUTPUT ERRORS COMMAND: run a case as a job of its own.
run_case() {{
    cd "$1" || return
    limit=$2 output=$3 errors=$4
    shift 4
    echo "begin=$(date +%s.%N)" >>{PACK_FILE}
    timeout --kill-after={_KILL_S} "$limit" "$@" >"$output" 2>"$errors" </dev/null
    status=$?
    echo "end=$(date +%s.%N)" >>{PACK_FILE}
    echo "status=$status" >>{PACK_FILE}
    case $status in 124 | 137)
        # It may leave steps behind, which would disturb the next case.
        squeue --steps --noheader --jobs="$SLURM_JOB_ID" --format=%i |
            grep '\\.[0-9][0-9]*$' | xargs -r scancel ;;
    esac
}}
"""


@dataclass(eq=False)
class _Pack:
    """A job of Slurm, and those of its cases that ReFrame does not know as ended.

    `job` is ReFrame's record of the job; `ended` and `looked` are monotonic seconds.
    """

    scheduler: Any
    job: Any
    cases: list[Any]
    looked: float = 0.0
    ended: float | None = None

    def wait_at_most(self) -> None:
        """Let ReFrame cancel the job if it waits for too long from now on."""
        if self.job.max_pending_time is None:
            self.job._submit_time = time.time()
            self.job.max_pending_time = self.cases[0].max_pending_time

    def look(self, poll: Callable[..., None]) -> list[Any]:
        """Update the states of its cases; return those to run in another job.

        Files of the cases tell their ends. Slurm is asked about the job every few
        seconds, and once more at its end. A lost node ends the job: cases that had not
        begun then lose nothing but time.
        """
        now = time.monotonic()
        ends = {id(case): _end(case) for case in self.cases}
        if all(ends.values()) or now - self.looked > _LOOK_S:
            self.looked = now
            poll(self.scheduler, self.job)
        state = self.job.state
        if self.ended is None and self.scheduler.finished(self.job):
            self.ended = now
        again = []
        for case in list(self.cases):
            end = ends[id(case)]
            case._nodespec, case._exception = self.job._nodespec, self.job._exception
            if end is None and not self._is_late(now):
                case._state = state if self.ended is None else "RUNNING"
                continue
            self.cases.remove(case)
            if end is None and state in _NODE_LOST and not _began(case):
                again.append(case)
                continue
            case._state, case._exitcode = end or (state, 1)
            case._completion_time = time.time()
        return again

    def _is_late(self, now: float) -> bool:
        """Return True if the job ended, and files of it should be visible by now."""
        if self.ended is None:
            return False
        patience = _FILES_S if self.job.state == "COMPLETED" else _ENDED_EARLY_S
        return now - self.ended > patience


@dataclass(frozen=True)
class _Waiting:
    """A case that is not submitted; cases with an equal `request` can share a job."""

    scheduler: Any
    case: Any
    request: tuple[str, ...]


@dataclass
class _Packer:
    """Collects the cases that ReFrame submits, and submits them as shared jobs.

    `longest_s` is the longest time limit of a shared job, `most_jobs` the number of
    jobs that may run at a time. The others are methods of ReFrame's scheduler. The
    first `most_jobs` packs run; one more waits until one of them ends. There is none
    once Slurm `refused` it, for example by a limit of jobs in the queue.
    """

    longest_s: float
    most_jobs: int
    submit: Callable[..., None]
    poll: Callable[..., None]
    cancel: Callable[..., None]
    waiting: list[_Waiting] = field(default_factory=list)
    packs: list[_Pack] = field(default_factory=list)
    taken: Counter[tuple[str, ...]] = field(default_factory=Counter)
    """Cases of each request until now."""
    refused: bool = False

    def take(self, scheduler: Any, case: Any) -> None:
        """Accept the job of a case; it is submitted at the next look."""
        case._submit_time, case._jobid = time.time(), _NO_JOB
        Path(case.workdir, PACK_FILE).write_text(f"taken={case._submit_time:.3f}\n")
        self.waiting.append(_Waiting(scheduler, case, _request(case)))
        self.taken[self.waiting[-1].request] += 1

    def look(self) -> None:
        """Update the states of all cases, and submit jobs while there is room."""
        for pack in self.packs[: self.most_jobs]:
            again = pack.look(self.poll)
            self.waiting[:0] = [_Waiting(pack.scheduler, c, _request(c)) for c in again]
            if not pack.cases:
                self.packs.remove(pack)
        while self.waiting and len(self.packs) < self.most_jobs:
            self.packs.append(self._next())
        for pack in self.packs[: self.most_jobs]:
            pack.wait_at_most()
        if self.waiting and len(self.packs) == self.most_jobs and not self.refused:
            try:
                self.packs.append(self._next(after=self.packs))
            except ReframeError:
                self.refused = True

    def drop(self, scheduler: Any, jobs: Sequence[Any]) -> None:
        """Cancel jobs, given themselves or by cases; waiting cases end with them."""
        self.waiting = [entry for entry in self.waiting if entry.case not in jobs]
        shared = [p.job for p in self.packs if {p.job, *p.cases} & set(jobs)]
        if shared:
            self.cancel(scheduler, shared)

    def _next(self, after: Sequence[_Pack] = ()) -> _Pack:
        """Submit the first waiting case, with others that its job can take.

        Cases of a request are divided among the jobs: those of few nodes run side by
        side. The job begins as soon as a pack of `after` has ended.
        """
        first, chosen = self.waiting[0], list[_Waiting]()
        left_s = min(self.longest_s, longest_job_s(first.request))
        most = math.ceil(self.taken[first.request] / self.most_jobs)
        for entry in self.waiting:
            limit_s = _limit_s(entry.case)
            fits = entry.request == first.request and limit_s <= left_s
            if entry is first or (fits and len(chosen) < most):
                left_s -= limit_s
                chosen.append(entry)
        cases = [entry.case for entry in chosen]
        job = _shared_job(first, cases, [pack.job.jobid for pack in after])
        with chdir(job.workdir):
            self.submit(first.scheduler, job)
        for case in cases:
            case._jobid = job.jobid
            with Path(case.workdir, PACK_FILE).open("a") as file:
                file.write(f"job={job.jobid}\n")
        self.waiting = [entry for entry in self.waiting if entry not in chosen]
        return _Pack(first.scheduler, job, cases)


def pack_jobs() -> None:
    """Let cases share jobs, if ReFrame's environment asks for it."""
    if PACK_LONGEST_S not in os.environ:
        return
    of = slurm.SlurmJobScheduler
    polls = {kind: kind.poll for kind in (of, slurm.SqueueJobScheduler)}

    def poll(scheduler: Any, job: Any) -> None:
        polls[type(scheduler)](scheduler, job)

    longest_s, most_jobs = (
        float(os.environ[PACK_LONGEST_S]),
        int(os.environ[PACK_MOST_JOBS]),
    )
    packer = _Packer(longest_s, most_jobs, of.submit, poll, of.cancel_many)
    of.submit, of.cancel_many = _method(packer.take), _method(packer.drop)
    for kind in polls:
        kind.poll = _method(lambda *_: packer.look())


def _method(function: Callable[..., None]) -> Callable[..., None]:
    """Return a function that becomes a method, with the object as first argument."""
    return lambda scheduler, *arguments: function(scheduler, *arguments)


def _request(case: Any) -> tuple[str, ...]:
    """Return shell and options of a job, without those of this case only."""
    lines = Path(case.workdir, case.script_filename).read_text().splitlines()
    options = [line for line in lines if line.startswith("#SBATCH ")]
    return (
        lines[0].removeprefix("#!"),
        *(line for line in options if not line.split()[1].startswith(_OF_ONE_CASE)),
        *case.sched_access,
    )


def _limit_s(case: Any) -> float:
    """Return the seconds that a case may take of its job."""
    return float(case.time_limit or 0) + _KILL_S + _MARGIN_S


def _shared_job(first: _Waiting, cases: Sequence[Any], after: Sequence[str]) -> Any:
    """Write the script of a shared job; return ReFrame's record of it."""
    name = first.case.name + (f"+{len(cases) - 1}" if len(cases) > 1 else "")
    job = first.scheduler.make_job(
        name,
        workdir=first.case.workdir,
        script_filename=_SCRIPT_FILE,
        sched_access=first.case.sched_access,
    )
    shell, *options = first.request
    minutes = math.ceil(sum(map(_limit_s, cases)) / 60)
    any_ended = "?".join(f"afterany:{job_id}" for job_id in after)
    lines = [
        "#!/bin/bash",
        f"#SBATCH --job-name={shlex.quote(name)}",
        f"#SBATCH --output={job.stdout}",
        f"#SBATCH --error={job.stderr}",
        f"#SBATCH --time={minutes}",
        *([f"#SBATCH --dependency={any_ended}"] if after else []),
        *(option for option in options if option.startswith("#SBATCH ")),
        _RUN_CASE,
    ]
    for case in cases:
        files = (case.stdout, case.stderr)
        command = (*shlex.split(shell), case.script_filename)
        words = (case.workdir, f"{case.time_limit or 0:g}", *files, *command)
        lines.append(shlex.join(["run_case", *words]))
    Path(job.workdir, job.script_filename).write_text("\n".join(lines) + "\n")
    return job


def _began(case: Any) -> bool:
    return "begin" in read_pack(Path(case.workdir))


def _end(case: Any) -> tuple[str, int] | None:
    """Return state and exit status of a case that ended in its job, else None."""
    status = read_pack(Path(case.workdir)).get("status", "")
    if not status.isdigit():
        return None
    code = int(status)
    if code in _OUT_OF_TIME:
        return "TIMEOUT", code
    return ("FAILED" if code else "COMPLETED"), code
