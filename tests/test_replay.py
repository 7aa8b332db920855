"""Replay: recorded output in place of a program, on a machine with nothing but bash."""

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
import pytest
from click.testing import CliRunner, Result
from closed_runs import rewrite_manifest
from fake_home import CRITERIA, SETTINGS, write, write_home
from reframe_runs import HOME, reframe
from samples import sample_criteria, sample_run

from seatrial.cli import main
from seatrial.errors import SeatrialError
from seatrial.judge.judge import judge
from seatrial.runs.closed_run import Run, find_run, load_run
from seatrial.runs.raw_output import find_recording, recordings

SAID = "replay of recorded output: no measurement"
CHECK = """\
import reframe as rfm
from reframe.core.builtins import *
from seatrial.checks.base import SeatrialCheck
from seatrial.model.records import Sample


@rfm.simple_test
class Count(SeatrialCheck):
    '''How often was it run?

    Each run is 1 us slower than the one before, and leaves a file. `broken` ends with
    status 3, `killed` before it can say so.
    '''

    how = parameter(["well", "broken", "killed"])
    valid_prog_environs = ["+mpi"]
    reference_file = "count.yaml"
    executable = "bash"
    output_file = "numbers.txt"
    judged = ["latency_8B"]

    @run_before("run")
    def count(self):
        self.prerun_cmds = [
            'echo x >>"$RUNS/$SLURM_ENV"',
            'wc -l <"$RUNS/$SLURM_ENV" >numbers.txt.kept',
        ]
        self.keep_files = ["numbers.txt.kept"]
        last = {"well": "true", "broken": "exit 3", "killed": "kill $PPID"}[self.how]
        self.env_vars = {"SLURM_ENV": self.how}
        self.executable_opts = [
            f"-c 'echo told; echo no device >&2; cp *.kept numbers.txt; {last}'"
        ]

    def extract(self, text):
        return [Sample("latency", float(text), 8)]
"""
CAMPAIGNS = {
    "all": "blocks: [{name: all, checks: [Count]}]\nrepeats: 2\n",
    "again": "blocks: [{name: other, checks: [Count]}]\nrepeats: 3\n",
    "once": "blocks: [{name: all, checks: [Count]}]\n",
}


def settings(**partition: Any) -> dict[str, Any]:
    """Settings of a system with one MPI stack on one partition."""
    made: dict[str, Any] = json.loads(json.dumps(SETTINGS))
    made["systems"][0]["partitions"][0] |= {
        "features": ["slurm"],
        "environs": ["openmpi"],
        "extras": {"nodes": ["cn01"]},
        **partition,
    }
    return made


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose system cannot be used on this machine: Slurm and modules."""
    home = write_home(tmp_path_factory.mktemp("home"))
    (home / "reports").symlink_to(HOME / "reports")
    write(home / "reframe-checks" / "checks" / "fake" / "fake.py", CHECK)
    criteria = home / "reference-data" / "lab" / "criteria.yaml"
    write(criteria, CRITERIA.replace("Echo", "Count"))
    for name, text in CAMPAIGNS.items():
        write(home / "reframe-checks" / "campaigns" / f"{name}.yaml", text)
    there = settings(
        scheduler="slurm", launcher="srun", prepare_cmds=["module use /nowhere"]
    )
    there["systems"][0] |= {"modules_system": "lmod", "prefix": "/nowhere/reframe"}
    there["environments"][0]["modules"] = ["openmpi"]
    there["storage"] = [{"enable": True, "sqlite_db_file": "/nowhere/results.db"}]
    write(home / "etc" / "lab" / "settings.yaml", json.dumps(there))
    return home


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the program leaves a line each time that it is run."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def measured(home: Path, runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A measured run of campaign `all`, on the same system without Slurm."""
    results = tmp_path_factory.mktemp("measured")
    there = home / "etc" / "lab" / "settings.yaml"
    kept = there.read_text()
    write(there, json.dumps(settings()))
    command = ("run", "lab", "--campaign", "all", "--run-id", "m")
    environment = {"SEATRIAL_HOME": str(home), "RUNS": str(runs)}
    where = ("--results", str(results))
    result = CliRunner(env=environment).invoke(main, [*command, *where])
    assert result.exit_code == 1, result.output
    write(there, kept)
    return results / "lab" / "m"


@pytest.fixture
def nothing(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: Path
) -> Path:
    """A machine without Slurm and MPI; gives the folder of its runs."""
    return use_nothing(home, tmp_path, monkeypatch, runs)


def use_nothing(
    home: Path, folder: Path, patch: pytest.MonkeyPatch, runs: Path
) -> Path:
    programs = folder / "bin"
    programs.mkdir()
    for name in ("bash", "cat", "cp"):
        (programs / name).symlink_to(shutil.which(name) or "missing")
    patch.setenv("PATH", str(programs))
    patch.setenv("SEATRIAL_HOME", str(home))
    patch.setenv("SEATRIAL_RESULTS", str(folder / "results"))
    patch.setenv("RUNS", str(runs))
    return folder / "results"


@dataclass(frozen=True)
class Replayed:
    """A replay of the measured run: what it printed, and its folder.

    `ran` is how often each program had been run before.
    """

    result: Result
    path: Path
    ran: dict[str, str]


@pytest.fixture(scope="module")
def replay(
    home: Path, measured: Path, runs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Replayed:
    ran = {file.name: file.read_text() for file in runs.iterdir()}
    with pytest.MonkeyPatch.context() as patch:
        results = use_nothing(home, tmp_path_factory.mktemp("r"), patch, runs)
        return Replayed(replayed(measured), results / "lab" / "r", ran)


def seatrial(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def replayed(folder: Path, campaign: str = "all", run_id: str = "r") -> Result:
    """Replay recordings by a campaign."""
    command = ("run", "lab", "--campaign", campaign, "--run-id", run_id)
    return seatrial(*command, "--replay", str(folder))


def values(run: Run) -> dict[str, float]:
    return dict(run.measurements.select("session", "value").collect().iter_rows())


def only_well(folder: Path, source: Path) -> Path:
    """Copy a run into a folder, except its recordings of failures."""
    copy = folder / source.name
    shutil.copytree(source, copy)
    for file in list(copy.rglob("seatrial.json")):
        if json.loads(file.read_text())["parameters"] != {"how": "well"}:
            shutil.rmtree(file.parent)
    rewrite_manifest(copy)
    return copy


def test_recorded_run_is_replayed_as_it_was(
    measured: Path, replay: Replayed, runs: Path
) -> None:
    assert replay.result.exit_code == 1, replay.result.output
    assert {file.name: file.read_text() for file in runs.iterdir()} == replay.ran
    was, now = load_run(measured), load_run(replay.path)
    assert values(now) == values(was) == {"all-1": 1.0, "all-2": 2.0}
    differ = ("run", "start_time", "replay")
    assert (
        now.measurements.drop(differ)
        .collect()
        .equals(was.measurements.drop(differ).collect())
    )
    assert set(now.measurements.collect()["replay"]) == {True}
    same = ("session", "case", "result", "phase", "job_id", "nodes", "payload_s", "raw")
    for old, new in zip(was.cases, now.cases, strict=True):
        assert [getattr(new, name) for name in same] == [
            getattr(old, name) for name in same
        ]
        told = [str(case.reason).split(", state")[0] for case in (old, new)]
        assert told[0] == told[1]
        kept = ["rfm_job.out", "rfm_job.err", "seatrial.job", "numbers.txt"]
        assert old.raw is not None
        for name in kept:
            files = [folder / old.raw / name for folder in (measured, now.path)]
            assert files[0].exists() == files[1].exists()
            assert not files[0].exists() or files[0].read_text() == files[1].read_text()


def test_failure_is_replayed_with_status_and_standard_error(replay: Replayed) -> None:
    cases = {case.case: case for case in load_run(replay.path).cases}
    broken = str(cases["Count %how=broken"].reason)
    assert "bash: exit status 3 (job " in broken
    assert broken.endswith("standard error ends: 'no device'")
    assert "bash: no end (job " in str(cases["Count %how=killed"].reason)


def test_every_result_is_marked(
    measured: Path, replay: Replayed, nothing: Path
) -> None:
    assert SAID in replay.result.stdout.splitlines()
    run = load_run(replay.path)
    assert run.manifest["replay"] == str(measured)
    assert {case.replay for case in run.cases} == {True}
    for case in run.cases:
        assert case.raw is not None
        record = json.loads((run.path / case.raw / "seatrial.json").read_text())
        assert record["replay"] == str(measured / case.raw)
        script = (run.path / case.raw / "rfm_job.sh").read_text()
        assert f"\n# {SAID}. " in script
    judgement = json.loads(seatrial("judge", str(run.path), "--format", "json").stdout)
    assert judgement["replay"] is True
    report = seatrial("report", str(run.path), "--out", str(nothing / "out"))
    assert report.stdout.splitlines()[:2] == [SAID, "verdict: fail"]
    page = (nothing / "out" / "report.html").read_text()
    assert "<title>REPLAY, FAIL: lab" in page
    assert '<p class="notice replay" role="note"><strong>Replay: no measure' in page
    suite = ET.parse(nothing / "out" / "junit.xml").getroot()[0]
    assert suite.get("name") == "lab.all.replay"
    properties = {
        each.get("name"): each.get("value") for each in suite.iter("property")
    }
    assert properties["replay"] == "true"


def test_replay_keeps_what_is_demanded_today(replay: Replayed, home: Path) -> None:
    today = home / "reference-data" / "lab" / "criteria.yaml"
    kept = replay.path / "system" / "criteria.yaml"
    assert kept.read_text() == today.read_text()


def test_measured_run_is_marked_as_measured(measured: Path) -> None:
    run = load_run(measured)
    assert run.manifest["replay"] is None
    assert {case.replay for case in run.cases} == {False}
    assert set(run.measurements.collect()["replay"]) == {False}


def test_replay_that_finds_nothing_wrong_is_undecided(
    measured: Path, nothing: Path, tmp_path: Path
) -> None:
    result = replayed(only_well(tmp_path / "well", measured))
    assert result.exit_code == 3, result.output
    # The replay itself, two cases without a recording, two nodes that nothing used.
    assert "UNDECIDED  lab, campaign all: 5 undecided, 2 skipped, 1 pass" in (
        result.stdout
    )
    for how in ("broken", "killed"):
        assert f"latency_8B: not measured: Count %how={how} openmpi: skipped: " in (
            result.stdout
        )
    assert f"replay: {SAID}; the nodes were not inspected" in result.stdout
    cases = load_run(nothing / "lab" / "r").cases
    assert {case.case: case.result for case in cases} == {
        "Count %how=well": "pass",
        "Count %how=broken": "skip",
        "Count %how=killed": "skip",
    }
    reasons = {case.reason for case in cases if case.case == "Count %how=broken"}
    assert reasons == {
        f"no recording of Count %how=broken with openmpi in {tmp_path / 'well' / 'm'}"
    }


def test_replay_can_be_replayed(
    measured: Path, replay: Replayed, nothing: Path
) -> None:
    """The id of each replay says what it is."""
    arguments = ("run", "lab", "--campaign", "all", "--replay", str(replay.path))
    result = seatrial(*arguments, "--no-judge")
    assert result.exit_code == 0
    assert SAID in result.stdout
    again = find_run(nothing, "lab/latest")
    assert again.name.endswith("Z-all-replay")
    assert values(load_run(again)) == values(load_run(measured))
    assert seatrial("judge", "lab/latest").exit_code == 1


def test_other_blocks_take_recordings_by_repeat(measured: Path, nothing: Path) -> None:
    replayed(measured, campaign="again")
    run = load_run(nothing / "lab" / "r")
    assert values(run) == {"other-1": 1.0, "other-2": 2.0}
    assert {c.result for c in run.cases if c.session == "other-3"} == {"skip"}


def test_machine_that_never_saw_the_system_takes_it_from_the_run(
    home: Path, measured: Path, nothing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = nothing.parent / "home"
    shutil.copytree(home, fresh, symlinks=True)
    shutil.rmtree(fresh / "etc")
    monkeypatch.setenv("SEATRIAL_HOME", str(fresh))
    assert replayed(measured / "raw" / "all-1", "once").exit_code == 1
    bare = nothing.parent / "bare"
    shutil.copytree(measured / "raw", bare)
    result = replayed(bare, run_id="r2")
    assert result.exit_code == 2
    assert "does not say what system 'lab' is like" in result.stderr
    assert f"expected system.json and settings.yaml in {bare}/system" in result.stderr


def test_node_that_was_absent_is_absent_again(
    measured: Path, nothing: Path, tmp_path: Path
) -> None:
    copy = only_well(tmp_path / "copy", measured)
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["nodes"][1] |= {"state": "absent", "reason": "down: fan"}
    write(copy / "manifest.json", json.dumps(manifest))
    result = replayed(copy, "once")
    assert result.exit_code == 1
    assert "inventory at cn02: delivered but absent: down: fan" in result.stdout


def test_recording_of_fewer_nodes_is_replayed_on_as_many(
    measured: Path, nothing: Path, tmp_path: Path
) -> None:
    copy = only_well(tmp_path / "copy", measured)
    write(
        copy / "system" / "settings.yaml",
        json.dumps(settings(extras={"nodes": ["cn01", "cn02"]})),
    )
    rewrite_manifest(copy)
    assert replayed(copy, "once").exit_code == 3


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("empty", "no recordings there; expected folders with seatrial.json and rfm"),
        ("damaged", "not a record of a case: Object missing required field `check`"),
        ("other", "recorded on system 'other', expected 'lab'"),
        ("missing", "Directory 'missing' does not exist"),
    ],
)
def test_folder_that_cannot_be_replayed(
    nothing: Path, tmp_path: Path, folder: str, expected: str
) -> None:
    (tmp_path / "empty").mkdir()
    write(tmp_path / "damaged" / "x" / "seatrial.json", '{"samples": [\n]}')
    write(tmp_path / "damaged" / "x" / "rfm_job.out", "")
    other = json.dumps({"system": "other", "nodes": []})
    write(tmp_path / "other" / "system" / "system.json", other)
    write(tmp_path / "other" / "system" / "settings.yaml", json.dumps(settings()))
    result = replayed(tmp_path / folder if folder != "missing" else Path(folder))
    assert result.exit_code == 2
    assert expected in result.stderr
    assert not nothing.exists()


def test_plain_reframe_replays(measured: Path, home: Path, tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(json.dumps(settings(launcher="srun")))
    result = reframe(
        *("-C", "settings.json", "-c", str(home / "reframe-checks"), "-R", "-r"),
        *("-S", f"replay={measured}", "--report-file", "report.json"),
        *("--prefix", str(tmp_path), "--keep-stage-files", "-n", "how=well"),
        folder=tmp_path,
        RFM_REFERENCE_PREFIX=str(home / "reference-data" / "lab"),
    )
    report = json.loads((tmp_path / "report.json").read_text())
    (row,) = report["runs"][-1]["testcases"]
    assert row["result"] == "pass", result.stdout
    assert row["replay"] == str(measured)
    assert json.loads(Path(row["stagedir"], "seatrial.json").read_text())["replay"]
    script = Path(row["stagedir"], "rfm_job.sh").read_text()
    started = "srun --kill-on-bad-exit=1 bash -c"
    assert script.index(SAID) < script.index("exit 0\n") < script.index(started)


def spoiled(run: Run, what: str) -> Run:
    """Mark part of a measured run as replayed."""
    if what == "manifest":
        return replace(run, manifest=run.manifest | {"replay": "somewhere"})
    if what == "case":
        first, *rest = run.cases
        return replace(run, cases=(replace(first, replay=True), *rest))
    number = pl.int_range(pl.len()) == 3
    return replace(run, measurements=run.measurements.with_columns(replay=number))


@pytest.mark.parametrize("what", ["manifest", "case", "measurement"])
def test_run_of_both_is_never_judged(what: str) -> None:
    assert judge(sample_run(), sample_criteria()).replay is False
    with pytest.raises(SeatrialError, match="some of the results are measured, others"):
        judge(spoiled(sample_run(), what), sample_criteria())


def test_check_that_ran_its_program_in_a_replay_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checks of fake_home are plain ReFrame: they know no replay."""
    monkeypatch.setenv("SEATRIAL_HOME", str(write_home(tmp_path / "home")))
    monkeypatch.setenv("SEATRIAL_RESULTS", str(tmp_path / "results"))
    record(tmp_path / "recorded" / "x", "openmpi")
    result = replayed(tmp_path / "recorded", campaign="smoke")
    assert result.exit_code == 2
    assert "some of the results are measured, others replayed" in result.stderr


def test_no_node_passes_by_a_replay() -> None:
    judgement = judge(sample_run(replay=True), sample_criteria())
    assert {(node.verdict, node.reason) for node in judgement.nodes} == {
        ("undecided", SAID)
    }
    assert [f.verdict for f in judgement.findings].count("undecided") == 1


def record(folder: Path, environment: str, **parameters: Any) -> None:
    told = {"check": "A", "parameters": parameters, "environment": environment}
    write(folder / "seatrial.json", json.dumps(told) + "\n")
    write(folder / "rfm_job.out", "")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for session in ("b-1", "b-2", "b-10"):
        record(tmp_path / session / "p-openmpi-A_1", "openmpi", x=1)
    record(tmp_path / "c-7" / "q-mpich-A_1", "mpich", x=[1, 2.5])
    write(tmp_path / "d-1" / "seatrial.json", "{}")  # of a job that never started
    return tmp_path


@pytest.mark.parametrize(
    ("session", "parameters", "environment", "expected"),
    [
        ("", {"x": 1}, "openmpi", "b-1"),
        ("b-2", {"x": 1}, "openmpi", "b-2"),
        ("b-10", {"x": 1}, "openmpi", "b-10"),
        ("other-2", {"x": 1}, "openmpi", "b-2"),
        ("other-3", {"x": 1}, "openmpi", "b-10"),
        ("other-4", {"x": 1}, "openmpi", None),
        ("c-1", {"x": (1, 2.5)}, "mpich", "c-7"),
        ("", {"x": 1}, "mpich", None),
        ("", {"x": "1"}, "openmpi", None),
        ("", {}, "openmpi", None),
    ],
)
def test_recording_is_found_by_case_and_session(
    folder: Path,
    session: str,
    parameters: dict[str, Any],
    environment: str,
    expected: str | None,
) -> None:
    found = find_recording(folder, "A", parameters, environment, session)
    assert (found and found.folder.parent.name) == expected
    assert find_recording(folder, "B", parameters, environment, session) is None


def test_recording_says_what_is_to_be_replayed(tmp_path: Path) -> None:
    for name in ("rfm_job.err", "rfm_job.sh", "a/b", "seatrial.job"):
        write(tmp_path / "x" / name, "status=4\nnodes=cn01\n")
    record(tmp_path / "x", "openmpi")
    (found,) = recordings(tmp_path)
    assert (found.folder, found.check) == (tmp_path / "x", "A")
    assert (found.parameters, found.environment) == ({}, "openmpi")
    assert (found.num_nodes, found.job_id) == (None, None)
    assert [str(place) for place, _ in found.files()] == ["seatrial.job", "a/b"]
    assert found.status() == 4
