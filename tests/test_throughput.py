"""Short jobs: the conductor on stand-ins of Slurm's commands, and its parser."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from seatrial.checks.throughput import MOST_PER_S
from seatrial.parsers.errors import ParseError
from seatrial.parsers.throughput import ThroughputRow, parse_throughput

REPLAY = Path(__file__).parent / "data" / "replay"
GOOD = {
    "program": "throughput",
    "jobs": 10,
    "tasks": 20,
    "submit_s": 0.5,
    "jobs_s": 2.0,
    "array_s": 3.0,
    "requests": 20,
    "seconds": 6.0,
}


def conduct(
    folder: Path, *options: str, patience: float = 30, **variables: str
) -> subprocess.CompletedProcess[str]:
    words = ["--jobs", "3", "--tasks", "4", "--patience", str(patience), *options]
    return subprocess.run(
        [sys.executable, "-m", "seatrial.checks.throughput", *words],
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{REPLAY}:{os.environ['PATH']}",
            "SLURM_JOB_ID": "7",
            "SLURM_JOB_NODELIST": "cn01",
            **variables,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_every_job_is_submitted_awaited_and_accounted(tmp_path: Path) -> None:
    done = conduct(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    row = parse_throughput(done.stdout)
    assert (row.jobs, row.tasks) == (3, 4)
    jobs = [line.split("|")[0] for line in (tmp_path / "short_jobs").open()]
    assert jobs == ["101", "102", "103", "104_1", "104_2", "104_3", "104_4"]
    # Four of sbatch and two of squeue; the average keeps the limit of campaigns.
    assert row.requests == 6
    assert row.requests / row.seconds <= MOST_PER_S
    assert (tmp_path / "cancelled").read_text() == "--me --name=seatrial-throughput-7\n"


def test_failed_job_is_named(tmp_path: Path) -> None:
    done = conduct(tmp_path, BAD_JOB="102")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "throughput: job 102 on cn02: FAILED, exit status 1:0; expected "
        "COMPLETED, 0:0\n"
    )


def test_jobs_that_do_not_end_are_cancelled(tmp_path: Path) -> None:
    stuck = "PENDING Priority\nPENDING Priority\nRUNNING None"
    done = conduct(tmp_path, patience=0.1, STUCK_JOBS=stuck)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "throughput: 3 jobs had not ended after 0 s (2 PENDING Priority, 1 RUNNING "
        "None): the nodes are busy; keep them free, or reserve them\n"
    )
    assert (tmp_path / "cancelled").is_file()


def test_refusal_of_slurm_is_the_error(tmp_path: Path) -> None:
    broken = tmp_path / "bin"
    broken.mkdir()
    (broken / "sbatch").write_text("#!/bin/sh\necho 'sbatch: error: no' >&2\nexit 1\n")
    (broken / "sbatch").chmod(0o755)
    path = f"{broken}:{REPLAY}:{os.environ['PATH']}"
    done = conduct(tmp_path, PATH=path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "throughput: sbatch: sbatch: error: no\n"


def test_row_is_read() -> None:
    text = f"greeting\n{json.dumps(GOOD)}\n"
    assert parse_throughput(text) == ThroughputRow(**GOOD)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"jobs": 0}, "no jobs"),
        ({"submit_s": 2.5}, "submit_s 2.5"),
        ({"array_s": 0}, "array_s is not positive"),
        ({"seconds": 4.9}, "seconds 4.9, at least 5.0"),
        ({"requests": 10}, "requests 10"),
        ({"tasks": None}, "tasks"),
    ],
)
def test_contradictions_are_refused(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        parse_throughput(json.dumps(GOOD | change))


@pytest.mark.parametrize("count", [0, 2])
def test_other_numbers_of_rows_are_refused(count: int) -> None:
    with pytest.raises(ParseError, match=f"{count} rows of throughput, expected 1"):
        parse_throughput(count * f"{json.dumps(GOOD)}\n")
