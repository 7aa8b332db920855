"""Runs that were cut off and resumed, tried again, packed: with a real ReFrame."""

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from criteria_samples import criteria
from fake_home import CRITERIA, SETTINGS, SYSTEM, fake_program, write, write_home
from rich.console import Console

from seatrial.campaign import collect, job_watch, session
from seatrial.campaign.campaign_file import load_campaign
from seatrial.campaign.runner import Order, resume_run, run_campaign
from seatrial.checks.replay import staged
from seatrial.cli import main
from seatrial.errors import SeatrialError
from seatrial.judge.judge import judge
from seatrial.plain_files import sha256_plain
from seatrial.runs.closed_run import Run, closed_runs, load_run
from seatrial.runs.ledger import LEDGER
from seatrial.runs.ledger_entries import parse_ledger
from seatrial.runs.lock import driver_lock, driver_of
from seatrial.runs.open_run import RunFolder, newest_open
from seatrial.runs.raw_output import recordings
from seatrial.system.description import load_system

LONG = """
repeats: 2
block_size: 1
blocks:
  - {name: echo, checks: [Echo], variables: {pause: 1}}
"""
FLAKY = """
@rfm.simple_test
class Flaky(Base):
    executable = "sh"

    @run_before("run")
    def fail_once(self):
        flag = f"$HOME/{self.current_environ.name}"
        self.executable_opts = [
            "-c", f"'if [ -e {flag} ]; then echo latency 3.0; fi; touch {flag}'"
        ]
"""


@pytest.fixture
def console() -> Console:
    return Console(record=True, force_terminal=False, width=200)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = write_home(tmp_path / "home")
    write(folder / "reframe-checks" / "campaigns" / "long.yaml", LONG)
    return folder


def order(home: Path, campaign: str, results: Path) -> Order:
    system = load_system(home, "lab")
    return Order(home, results, system, load_campaign(home, campaign), "r1")


def checksums(folder: Path) -> dict[str, str]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): sha256_plain(file) for file in files}


def add_slurm_partition(home: Path) -> None:
    """Add a Slurm partition to the system that no check uses."""
    settings: dict[str, Any] = json.loads(json.dumps(SETTINGS))
    partitions = settings["systems"][0]["partitions"]
    partitions.append({**partitions[0], "name": "slurm", "environs": []})
    partitions[1].update(scheduler="slurm", launcher="srun")
    write(home / "etc" / "lab" / "settings.yaml", json.dumps(settings))


def processes_of(folder: Path) -> list[int]:
    """Return the processes whose command names a folder."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder) in file.read_text():
                found.append(int(file.parent.name))
        except OSError:
            continue
    return found


def until(condition: Any, what: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


@pytest.fixture(scope="module")
def left_behind(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a run whose driver was killed in its third of four sessions."""
    folder = tmp_path_factory.mktemp("killed")
    home = write_home(folder / "home")
    write(home / "reframe-checks" / "campaigns" / "long.yaml", LONG)
    results = folder / "results"
    path = RunFolder(results, "lab", "r1").path
    process = subprocess.Popen(
        [
            str(Path(sys.executable).parent / "seatrial"),
            *("run", "lab", "--campaign", "long"),
            *("--run-id", "r1", "--results", str(results)),
        ],
        env={**os.environ, "SEATRIAL_HOME": str(home)},
        stdout=subprocess.DEVNULL,
    )
    started = path / "work" / "echo.1-2" / "stage"
    until(lambda: list(started.glob("lab/batch/*/*/rfm_job.out")), "third session")
    assert driver_of(path) is not None
    process.send_signal(signal.SIGKILL)
    process.wait()
    until(lambda: not processes_of(path), "ReFrame lives on without its driver")
    until(lambda: driver_of(path) is None, "the lock is held")
    return results


@pytest.fixture
def killed(left_behind: Path, tmp_path: Path) -> RunFolder:
    shutil.copytree(left_behind, tmp_path / "results")
    return RunFolder(tmp_path / "results", "lab", "r1")


def test_a_killed_run_is_resumed(
    home: Path, killed: RunFolder, console: Console
) -> None:
    results = killed.final.parent.parent
    assert closed_runs(results) == []
    assert newest_open(results, "lab") == "r1"
    before = {
        name: digest
        for name, digest in checksums(killed.path).items()
        if name.startswith(("raw/echo.1-1/", "raw/echo.2-1/"))
    }
    assert len(before) > 10
    path = resume_run(home, load_system(home, "lab"), killed, console)
    run = load_run(path)
    assert path == killed.final
    assert "2 of 4 sessions are closed already" in console.export_text()
    assert before.items() <= checksums(path).items(), "closed sessions are as before"
    assert [s["name"] for s in run.manifest["sessions"]] == [
        f"echo.{part}-{repeat}" for repeat in (1, 2) for part in (1, 2)
    ]
    assert len(run.manifest["starts"]) == 2
    assert len({start["pid"] for start in run.manifest["starts"]}) == 2
    found = [(case.session, case.case, case.environment) for case in run.cases]
    assert len(found) == len(set(found)) == 8
    assert run.measurements.collect().height == 6
    # What the cut-off try left is kept, named, and no recording.
    aside = {s["name"]: s["interrupted"] for s in run.manifest["sessions"]}
    assert aside == {
        "echo.1-1": [],
        "echo.2-1": [],
        "echo.1-2": ["echo.1-2.interrupted-1"],
        "echo.2-2": [],
    }
    kept = {file.name for file in (path / "raw/echo.1-2.interrupted-1").rglob("*")}
    assert {"reframe.txt", "rfm_job.out", "rfm_job.sh"} <= kept
    assert len(recordings(path)) == 6
    left = {entry.name for entry in path.iterdir()}
    assert left == {
        *("manifest.json", "cases.json", "measurements.parquet", "plan.json"),
        *("raw", "system", LEDGER),
    }
    ledger = parse_ledger((results / "lab" / LEDGER).read_bytes())
    events = [entry.event for entry in ledger.entries]
    assert events == ["started", "resumed", "closed"]


@pytest.fixture(scope="module")
def changed(left_behind: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that was left behind, resumed after much had changed.

    Its campaign, its criteria and its system are others, and it is noted that cn02 was
    down in a closed session.
    """
    folder = tmp_path_factory.mktemp("changed")
    home = write_home(folder / "home")
    new = LONG.replace("1", "5")
    write(home / "reframe-checks" / "campaigns" / "long.yaml", new)
    write(home / "reference-data" / "lab" / "criteria.yaml", CRITERIA + "# now\n")
    file = home / "etc" / "lab" / "system.json"
    before = json.loads(file.read_text())
    write(file, json.dumps({**before, "description": "with other firmware"}))
    shutil.copytree(left_behind, folder / "results")
    run = RunFolder(folder / "results", "lab", "r1")
    closed = run.path / "sessions" / "echo.2-1.json"
    record = json.loads(closed.read_text())
    closed.write_text(json.dumps({**record, "absent": {"cn02": "down"}}))
    return resume_run(home, load_system(home, "lab"), run, Console(quiet=True))


def test_resuming_goes_by_the_agenda(changed: Path) -> None:
    """A campaign that was changed meanwhile does not change the run."""
    assert len(load_run(changed).manifest["sessions"]) == 4


@pytest.mark.parametrize("what", ["raw", "table", "missing"])
def test_a_closed_session_that_changed_is_refused(
    home: Path, killed: RunFolder, console: Console, what: str
) -> None:
    raw = next(killed.path.glob("raw/echo.1-1/*/rfm_job.out"))
    file = killed.path / "sessions" / "echo.1-1.parquet" if what == "table" else raw
    if what == "missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes().replace(b"3.0", b"2.0") + b"\n")
    before = checksums(killed.path)
    with pytest.raises(SeatrialError) as raised:
        resume_run(home, load_system(home, "lab"), killed, console)
    assert str(raised.value).startswith(f"{file}: changed after its session was closed")
    assert "or take the whole session again" in str(raised.value)
    after = checksums(killed.path)
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed <= {"driver.lock", "starts.json"}


def test_two_drivers_on_one_run(home: Path, killed: RunFolder) -> None:
    resume = [str(Path(sys.executable).parent / "seatrial"), "run", "lab", "--resume"]
    resume += ["--results", str(killed.final.parent.parent), "--no-judge"]
    environment = {**os.environ, "SEATRIAL_HOME": str(home)}
    with driver_lock(killed.path):
        second = subprocess.run(
            resume, env=environment, capture_output=True, text=True, check=False
        )
    assert second.returncode == 2
    assert f"another driver is at work on this run: process {os.getpid()} on " in (
        second.stderr
    )
    assert "Traceback" not in second.stderr
    third = subprocess.run(
        resume, env=environment, capture_output=True, text=True, check=False
    )
    assert third.returncode == 0, third.stderr
    with pytest.raises(SeatrialError, match="no longer open"), driver_lock(killed.path):
        pass


def test_a_case_that_passed_at_the_second_try_says_so(
    home: Path, tmp_path: Path, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    checks = home / "reframe-checks" / "checks" / "fake" / "fake.py"
    checks.write_text(checks.read_text() + FLAKY)
    campaign = "retries: 2\nblocks: [{name: flaky, checks: [Flaky]}]\n"
    write(home / "reframe-checks" / "campaigns" / "flaky.yaml", campaign)
    path = run_campaign(order(home, "flaky", tmp_path / "results"), console)
    run = load_run(path)
    tries = [(c.environment, c.attempt, c.result, c.phase) for c in run.cases]
    assert sorted(tries) == [
        ("mpich", 1, "fail", "sanity"),
        ("mpich", 2, "pass", None),
        ("openmpi", 1, "fail", "sanity"),
        ("openmpi", 2, "pass", None),
    ]
    assert len({case.raw for case in run.cases}) == 4, "each try keeps its output"
    assert run.measurements.collect()["attempt"].to_list() == [2, 2]
    judgement = judge(run, criteria())
    shown = [f.reason for f in judgement.findings if f.kind == "case"]
    assert len(shown) == 2
    for reason in shown:
        assert reason.startswith("passed at try 2 in session flaky-1; the first failed")
        assert "in sanity" in reason


FAKE_SBATCH = """
n=1
while ! mkdir {queue}/$n 2>/dev/null; do n=$((n+1)); done
touch {queue}/$n/queued
ls {queue}/*/queued | wc -l >> {log}
(
  bash rfm_job.sh > rfm_job.out 2> rfm_job.err
  sleep 0.5
  mv {queue}/$n/queued {queue}/$n/done
) < /dev/null > /dev/null 2>&1 &
echo Submitted batch job $n
"""
FAKE_SACCT = """
while [ "$1" != -j ]; do shift; done
for n in $(echo "$2" | tr , ' '); do
  state=RUNNING
  [ -e {queue}/$n/done ] && state=COMPLETED
  echo "$n|$state|0:0|2026-11-21T06:30:15|cn001"
done
"""


@pytest.mark.parametrize(
    ("max_jobs", "expected"), [pytest.param(1, 1, marks=pytest.mark.slow), (4, 4)]
)
def test_the_queue_never_holds_more_jobs_than_allowed(
    home: Path,
    tmp_path: Path,
    console: Console,
    monkeypatch: pytest.MonkeyPatch,
    max_jobs: int,
    expected: int,
) -> None:
    """On 500 nodes 8 checks are 8 jobs for each MPI stack, not 4,000."""
    settings: dict[str, Any] = json.loads(json.dumps(SETTINGS))
    partition = settings["systems"][0]["partitions"][0]
    partition.update(scheduler="slurm", environs=["openmpi"], max_jobs=100)
    write(home / "etc" / "lab" / "settings.yaml", json.dumps(settings))
    described = json.loads((home / "etc" / "lab" / "system.json").read_text())
    described["nodes"] = [{"name": f"cn{n:03}", "facts": {}} for n in range(1, 501)]
    write(home / "etc" / "lab" / "system.json", json.dumps(described))
    checks = home / "reframe-checks" / "checks" / "fake" / "fake.py"
    more = "\n\n@rfm.simple_test\nclass Many(Base):\n    y = parameter(range(8))\n"
    checks.write_text(checks.read_text() + more)
    campaign = f"max_jobs: {max_jobs}\nblocks: [{{name: many, checks: [Many]}}]\n"
    write(home / "reframe-checks" / "campaigns" / "many.yaml", campaign)
    queue, log, programs = tmp_path / "queue", tmp_path / "log", tmp_path / "bin"
    queue.mkdir()
    nodes = "seq -f 'cn%03g|idle|' 1 500"
    fake_program(programs, "sinfo", nodes)
    fake_program(programs, "sbatch", FAKE_SBATCH.format(queue=queue, log=log))
    fake_program(programs, "sacct", FAKE_SACCT.format(queue=queue))
    fake_program(programs, "scontrol", "echo cn001")
    fake_program(programs, "squeue", "true")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    run = load_run(run_campaign(order(home, "many", tmp_path / "results"), console))
    assert [case.result for case in run.cases] == ["pass"] * 8
    held = [int(line) for line in log.read_text().split()]
    assert len(held) == 8
    assert max(held) == expected


def test_a_node_that_was_away_for_a_part_was_absent(changed: Path) -> None:
    run = load_run(changed)
    assert [(n["name"], n["state"], n["reason"]) for n in run.manifest["nodes"]] == [
        ("cn01", "present", ""),
        ("cn02", "absent", "in 1 of 4 sessions: down"),
    ]
    assert judge(run, criteria()).verdict == "fail"


def test_what_the_system_was_like_before_is_kept(changed: Path) -> None:
    kept = changed / "system"
    assert json.loads((kept / "system.json").read_text()) == SYSTEM
    later = json.loads((kept / "start-2" / "system.json").read_text())
    assert later["description"] == "with other firmware"


def test_what_the_system_had_to_reach_before_is_kept(changed: Path) -> None:
    kept = changed / "system"
    assert (kept / "criteria.yaml").read_text() == CRITERIA
    assert (kept / "start-2" / "criteria.yaml").read_text() == CRITERIA + "# now\n"


def test_jobs_left_behind_are_cancelled_first(
    home: Path,
    killed: RunFolder,
    console: Console,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    add_slurm_partition(home)
    queue, programs = tmp_path / "queue", tmp_path / "bin"
    write(
        queue,
        "41|RUNNING|seatrial:r1:echo.1-2|cn01|None|/x\n"
        "42|PENDING|seatrial:r10:echo.1-2||Priority|/x\n"
        "43|PENDING|another||Priority|/x\n",
    )
    fake_program(programs, "sinfo", "echo 'cn01|idle|'; echo 'cn02|idle|'")
    fake_program(programs, "squeue", f"cat {queue}")
    fake_program(
        programs,
        "scancel",
        f"for job; do sed -i /^$job/d {queue}; done; echo $@ >> {queue}.log",
    )
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    system = load_system(home, "lab")
    with pytest.raises(SeatrialError, match=r"run r10 of system 'lab' .* has the jobs"):
        resume_run(home, system, killed, console)
    load_run(resume_run(home, system, killed, console, beside=True))
    assert "cancelled jobs left behind: 41" in console.export_text()
    assert (tmp_path / "queue.log").read_text() == "41\n"


def test_nodes_are_looked_at_before_each_session(
    home: Path, tmp_path: Path, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """cn02 goes after the start of the run and of its first session."""
    add_slurm_partition(home)
    looks, programs = tmp_path / "looks", tmp_path / "bin"
    state = f'[ "$(wc -l < {looks})" -gt 2 ] && state="down|power" || state="idle|none"'
    fake_program(
        programs,
        "sinfo",
        'case "$*" in *%u*) exit;; esac\n'
        f"echo x >> {looks}; {state}; echo 'cn01|idle|none'; echo \"cn02|$state\"",
    )
    fake_program(programs, "squeue", "true")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    campaign = "repeats: 3\nblocks: [{name: echo, checks: [{Echo: {x: [1]}}]}]\n"
    write(home / "reframe-checks" / "campaigns" / "three.yaml", campaign)
    run = load_run(run_campaign(order(home, "three", tmp_path / "results"), console))
    first, *later = [each["absent"] for each in run.manifest["sessions"]]
    assert first == {}
    assert later == [{"cn02": "down (power)"}] * 2
    assert console.export_text().count("node cn02 is absent: down (power)") == 1


def test_without_an_answer_of_slurm_nothing_is_resumed(
    home: Path,
    killed: RunFolder,
    console: Console,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    add_slurm_partition(home)
    fake_program(tmp_path / "bin", "sinfo", "echo 'cn01|idle|'; echo 'cn02|idle|'")
    fake_program(tmp_path / "bin", "squeue", "exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    with pytest.raises(SeatrialError, match="left behind cannot be cancelled"):
        resume_run(home, load_system(home, "lab"), killed, console)


def test_a_session_whose_jobs_slurm_lost_starts_anew(
    home: Path, tmp_path: Path, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first job is unknown to squeue at once, and RUNNING to sacct for ever."""
    settings: dict[str, Any] = json.loads(json.dumps(SETTINGS))
    partition = settings["systems"][0]["partitions"][0]
    partition.update(scheduler="slurm", environs=["openmpi"])
    write(home / "etc" / "lab" / "settings.yaml", json.dumps(settings))
    queue, programs = tmp_path / "queue", tmp_path / "bin"
    queue.mkdir()
    sbatch = FAKE_SBATCH.replace("(\n", '[ "$n" = 1 ] || (\n')
    sacct = (
        'case "$*" in *-u*) echo "1|RUNNING|2999-01-01T00:00:00"; exit;; esac\n'
        + FAKE_SACCT
    )
    fake_program(programs, "sinfo", "echo 'cn01|idle|'; echo 'cn02|idle|'")
    fake_program(programs, "sbatch", sbatch.format(queue=queue, log=tmp_path / "log"))
    fake_program(programs, "sacct", sacct.format(queue=queue))
    fake_program(programs, "scontrol", "echo cn001")
    fake_program(programs, "squeue", "true")
    fake_program(programs, "scancel", "true")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(session, "_STOP_S", 2.0)
    monkeypatch.setattr(job_watch, "LOST_AFTER_S", 3.0)
    monkeypatch.setattr(job_watch, "_NEXT_LOOK_S", 1.0)
    run = load_run(run_campaign(order(home, "smoke", tmp_path / "results"), console))
    assert {case.result for case in run.cases} == {"pass"}
    assert run.manifest["sessions"][0]["interrupted"] == ["echo-1.interrupted-1"]
    said = console.export_text()
    assert (
        "Slurm lost the job for which ReFrame waits: its controller knows none, "
        in (said)
    )
    assert "its accounting lists 1 as unfinished" in said


@pytest.fixture
def big(
    home: Path, tmp_path: Path, console: Console, monkeypatch: pytest.MonkeyPatch
) -> Run:
    """A run for which every raw file is big."""
    monkeypatch.setattr(collect, "BIG_FILE", 5)
    return load_run(run_campaign(order(home, "smoke", tmp_path / "results"), console))


def test_big_raw_files_are_compressed_and_replayed(big: Run, tmp_path: Path) -> None:
    case = next(case for case in big.cases if case.result == "pass")
    assert case.raw is not None
    folder = big.path / case.raw
    packed = folder / "rfm_job.out.gz"
    assert not (folder / "rfm_job.out").exists()
    text = gzip.decompress(packed.read_bytes()).decode()
    assert text.startswith("latency 3.0")
    recording = next(each for each in recordings(big.path) if each.folder == folder)
    script = "\n".join(staged(recording, tmp_path))
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout == text
    assert (tmp_path / "kept.txt").read_text() == "kept\n"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--resume", "--campaign", "long"], "--resume goes on with what the run was"),
        (["--resume"], "no open run of system 'lab'"),
        (["--resume", "--run-id", "r9"], "no open run 'r9' of system 'lab'"),
        ([], "expected --campaign NAME, or --resume; known campaigns: high, long"),
    ],
)
def test_bad_ways_to_resume(
    home: Path, tmp_path: Path, options: list[str], expected: str
) -> None:
    command = ["run", "lab", "--results", str(tmp_path / "results"), *options]
    done = CliRunner(env={"SEATRIAL_HOME": str(home)}).invoke(main, command)
    assert done.exit_code == 2
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
