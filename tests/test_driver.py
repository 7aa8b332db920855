"""The driver with a real ReFrame and quick local checks."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_home import CRITERIA, SETTINGS, fake_program, write, write_home
from rich.console import Console

from seatrial.campaign import runner, session
from seatrial.campaign.campaign_file import load_campaign
from seatrial.campaign.collect import _elapsed, blame_slurm, readable
from seatrial.campaign.job_watch import LostJobError, Watch
from seatrial.campaign.runner import Order, run_campaign
from seatrial.campaign.session import Outcome
from seatrial.criteria.criteria import recorded_criteria
from seatrial.errors import SeatrialError
from seatrial.model.cases import ListedCase
from seatrial.plain_files import sha256_plain
from seatrial.progress import Display, TimeLeft
from seatrial.runs import open_run
from seatrial.runs.closed_run import Run, load_run
from seatrial.runs.ledger import LEDGER
from seatrial.runs.ledger_entries import parse_ledger
from seatrial.system import slurm
from seatrial.system.description import load_system

NEVER_STARTED = (
    "the job never started within its pending limit of 600 s: CANCELLED by 0; "
    "Slurm's reason: Resources"
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_home(tmp_path_factory.mktemp("home"))


@pytest.fixture
def console() -> Console:
    return Console(record=True, force_terminal=False, width=200)


def order(home: Path, campaign: str, results: Path) -> Order:
    return Order(
        home=home,
        results=results,
        system=load_system(home, "lab"),
        campaign=load_campaign(home, campaign),
        run_id="r1",
    )


@pytest.fixture(scope="module")
def two(home: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, str]:
    """The campaign `two`, run once, and what it printed."""
    console = Console(record=True, force_terminal=False, width=200)
    results = tmp_path_factory.mktemp("results")
    path = run_campaign(order(home, "two", results), console)
    return load_run(path), console.export_text()


def test_every_case_is_recorded(two: tuple[Run, str]) -> None:
    run, _ = two
    found = {(c.session, c.case, c.environment, c.result, c.phase) for c in run.cases}
    assert found == {
        (f"{block}-{repeat}", *rest)
        for repeat in (1, 2)
        for block, *rest in (
            ("echo", "Echo %x=1", "openmpi", "pass", None),
            ("echo", "Echo %x=1", "mpich", "pass", None),
            ("echo", "Echo %x=2", "openmpi", "pass", None),
            ("echo", "Echo %x=2", "mpich", "skip", None),
            ("echo", "Gpu", "", "skip", None),
            ("silent", "Silent", "openmpi", "fail", "sanity"),
            ("silent", "Silent", "mpich", "fail", "sanity"),
        )
    }
    reasons = {(c.case, c.environment): c.reason for c in run.cases}
    assert reasons["Echo %x=2", "mpich"] == "not for mpich"
    assert "has the feature gpu: our own programs are" in str(reasons["Gpu", ""])
    assert "feature mpi" not in str(reasons["Gpu", ""]), "the stacks have that one"
    assert "pattern 'latency' not found" in str(reasons["Silent", "mpich"])


WEIGHTS = """
schema: 1
groups: [{name: all, weight: 1, numbers: [{check: Echo}]}]
"""
CHOSEN = """
stacks: [mpich]
weights: fair
blocks: [{name: echo, checks: [Echo], variables: {text: latency 30.0}}]
"""


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of some stacks, with weights and variables, of a system without criteria.

    The weights change after it was ordered.
    """
    folder = tmp_path_factory.mktemp("chosen")
    home = write_home(folder / "home")
    (home / "reference-data" / "lab" / "criteria.yaml").unlink()
    weights = home / "reference-data" / "weights" / "fair.yaml"
    write(weights, WEIGHTS)
    write(home / "reframe-checks" / "campaigns" / "chosen.yaml", CHOSEN)
    ordered = order(home, "chosen", folder / "results")
    write(weights, WEIGHTS.replace("weight: 1", "weight: 2"))
    return run_campaign(ordered, Console(quiet=True))


def test_stacks_that_the_campaign_does_not_choose_do_not_run(chosen: Path) -> None:
    ran = [(case.case, case.environment) for case in load_run(chosen).cases]
    assert ran == [("Echo %x=1", "mpich"), ("Echo %x=2", "mpich")]


def test_case_knows_its_job(two: tuple[Run, str]) -> None:
    run, _ = two
    case = next(c for c in run.cases if c.result == "pass")
    assert case.check == "Echo"
    assert case.partition == "lab:batch"
    assert case.parameters == {"x": 1}
    assert case.nodes == ("cn01",)
    assert case.job_id == "7"
    assert case.payload_s == 0.5
    assert case.declared == ("latency_8B",)
    assert case.elapsed_s is not None
    assert case.elapsed_s > 0
    assert abs((case.start_time or 0) - time.time()) < 3600


def test_parameters_of_a_case_without_record_come_from_its_name(
    two: tuple[Run, str],
) -> None:
    run, _ = two
    skipped = next(c for c in run.cases if c.case == "Echo %x=2" and c.result == "skip")
    assert skipped.parameters == {"x": "2"}


def test_measurements(two: tuple[Run, str]) -> None:
    run, _ = two
    assert run.measurements.collect().height == 6
    row = run.measurements.collect().row(0, named=True)
    assert row["run"] == "r1"
    assert row["system"] == "lab"
    assert (row["metric"], row["size_bytes"], row["value"]) == ("latency", 8, 3.0)
    assert (row["unit"], row["direction"]) == ("us", "lower")
    assert row["nodes"] == "cn01"


def test_manifest(two: tuple[Run, str]) -> None:
    manifest = two[0].manifest
    assert manifest["software"]["reframe"].startswith("4.")
    assert manifest["software"]["git_commit"] == "abc"
    assert manifest["software"]["slurm"] == "22.05.8"
    assert manifest["demonstration"] is True
    assert manifest["model"] is True
    assert [s["name"] for s in manifest["sessions"]] == [
        "echo-1",
        "silent-1",
        "echo-2",
        "silent-2",
    ]
    assert manifest["nodes"][0] == {
        "name": "cn01",
        "facts": {"cpus": 2},
        "state": "present",
        "reason": "",
    }


def test_run_keeps_what_held_when_its_numbers_were_taken(
    two: tuple[Run, str],
) -> None:
    path = two[0].path
    assert (path / "system" / "criteria.yaml").read_text() == CRITERIA
    assert "system/criteria.yaml" in two[0].manifest["checksums"]
    recorded = recorded_criteria(path)
    assert recorded is not None
    assert [each.limit for each in recorded.criteria] == [10]


def test_weights_are_kept_from_before_the_first_number(chosen: Path) -> None:
    """A change of the file while the run goes on changes nothing of what it keeps."""
    kept = chosen / "system" / "weights.yaml"
    assert kept.read_text() == WEIGHTS
    manifest = load_run(chosen).manifest
    assert manifest["weights"] == {"name": "fair", "sha256": sha256_plain(kept)}
    assert manifest["checksums"]["system/weights.yaml"] == sha256_plain(kept)


def test_a_run_that_is_not_compared_keeps_no_weights(two: tuple[Run, str]) -> None:
    run, _ = two
    assert run.manifest["weights"] is None
    assert not (run.path / "system" / "weights.yaml").exists()


def test_system_without_criteria_runs(chosen: Path) -> None:
    assert recorded_criteria(chosen) is None


def test_raw_files_are_kept_and_the_stage_is_gone(two: tuple[Run, str]) -> None:
    run, _ = two
    for case in run.cases:
        if case.raw is None:
            continue
        names = {file.name for file in (run.path / case.raw).iterdir()}
        expected = {"rfm_job.sh", "rfm_job.out", "rfm_job.err", "kept.txt"}
        if case.result == "pass":
            assert names == expected | {"seatrial.json"}
        elif case.result == "fail":
            assert names == expected
    assert not (run.path / "work").exists()
    assert (run.path / "raw" / "echo-1" / "report.json").is_file()
    assert "raw/echo-2/report.json" in run.manifest["checksums"]


@pytest.fixture(scope="module")
def second(
    home: Path, two: tuple[Run, str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str, Path]:
    """A second run, what it printed, and its folder of temporary files."""
    console = Console(record=True, force_terminal=False, width=200)
    temporary = tmp_path_factory.mktemp("tmp")
    planned = order(home, "smoke", two[0].path.parents[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(temporary))
        patch.setattr(tempfile, "tempdir", None)
        path = run_campaign(replace(planned, run_id="r2"), console)
    return path, console.export_text(), temporary


def test_debug_logs_of_reframe_are_removed(second: tuple[Path, str, Path]) -> None:
    """Listing leaves none; of a session's two ReFrame names only the large one."""
    path, _, temporary = second
    text = (path / "raw" / "echo-1" / "reframe.txt").read_text()
    named = re.search(r"Log file\(s\) saved in '(.*)'", text)
    assert named
    assert Path(named[1]).parent == temporary
    assert not Path(named[1]).exists()
    assert len(list(temporary.iterdir())) <= 1


def test_lines_without_a_terminal(two: tuple[Run, str]) -> None:
    """Why a check failed or was skipped is told once, after the first session."""
    lines = [line for line in two[1].splitlines() if line.startswith("[")]
    reasons = [line for line in two[1].splitlines() if line not in lines]
    assert len(lines) == 12
    assert lines[0].startswith("[ 1/12] pass Echo %x=1 @lab:batch+openmpi (")
    assert lines[4].startswith("[ 5/12] FAIL Silent @lab:batch+openmpi (")
    assert "4 failed, 0 s left" in lines[-1]
    assert len(reasons) == 3
    assert any(reason.startswith("  Silent failed: ") for reason in reasons)


def test_second_run_knows_the_time_left_at_once(second: tuple[Path, str, Path]) -> None:
    said = second[1]
    assert "[1/4] pass Echo" in said
    assert "unknown" not in said


def test_run_that_exists_is_not_touched(
    home: Path, two: tuple[Run, str], console: Console
) -> None:
    run, _ = two
    with pytest.raises(SeatrialError, match="this run exists already"):
        run_campaign(order(home, "smoke", run.path.parents[1]), console)


def test_unknown_check_is_named(home: Path, tmp_path: Path, console: Console) -> None:
    with pytest.raises(SeatrialError) as raised:
        run_campaign(order(home, "wrong", tmp_path), console)
    assert "unknown checks: Ehco; known checks: Echo, Gpu, Silent, Slow" in str(
        raised.value
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        (
            "{text: a, Echo.pauze: 1}",
            "block 'one': no variable 'pauze' in Echo; `seatrial checks Echo` lists",
        ),
        ("{pauze: 1}", "block 'one': no variable 'pauze' in Echo, Silent; "),
        pytest.param(
            "{Echo.num_tasks: two}",
            "variables: ReFrame cannot list its checks: .*'two'",
            marks=pytest.mark.slow,
        ),
        ("{Echo.time_limit: two}", "variables: .* invalid duration: two"),
    ],
)
def test_wrong_variables_are_named_before_the_run(
    tmp_path: Path, console: Console, variables: str, expected: str
) -> None:
    home, results = write_home(tmp_path / "home"), tmp_path / "results"
    text = f"blocks: [{{name: one, checks: [Echo, Silent], variables: {variables}}}]"
    write(home / "reframe-checks" / "campaigns" / "typo.yaml", text)
    with pytest.raises(SeatrialError, match=f"campaign 'typo': {expected}"):
        run_campaign(order(home, "typo", results), console)
    assert not results.exists()


def test_check_file_that_does_not_load_is_named(
    tmp_path: Path, console: Console
) -> None:
    home = write_home(tmp_path / "home")
    broken = "import reframe as rfm\nfrom reframe.core.builtins import *\nnope()\n"
    broken += "@rfm.simple_test\nclass A(rfm.RunOnlyRegressionTest):\n    pass\n"
    write(home / "reframe-checks" / "checks" / "broken" / "broken.py", broken)
    with pytest.raises(SeatrialError) as raised:
        run_campaign(order(home, "smoke", tmp_path), console)
    assert "broken/broken.py" in str(raised.value)
    assert "name 'nope' is not defined" in str(raised.value)


def test_variables_reach_the_checks(chosen: Path) -> None:
    assert set(load_run(chosen).measurements.collect()["value"]) == {30.0}


@pytest.fixture(scope="module")
def of_slurm(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, str]:
    """A run with cn02 down, whose failed jobs Slurm cancelled; and what it printed.

    Its system has a Slurm partition that no check uses; Slurm is a stand-in.
    """
    folder = tmp_path_factory.mktemp("slurm")
    home = write_home(folder / "home")
    settings: dict[str, Any] = json.loads(json.dumps(SETTINGS))
    partitions = settings["systems"][0]["partitions"]
    partitions.append({**partitions[0], "name": "slurm", "environs": []})
    partitions[1].update(scheduler="slurm", launcher="srun")
    write(home / "etc" / "lab" / "settings.yaml", json.dumps(settings))
    both = "blocks: [{name: both, checks: [Echo, Silent]}]\n"
    write(home / "reframe-checks" / "campaigns" / "both.yaml", both)
    states = "echo 'cn01|idle|none'; echo 'cn02|down*|power lost'"
    fake_program(folder / "bin", "sinfo", states)
    fake_program(folder / "bin", "sacct", "echo 'CANCELLED by 0|None'")
    console = Console(record=True, force_terminal=False, width=200)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
        path = run_campaign(order(home, "both", folder / "results"), console)
    return load_run(path), console.export_text()


def test_absent_node_is_named_and_the_rest_runs(of_slurm: tuple[Run, str]) -> None:
    run, said = of_slurm
    assert run.manifest["nodes"][1]["state"] == "absent"
    assert run.manifest["nodes"][1]["reason"] == "down, not responding (power lost)"
    assert "node cn02 is absent: down, not responding" in said
    raw = next(case.raw for case in run.cases if case.raw and case.result == "pass")
    assert "nodes 1" in (run.path / raw / "rfm_job.out").read_text()


def test_slurm_reason_of_a_job_that_never_started(of_slurm: tuple[Run, str]) -> None:
    run, _ = of_slurm
    expected = "the job never started within its pending limit of 5 s: CANCELLED by 0"
    reasons = {case.reason for case in run.cases if case.result == "fail"}
    assert reasons == {expected}


def test_run_survives_a_controller_that_is_away_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, console: Console
) -> None:
    """The options for ReFrame's scheduler that the role `suite` renders are enough."""
    home = write_home(tmp_path / "home")
    settings: dict[str, Any] = json.loads(json.dumps(SETTINGS))
    settings["systems"][0]["partitions"][0].update(
        scheduler="slurm",
        environs=["openmpi"],
        sched_options={
            "max_sacct_failures": 1000,
            "resubmit_on_errors": ["Unable to contact slurm controller"],
        },
    )
    write(home / "etc" / "lab" / "settings.yaml", json.dumps(settings))
    programs, calls = tmp_path / "bin", tmp_path / "calls"
    calls.mkdir()
    away = (
        f'n=$(ls {calls} | grep -c "^${{0##*/}}"); touch "{calls}/${{0##*/}}$n"\n'
        'if [ "$n" -lt 5 ]; then\n'
        '  echo "error: Unable to contact slurm controller (connect failure)" >&2\n'
        "  exit 1\n"
        "fi\n"
    )
    run_job = "bash rfm_job.sh > rfm_job.out 2> rfm_job.err"
    fake_program(programs, "sinfo", "echo 'cn01|idle|'; echo 'cn02|idle|'")
    fake_program(
        programs,
        "sbatch",
        away.replace("-lt 5", "-lt 1") + run_job + "; echo Submitted batch job 7",
    )
    fake_program(programs, "sacct", away + "echo '7|COMPLETED|0:0|1795242671|cn01'")
    fake_program(programs, "scontrol", "echo cn01")
    fake_program(programs, "squeue", "exit 1")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    run = load_run(run_campaign(order(home, "smoke", tmp_path), console))
    assert [case.result for case in run.cases] == ["pass", "pass"]
    script = next(run.path.glob("raw/echo-1/*/rfm_job.sh")).read_text()
    assert "#SBATCH --comment=seatrial:r1:echo-1" in script


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (None, ("sanity", "no rows")),
        (slurm.JobEnd("COMPLETED", True), ("sanity", "no rows")),
        (slurm.JobEnd("FAILED", True), ("sanity", "no rows")),
        (
            slurm.JobEnd("CANCELLED by 0", False),
            ("run", NEVER_STARTED),
        ),
        (
            slurm.JobEnd("TIMEOUT", True),
            ("run", "the job exceeded its time limit of 300 s; no rows"),
        ),
        (
            slurm.JobEnd("NODE_FAIL", True),
            ("run", "the job ended as NODE_FAIL; no rows"),
        ),
    ],
)
def test_slurm_is_blamed_first(
    monkeypatch: pytest.MonkeyPatch,
    end: slurm.JobEnd | None,
    expected: tuple[str, str],
) -> None:
    monkeypatch.setattr(slurm, "job_end", lambda job_id: end)
    entry = {"jobid": "7", "max_pending_time": 600.0, "time_limit": 300.0}
    outcome = Outcome(0.0, pending={"7": "Resources"})
    assert blame_slurm("sanity", "no rows", entry, outcome) == expected


def left_in(folder: Path) -> tuple[set[str], list[str]]:
    """Return the names in the folder of a system, and the events of its ledger."""
    ledger = parse_ledger((folder / LEDGER).read_bytes())
    assert (ledger.problem, ledger.torn) == ("", 0)
    names = {path.name for path in folder.iterdir()}
    return names, [entry.event for entry in ledger.entries]


def test_disk_full_at_the_end_leaves_the_run_open(
    home: Path, tmp_path: Path, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: Path, cases: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(open_run, "write_cases", full)
    with pytest.raises(SeatrialError, match="no space left on the disk"):
        run_campaign(order(home, "smoke", tmp_path), console)
    assert left_in(tmp_path / "lab") == ({"r1.open", LEDGER}, ["started"])
    with pytest.raises(SeatrialError, match="not closed"):
        load_run(tmp_path / "lab" / "r1.open")


@pytest.mark.parametrize("size", [pytest.param("64k", marks=pytest.mark.slow), "256k"])
def test_disk_full_during_the_run(
    home: Path,
    tmp_path: Path,
    console: Console,
    size: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner, "try_folder", lambda folder: None)
    results = tmp_path / "results"
    results.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(results)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a small tmpfs")
    try:
        with pytest.raises(SeatrialError, match="no space left on the disk"):
            run_campaign(order(home, "two", results), console)
        assert left_in(results / "lab") == ({"r1.open", LEDGER}, ["started"])
    finally:
        subprocess.run(["umount", str(results)], check=True)


def test_output_folder_is_tried_before_the_first_job(
    home: Path, tmp_path: Path, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the right to write, or with little space; nothing is left behind."""
    results = tmp_path / "a" / "results"
    much = shutil.disk_usage(tmp_path)
    with monkeypatch.context() as patch:
        little = much._replace(free=1_000_000)
        patch.setattr(shutil, "disk_usage", lambda folder: little)
        with pytest.raises(
            SeatrialError, match="1 MB of disk space are free, expected"
        ):
            run_campaign(order(home, "smoke", results), console)
    assert not results.parent.exists()
    results.parent.write_text("a file in the way")
    with pytest.raises(SeatrialError, match="; nothing was started; make it"):
        run_campaign(order(home, "smoke", results), console)


# Each signal, at any moment and cheaper: test_crashes.
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
    ],
)
def test_interrupt_stops_reframe_and_leaves_the_run_open(
    home: Path, tmp_path: Path, number: signal.Signals
) -> None:
    process = subprocess.Popen(
        [
            str(Path(sys.executable).parent / "seatrial"),
            *("run", "lab", "--campaign", "slow"),
            *("--run-id", "r1", "--results", str(tmp_path)),
        ],
        env={**os.environ, "SEATRIAL_HOME": str(home)},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    stage = tmp_path / "lab" / "r1.open" / "work" / "slow-1" / "stage"
    deadline = time.monotonic() + 30
    while not list(stage.glob("lab/batch/openmpi/*/rfm_job.out")):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.1)
    began = time.monotonic()
    process.send_signal(number)
    _, errors = process.communicate(timeout=25)
    assert time.monotonic() - began < 20
    assert process.returncode == 130
    assert "interrupted: the jobs of this run are cancelled" in errors
    assert "Traceback" not in errors
    assert not (tmp_path / "lab" / "r1").exists()
    assert (tmp_path / "lab" / "r1.open").is_dir()


def test_controller_that_is_silent_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, console: Console
) -> None:
    answers = [None, None, {"7": "Resources"}, None, None]
    clock = [0.0]
    monkeypatch.setattr(slurm, "pending_reasons", lambda comment: answers.pop(0))
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(slurm, "lost_jobs", lambda comment, since: None)
    pending: dict[str, str] = {}
    watch = Watch("seatrial:r1:a-1", 0.0, pending, Display(console, [], {}))
    for clock[0] in (1.0, 30.0, 60.0, 90.0, 1000.0):
        watch.silent()
    assert pending == {"7": "Resources"}
    clock[0] = 3000.0
    with pytest.raises(SeatrialError, match="did not answer for 30 minutes"):
        watch.silent()
    lines = console.export_text().splitlines()
    assert [line.split(";")[0] for line in lines] == [
        "Slurm's controller does not answer",
        "Slurm's controller answers again",
        "Slurm's controller does not answer",
    ]


def test_time_left() -> None:
    cases = [ListedCase(name, "p", "e") for name in ("A", "B", "C")]
    left = TimeLeft(cases, {})
    assert left.seconds() is None
    left = TimeLeft(cases, {"A @p+e": [10, 20], "B @p+e": [5]})
    assert left.seconds() == 15 + 5 + 10
    left.start("A @p+e")
    left.finish("A @p+e")
    assert left.seconds() == pytest.approx(5 + (15 + 5) / 2, abs=0.1)


def finish(left: TimeLeft, case: str, took: float) -> None:
    left.start(case, spent=took)
    left.finish(case)


def test_time_left_does_not_follow_one_long_wait() -> None:
    cases = [ListedCase(f"C{number}", "p", "e") for number in range(162)]
    known = {str(case): [9.0, 10.0, 11.0, 800.0] for case in cases}
    left = TimeLeft(cases, known)
    assert left.seconds() == pytest.approx(162 * 10.5)
    finish(left, "C0 @p+e", 780.0)
    assert left.seconds() == pytest.approx(161 * 10.5)
    for number in (1, 2, 3):
        finish(left, f"C{number} @p+e", 21.0)  # this run is twice as slow
    assert left.seconds() == pytest.approx(158 * 21.0, rel=0.01)


@pytest.mark.parametrize(
    ("entry", "seconds"),
    [
        ({"time_total": 60.0, "time_setup": 0.5, "time_run": 3.5}, 4.0),
        ({"time_total": 3.0, "time_setup": 0.5, "time_run": 3.5}, 3.0),
        ({"time_total": 60.0, "time_run": None}, 60.0),
        ({"time_total": None}, None),
    ],
)
def test_a_case_does_not_take_the_time_of_earlier_ones(
    entry: dict[str, Any], seconds: float | None
) -> None:
    assert _elapsed(entry) == seconds


def test_cases_in_the_queue_take_what_each_adds_to_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """ReFrame's policy async starts all cases at once, Slurm one after the other."""
    now = 100.0
    monkeypatch.setattr("seatrial.progress.time.monotonic", lambda: now)
    left = TimeLeft(["A", "B", "C"], {"A": [10], "B": [20], "C": [40]})
    for case in ("A", "B", "C"):
        left.start(case)
    now = 105.0
    assert left.seconds() == 65
    now = 110.0
    assert left.finish("A") == 10
    now = 130.0
    assert left.finish("B") == 20
    assert left.seconds() == 40


def test_time_left_without_earlier_runs_waits_for_three_cases() -> None:
    left = TimeLeft([ListedCase(f"C{number}", "p", "e") for number in range(10)], {})
    finish(left, "C0 @p+e", 780.0)
    finish(left, "C1 @p+e", 5.0)
    assert left.text() == "time left unknown"
    finish(left, "C2 @p+e", 6.0)
    assert left.seconds() == pytest.approx(7 * 6.0, rel=0.01)


def test_bar_fits_80_columns() -> None:
    console = Console(record=True, force_terminal=True, width=80)
    cases = [ListedCase(f"C{number}", "p", "e") for number in range(162)]
    known = {str(case): [100.0] for case in cases}
    with Display(console, cases, known) as display:
        display.start("ImbCollective %op=Allreduce %sizes=all @lab:batch+openmpi-5.0")
        assert display._bar is not None
        display._bar.refresh()
        (line,) = console.render_lines(display._bar.get_renderable(), pad=False)
    text = "".join(segment.text for segment in line)
    assert "0/162 0 failed 4 h 30 min left running ImbC" in text
    assert len(text) <= 80


def test_display_on_a_terminal() -> None:
    console = Console(record=True, force_terminal=True, width=120)
    cases = [ListedCase(name, "p", "e") for name in ("A", "B")]
    with Display(console, cases, {}) as display:
        display.start("A @p+e")
        display.finish("A @p+e", "FAIL")
        display.start("B @p+e")
        assert display._bar is not None
        display._bar.refresh()
    text = console.export_text()
    assert "FAIL A @p+e" in text
    assert "1/2 1 failed" in text
    assert "running B @p+e" in text


def test_a_case_that_is_tried_again_counts_once() -> None:
    """Of two cases, one fails, and passes at its second retry."""
    console = Console(record=True, width=200)
    cases = [ListedCase(name, "p", "e") for name in ("A", "B", "C")]
    outcome = Outcome(0.0)
    retry = "[==========] Retrying 1 failed check(s) (retry 1/2)"
    lines = ["(1/2) A", "(2/2) B", retry, "(1/1) A", retry, "(1/1) A", "(1/1) C"]
    statuses = ["FAIL", "OK", "", "FAIL", "", "OK", "OK"]
    with Display(console, cases, {}) as display:
        for text, status in zip(lines, statuses, strict=True):
            line = f"[{status:>9} ] {text} /01234567 @p+e" if status else text
            session._show(line, outcome, display)
    shown = re.findall(r"(\[\d/\d\]) (\w+) (\w).*?(\d failed)", console.export_text())
    assert shown == [
        ("[1/3]", "FAIL", "A", "1 failed"),
        ("[2/3]", "pass", "B", "1 failed"),
        ("[2/3]", "FAIL", "A", "1 failed"),
        ("[2/3]", "pass", "A", "0 failed"),
        ("[3/3]", "pass", "C", "0 failed"),
    ]


def test_a_reason_is_told_once() -> None:
    console = Console(record=True, width=400)
    ended = [
        ("A", "fail", "no\n route"),
        ("B", "pass", None),
        ("A", "fail", "no route"),
    ]
    with Display(console, [], {}) as display:
        display.explain([*ended, ("C", "fail", "no route")])
        display.explain([*ended, ("A", "skip", "x" * 1000)])
    failed, skipped = console.export_text().splitlines()
    assert failed == "  A, C failed: no route"
    assert skipped.startswith("  A skipped: xxx")
    assert skipped.endswith("x ...")
    assert len(skipped) < 350


def test_a_job_that_slurm_lost_is_told_after_a_while(
    monkeypatch: pytest.MonkeyPatch, console: Console
) -> None:
    """A job that is there, and a word of ReFrame, start the time anew."""
    lost = [["8"], ["8"], None, ["8"], ["8"], ["8"], ["8"], ["8"]]
    clock = [0.0]
    monkeypatch.setattr(slurm, "pending_reasons", lambda comment: {})
    monkeypatch.setattr(slurm, "lost_jobs", lambda comment, since: lost.pop(0))
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    watch = Watch("seatrial:r1:a-1", 0.0, {}, Display(console, [], {}))
    for clock[0] in (10.0, 99.0, 120.0, 140.0, 229.0):
        watch.silent()
    watch.heard()
    for clock[0] in (240.0, 329.0):
        watch.silent()
    clock[0] = 340.0
    with pytest.raises(LostJobError, match=r"Slurm lost .* lists 8 as unfin"):
        watch.silent()
    assert not lost
    elsewhere = Watch("c", 0.0, {}, Display(console, [], {}), all_jobs=False)
    for clock[0] in (400.0, 1000.0):
        elsewhere.silent()


def test_reframe_reason_is_one_line_with_rounded_numbers() -> None:
    reason = (
        "failed to meet reference(s): \n   bw=23.7243766173292 MB/s, expected 40 "
        "(l=40.5, u=110.00000000000001)\n   t=1.5e-07 s; v4.1.4, 10.99.0.14000"
    )
    assert readable(reason) == (
        "failed to meet reference(s): bw=23.7244 MB/s, expected 40 "
        "(l=40.5, u=110) t=1.5e-07 s; v4.1.4, 10.99.0.14000"
    )
