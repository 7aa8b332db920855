"""Campaigns on the lab for real: a clean one, and what may go wrong in a run."""

import json
import platform
import subprocess
import threading
import time
from pathlib import Path

import pytest
from conftest import Lab
from lab_runs import last_results, only_run, seatrial, stopped, wait_idle

pytestmark = pytest.mark.lab

SMOKE = ("run", "lab", "--campaign", "smoke", "--repeats")


def test_smoke_campaign_is_recorded_and_reported(lab: Lab, tmp_path: Path) -> None:
    """That a campaign passes is shown by `make accept`, with every check."""
    done = seatrial(*SMOKE, "1", results=tmp_path)
    assert done.returncode == 3, done.stdout + done.stderr  # one repeat is too few
    assert "UNDECIDED  lab, campaign smoke" in done.stdout
    run = only_run(tmp_path)
    nodes = [node["name"] for node in run.manifest["nodes"]]
    assert {case.check for case in run.cases} == {"Halo", "PairSweep"}
    assert {case.environment for case in run.cases} == {"openmpi", "mpich"}
    assert all(list(case.nodes) == nodes for case in run.cases)
    for case in run.cases:
        script = (run.path / str(case.raw) / "rfm_job.sh").read_text()
        assert "#SBATCH --no-requeue" in script
        assert ("--kill-on-bad-exit=1" in script) == (case.check == "Halo")
    sweep = run.measurements.filter(metric="bw").collect()
    assert set(sweep["source"]) == set(nodes)
    assert run.settings is not None
    releases = run.settings.filter(key="release").sort("moment", "node")
    assert releases["node"].to_list() == 2 * nodes, "at start and end"
    assert set(releases["actual"]) == {platform.release()}
    assert run.manifest["settings"]["kernel"]["release"] == platform.release()
    report = seatrial(
        *("report", "lab/latest", "--out", str(tmp_path / "report")), results=tmp_path
    )
    assert report.returncode == 0, report.stderr
    assert "unctional demonstration" in (tmp_path / "report/report.html").read_text()


@pytest.mark.slow
def test_nodes_that_are_down_or_drained_fail_the_inventory(
    lab: Lab, tmp_path: Path
) -> None:
    """cn04 is down before the run, cn02 is drained in the middle: the rest goes on."""
    update = "sudo scontrol update nodename="
    down = f"{update}cn04 state=down reason='broken fan'"
    drain = f"{update}cn02 state=drain reason='bad DIMM'"
    assert lab.ssh("head", down).returncode == 0

    def drain_in_the_middle() -> None:
        running = "squeue --noheader --states=running --format=%k"
        while ":pairs-1" not in lab.ssh("head", running).stdout:
            time.sleep(0.2)
        lab.ssh("head", drain)

    drained = threading.Thread(target=drain_in_the_middle)
    drained.start()
    try:
        done = seatrial(*SMOKE, "1", results=tmp_path)
    finally:
        drained.join()
        lab.ssh("head", f"{update}cn02,cn04 state=resume")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "node cn04 is absent" in done.stdout
    # Once while the run is at work, once in the verdict.
    assert done.stdout.count("nodes; cn02 is drained (bad DIMM, by root, ") == 2
    run = only_run(tmp_path)
    assert all("cn04" not in case.nodes for case in run.cases)
    assert last_results(run) == {"pass"}
    (event,) = {event for case in run.cases for event in case.node_events}
    assert (event.node, event.state) == ("cn02", "drained")
    assert (event.user, event.reason) == ("root", "bad DIMM")
    waited = [case for case in run.cases if "never started" in str(case.reason)]
    assert 0 < sum(case.elapsed_s or 0.0 for case in waited) < 60 * len(waited)
    judged = seatrial(*("judge", "lab/latest", "--format", "json"), results=tmp_path)
    failed = {
        finding["place"]: finding["reason"]
        for finding in json.loads(judged.stdout)["findings"]
        if finding["verdict"] == "fail" and finding["kind"] == "inventory"
    }
    assert failed.keys() == {"cn02", "cn04"}
    assert "drained at " in failed["cn02"]
    assert ": bad DIMM" in failed["cn02"]
    wait_idle(lab, 4)


@pytest.mark.slow
def test_a_controller_that_is_away_does_not_end_the_run(
    lab: Lab, tmp_path: Path
) -> None:
    gone = threading.Event()

    def stop_for_a_while() -> None:
        running = "squeue --noheader --states=running"
        while not lab.ssh("head", running).stdout.strip():
            time.sleep(0.2)
        time.sleep(2)  # into the steps of the sweep
        with stopped(lab, "slurmctld", "head"):
            gone.set()
            time.sleep(12)

    outage = threading.Thread(target=stop_for_a_while)
    outage.start()
    try:
        done = seatrial(*SMOKE, "1", "--no-judge", results=tmp_path)
    finally:
        outage.join()
    assert gone.is_set()
    assert done.returncode == 0, done.stdout + done.stderr
    assert last_results(only_run(tmp_path)) == {"pass"}
    wait_idle(lab, 4)


def test_a_full_disk_is_noticed_before_the_run(lab: Lab, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", str(small)], check=True
    )
    try:
        done = seatrial(*SMOKE, "1", results=small)
        assert done.returncode == 2, done.stdout + done.stderr
        assert "nothing was started" in done.stderr
        assert list(small.iterdir()) == []
        assert seatrial("report", "lab/latest", results=small).returncode == 2
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_usage_errors_name_what_is_known(tmp_path: Path) -> None:
    for arguments, known in (
        (("run", "atlantis", "--campaign", "smoke"), "lab"),
        (
            ("run", "lab", "--campaign", "regatta"),
            "scaling, selftest, smoke, stability, stability-demo, verbs",
        ),
    ):
        done = seatrial(*arguments, results=tmp_path)
        assert done.returncode == 2
        assert known in done.stderr
        assert "Traceback" not in done.stderr
