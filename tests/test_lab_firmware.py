"""Firmware on the lab: real Slurm, containers that reboot; HCAs and mstflint stand in.

After each fault the node is out of service, with our reason, or was not touched.
"""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import HOME, LAB_HOME, Lab
from firmware_nodes import NEW, OLD, PRESENT, write_declaration, write_firmware_node
from lab_runs import play_inventory, stopped

from seatrial.system.lab import cluster

pytestmark = [pytest.mark.lab, pytest.mark.slow]
NODE, ROOT = "cn04", "/srv/hca"
CONFIG = ("ssh", "-F", str(cluster.ssh_config(LAB_HOME)))
REBOOT = (
    f"python {Path(__file__).with_name('reboot_node.py')} {{{{ inventory_hostname }}}}"
)


@dataclass
class Machine:
    """The lab with an HCA in cn04, and an inventory that declares its firmware."""

    lab: Lab
    inventory: Path
    tree: Path

    def options(self, *options: str, reboot: str = f"{REBOOT} {ROOT}") -> list[str]:
        variables = {
            "audit_root": ROOT,
            "hca_kept_folder": str(self.tree.parent / "kept"),
            "hca_verify_pause_s": 1,
            "hca_verify_tries": 2,
            "maintenance_poll_s": 1,
            "maintenance_reboot_wait_s": 60,
        }
        play = [f"--limit={NODE}", "-e", f'maintenance_reboot_command="{reboot}"']
        for name, value in variables.items():
            play += ["-e", f"{name}={value}"]
        return [*play, *options]

    def play(self, *options: str, reboot: str = f"{REBOOT} {ROOT}") -> tuple[int, str]:
        """Return the exit status, and what the playbook said."""
        all_options = self.options(*options, reboot=reboot)
        tools = self.tree / "tools"
        done = play_inventory(self.inventory, "firmware", *all_options, tools=tools)
        return done.returncode, done.stdout

    def reset(self, mode: str = "", psid: str = PRESENT.psid) -> None:
        """Put the tree of older firmware on the node."""
        shutil.rmtree(self.tree, ignore_errors=True)
        write_firmware_node(self.tree, type(PRESENT)(firmware=OLD, psid=psid))
        (self.tree / "mode").write_text(mode)
        tar = f"tar -C {self.tree.parent} -c {self.tree.name}"
        unpack = f"sudo rm -rf {ROOT}; sudo tar -C /srv -x"
        ssh = f"{' '.join(CONFIG)} {NODE} '{unpack}'"
        subprocess.run(["bash", "-c", f"{tar} | {ssh}"], check=True)

    def head(self, command: str) -> str:
        return self.lab.ssh("head", command).stdout.strip()

    @property
    def state(self) -> tuple[str, str]:
        """State of the node and the reason for it."""
        line = self.head(f"sinfo --noheader --Node --nodes={NODE} --format='%T|%E'")
        state, _, reason = line.partition("|")
        return state, reason

    def token(self) -> str:
        """Return the token of the run that drained the node; it must be ours."""
        state, reason = self.state
        match = re.fullmatch(r"seatrial (\S+): firmware", reason)
        assert state.startswith("drain"), (state, reason)
        assert match, reason
        return match[1]


@pytest.fixture(scope="module")
def site(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    folder = tmp_path_factory.mktemp("firmware")
    shutil.copytree(HOME / "inventories/lab", folder / "lab")
    return Machine(lab, folder / "lab", folder / "hca")


@pytest.fixture
def machine(site: Machine) -> Iterator[Machine]:
    write_declaration(site.inventory)
    site.reset()
    yield site
    subprocess.run(["seatrial", "lab", "up"], cwd=HOME, check=True)
    for name in re.findall(r"ReservationName=(\S+)", site.head("scontrol show res")):
        site.head(f"sudo scontrol delete reservationname={name}")
    site.head(f"sudo scontrol update nodename={NODE} state=resume")
    deadline = time.monotonic() + 60
    while site.state[0] != "idle":
        assert time.monotonic() < deadline, site.state
        time.sleep(0.5)


def test_plan_burn_reboot_verify_resume(machine: Machine) -> None:
    status, said = machine.play("--check", "--diff")
    assert status == 0, said
    assert f"firmware {OLD} -> {NEW}: burn, reboot" in said
    status, said = machine.play()
    assert status != 0
    assert "confirm it by -e hca_burn=true" in said
    assert machine.state == ("idle", "none")
    status, said = machine.play("-e", "hca_burn=true")
    assert status == 0, said
    assert machine.state == ("idle", "none")
    assert machine.head("scontrol show res") == "No reservations in the system"
    running = machine.lab.ssh(NODE, f"cat {ROOT}/sys/class/infiniband/*/fw_ver")
    assert running.stdout.strip() == NEW
    status, said = machine.play("-e", "hca_burn=true")
    assert status == 0
    assert re.search(rf"{NODE} +: ok=\d+ +changed=0 ", said), "a second run"


def test_a_node_that_somebody_else_drained_is_left_alone(machine: Machine) -> None:
    drain = "state=drain reason='bad fan'"
    machine.head(f"sudo scontrol update nodename={NODE} {drain}")
    status, said = machine.play("-e", "hca_burn=true")
    assert status != 0
    assert "(bad fan): somebody else took it out of service" in " ".join(said.split())
    assert machine.state == ("drained", "bad fan")
    flash = machine.lab.ssh(NODE, f"grep -c {NEW} {ROOT}/hcas.json").stdout
    assert flash.strip() == "0"


def test_a_port_that_stays_down_keeps_its_node_drained(machine: Machine) -> None:
    """And the run goes on with the node once the cable is repaired."""
    machine.lab.ssh(NODE, f"echo link-down | sudo tee {ROOT}/mode")
    status, said = machine.play("-e", "hca_burn=true")
    assert status != 0
    words = " ".join(said.split())
    assert "rail0: state is DOWN" in words
    assert "mstflint -d 0000:41:00.0 -i old.bin -y burn" in words, "the way back"
    token = machine.token()
    port = f"{ROOT}/sys/class/infiniband/mlx5_0/ports/1"
    repair = f"echo 4: ACTIVE > {port}/state; echo 5: LinkUp > {port}/phys_state"
    machine.lab.ssh(NODE, f"sudo sh -c '{repair}'")
    go_on = ("-e", "hca_burn=true", "-e", f"maintenance_token={token}")
    status, said = machine.play(*go_on)
    assert status == 0, said
    assert machine.state == ("idle", "none")


FAULTS = {
    "burn-hangs": "Burn: no end within its time limit",
    "burn-ends-with-1": "Burn: non-zero return code",
    "burn-does-nothing": f"{NEW} was burned, but {OLD} is stored",
    "set-does-nothing": "SRIOV_EN=0 was set, but SRIOV_EN is True(1)",
    "setting-lost": "nvconfig.SRIOV_EN is True(1), declared False(0)",
    "reset-refused": f"firmware is {OLD}, after the next boot {NEW}",
    "hca-gone": "PCI or the driver lost the HCA",
}


@pytest.mark.parametrize("mode", FAULTS)
def test_after_a_fault_the_node_is_drained(machine: Machine, mode: str) -> None:
    machine.lab.ssh(NODE, f"echo {mode} | sudo tee {ROOT}/mode")
    status, said = machine.play("-e", "hca_burn=true", "-e", "hca_burn_timeout_s=3")
    assert status != 0
    words = " ".join(said.split())
    assert FAULTS[mode] in words, words[-2000:]
    machine.token()


def test_a_bad_image_ends_before_the_first_node(machine: Machine) -> None:
    (machine.inventory / "firmware/old.bin").write_text("changed")
    status, said = machine.play("-e", "hca_burn=true")
    assert status != 0
    assert "hardware.yml:5: " in " ".join(said.split())
    assert machine.state == ("idle", "none")


def test_another_card_is_not_touched(machine: Machine) -> None:
    machine.reset(psid="MT_0000000999")
    status, said = machine.play("-e", "hca_burn=true")
    assert status != 0
    assert "its PSID is MT_0000000999" in said
    assert machine.state == ("idle", "none")


def test_a_node_that_never_returns_stays_drained(machine: Machine) -> None:
    status, _ = machine.play(
        *("-e", "hca_burn=true", "-e", "maintenance_reboot_wait_s=10"),
        reboot=f"{REBOOT} never",
    )
    assert status != 0
    machine.token()


def test_a_failed_smoke_test_drains_the_node_again(machine: Machine) -> None:
    smoke = "maintenance_smoke_command=false"
    status, said = machine.play("-e", "hca_burn=true", "-e", smoke)
    assert status != 0
    assert "The smoke test on two nodes" in said
    machine.token()
    assert machine.head("scontrol show res") == "No reservations in the system"


def test_a_reason_that_somebody_changed_meanwhile_stands(machine: Machine) -> None:
    change = f"sudo scontrol update nodename={NODE} state=drain reason=flood"
    config = " ".join(CONFIG)
    status, said = machine.play(
        "-e", "hca_burn=true", reboot=f"{REBOOT} {ROOT} && {config} head {change}"
    )
    assert status != 0
    assert "drained by somebody else meanwhile (flood)" in " ".join(said.split())
    assert machine.state == ("drained", "flood")


def test_ctrl_c_leaves_the_node_drained(machine: Machine) -> None:
    """The interrupt comes while the burn hangs."""
    machine.lab.ssh(NODE, f"echo burn-hangs | sudo tee {ROOT}/mode")
    play = ("ansible-playbook", "-i", machine.inventory, "playbooks/firmware.yml")
    process = subprocess.Popen(
        [*play, *machine.options("-e", "hca_burn=true")],
        cwd=HOME,
        env=os.environ | {"PATH": f"{machine.tree}/tools:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not machine.lab.ssh(NODE, f"pgrep -f '{ROOT}/tools/mstflin[t].*burn'").stdout:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=60) != 0
    machine.token()


def test_a_controller_that_is_away_changes_nothing(machine: Machine) -> None:
    with stopped(machine.lab, "slurmctld", "head"):
        status, said = machine.play("-e", "hca_burn=true")
    assert status != 0
    assert "It was not touched" in said
    flash = machine.lab.ssh(NODE, f"grep -c {NEW} {ROOT}/hcas.json").stdout
    assert flash.strip() == "0"


def test_a_controller_that_goes_away_meanwhile_leaves_a_drain(machine: Machine) -> None:
    stop = f"{' '.join(CONFIG)} head sudo systemctl stop slurmctld"
    try:
        status, _ = machine.play(
            *("-e", "hca_burn=true", "-e", "maintenance_reboot_wait_s=30"),
            *("-e", "maintenance_poll_s=10"),
            reboot=f"{stop} && {REBOOT} {ROOT}",
        )
        assert status != 0
    finally:
        machine.head("sudo systemctl start slurmctld")
    time.sleep(2)
    machine.token()
