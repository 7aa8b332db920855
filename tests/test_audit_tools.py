"""What tools tell about HCAs; node.sh asks these only as root."""

import os
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
