"""Submit short jobs from within a job, wait for their ends, and print the times.

`python -m seatrial.checks.throughput --jobs N --tasks N [--option OPTION]...`

Jobs are submitted one after the other: there is never more than one request at a time.
First N jobs by an sbatch each, then an array of N tasks by one. All run `true` on one
core of any node but this job's own. Accounting must show every one as completed.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence

from seatrial.errors import SeatrialError

MOST_PER_S = 5.0
"""Requests a second to the controller, on average: see docs/campaigns.md."""

_LOOK_S = 0.5
_ACCOUNTING_S = 60.0
_ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")


class Throughput:
    """The jobs of one case; `options` of sbatch choose account, partition and so on."""

    def __init__(self, options: Sequence[str], patience_s: float) -> None:
        job = os.environ.get("SLURM_JOB_ID", "0")
        self.name = f"seatrial-throughput-{job}"
        self.patience_s = patience_s
        self.requests = 0
        self.ids: list[str] = []
        own = os.environ.get("SLURM_JOB_NODELIST", "")
        self._sbatch = [
            *("sbatch", "--parsable", f"--job-name={self.name}", "--no-requeue"),
            *("--ntasks=1", "--nodes=1", "--time=1", "--output=/dev/null"),
            *([f"--exclude={own}"] if own else []),
            *options,
        ]

    def submit(self, *options: str) -> None:
        """Submit a job; SeatrialError if Slurm refuses it."""
        done = self._ask([*self._sbatch, *options, "--wrap=true"])
        self.ids.append(done.strip().partition(";")[0])

    def wait(self) -> None:
        """Wait until no job is in the queue; SeatrialError if that takes too long."""
        end = time.monotonic() + self.patience_s
        while states := self._queue():
            if time.monotonic() > end:
                counts = Counter(states).most_common(3)
                named = ", ".join(f"{count} {state}" for state, count in counts)
                raise SeatrialError(
                    f"{len(states)} jobs had not ended after {self.patience_s:.0f} s "
                    f"({named}): the nodes are busy; keep them free, or reserve them"
                )
            time.sleep(_LOOK_S)

    def verify(self, count: int) -> None:
        """Raise SeatrialError unless accounting has `count` jobs, all completed."""
        end = time.monotonic() + _ACCOUNTING_S
        while True:
            rows = self._accounted()
            ended = [row for row in rows if row[1].split()[0] in _ENDED]
            if len(ended) >= count:
                break
            if time.monotonic() > end:
                raise SeatrialError(
                    f"accounting shows the end of {len(ended)} of {count} jobs after "
                    f"{_ACCOUNTING_S:.0f} s: is slurmdbd up?"
                )
            time.sleep(1)
        for job, state, status, nodes in ended:
            if (state, status) != ("COMPLETED", "0:0"):
                raise SeatrialError(
                    f"job {job} on {nodes}: {state}, exit status {status}; expected "
                    "COMPLETED, 0:0"
                )

    def cancel(self) -> None:
        """Cancel what is left in the queue."""
        subprocess.run(["scancel", "--me", f"--name={self.name}"], check=False)

    def _queue(self) -> list[str]:
        """Return the states, with reasons, of the jobs in the queue."""
        command = ["squeue", "--me", f"--name={self.name}", "--noheader", "--array"]
        return self._ask([*command, "--format=%T %r"]).splitlines()

    def _accounted(self) -> list[tuple[str, str, str, str]]:
        fields = "--format=JobID,State,ExitCode,NodeList"
        command = ["sacct", "--allocations", "--noheader", "--parsable2"]
        text = self._ask([*command, fields, f"--jobs={','.join(self.ids)}"], sent=0)
        rows = [line.split("|") for line in text.splitlines()]
        return [(row[0], row[1], row[2], row[3]) for row in rows if len(row) == 4]

    def _ask(self, command: list[str], sent: int = 1) -> str:
        """Return the output of a command; SeatrialError if it fails."""
        self.requests += sent
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise SeatrialError(f"{command[0]}: {error.strerror}") from None
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or ["no message"]
            raise SeatrialError(f"{command[0]}: {lines[-1]}")
        return done.stdout


def measure(slurm: Throughput, jobs: int, tasks: int) -> dict[str, str | int | float]:
    """Run the jobs, then the array, and return the row."""
    begin = time.monotonic()
    for _ in range(jobs):
        slurm.submit()
    submitted = time.monotonic()
    slurm.wait()
    ended = time.monotonic()
    slurm.submit(f"--array=1-{tasks}")
    slurm.wait()
    last = time.monotonic()
    slurm.verify(jobs + tasks)
    # The burst is over: the average of the case keeps the limit of all campaigns.
    time.sleep(max(0.0, begin + slurm.requests / MOST_PER_S - time.monotonic()))
    return {
        "program": "throughput",
        "jobs": jobs,
        "tasks": tasks,
        "submit_s": submitted - begin,
        "jobs_s": ended - begin,
        "array_s": last - ended,
        "requests": slurm.requests,
        "seconds": time.monotonic() - begin,
    }


def main(arguments: Sequence[str]) -> int:
    """Measure and print a row; 1 with a message if jobs did not run."""
    parser = argparse.ArgumentParser(prog="seatrial.checks.throughput")
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--tasks", type=int, required=True)
    parser.add_argument("--patience", type=float, required=True)
    parser.add_argument("--option", action="append", default=[])
    options = parser.parse_args(arguments)
    slurm = Throughput(options.option, options.patience)
    try:
        print(json.dumps(measure(slurm, options.jobs, options.tasks)))
    except SeatrialError as error:
        print(f"throughput: {error}", file=sys.stderr)
        return 1
    finally:
        slurm.cancel()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
