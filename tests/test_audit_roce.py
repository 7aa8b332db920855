"""RoCE settings and boards: what tools tell, against the declaration; as root."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from fake_hardware import Hca, raw_of, write_node
from fake_home import fake_program

from seatrial.audit.hardware_file import HardwareFile
from seatrial.audit.node_rows import node_rows
from seatrial.audit.rows import Row
from seatrial.parsers.errors import ParseError
from seatrial.parsers.hardware.dcb import parse_dcb_pfc

HARDWARE = Path(__file__).parent / "data" / "hardware"
DECLARED = """\
hca_models: {MT_0000000222: {}}
hca_slots:
  all:
    - {name: rail0, bdf: "0000:41:00.0", psid: MT_0000000222, link_layer: Ethernet}
roce:
  all: {trust: dscp, pfc: [3], dscp: {26: 3}, buffers: [130944, 131072]}
"""
PORT = Hca(
    interface="eth0",
    pci_class="0x020000",
    ports=(("4: ACTIVE", "Ethernet", "100 Gb/sec (4X EDR)"),),
)
DCB = {
    f"{table} show dev eth0": (HARDWARE / f"dcb_{table}/mlx5.json").read_text()
    for table in ("pfc", "app", "buffer")
}


def rows(folder: Path, declared: str = DECLARED, **programs: str) -> dict[str, Row]:
    """Return the rows of a node whose programs are shell scripts, by key."""
    root = write_node(folder / "node", PORT)
    (root / "tools").mkdir()
    for name, script in programs.items():
        fake_program(root / "tools", name, script)
    file = folder / "hardware.yml"
    file.write_text(declared)
    declaration = HardwareFile(file, ["cpu"], folder / "no database")
    return {row.key: row for row in node_rows(raw_of(root), declaration, "cpu")}


def script_of(outputs: dict[str, str]) -> str:
    cases = "\n".join(f"*'{end}') echo '{text}';;" for end, text in outputs.items())
    return f'case "$*" in\n{cases}\n*) exit 1;;\nesac'


ROCE = ("roce.trust", "roce.pfc", "roce.dscp.26", "roce.buffers")


def test_a_port_as_declared_by_mlnx_qos(tmp_path: Path) -> None:
    found = rows(tmp_path, mlnx_qos=f"cat {HARDWARE}/mlnx_qos/connectx6.txt")
    assert [found[key].verdict for key in ROCE] == 4 * ["ok"]
    assert found["roce.dscp.48"].actual == "6"


def test_a_port_as_declared_by_dcb(tmp_path: Path) -> None:
    found = rows(tmp_path, dcb=script_of(DCB))
    assert [found[key].verdict for key in ROCE] == 4 * ["ok"]
    assert {found[key].tool for key in ROCE} == {"dcb"}


def test_what_differs_is_drift(tmp_path: Path) -> None:
    changed = DECLARED.replace("pfc: [3]", "pfc: [4]").replace("26: 3", "26: 5")
    found = rows(tmp_path, changed, dcb=script_of(DCB))
    assert (found["roce.pfc"].actual, found["roce.pfc"].verdict) == ("3", "drift")
    assert found["roce.dscp.26"].verdict == "drift"


def test_a_port_without_entries_trusts_pcp(tmp_path: Path) -> None:
    found = rows(tmp_path, dcb=script_of({**DCB, "app show dev eth0": "{}"}))
    assert (found["roce.trust"].actual, found["roce.trust"].verdict) == ("pcp", "drift")


def test_without_programs_all_of_it_is_unknown(tmp_path: Path) -> None:
    found = rows(tmp_path)
    for key in ("roce.trust", "roce.pfc", "roce.buffers"):
        assert found[key].verdict == "unknown"
        assert "is not installed" in found[key].reason
    assert found["roce.dscp.26"].verdict == "unknown"


@pytest.mark.skipif(shutil.which("dcb") is None, reason="dcb, the real one")
def test_the_real_dcb_on_a_port_without_dcb() -> None:
    """lo has no DCB: the program says so, and its words are no settings."""
    done = subprocess.run(
        ["dcb", "-j", "pfc", "show", "dev", "lo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    with pytest.raises(ParseError):
        parse_dcb_pfc(done.stdout)


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_board_and_memory_are_read_as_root(tmp_path: Path) -> None:
    found = rows(
        tmp_path,
        "node_settings: {all: {bmc: '7.10'}}\n",
        dmidecode=f"cat {HARDWARE}/dmidecode/four-slots.txt",
        ipmitool=f"cat {HARDWARE}/ipmitool/bmc.txt",
    )
    assert found["size"].actual == "96"
    assert found["dimms"].actual == "3 x 32 GiB DDR5 4400 MT/s"
    assert (found["bmc"].actual, found["bmc"].verdict) == ("7.10", "ok")
