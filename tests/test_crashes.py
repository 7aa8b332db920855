"""A driver may end at any moment: closed sessions survive.

Its run is resumed, and must end up as if nothing had happened: every session there
once, as it was closed, and no job left behind. Nothing half-written may be read.
"""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import polars.testing
import pytest
from crash_runs import (
    Fault,
    Scene,
    Start,
    alive,
    ended,
    error_of,
    finish,
    paused,
    start,
)
from fake_home import write_home

from seatrial.campaign.schedule import read_agenda
from seatrial.campaign.status import read_status
from seatrial.errors import SeatrialError
from seatrial.runs.closed_run import Run, closed_runs, load_run
from seatrial.runs.closed_sessions import closed_session
from seatrial.runs.ledger import place_in
from seatrial.runs.ledger_entries import parse_ledger
from seatrial.runs.lock import driver_of
from seatrial.runs.open_run import open_runs

SOME_STEPS = 8
SEED = 20261122
WORKERS = 2
TRIES = {
    "a": [("Echo", 1), ("Flaky", 1), ("Flaky", 2)],
    "b": [("Broken", 1), ("Broken", 2)],
}
"""Expected sessions of each block, after any fault."""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder in memory, if there is one: kill -9 loses nothing of it."""
    memory = Path("/dev/shm")
    place = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="seatrial-", dir=place) as name:
        write_home(Path(name, "home"))
        yield Path(name)


def scene_in(folder: Path, name: str, repeats: int = 1) -> Scene:
    """A scene of its own, without a run."""
    queue = folder / name / "queue"
    shutil.rmtree(queue.parent, ignore_errors=True)
    queue.mkdir(parents=True)
    return Scene(folder / "home", queue.with_name("results"), queue, repeats)


@pytest.fixture
def scene(folder: Path) -> Scene:
    return scene_in(folder, "scene")


@pytest.fixture(scope="module")
def undisturbed(folder: Path) -> dict[int, Run]:
    """A run of one repeat, and one of two, to which nothing happened."""
    runs = {}
    for repeats in (1, 2):
        scene = scene_in(folder, f"undisturbed-{repeats}", repeats)
        assert finish(scene) == (0, "")
        runs[repeats] = load_run(scene.folder.final)
    return runs


@pytest.fixture(
    scope="module", params=["some", pytest.param("all", marks=pytest.mark.slow)]
)
def steps(
    request: pytest.FixtureRequest, folder: Path, undisturbed: dict[int, Run]
) -> Sequence[int]:
    """The numbers of a driver's steps: all, or the first, the last and a sample."""
    log = folder / "undisturbed-1" / "steps.txt"
    names = log.read_text().splitlines()
    assert [name for name in names if name.startswith("subprocess.Popen")]
    assert [name for name in names if "manifest.json" in name]
    steps = range(1, len(names) + 1)
    if request.param == "all":
        return steps
    chosen = random.Random(SEED).sample(steps, SOME_STEPS)
    return sorted({steps[0], *chosen, steps[-1]})


def check_open(scene: Scene, before: dict[str, str]) -> dict[str, str]:
    """Check what a driver that ended early left, and how it is read.

    Gives the checksums of all files of closed sessions: those `before` are the same.
    """
    path = scene.folder.path
    for run in closed_runs(scene.results):
        load_run(run)
    if not path.is_dir():
        return before
    while driver_of(path) is not None:
        time.sleep(0.001)  # ReFrame holds the lock until it has ended
    assert closed_runs(scene.results) == []
    with pytest.raises(SeatrialError, match="not closed"):
        load_run(path)
    assert open_runs(scene.results) == [path]
    status = read_status(path, {})
    assert status is not None
    if status.closing:
        assert status.sessions_closed == status.sessions
        return before
    sessions = read_agenda(path).sessions
    closed = {each.name: each for each in sessions if closed_session(path, each.name)}
    assert status.sessions_closed == len(closed)
    files: dict[str, str] = {}
    for name, planned in closed.items():
        record = json.loads((path / "sessions" / f"{name}.json").read_text())
        tries = [(case["check"], case["attempt"]) for case in record["cases"]]
        assert tries == TRIES[planned.block]
        files |= record["checksums"] | {name: json.dumps(record)}
    assert files.items() >= before.items(), "a closed session was lost or changed"
    return files


def check_closed(scene: Scene, undisturbed: dict[int, Run]) -> None:
    """Check that a run is complete, and what it would be without the trouble."""
    run, expected = load_run(scene.folder.final), undisturbed[scene.repeats]
    assert run.cases == expected.cases
    polars.testing.assert_frame_equal(run.measurements, expected.measurements)
    names = [each["name"] for each in run.manifest["sessions"]]
    assert names == [each["name"] for each in expected.manifest["sessions"]]
    parts = {name for each in run.manifest["sessions"] for name in each["interrupted"]}
    files = files_of(run.path)
    assert files == {*run.manifest["checksums"], "manifest.json"}
    cut_off = {file for file in files if not parts.isdisjoint(Path(file).parts)}
    assert files - cut_off == files_of(expected.path)
    assert list(scene.queue.iterdir()) == [], "jobs are left behind"
    beside = sorted(path.name for path in run.path.parent.iterdir())
    assert beside == ["ledger.jsonl", run.path.name]
    ledger = parse_ledger((run.path.parent / "ledger.jsonl").read_bytes())
    assert (ledger.problem, ledger.torn) == ("", 0)
    events = Counter(entry.event for entry in ledger.entries)
    assert (events["started"], events["closed"]) == (1, 1)
    assert ledger.entries[-1].manifest == run.digest
    place = place_in(run.manifest)
    assert place is not None and ledger.holds(place)
    kept = parse_ledger((run.path / "ledger.jsonl").read_bytes())
    assert kept.entries == ledger.entries[: len(kept.entries)]


def files_of(folder: Path) -> set[str]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)) for path in paths}


def each_in(
    folder: Path, task: Callable[[Scene, int], None], numbers: Sequence[int]
) -> None:
    """Do a task with each number, each in a scene of its own, two at a time."""

    def one(number: int) -> None:
        scene = scene_in(folder, f"scene-{number}")
        try:
            task(scene, number)
        except AssertionError as error:
            raise AssertionError(f"number {number}: {error}") from error
        shutil.rmtree(scene.queue.parent)

    with ThreadPoolExecutor(WORKERS) as pool:
        for _ in pool.map(one, numbers):
            pass


def time_of_a_run(scene: Scene) -> float:
    shutil.rmtree(scene.results, ignore_errors=True)
    began = time.monotonic()
    assert finish(scene) == (0, "")
    return time.monotonic() - began


@pytest.mark.parametrize("kills", [10, pytest.param(200, marks=pytest.mark.slow)])
def test_killed_at_random_moments(
    folder: Path, undisturbed: dict[int, Run], kills: int
) -> None:
    """kill -9 at random moments, each time the run is resumed, and killed again."""

    def kill_often(scene: Scene, number: int) -> None:
        scene = replace(scene, repeats=2)
        chance = random.Random(SEED + number)
        usual = min(time_of_a_run(scene) for _ in range(3))
        killed = 0
        files: dict[str, str] = {}
        while killed < kills // WORKERS:
            if scene.folder.final.is_dir():
                check_closed(scene, undisturbed)
                shutil.rmtree(scene.results)
                files = {}
            process = start(scene)
            time.sleep(chance.uniform(0, usual))
            killed += alive(process)
            process.kill()
            ended(process)
            files = check_open(scene, files)
        assert finish(scene) == (0, "")
        check_closed(scene, undisturbed)

    each_in(folder, kill_often, range(WORKERS))


def test_killed_at_every_step(
    folder: Path, undisturbed: dict[int, Run], steps: Sequence[int]
) -> None:
    """kill -9 right before every change that a driver makes to the disk."""

    def kill(scene: Scene, step: int) -> None:
        assert finish(scene, Start(Fault("kill", step)))[0] == -signal.SIGKILL
        check_open(scene, {})
        assert finish(scene) == (0, "")
        check_closed(scene, undisturbed)

    each_in(folder, kill, steps)


@pytest.mark.parametrize("stubborn", [False, True])
def test_reframe_that_lives_on(
    folder: Path, undisturbed: dict[int, Run], stubborn: bool
) -> None:
    """ReFrame ends with its driver; one that does not is waited for."""

    def kill(scene: Scene, number: int) -> None:
        process = start(scene, Start(stubborn=stubborn, case_s=0.1))
        log = scene.folder.path / "raw" / "a-1" / "reframe.txt"
        while not (log.is_file() and log.stat().st_size):
            time.sleep(0.001)
        process.kill()
        assert ended(process) == -signal.SIGKILL
        assert finish(scene) == (0, "")
        check_closed(scene, undisturbed)
        cut_off = scene.folder.final / "raw" / "a-1.interrupted-1"
        assert "RUN      ] Echo" in (cut_off / log.name).read_text()
        assert (cut_off / "report.json").is_file() == stubborn

    each_in(folder, kill, range(4))


def test_disk_full_at_every_step(
    folder: Path, undisturbed: dict[int, Run], steps: Sequence[int]
) -> None:
    """No space left from any step on; later there is, and the run is resumed."""

    def fill(scene: Scene, step: int) -> None:
        status, error = finish(scene, Start(Fault("full", step)))
        if status:
            assert status == 2
            assert "no space left" in error.lower()
        check_open(scene, {})
        assert finish(scene) == (0, "")
        check_closed(scene, undisturbed)

    each_in(folder, fill, steps)


@pytest.mark.parametrize("size", ["64k", "256k", "1000k", "1032k", "1064k"])
def test_small_disk(scene: Scene, undisturbed: dict[int, Run], size: str) -> None:
    scene.results.mkdir()
    place = str(scene.results)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", place]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("not root: a small tmpfs, to be full, cannot be mounted")
    try:
        status, error = finish(scene)
        assert status == 2
        assert error.startswith("no space left on the disk of")
        check_open(scene, {})
        more = ["mount", "-o", "remount,size=10m", place]
        subprocess.run(more, check=True)
        assert finish(scene) == (0, "")
        check_closed(scene, undisturbed)
    finally:
        subprocess.run(["umount", place], check=True)


def test_second_driver_at_every_step(
    folder: Path, undisturbed: dict[int, Run], steps: Sequence[int]
) -> None:
    """Only one is at work on a run; the other does nothing, and says why."""

    def intrude(scene: Scene, step: int) -> None:
        path = scene.folder.path
        with paused(scene, step) as first:
            there = path.is_dir()
            status, error = finish(scene) if there else (2, "")
        assert (status, ended(first)) == (2, 0)
        if there:  # at its start or later
            assert (
                "has been starting another campaign here" in error
                or "another driver is at work on this run: process" in error
            )
        check_closed(scene, undisturbed)

    each_in(folder, intrude, steps)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("moments", [4, pytest.param(60, marks=pytest.mark.slow)])
def test_interrupted_at_random_moments(
    folder: Path, undisturbed: dict[int, Run], number: signal.Signals, moments: int
) -> None:
    def interrupt(scene: Scene, seed: int) -> None:
        process = start(scene)
        while not (scene.folder.path / "driver.lock").exists():
            time.sleep(0.0001)
        time.sleep(random.Random(SEED + seed).uniform(0, 0.1))
        assert process.pid is not None
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)
        status = ended(process)
        if not scene.folder.final.is_dir():  # else the run was over before
            assert status == 130, error_of(scene)
            assert error_of(scene).startswith("interrupted: the jobs of this run are")
            assert list(scene.queue.iterdir()) == []
        check_open(scene, {})
        assert finish(scene) == (0, "")
        check_closed(scene, undisturbed)

    each_in(folder, interrupt, range(moments))


@pytest.mark.parametrize("killed", [False, True])
def test_clock_that_goes_back(
    scene: Scene, undisturbed: dict[int, Run], killed: bool
) -> None:
    """Two hours back after the second session: told, and nothing else changes."""
    scene = replace(scene, repeats=2)
    back = Start(clock_back=7200.0)
    if killed:
        process = start(scene, back)
        while not (scene.folder.path / "sessions" / "a-2.json").exists():
            time.sleep(0.001)
        process.kill()
        ended(process)
        status = read_status(scene.folder.path, {})
        assert status is not None
        (said,) = status.clock
        assert re.search(r", (2 h 00|1 h 59) min before b-1 ended", said)
    assert finish(scene, back) == (0, "")
    check_closed(scene, undisturbed)
    sessions = load_run(scene.folder.final).manifest["sessions"]
    told = {each["name"]: each.get("clock_went_back_s", 0) for each in sessions}
    assert told["a-1"] == told["b-1"] == 0
    assert told["a-2"] == pytest.approx(7200, abs=2)
