"""Settings of a node of the lab, for real: what a container may set, on real Slurm."""

import re
import shutil
from pathlib import Path

import pytest
from conftest import HOME, Lab
from lab_runs import play_inventory

pytestmark = [pytest.mark.lab, pytest.mark.slow]
NODE, NAME = "cn04", "net.ipv4.tcp_keepalive_time"
DECLARED = "node_settings:\n  all: {%s: {%s: 1200}, memlock: 4096, bios: '1.0'}\n"


class Site:
    """The lab with an inventory of its own."""

    def __init__(self, lab: Lab, inventory: Path) -> None:
        self.lab, self.inventory = lab, inventory
        shutil.copytree(HOME / "inventories/lab", inventory)

    def play(self, declared: str, *options: str) -> tuple[int, str]:
        """Return the number of changes, and what the playbook said."""
        file = self.inventory / "group_vars/all/hardware.yml"
        file.write_text(declared)
        limits = (f"--limit={NODE}", "-e", "maintenance_poll_s=1")
        done = play_inventory(self.inventory, "settings", *limits, *options)
        assert done.returncode == 0, done.stdout
        match = re.search(rf"{NODE} +: ok=\d+ +changed=(\d+) ", done.stdout)
        assert match, done.stdout
        return int(match[1]), done.stdout

    def job(self) -> list[str]:
        """Return what a job on the node sees: limit of locked memory, sysctl."""
        path = f"/proc/sys/{NAME.replace('.', '/')}"
        command = f'srun -w {NODE} bash -c "ulimit -l; cat {path}"'
        return self.lab.ssh("head", command).stdout.split()

    def state(self) -> str:
        command = f"sinfo --noheader --Node --nodes={NODE} --format='%T %E'"
        return self.lab.ssh("head", command).stdout.strip()


def test_settings_are_made_and_kept(lab: Lab, tmp_path: Path) -> None:
    site = Site(lab, tmp_path / "lab")
    declared = DECLARED % ("sysctls", NAME)
    before = site.job()
    try:
        changes, said = site.play(declared, "--check", "--diff")
        assert changes
        assert f"kernel sysctl.{NAME}: {before[1]} -> 1200" in said
        assert "node bios: 1.0" in said, "set by hand"
        assert "+LimitMEMLOCK=4194304" in said
        assert site.job() == before
        site.play(declared)
        assert site.job() == ["4096", "1200"]
        assert site.state() == "idle none"
        assert site.play(declared)[0] == 0
        lab.ssh(NODE, f"sudo sysctl -w {NAME}=7000")
        _, said = site.play(declared)
        assert f"kernel sysctl.{NAME}: 7000 -> 1200" in said
        assert site.job() == ["4096", "1200"]
    finally:
        site.play("{}\n")
        lab.ssh(NODE, f"sudo sysctl -w {NAME}={before[1]}")
    folders = "/etc/sysctl.d /etc/systemd/system/slurmd.service.d"
    left = lab.ssh(NODE, f"ls {folders}").stdout.split()
    assert not {"90-seatrial.conf", "seatrial.conf"} & {*left}
    assert site.job() == before
