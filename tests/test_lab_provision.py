"""Playbooks in the lab: idempotence, check mode, and clusters that are not ours."""

import json
import platform
from pathlib import Path

import pytest
from conftest import Lab
from lab_runs import seatrial

from seatrial.errors import SeatrialError
from seatrial.system.lab import cluster

pytestmark = pytest.mark.lab


@pytest.mark.parametrize(
    ("foreign", "file"),
    [
        pytest.param(
            *("sed -i 1d /etc/slurm/slurm.conf", "slurm.conf"), marks=pytest.mark.slow
        ),
        ("rm /etc/munge/seatrial.sha256", "munge.key"),
    ],
)
def test_a_cluster_of_somebody_else_is_refused(
    lab: Lab, foreign: str, file: str
) -> None:
    folder = f"/etc/{file.split('.')[0]}"
    assert lab.ssh("cn02", f"sudo cp -a {folder} /root/kept").returncode == 0
    try:
        lab.ssh("cn02", f"sudo {foreign}")
        before = lab.ssh("cn02", f"sudo sha256sum {folder}/{file}").stdout
        with pytest.raises(SeatrialError, match=f"{file} on cn02 was not written by"):
            lab.play("cluster")
        assert lab.ssh("cn02", f"sudo sha256sum {folder}/{file}").stdout == before
    finally:
        lab.ssh("cn02", f"sudo rm -r {folder} && sudo mv /root/kept {folder}")


def test_the_doctor_says_go(lab: Lab, tmp_path: Path) -> None:
    """Memlock is the only warning: the lab's containers have a low limit."""
    done = seatrial("doctor", "lab", "--format", "json", results=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    findings = json.loads(done.stdout)
    assert {f["topic"] for f in findings if f["verdict"] != "ok"} <= {"memlock"}
    assert {"batch", "openmpi", "login"} <= {f["subject"] for f in findings}


@pytest.mark.parametrize("way", [(), ("--ssh",)])
def test_settings_of_all_nodes_are_audited(
    lab: Lab, tmp_path: Path, way: tuple[str, ...]
) -> None:
    """The nodes share the kernel of this machine, and have no HCA."""
    arguments = ("audit", "lab", "--all", "--format", "json", *way)
    done = seatrial(*arguments, results=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(done.stdout)
    releases = {row["node"]: row for row in rows if row["key"] == "release"}
    assert releases.keys() == {"cn01", "cn02", "cn03", "cn04"}
    assert {row["actual"] for row in releases.values()} == {platform.release()}
    assert {row["verdict"] for row in releases.values()} == {"ok"}
    left = lab.ssh("head", "ls -a /home/seatrial/seatrial").stdout
    assert ".audit-" not in left


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cluster", "site"])
def test_second_run_changes_nothing(lab: Lab, name: str) -> None:
    """Nor do the attempts at a foreign cluster leave anything behind."""
    assert lab.play(name) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cluster", "site"])
def test_check_mode_changes_nothing(lab: Lab, name: str) -> None:
    assert lab.play(name, "--check") == 0


def test_the_cluster_is_complete(lab: Lab) -> None:
    found = lab.ssh("head", "sinfo --noheader --Node --format='%N %T'").stdout
    nodes = dict(line.split() for line in found.splitlines())
    assert len(nodes) >= 4
    assert set(nodes.values()) == {"idle"}
    assert {n.node: n.slurm for n in cluster.status() if n.slurm != "-"} == nodes
    config = lab.ssh("head", "scontrol show config").stdout
    assert "ScronParameters         = enable" in config
    accounting = lab.ssh("head", "sacctmgr --noheader list cluster format=cluster")
    assert accounting.stdout.split() == ["lab"]


def test_plain_reframe_sees_the_same_checks(lab: Lab) -> None:
    command = "module load ~/seatrial/modulefiles/seatrial/lab && reframe -l"
    listed = lab.ssh("head", f"bash -lc '{command}'")
    assert listed.returncode == 0, listed.stderr
    for check in ("Halo", "ImbRing", "Hpcc", "Lammps"):
        assert check in listed.stdout


def test_man_pages_and_completion_are_installed(lab: Lab) -> None:
    share = "~/seatrial/share"
    pages = lab.ssh("head", f"ls {share}/man/man1").stdout.split()
    assert {"seatrial.1", "seatrial-run.1", "seatrial-lab-up.1"} <= set(pages)
    for file in (
        "bash-completion/completions/seatrial",
        "zsh/site-functions/_seatrial",
        "fish/vendor_completions.d/seatrial.fish",
    ):
        assert lab.ssh("head", f"test -s {share}/{file}").returncode == 0, file
    command = (
        f"module load ~/seatrial/modulefiles/seatrial/lab && "
        f"source {share}/bash-completion/completions/seatrial && "
        f"COMP_WORDS=(seatrial verif) && COMP_CWORD=1 && "
        f"_seatrial_completion seatrial && echo $COMPREPLY"
    )
    done = lab.ssh("head", f"bash -lc '{command}'")
    assert done.stdout.split() == ["verify"], done.stderr
