"""Tools of tests on the lab: runs of campaigns and checks, and faults that end."""

import json
import os
import shlex
import subprocess
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import HOME, LAB_HOME, Lab

from seatrial.commands.lab import require_root_on_debian
from seatrial.runs.closed_run import Run, load_run
from seatrial.system.lab import cluster


def seatrial(
    *arguments: str, results: Path, timeout_s: float = 600
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["seatrial", *arguments],
        cwd=HOME,
        env=os.environ | {"SEATRIAL_RESULTS": str(results)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
    )


@contextmanager
def scale_lab(folder: Path, nodes: int) -> Iterator[Lab]:
    """The scale lab with Slurm; no lab afterwards."""
    require_root_on_debian()
    cluster.down(LAB_HOME)
    lab = Lab(folder, "scale-lab")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAB_SCALE", str(nodes))
        try:
            lab.play("lab")
            lab.play("cluster")
            yield lab
        finally:
            cluster.down(LAB_HOME)


def play_inventory(
    inventory: Path, playbook: str, *options: str, tools: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a playbook with an inventory of a test; `tools` come first on PATH."""
    path = f"{tools}:{os.environ['PATH']}" if tools else os.environ["PATH"]
    return subprocess.run(
        ["ansible-playbook", "-i", inventory, f"playbooks/{playbook}.yml", *options],
        cwd=HOME,
        env=os.environ | {"PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )


def results_of(lab: Lab) -> str:
    """Return the folder of a lab's runs on its head."""
    return f"/home/seatrial/seatrial/results/{lab.system}"


def begin(lab: Lab, *arguments: str, results: Path) -> subprocess.Popen[str]:
    """Start a run of a campaign that is not judged."""
    return subprocess.Popen(
        ["seatrial", "run", lab.system, "--no-judge", *arguments],
        cwd=HOME,
        env=os.environ | {"SEATRIAL_RESULTS": str(results)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def driver_pid(lab: Lab, run_id: str, other: int = 0) -> int:
    """Wait for a driver of a run on the head; give its process id."""
    deadline = time.monotonic() + 120
    while True:
        lock = lab.ssh(
            lab.head, f"cat {results_of(lab)}/{run_id}.open/driver.lock"
        ).stdout
        if lock and json.loads(lock)["pid"] != other:
            return int(json.loads(lock)["pid"])
        assert time.monotonic() < deadline, "no driver on the head"
        time.sleep(0.2)


def jobs_of(lab: Lab, run_id: str) -> list[str]:
    """List the jobs of a run."""
    listed = lab.ssh(lab.head, "squeue --noheader --format='%i %k'").stdout
    return [line for line in listed.splitlines() if f"seatrial:{run_id}:" in line]


def wait_for_job(lab: Lab, run_id: str, session: str, patience_s: float = 120) -> None:
    """Wait until a job of a session runs."""
    running = "squeue --noheader --states=running --format=%k"
    deadline = time.monotonic() + patience_s
    while f"seatrial:{run_id}:{session}" not in lab.ssh(lab.head, running).stdout:
        assert time.monotonic() < deadline, f"{session} does not start"
        time.sleep(0.1)


def only_run(results: Path) -> Run:
    (path,) = (results / "lab").iterdir()
    return load_run(path)


def last_results(run: Run) -> set[str]:
    """Return how the last try of every case ended: an MPI may die when it starts."""
    last = {(case.session, case.case, case.environment): case for case in run.cases}
    return {case.result for case in last.values()}


@contextmanager
def stopped(lab: Lab, service: str, node: str) -> Iterator[None]:
    assert lab.ssh(node, f"sudo systemctl stop {service}").returncode == 0
    try:
        yield
    finally:
        lab.ssh(node, f"sudo systemctl start {service}")


def wait_idle(lab: Lab, nodes: int) -> None:
    deadline = time.monotonic() + 60
    command = "sinfo --noheader --Node --states=idle --format=%N"
    while len(lab.ssh("head", command).stdout.split()) != nodes:
        assert time.monotonic() < deadline, "the lab's nodes do not come back"
        time.sleep(0.5)


KILL_DAEMON = "sudo systemctl kill --signal=KILL slurmd --kill-who="
DOWN = "sudo scontrol update nodename=cn03 state=down reason='broken fan'"


@dataclass(frozen=True)
class CheckRun:
    """One case of a check that plain ReFrame runs on the lab; cn03 may die in it."""

    lab: Lab
    check: str
    folder: str
    process: subprocess.Popen[str]

    def end(self) -> str:
        """Wait for its end; give what ReFrame said."""
        said, _ = self.process.communicate(timeout=500)
        return said

    def command(self, more: str, name: str) -> bool:
        """Return True if a command with a file of its stage folder succeeds."""
        stage = f"{self.folder}/stage/lab/batch/openmpi/{self.check}"
        return self.lab.ssh("head", f"{more} {stage}/{name}").returncode == 0

    def output(self, name: str) -> str:
        """Return a file of its stage folder."""
        stage = f"{self.folder}/stage/lab/batch/openmpi/{self.check}"
        return self.lab.ssh("head", f"cat {stage}/{name}").stdout

    def record(self) -> Any:
        """Return its record, with the samples of its table if it has one."""
        record = json.loads(self.output("seatrial.json"))
        if self.command("test -f", "seatrial.parquet"):
            stage = f"{self.folder}/stage/lab/batch/openmpi/{self.check}"
            text = self.lab.ssh("head", f"base64 {stage}/seatrial.parquet").stdout
            table = pl.read_parquet(BytesIO(b64decode(text)))
            record["samples"] += table.rows(named=True)
        return record

    def result(self) -> Any:
        """Return ReFrame's entry of the case."""
        report = self.lab.ssh("head", f"cat {self.folder}/report.json").stdout
        (case,) = json.loads(report)["runs"][-1]["testcases"]
        return case


@contextmanager
def check_run(lab: Lab, check: str, **variables: object) -> Iterator[CheckRun]:
    """Run a check with plain ReFrame, and heal the lab when it has ended."""
    chosen = (f"-S {check}.{name}={value}" for name, value in variables.items())
    folder = f"/home/seatrial/{check}-of-a-test"
    script = f"""
        rm -rf {folder}; mkdir {folder}; cd {folder}
        module use /home/seatrial/seatrial/modulefiles; module load seatrial/lab
        reframe -n {check} -p openmpi -r --keep-stage-files --prefix={folder} \
            --report-file={folder}/report.json {" ".join(chosen)}
    """
    ssh = ("ssh", "-F", str(cluster.ssh_config(LAB_HOME)), "head")
    process = subprocess.Popen(
        [*ssh, f"bash -lc {shlex.quote(script)}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield CheckRun(lab, check, folder, process)
    finally:
        process.kill()
        lab.ssh("head", "scancel --me")
        lab.ssh("cn03", "sudo systemctl start slurmd")
        lab.ssh("head", "sudo scontrol update nodename=cn03 state=resume")
        lab.ssh("head", f"rm -rf {folder}")
        wait_idle(lab, 4)
