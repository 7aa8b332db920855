"""The checks with OSU: what is skipped, what is refused, and how steps are run."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from reframe_runs import HOME, SETTINGS, check_paths, reframe
from reframe_runs import record_of as record

REPLAY = Path(__file__).parent / "data" / "replay"
OPENMPI = 0


def settings() -> dict[str, Any]:
    """Settings of a lab of captured outputs, to be changed."""
    loaded: dict[str, Any] = json.loads(SETTINGS.read_text())
    loaded["systems"][0]["name"] = "lab"
    loaded["systems"][0]["partitions"][0]["launcher"] = "srun"
    return loaded


def run(
    folder: Path,
    changed: dict[str, Any],
    *options: str,
    path: Path = REPLAY,
    **variables: str,
) -> dict[str, Any]:
    """Run one case; give its row in the report, with the reason of a skip."""
    (row,) = run_cases(folder, changed, *options, path=path, **variables)
    return row


def run_cases(
    folder: Path,
    changed: dict[str, Any],
    *options: str,
    path: Path = REPLAY,
    **variables: str,
) -> list[dict[str, Any]]:
    """Run cases; give their rows, with the reasons of skips."""
    (folder / "settings.json").write_text(json.dumps(changed))
    result = reframe(
        *("-C", "settings.json", *check_paths(*options), "-r", "--keep-stage-files"),
        *("--prefix", str(folder), "--report-file", "report.json", "--nocolor"),
        *options,
        folder=folder,
        PATH=f"{path}:{REPLAY}:{os.environ['PATH']}",
        SEATRIAL_HOME=str(HOME),
        SLURM_JOB_NODELIST="cn01,cn02,cn03,cn04",
        **variables,
    )
    file = folder / "report.json"
    assert file.is_file(), result.stdout + result.stderr
    rows = json.loads(file.read_text())["runs"][-1]["testcases"]
    skipped = re.findall(r"^\[ +SKIP \] .* @\S+ \[(.*)\]$", result.stdout, re.MULTILINE)
    return [
        {**row, "fail_reason": row["fail_reason"] or "; ".join(skipped)} for row in rows
    ]


def script(row: dict[str, Any]) -> str:
    return Path(row["stagedir"], "steps.sh").read_text()


def test_missing_program_is_skipped_with_what_to_do(tmp_path: Path) -> None:
    changed = settings()
    changed["environments"][OPENMPI]["extras"]["programs"].remove("osu_bibw")
    row = run(tmp_path, changed, "-n", "OsuBandwidth%between=nodes%buffers=single")
    assert row["result"] == "skip"
    assert row["fail_reason"] == (
        "openmpi has no osu_bibw, of the feature osu; install it, and name its folder "
        "in programs.osu of mpi_stacks"
    )


def test_clock_that_slurm_may_not_set_is_skipped(tmp_path: Path) -> None:
    changed = settings()
    changed["systems"][0]["partitions"][0]["extras"]["cpu_frequencies"] = []
    row = run(tmp_path, changed, "-n", "OsuClock")
    assert row["result"] == "skip"
    assert "names no cpu_frequencies of the class batch" in row["fail_reason"]


def test_message_rate_is_measured_at_every_clock(tmp_path: Path) -> None:
    row = run(tmp_path, settings(), "-n", "OsuClock")
    assert row["result"] == "pass", row["fail_reason"]
    assert re.findall(r"--cpu-freq=(\d+) bash", script(row)) == ["1500000", "2600000"]
    shown = "/sys/devices/system/cpu/cpu$cpu/cpufreq/scaling_cur_freq"
    assert script(row).count(f'read -r clock <"{shown}"') == 2
    rates = [
        sample["parameters"]
        for sample in record(row)["samples"]
        if (sample["metric"], sample["size_bytes"]) == ("msg_rate", 8)
    ]
    assert rates == [{"clock_khz": 1500000}, {}]


def test_message_rate_under_another_clock_is_none(tmp_path: Path) -> None:
    row = run(tmp_path, settings(), "-n", "OsuClock", CLOCK_KHZ="2600000")
    assert row["result"] == "fail"
    assert "clock 2600000 kHz, asked for 1500000" in row["fail_reason"]
    assert record(row)["samples"] == []


def test_tuning_sets_its_variables_and_is_recorded(tmp_path: Path) -> None:
    tuning = ("-S", "OsuBarrier.tuning=no-pin", "-S", "OsuBarrier.placement=cyclic")
    row = run(tmp_path, settings(), "-n", "OsuBarrier", *tuning)
    assert row["result"] == "pass", row["fail_reason"]
    assert record(row)["parameters"] == {"tuning": "no-pin", "placement": "cyclic"}
    job = Path(row["stagedir"], "rfm_job.sh").read_text()
    assert "export OMPI_MCA_mpi_leave_pinned=0\n" in job
    assert " --distribution=cyclic " in job


def test_tuning_that_a_stack_lacks_is_skipped(tmp_path: Path) -> None:
    row = run(tmp_path, settings(), "-n", "OsuBarrier", "-S", "OsuBarrier.tuning=fast")
    assert row["result"] == "skip"
    assert row["fail_reason"] == (
        "mpi_stacks names no tuning 'fast' for openmpi; it has no-pin"
    )


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("Pass$", "Fail", "osu_barrier_or_bcast,validated"),
        pytest.param("^64 .*", "", "expected 64", marks=pytest.mark.slow),
        pytest.param("[0-9.]* *20$", "nan 20", "osu_bcast", marks=pytest.mark.slow),
    ],
)
def test_damaged_output_fails_and_leaves_no_number(
    old: str, new: str, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "srun").write_text(
        f"#!/bin/bash\n{REPLAY / 'srun'} \"$@\" | sed 's/{old}/{new}/'\n"
    )
    (tmp_path / "srun").chmod(0o755)
    only = ("-n", "OsuCollective%benchmark=bcast")
    row = run(tmp_path, settings(), *only, path=tmp_path)
    assert row["result"] == "fail"
    assert reason.replace("osu_barrier_or_bcast", "osu_bcast") in row["fail_reason"]
    assert record(row)["samples"] == []


def test_step_that_fails_ends_the_job_with_its_status(tmp_path: Path) -> None:
    (tmp_path / "srun").write_text("#!/bin/bash\necho no such option >&2\nexit 3\n")
    (tmp_path / "srun").chmod(0o755)
    row = run(tmp_path, settings(), "-n", "OsuBarrier", path=tmp_path)
    assert row["result"] == "fail"
    assert "exit status 3" in row["fail_reason"]
    assert "no such option" in row["fail_reason"]


def test_step_is_tried_again_when_slurm_could_not_make_it(tmp_path: Path) -> None:
    row = run(tmp_path, settings(), "-n", "OsuBarrier")
    (tmp_path / "srun").write_text(
        "#!/bin/bash\n"
        "if [ ! -e tried ]; then\n    touch tried\n"
        "    echo 'srun: error: Unable to create step for job 1' >&2\n    exit 1\nfi\n"
        f'exec {REPLAY / "srun"} "$@"\n'
    )
    (tmp_path / "srun").chmod(0o755)
    done = subprocess.run(
        ["bash", str(Path(row["stagedir"], "steps.sh")), str(tmp_path / "srun")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    steps = re.findall(r"^# (step|done) (\S+)", done.stdout, re.MULTILINE)
    assert steps == [
        ("step", "osu_barrier"),
        ("done", "osu_barrier"),
        ("step", "osu_barrier,num_nodes=2"),
        ("done", "osu_barrier,num_nodes=2"),
    ]
    assert "Unable to create step" in done.stderr


def test_one_node_has_no_pair_of_nodes(tmp_path: Path) -> None:
    changed = settings()
    changed["systems"][0]["partitions"][0]["extras"]["nodes"] = ["cn01"]
    row = run(tmp_path, changed, "-n", "OsuOneSided")
    assert row["result"] == "skip"
    assert row["fail_reason"] == "nodes needed: 2, available: 1"


def test_one_core_has_no_pair_of_cores(tmp_path: Path) -> None:
    changed = settings()
    changed["systems"][0]["partitions"][0]["processor"]["num_cpus"] = 2
    row = run(tmp_path, changed, "-n", "OsuLatency%between=cores")
    assert row["result"] == "skip"
    assert row["fail_reason"] == "it takes 2 ranks on a node, which has 1 cores"
    more = ("-S", "OsuLatency.oversubscribe=yes")
    row = run(tmp_path, changed, "-n", "OsuLatency%between=cores", *more)
    assert row["result"] == "pass", row["fail_reason"]
