"""What tools tell about HCAs; node.sh asks these only as root."""

import os
import shutil
from pathlib import Path

import pytest
from fake_hardware import Hca, raw_of, write_node
from fake_home import fake_program

from seatrial.audit.reading import Reading
from seatrial.audit.readings import readings

HARDWARE = Path(__file__).parent / "data" / "hardware"
pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="needs root")


def of_tools(tmp_path: Path, **outputs: str) -> dict[str, Reading]:
    """Return the readings of an HCA, by key, with programs that print a text."""
    root = write_node(tmp_path, Hca())
    (root / "tools").mkdir()
    for name, text in outputs.items():
        (tmp_path / f"{name}.txt").write_text(text)
        fake_program(root / "tools", name, f"cat {tmp_path}/{name}.txt")
    return {one.key: one for one in readings(raw_of(root))}


def test_tools_tell_what_waits_for_a_reset(tmp_path: Path) -> None:
    flint = (HARDWARE / "mstflint/connectx6.txt").read_text()
    config = (HARDWARE / "mstconfig/connectx6.txt").read_text()
    found = of_tools(tmp_path, mstflint=flint, mstconfig=config)
    firmware = found["firmware"]
    assert (firmware.value, firmware.pending) == ("20.42.1000", "20.43.2566")
    assert firmware.block.tool == "mstflint"
    assert found["part"].value == "MCX653105A-ECA_Ax"
    sriov, links = found["nvconfig.SRIOV_EN"], found["nvconfig.LINK_TYPE_P1"]
    assert (sriov.value, sriov.pending) == ("True(1)", "False(0)")
    assert (links.value, links.pending) == ("IB(1)", None)
    assert found["nvconfig.NUM_OF_VFS"].value == "8"


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (
            "-E- Cannot open Device: 0000:41:00.0.\n",
            "Cannot open Device: 0000:41:00.0.",
        ),
        ("no such thing\n", "expected a field of mstflint"),
    ],
)
def test_tool_that_fails_is_unknown(output: str, reason: str, tmp_path: Path) -> None:
    found = of_tools(tmp_path, mstflint=output)
    stored = found["firmware.stored"]
    assert stored.value is None
    assert stored.reason.startswith("mstflint: line 1: ")
    assert reason in stored.reason
    assert found["firmware"].value == "20.43.2566"  # of sysfs
    missing = found["nvconfig.all"]
    assert (missing.value, missing.reason) == (None, "mstconfig: is not installed")


# ---- Programs of NVIDIA's MFT


def test_mlxfwmanager_where_mstflint_is_not_installed(tmp_path: Path) -> None:
    xml = (HARDWARE / "mlxfwmanager/bluefield.txt").read_text()
    found = of_tools(tmp_path, mlxup=xml)
    firmware = found["firmware"]
    assert (firmware.value, firmware.pending) == ("20.43.2566", "32.43.2024")
    assert firmware.block.tool == "mlxup"
    assert found["part"].value == "900-9D3B6-00CV-A_Ax"
    assert found["firmware.stored"].value is None  # a burn needs mstflint


def test_mstflint_comes_before_mlxfwmanager(tmp_path: Path) -> None:
    flint = (HARDWARE / "mstflint/connectx6.txt").read_text()
    xml = (HARDWARE / "mlxfwmanager/bluefield.txt").read_text()
    found = of_tools(tmp_path, mstflint=flint, mlxfwmanager=xml)
    assert found["firmware"].pending == "20.43.2566"
    assert "firmware.stored" not in found


def test_mlxconfig_where_mstconfig_is_not_installed(tmp_path: Path) -> None:
    config = (HARDWARE / "mstconfig/connectx6.txt").read_text()
    found = of_tools(tmp_path, mlxconfig=config)
    assert found["nvconfig.SRIOV_EN"].block.tool == "mlxconfig"


@pytest.mark.parametrize("program", ["mstlink", "mlxlink"])
def test_error_correction_of_a_link(program: str, tmp_path: Path) -> None:
    output = (HARDWARE / "mlxlink/connectx6.txt").read_text()
    found = of_tools(tmp_path, **{program: output})
    assert found["fec"].value == "Standard_RS-FEC - (544,514)"
    assert (found["state"].value, found["state"].reason) == ("ACTIVE", "")


def test_firmware_says_why_a_port_is_down(tmp_path: Path) -> None:
    output = (HARDWARE / "mlxlink/unplugged.txt").read_text()
    found = of_tools(tmp_path, mlxlink=output)
    why = "mlxlink: Cable is unplugged"
    assert (found["fec"].value, found["fec"].reason) == (None, why)
    assert (found["state"].value, found["state"].reason) == ("ACTIVE", why)  # of sysfs


def test_real_mstlink_without_an_hca(tmp_path: Path) -> None:
    """mstlink of this machine, asked for an address that is no HCA."""
    program = shutil.which("mstlink")
    assert program, "mstlink is in the package mstflint"
    root = write_node(tmp_path, Hca())
    fake_program(root / "tools", "mstlink", f'{program} "$@"')
    found = {one.key: one for one in readings(raw_of(root))}
    assert found["fec"].value is None
    assert found["fec"].block.version.startswith("mstlink, mstflint ")
    assert found["fec"].reason.startswith("mstlink: ")
