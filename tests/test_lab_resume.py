"""Runs on the lab that lose their driver, or a daemon of Slurm: nothing is lost."""

import random
import time
from pathlib import Path

import pytest
from conftest import Lab
from lab_runs import (
    begin,
    driver_pid,
    jobs_of,
    last_results,
    only_run,
    results_of,
    seatrial,
    stopped,
    wait_for_job,
    wait_idle,
)

pytestmark = pytest.mark.lab

SMOKE = ("--campaign", "smoke", "--repeats", "1")
LEFT_BEHIND = (
    "sbatch --parsable --chdir=/tmp --output=/dev/null "
    "--comment=seatrial:crash:pairs-1 --wrap='sleep 600'"
)


def closed_files(lab: Lab, run_id: str) -> dict[str, str]:
    """Return the checksums of all files of closed sessions."""
    script = f"""
        cd {results_of(lab)}/{run_id}.open && ls sessions/*.json 2>/dev/null |
        while read -r record; do
            name=$(basename "$record" .json)
            find "$record" "sessions/$name.parquet" "raw/$name" -type f
        done | xargs -r sha256sum
    """
    lines = lab.ssh("head", script).stdout.splitlines()
    return {name: digest for digest, name in (line.split(maxsplit=1) for line in lines)}


@pytest.fixture(autouse=True)
def nothing_there(lab: Lab) -> None:
    """No run of an earlier test is left on the head, nor in the controller's mind.

    Slurm 22.05 may hold a node for busy that it once removed from a running job, as
    other tests make it do, until it reads its configuration again.
    """
    lab.ssh("head", "sudo scontrol reconfigure")
    lab.ssh(
        "head", f"rm -rf {results_of(lab)}/{{crash,node,slurmctld,slurmdbd}}{{,.open}}"
    )


@pytest.mark.slow
@pytest.mark.parametrize("kills", [2, 4])
def test_a_driver_killed_at_random_moments(
    lab: Lab, tmp_path: Path, kills: int
) -> None:
    """Of kills, every second also hits ReFrame, as the end of the login node would."""
    moments = random.Random(20261121)
    process = begin(lab, *SMOKE, "--run-id", "crash", results=tmp_path)
    closed: dict[str, str] = {}
    pid, said = 0, ""
    for kill in range(kills):
        pid = driver_pid(lab, "crash", other=pid)
        time.sleep(moments.uniform(1.0, 14.0))
        if process.poll() is not None:
            break  # the run was faster than this moment
        children = f"$(pgrep --parent {pid})" if kill % 2 else ""
        lab.ssh("head", f"kill -KILL {pid} {children}")
        said += process.communicate(timeout=120)[0]
        assert process.returncode not in (0, 1, 3)
        assert not (tmp_path / "lab").exists(), "an open run was copied"
        if children:
            job = lab.ssh("head", LEFT_BEHIND).stdout.strip()
            assert any(line.startswith(job) for line in jobs_of(lab, "crash"))
        found = closed_files(lab, "crash")
        assert closed.items() <= found.items(), "a closed session was lost or changed"
        closed = found
        process = begin(lab, "--resume", results=tmp_path)
    said += process.communicate(timeout=300)[0]
    assert process.returncode == 0, said
    assert "Traceback" not in said
    assert jobs_of(lab, "crash") == []
    assert said.count("cancelled jobs left behind") == kills // 2
    run = only_run(tmp_path)
    assert [each["name"] for each in run.manifest["sessions"]] == ["pairs-1", "halo-1"]
    assert len(run.manifest["starts"]) > 1
    found_cases = [(case.case, case.environment) for case in run.cases]
    tries = [(case.case, case.environment, case.attempt) for case in run.cases]
    assert len(tries) == len(set(tries))
    assert len(set(found_cases)) == 12
    assert last_results(run) == {"pass"}
    kept = {name: digest for name, digest in closed.items() if name.startswith("raw/")}
    assert kept.items() <= run.manifest["checksums"].items()
    wait_idle(lab, 4)


@pytest.mark.slow
@pytest.mark.parametrize("daemon", ["slurmctld", "slurmdbd"])
def test_a_killed_daemon_of_the_controller_does_not_end_a_run(
    lab: Lab, tmp_path: Path, daemon: str
) -> None:
    """A controller that died forgets the newest job; its session starts anew."""
    process = begin(lab, *SMOKE, "--run-id", daemon, results=tmp_path)
    wait_for_job(lab, daemon, "pairs-1")
    lab.ssh("head", f"sudo systemctl kill --signal=KILL {daemon}")
    with stopped(lab, daemon, "head"):
        time.sleep(10)
    # It had ended, but the controller may have saved its state before that.
    lab.ssh("head", "scancel --name=seatrial-audit")
    deadline = time.monotonic() + 900
    while process.poll() is None and time.monotonic() < deadline:
        # A node is drained when the controller gives it the id of a job it had before.
        lab.ssh("head", "sudo scontrol update nodename=cn[01-04] state=resume")
        time.sleep(3)
    said = process.communicate(timeout=1)[0]
    assert process.returncode == 0, said
    run = only_run(tmp_path)
    assert [each["name"] for each in run.manifest["sessions"]] == ["pairs-1", "halo-1"]
    assert {"pass"} <= {case.result for case in run.cases} <= {"pass", "fail"}
    assert len({(c.case, c.environment) for c in run.cases}) == 12
    assert jobs_of(lab, daemon) == []
    wait_idle(lab, 4)


@pytest.mark.slow
def test_a_node_that_dies_fails_its_case_and_the_run_goes_on(
    lab: Lab, tmp_path: Path
) -> None:
    """Its sessions close, what was measured before is whole, no job is left.

    The run fails and names the node, though that is back at once.
    """
    process = begin(lab, *SMOKE, "--run-id", "node", results=tmp_path)
    try:
        wait_for_job(lab, "node", "halo-1")
        lab.ssh("cn03", "sudo systemctl kill --signal=KILL slurmd")
        down = "sudo scontrol update nodename=cn03 state=down reason='broken fan'"
        assert lab.ssh("head", down).returncode == 0
    finally:
        lab.ssh("cn03", "sudo systemctl start slurmd")
        lab.ssh("head", "sudo scontrol update nodename=cn03 state=resume")
    said = process.communicate(timeout=300)[0]
    assert process.returncode == 0, said
    run = only_run(tmp_path)
    failed = [case for case in run.cases if case.result == "fail"]
    assert {case.session for case in failed} == {"halo-1"}
    assert str(failed[0].reason).startswith("lost a node: cn03 down at ")
    assert str(failed[0].reason).endswith(" by root: broken fan")
    page = tmp_path / "page"
    form = ("--form", "md", "--out", str(page))
    report = seatrial("report", "lab/latest", *form, results=tmp_path)
    assert report.returncode == 0, report.stderr
    said = (page / "summary.md").read_text()
    assert "FAIL" in said
    assert "cn03" in said
    assert "broken fan" in said
    assert seatrial("judge", "lab/latest", results=tmp_path).returncode == 1
    assert run.measurements.filter(session="pairs-1").collect().height
    assert jobs_of(lab, "node") == []
    wait_idle(lab, 4)
