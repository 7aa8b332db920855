"""The second lab: Debian 13, arranged like a site of somebody else."""

import json
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from conftest import LAB_HOME, Lab
from lab_runs import last_results, seatrial

from seatrial.commands.lab import require_root_on_debian
from seatrial.runs.closed_run import load_run
from seatrial.system.lab import cluster

pytestmark = [pytest.mark.lab, pytest.mark.slow]

SYSTEM = "lab-trixie"
AS_ROOT = ("-e", "ansible_user=root")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The second lab with Slurm and its site's policies; no lab afterwards."""
    require_root_on_debian()
    cluster.down(LAB_HOME)
    lab = Lab(tmp_path_factory.mktemp("foreign"), SYSTEM)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAB_DISTRIBUTION", "trixie")
        lab.play("lab")
        lab.play("cluster", *AS_ROOT)
        lab.play("foreign", *AS_ROOT)
        yield lab
    cluster.down(LAB_HOME)


def test_site_is_a_foreign_one(site: Lab) -> None:
    """No ssh to a node without a job, a hidden partition, no programs in /tmp."""
    assert site.ssh("login1", "ssh -o BatchMode=yes cn01 true").returncode != 0
    assert "restricted" not in site.ssh("login1", "sinfo").stdout
    assert "restricted" in site.ssh("login1", "sinfo --all").stdout
    program = "cp /bin/true /tmp/$$ && /tmp/$$; status=$?; rm /tmp/$$; exit $status"
    assert site.ssh("login1", program).returncode == 126
    assert "is UP" not in site.ssh("login1", "systemctl is-active slurmctld").stdout
    modules = site.ssh("login1", "bash -lc 'module -t avail 2>&1'").stdout
    assert "openmpi" not in modules  # Lmod shows it after its compiler is loaded


def test_the_doctor_says_go(site: Lab, tmp_path: Path) -> None:
    done = seatrial("doctor", SYSTEM, "--format", "json", results=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    findings = json.loads(done.stdout)
    doubts = {(f["topic"], f["subject"]) for f in findings if f["verdict"] != "ok"}
    assert doubts == {(t, c) for t in ("memlock", "/tmp") for c in ("cpu", "fat")}
    texts = {f["subject"]: f["text"] for f in findings if f["topic"] == "partition"}
    assert "(hidden)" in texts["fat"]


def test_installation_and_smoke_without_root(site: Lab, tmp_path: Path) -> None:
    """The suite is installed by an ordinary user; all jobs go through Slurm."""
    site.play("site")
    assert site.play("site") == 0
    arguments = ("run", SYSTEM, "--campaign", "smoke", "--run-id", "r1")
    done = seatrial(*arguments, results=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    run = load_run(tmp_path / SYSTEM / "r1")
    assert last_results(run) == {"pass"}
    nodes = {node for case in run.cases for node in case.nodes}
    assert nodes == {"cn01", "cn02", "cn03", "cn04", "fat01", "fat02"}
    reported = seatrial(
        "report", f"{SYSTEM}/r1", "--out", str(tmp_path / "out"), results=tmp_path
    )
    assert reported.returncode == 0, reported.stderr
    assert "fat01" in (tmp_path / "out" / "report.html").read_text()


NIGHTLY = """
schema: 1
window: {{start: '{start:%H:%M}', end: '{end:%H:%M}'}}
every: 1
node_hours: 10
account: acceptance
"""
MINE = "5 5 * * * /bin/true # a line of the user\n"


def test_a_night_by_scrontab(site: Lab) -> None:
    """Slurm starts it at its hour, and queues it again for the next day."""
    site.play("site")
    now = datetime.fromisoformat(site.ssh("login1", "date +%FT%T").stdout.strip())
    start = now + timedelta(minutes=2)
    declared = NIGHTLY.format(start=start, end=start + timedelta(hours=3))
    file = f"seatrial/reference-data/{SYSTEM}/nightly.yaml"
    site.ssh("login1", f"cat > {file} <<'END'\n{declared}END")
    site.ssh("login1", f"cat > mine <<'END'\n{MINE}END\nscrontab mine")

    def nightly(command: str) -> subprocess.CompletedProcess[str]:
        return site.ssh("login1", f"seatrial/bin/seatrial nightly {command}")

    installed = nightly(f"install {SYSTEM} --yes")
    assert installed.returncode == 0, installed.stdout + installed.stderr
    assert site.ssh("login1", "scrontab -l").stdout.endswith(MINE)
    states = f"squeue --me -h -n seatrial-nightly-{SYSTEM} -o '%T %r'"
    log = f"cat seatrial/results/{SYSTEM}/nightly.log"
    ended = f"{SYSTEM}: 1 night, "
    deadline = time.monotonic() + 1200
    while ended not in (said := site.ssh("login1", log).stdout):
        assert time.monotonic() < deadline, said
        time.sleep(5)
    assert "pages: " in said
    assert "quarantined" not in said
    while not site.ssh("login1", states).stdout.startswith("PENDING"):
        assert time.monotonic() < deadline
        time.sleep(2)
    again = nightly(f"run {SYSTEM}")
    assert "is measured already" in again.stdout
    assert nightly(f"remove {SYSTEM}").returncode == 0
    assert site.ssh("login1", "scrontab -l").stdout == MINE
