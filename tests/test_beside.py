"""Only one campaign at a time on a system, unless --beside allows more."""

import dataclasses
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import CliRunner
from fake_home import write_home
from rich.console import Console

from seatrial.campaign import concurrent_runs
from seatrial.campaign.concurrent_runs import other_runs, starting
from seatrial.campaign.schedule import Agenda
from seatrial.cli import main
from seatrial.errors import SeatrialError
from seatrial.runs.closed_run import load_run
from seatrial.runs.lock import driver_lock
from seatrial.runs.open_run import RunFolder
from seatrial.system import slurm
from seatrial.system.description import System, load_system

CREATED = "2026-11-21T06:29:00+00:00"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_home(tmp_path_factory.mktemp("home"))


@pytest.fixture
def results(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEATRIAL_HOME", str(home))
    monkeypatch.setenv("SEATRIAL_RESULTS", str(tmp_path / "results"))
    return tmp_path / "results"


@pytest.fixture
def system(home: Path, monkeypatch: pytest.MonkeyPatch) -> System:
    """A system with Slurm, the queue of which is empty."""
    queue(monkeypatch)
    return dataclasses.replace(load_system(home, "lab"), uses_slurm=True)


def queue(monkeypatch: pytest.MonkeyPatch, *jobs: slurm.Job) -> None:
    def asked(comment: str, user: int | None) -> list[slurm.Job]:
        assert user is None, "the jobs of every user count"
        return [job for job in jobs if job.comment.startswith(comment)]

    monkeypatch.setattr(slurm, "jobs", asked)


def job(number: int, folder: str, run: str = "r0", state: str = "RUNNING") -> slurm.Job:
    return slurm.Job(str(number), state, f"seatrial:{run}:a-1", "cn01", "None", folder)


def open_run(results: Path, run: str = "r0", replay: str | None = None) -> Path:
    campaign = {"name": "two", "retries": 0, "max_jobs": 1}
    folder = RunFolder(results, "lab", run)
    folder.create(Agenda(run, "lab", CREATED, campaign, (), replay=replay).write())
    return folder.path


def seatrial_run(*arguments: str) -> tuple[int, str, str]:
    begin = ["run", "lab", "--campaign", "smoke", "--run-id", "r1", "--no-judge"]
    done = CliRunner().invoke(main, [*begin, *arguments])
    return done.exit_code, done.stdout, done.stderr


def test_second_campaign_is_refused(results: Path) -> None:
    with driver_lock(open_run(results)):
        status, _, error = seatrial_run()
    assert status == 2
    assert "run r0 of system 'lab' is at work since 20" in error
    assert "wait for its end: `seatrial status lab --watch`" in error
    assert "--beside starts this one nevertheless" in error
    assert sorted(path.name for path in (results / "lab").iterdir()) == ["r0.open"]


def test_beside_allows_it_and_is_recorded(results: Path) -> None:
    with driver_lock(open_run(results)):
        status, _, error = seatrial_run("--beside")
    assert (status, error) == (0, "")
    (session,) = load_run(results / "lab" / "r1").manifest["sessions"]
    assert session["beside"] == ["r0"]


def test_run_whose_driver_is_gone_is_mentioned(results: Path) -> None:
    open_run(results)
    status, output, error = seatrial_run()
    assert (status, error) == (0, "")
    told = f"run r0 is open since {CREATED}, and its driver is gone; to go on with it: "
    assert output.replace("\n", " ").count(told) == 1
    assert "seatrial run lab --resume --run-id r0" in output.replace("\n", " ")
    (session,) = load_run(results / "lab" / "r1").manifest["sessions"]
    assert "beside" not in session


def test_resuming_is_refused_too(results: Path) -> None:
    open_run(results, "r1")
    resume = ["run", "lab", "--resume", "--run-id", "r1", "--no-judge"]
    with driver_lock(open_run(results)):
        done = CliRunner().invoke(main, resume)
        assert done.exit_code == 2
        assert "run r0 of system 'lab' is at work" in done.stderr
    with driver_lock(results / "lab" / "r1.open"):
        done = CliRunner().invoke(main, resume)
    assert "another driver is at work on this run" in done.stderr


def test_replay_is_no_obstacle(results: Path, system: System) -> None:
    with driver_lock(open_run(results, replay="/somewhere")):
        assert other_runs(system, RunFolder(results, "lab", "r1")) == []


OPEN, ABROAD = "/p/results/lab/r0.open/work/a-1/stage", "/q/lab/r0.open/work"


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        ([], ""),
        ([job(7, OPEN), job(8, OPEN, state="PENDING")], "its jobs 7, 8 are in Slurm's"),
        ([job(7, OPEN, state="COMPLETING")], ""),
        ([job(7, "/p/results/gpu/r0.open/work")], ""),
        ([job(7, OPEN, "r1")], ""),
        ([job(7, ABROAD, "r9")], "run r9 of system 'lab' of an unknown user has the"),
    ],
)
def test_jobs_in_the_queue(
    results: Path,
    system: System,
    monkeypatch: pytest.MonkeyPatch,
    jobs: list[slurm.Job],
    expected: str,
) -> None:
    """A run whose driver is dead, and jobs of it, of our run or of another folder."""
    open_run(results)
    queue(monkeypatch, *jobs)
    try:
        with starting(system, RunFolder(results, "lab", "r1"), Console(), beside=False):
            error = ""
    except SeatrialError as refused:
        error = str(refused)
    assert expected in error
    assert bool(expected) == bool(error)


def test_simultaneous_starts(results: Path, system: System) -> None:
    """Of many campaigns that are started at the same moment exactly one begins."""
    count = 8
    barrier = threading.Barrier(count)
    over = threading.Event()

    def start(number: int) -> str:
        own = RunFolder(results, "lab", f"r{number}")
        agenda = Agenda(own.final.name, "lab", CREATED, {}, ())
        barrier.wait()
        with ExitStack() as driver:
            try:
                with starting(system, own, Console(quiet=True), beside=False):
                    time.sleep(0.05)  # long enough for the others to look
                    own.create(agenda.write())
                    driver.enter_context(driver_lock(own.path))
            except SeatrialError as refused:
                return str(refused)
            over.wait(60)
        return ""

    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(start, number) for number in range(count)]
        deadline = time.monotonic() + 30
        while sum(future.done() for future in futures) < count - 1:
            if time.monotonic() > deadline:
                break  # more than one has begun
            time.sleep(0.01)
        over.set()
    errors = [future.result() for future in futures]
    assert errors.count("") == 1
    winner = f"run r{errors.index('')} of system 'lab' is at work"
    assert sum(winner in error for error in errors) == count - 1
    assert not list((results / "lab").glob(".start*"))


def test_a_start_that_hangs_is_named(
    results: Path, system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(concurrent_runs, "_PATIENCE_S", 0.0)
    own, other = (RunFolder(results, "lab", name) for name in ("r1", "r2"))
    with (
        starting(system, own, Console(), beside=False),
        pytest.raises(SeatrialError, match=r"\.start\.lock: \w+ has been starting ano"),
        starting(system, other, Console(), beside=False),
    ):
        pass


def test_killed_start_does_not_stay_in_the_way(results: Path, system: System) -> None:
    (results / "lab").mkdir(parents=True)
    (results / "lab" / ".start.lock").touch()
    with starting(system, RunFolder(results, "lab", "r1"), Console(), beside=False):
        pass
