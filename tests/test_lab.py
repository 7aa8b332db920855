"""The lab's life: up, up again, down, down after a half-failed up; and its walls."""

import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from conftest import LAB_HOME, Lab

from seatrial.errors import SeatrialError
from seatrial.system.lab import cluster, container, fabric, state

pytestmark = pytest.mark.lab

NODES = {"head": "10.99.0.1", "cn01": "10.99.0.11", "cn02": "10.99.0.12"}


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def remains() -> list[str]:
    """Everything on this machine that bears the lab's name, images apart."""
    live = [
        line
        for line in output("ps", "-eo", "stat,args").splitlines()
        if "seatrial-lab/nodes" in line and not line.startswith("Z")
    ]
    mounts = [
        line
        for line in Path("/proc/self/mounts").read_text().splitlines()
        if "seatrial" in line
    ]
    spaces = [name for name in output("ip", "netns").splitlines() if "seatrial" in name]
    groups = [
        path
        for path, _, _ in os.walk("/sys/fs/cgroup")
        if re.search("seatrial-lab", path)
    ]
    links = [
        line for line in output("ip", "-o", "link").splitlines() if "vb-cn0" in line
    ]
    folders = [str(path) for path in (LAB_HOME, state.RUN) if path.exists()]
    return live + mounts + spaces + groups + links + folders


def image(lab: Lab) -> Path:
    """The base image, made by one `up` of the playbook when it is missing."""
    found = sorted(Path("/var/cache/seatrial").glob("image-*"))
    found = [path for path in found if "partial" not in path.name]
    if not found:
        lab.play("lab")
        lab.play("lab", "-e", "lab_state=absent")
        return image(lab)
    return found[-1]


def test_down_leaves_nothing(no_lab: Lab) -> None:
    assert remains() == []
    assert cluster.up(LAB_HOME, image(no_lab), NODES, "seatrial") != []
    assert len(remains()) > len(NODES)
    cluster.down(LAB_HOME)
    assert remains() == []


def test_down_after_half_failed_up_leaves_nothing(
    no_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = container.ensure_running

    def fails_at_the_second(lab: state.LabState, node: str, image: Path) -> bool:
        if node == "cn01":
            raise SeatrialError("planted")
        return start(lab, node, image)

    monkeypatch.setattr(container, "ensure_running", fails_at_the_second)
    with pytest.raises(SeatrialError, match="planted"):
        cluster.up(LAB_HOME, image(no_lab), NODES, "seatrial")
    assert remains() != []
    cluster.down(LAB_HOME)
    assert remains() == []


def test_up_mends_a_half_failed_up(
    no_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(fabric, "succeeds", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            cluster.up(LAB_HOME, image(no_lab), NODES, "seatrial")
    cluster.up(LAB_HOME, image(no_lab), NODES, "seatrial")
    assert all(node.running and node.ssh for node in cluster.status())


def test_foreign_namespace_is_refused_and_untouched(no_lab: Lab) -> None:
    output("ip", "netns", "add", fabric.FABRIC)
    output("ip", "-n", fabric.FABRIC, "link", "add", "fabric0", "type", "bridge")
    try:
        with pytest.raises(SeatrialError, match="seatrial-fabric exists and was not"):
            cluster.up(LAB_HOME, image(no_lab), NODES, "seatrial")
        cluster.down(LAB_HOME)
        assert "fabric0" in output("ip", "-n", fabric.FABRIC, "link")
    finally:
        output("ip", "netns", "delete", fabric.FABRIC)
    assert remains() == []


def test_a_lab_of_other_nodes_is_refused(no_lab: Lab) -> None:
    cluster.up(LAB_HOME, image(no_lab), NODES, "seatrial")
    more = NODES | {"cn03": "10.99.0.13"}
    with pytest.raises(SeatrialError, match="stop it first"):
        cluster.up(LAB_HOME, image(no_lab), more, "seatrial")


def test_a_node_that_dies_is_started_again(no_lab: Lab) -> None:
    cluster.up(LAB_HOME, image(no_lab), NODES, "seatrial")
    pid = int(Path(state.RUN, "cn01.pid").read_text())
    os.kill(pid, 9)
    while container.is_running("cn01"):
        time.sleep(0.05)
    assert [n.node for n in cluster.status() if not n.running] == ["cn01"]
    changes = cluster.up(LAB_HOME, image(no_lab), NODES, "seatrial")
    assert changes == ["node cn01"]


@pytest.mark.slow
def test_eight_nodes(no_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_NODES", "8")
    no_lab.play("lab")
    monkeypatch.delenv("LAB_NODES")
    assert no_lab.play("lab") == 0  # a running lab knows how many it has
    assert [n.node for n in cluster.status() if n.ssh] == [
        "head",
        *(f"cn{i:02}" for i in range(1, 9)),
    ]


def test_up_twice_changes_nothing(bare_lab: Lab) -> None:
    assert bare_lab.play("lab") == 0
    assert bare_lab.play("lab", "--check") == 0


@pytest.mark.parametrize(
    "command",
    [
        "sudo date -s '2001-01-01'",
        "sudo sysctl -w kernel.panic=1",
        "sudo sysctl -w vm.swappiness=1",
        "sudo unshare --net sysctl -w kernel.panic=1",
        "sudo mknod /tmp/disk b 254 0",
        "sudo mount -t sysfs sysfs /mnt && sudo sh -c 'echo 1 >/mnt/kernel/profiling'",
        "sudo sh -c 'echo b >/proc/sysrq-trigger'",
        "sudo ip link show fabric0",
        "sudo nsenter --target 1 --net ip link show fabric0",
    ],
)
def test_a_node_cannot_touch_the_machine(bare_lab: Lab, command: str) -> None:
    before = time.time()
    done = bare_lab.ssh("cn01", command)
    assert done.returncode != 0, done.stdout
    assert 0 <= time.time() - before < 60


def test_a_node_sets_its_own_network_only(bare_lab: Lab) -> None:
    forward = Path("/proc/sys/net/ipv4/ip_forward")
    before = forward.read_text()
    other = "0" if before.strip() == "1" else "1"
    done = bare_lab.ssh("cn01", f"sudo sysctl -w net.ipv4.ip_forward={other}")
    assert done.returncode == 0, done.stderr
    assert forward.read_text() == before


def test_slow_link_shapes_both_directions(bare_lab: Lab) -> None:
    def shapes() -> list[bool]:
        inside = (f"--net=/proc/{container.leader('cn01')}/ns/net", "host0")
        outside = (f"--net=/run/netns/{fabric.FABRIC}", "vb-cn01")
        return [
            "rate 200Mbit"
            in output("nsenter", space, "tc", "qdisc", "show", "dev", device)
            for space, device in (inside, outside)
        ]

    cluster.slow_link("cn01", "200mbit")
    try:
        assert shapes() == [True, True]
        assert {n.node: n.link for n in cluster.status()}["cn01"] == "200mbit"
    finally:
        cluster.slow_link("cn01", None)
    assert shapes() == [False, False]
    with pytest.raises(SeatrialError, match="has no node cn99; it has head, cn01"):
        cluster.slow_link("cn99", "200mbit")
