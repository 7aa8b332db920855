"""What ethtool tells of network interfaces, through node.sh."""

import subprocess
from pathlib import Path

import pytest
from fake_hardware import Hca, raw_of, write_node
from fake_home import fake_program
from fake_tools import of_tools, printing

from seatrial.audit.readings import readings
from seatrial.parsers.hardware.ethtool import (
    parse_ethtool_coalescing,
    parse_ethtool_driver,
)

HCA = "0000:41:00.0"
ETHTOOL = f"""case $1 in
-i) {printing("ethtool_driver/connectx6.txt")} ;;
-c) {printing("ethtool_coalescing/adaptive.txt")} ;;
esac"""


def test_firmware_of_an_hca_without_rdma(tmp_path: Path) -> None:
    """mlx5_core is loaded, mlx5_ib is not: only its interface tells the firmware."""
    hca = Hca(device=None, interface="eth2", pci_class="0x020000")
    found = of_tools(tmp_path, hca, ethtool=ETHTOOL)
    assert found[HCA, "firmware"].value == "20.43.2566"
    assert [
        one.value
        for one in readings(raw_of(tmp_path / "node"))
        if (one.subject, one.key) == (HCA, "psid")
    ][-1] == "MT_0000000222"


def test_coalescing_that_applies(tmp_path: Path) -> None:
    hca = Hca(interface="eth2", firmware="20.42.1000")
    found = of_tools(tmp_path, hca, ethtool=ETHTOOL)
    keys = {
        key.removeprefix("coalescing."): one.value
        for (subject, key), one in found.items()
        if key.startswith("coalescing.") and subject == HCA
    }
    assert keys == {
        "adaptive-rx": "on",
        "adaptive-tx": "off",
        "tx-usecs": "16",
        "tx-frames": "32",
    }
    assert found[HCA, "firmware"].value == "20.42.1000"  # of sysfs


def test_coalescing_that_the_driver_lacks(tmp_path: Path) -> None:
    command = "echo 'netlink error: Operation not supported' >&2; exit 1"
    found = of_tools(tmp_path, Hca(interface="eth2"), ethtool=command)
    one = found[HCA, "coalescing.all"]
    assert one.value is None
    assert one.reason == "ethtool: netlink error: Operation not supported"


def test_two_interfaces_of_an_hca_are_subjects(tmp_path: Path) -> None:
    root = write_node(tmp_path, Hca(interface="eth2"))
    (root / "tools").mkdir()
    fake_program(root / "tools", "ethtool", ETHTOOL)
    (first,) = root.glob("sys/devices/*/*/*/net/eth2")
    second = first.with_name("eth3")
    second.mkdir()
    (second / "type").write_text("1\n")
    (second / "device").symlink_to("../..")
    (root / "sys/class/net/eth3").symlink_to(second)
    found = {(one.subject, one.key): one.value for one in readings(raw_of(root))}
    assert found["eth2", "coalescing.tx-usecs"] == "16"
    assert found["eth3", "driver"] == "mlx5_core"
    assert (HCA, "coalescing.tx-usecs") not in found


def test_real_ethtool() -> None:
    """The interfaces of this machine that have a driver."""
    drivers = {}
    for interface in Path("/sys/class/net").glob("*"):
        command = ["ethtool", "-i", interface.name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            drivers[interface.name] = parse_ethtool_driver(done.stdout).driver
            command[1] = "-c"
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                found = parse_ethtool_coalescing(done.stdout)
                assert found.interface == interface.name
    if not drivers:
        pytest.skip("no interface with a driver here")
    for name, driver in drivers.items():
        link = Path("/sys/class/net") / name / "device/driver"
        if link.exists():
            assert link.resolve().name == driver
