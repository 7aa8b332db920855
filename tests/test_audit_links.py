"""What lspci, devlink and ibv_devinfo tell of HCAs, through node.sh."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from fake_hardware import Hca
from fake_tools import of_tools, printing

from seatrial.parsers.errors import ParseError
from seatrial.parsers.hardware.lspci import parse_lspci

HARDWARE = Path(__file__).parent / "data" / "hardware"
HCA, PORT = "0000:41:00.0", "0000:00:01.1"
VPD = (
    "\t\t\t[PN] Part number: MCX653105A-ECAT\n\t\t\t[SN] Serial number: MT2101X00001\n"
)
TWO_PORTS = (
    ("4: ACTIVE", "Ethernet", "40 Gb/sec (4X QDR)"),
    ("1: DOWN", "Ethernet", "40 Gb/sec (4X QDR)"),
)


# ---- lspci


def lspci(folder: Path, functions: Mapping[str, str]) -> str:
    """Return the command of an lspci that knows these functions."""
    folder.mkdir(exist_ok=True)
    for address, text in functions.items():
        (folder / address).write_text(f"{address} 0207: 15b3:101b\n{text}\n")
    return f'[ "$1 $2 $3 $4" = "-D -n -vv -s" ] && cd {folder} && cat "$5"'


def express(payload: int, able: int, request: int = 512, more: str = "") -> str:
    return (
        f"\t\tDevCap:\tMaxPayload {able} bytes, PhantFunc 0\n"
        f"\t\t\tMaxPayload {payload} bytes, MaxReadReq {request} bytes\n{more}"
    )


def acs(flag: str) -> str:
    return f"\t\tACSCtl:\tSrcValid{flag} TransBlk-\n"


def test_settings_of_pcie(tmp_path: Path) -> None:
    functions = {
        PORT: express(512, 512, more=acs("-")),
        HCA: express(512, 1024, 4096, VPD + acs("+")),  # of its own functions
    }
    found = of_tools(tmp_path, lspci=lspci(tmp_path / "pci", functions))
    values = {key: one.value for (name, key), one in found.items() if name == HCA}
    assert values["pcie.max_read_request"] == "4096"
    assert values["pcie.max_payload"] == "512"
    assert values["pcie.acs"] == "off"
    assert values["part"] == "MCX653105A-ECAT"
    assert values["serial"] == "MT2101X00001"


def test_warnings_of_lspci_are_left_out(tmp_path: Path) -> None:
    """It writes them in the midst of a line, where /lib/modules is missing."""
    functions = {name: express(256, 512) for name in (PORT, HCA)}
    command = lspci(tmp_path / "pci", functions)
    warning = "echo 'lspci: Unable to load libkmod resources: error -2' >&2"
    found = of_tools(tmp_path, lspci=f"{warning}; {command}")
    assert found[HCA, "pcie.max_payload"].value == "256"


@pytest.mark.parametrize(
    ("port", "hca", "value", "able", "reason"),
    [
        ((256, 256), (256, 512), "256", None, ""),
        ((256, 512), (256, 512), "256", None, ""),
        ((256, 256), (512, 512), "256 512", "256", f"256 at {PORT}, 512 at {HCA}"),
        ((512, 512), (128, 128), "128 512", "128", f"512 at {PORT}, 128 at {HCA}"),
    ],
)
def test_payload_of_all_hops(
    port: tuple[int, int],
    hca: tuple[int, int],
    value: str,
    able: str | None,
    reason: str,
    tmp_path: Path,
) -> None:
    functions = {PORT: express(*port), HCA: express(*hca)}
    found = of_tools(tmp_path, lspci=lspci(tmp_path / "pci", functions))
    one = found[HCA, "pcie.max_payload"]
    assert (one.value, one.able, one.reason) == (value, able, reason)


def test_access_control_of_a_switch_above(tmp_path: Path) -> None:
    switch = ("0000:00:02.0", "0000:00:03.0")
    functions = {name: express(512, 512, more=acs("-")) for name in (PORT, switch[0])}
    functions |= {switch[1]: express(512, 512, more=acs("+")), HCA: express(512, 512)}
    command = lspci(tmp_path / "pci", functions)
    one = of_tools(tmp_path, Hca(switch=True), lspci=command)[HCA, "pcie.acs"]
    assert (one.value, one.reason) == ("on", "0000:00:03.0")


DENIED = "\tCapabilities: <access denied>\n"
ONLY_HCA = f"printf '{HCA} 0207: 15b3:101b\\n\\n'"
GARBAGE = 'echo "Segmentation violation"'


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (None, "lspci: is not installed"),
        (DENIED, "lspci: needs root"),
        ("\t!!! Unknown header type 7f\n", f"lspci: no settings of {HCA}"),
        (f'[ "$5" = {HCA} ] && {ONLY_HCA}', "lspci: exit status 1"),
        (f'[ "$5" = {PORT} ] || {ONLY_HCA}', f"lspci: no settings of {PORT}"),
        ("echo broken >&2; exit 3", "lspci: broken"),
        (GARBAGE, "lspci: line 1: 'Segmentation violation', expected a line of lspci"),
    ],
)
def test_lspci_that_tells_nothing(
    command: str | None, reason: str, tmp_path: Path
) -> None:
    if command and command.startswith("\t"):
        command = lspci(tmp_path / "pci", {PORT: command, HCA: command})
    found = of_tools(tmp_path, **({"lspci": command} if command else {}))
    for key in ("max_read_request", "max_payload", "acs"):
        one = found[HCA, f"pcie.{key}"]
        assert (one.value, one.reason) == (None, reason)


def test_links_of_a_kernel_that_does_not_show_them(tmp_path: Path) -> None:
    link = "\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM L1\n"
    link += "\t\tLnkSta:\tSpeed 16GT/s, Width x8 (downgraded)\n"
    functions = {name: express(512, 512, more=link) for name in (PORT, HCA)}
    old = Hca(speed="Unknown", width=0, max_speed="Unknown", port_speed="Unknown")
    found = of_tools(tmp_path, old, lspci=lspci(tmp_path / "pci", functions))
    speed, width = found[HCA, "pcie.speed"], found[HCA, "pcie.width"]
    assert (speed.value, speed.able) == ("16", "16")
    assert (width.value, width.able) == ("8", "16")
    assert width.reason == f"between {PORT} and {HCA}"


ADDRESSES = sorted(one.name for one in Path("/sys/bus/pci/devices").glob("*"))


@pytest.mark.skipif(not ADDRESSES, reason="no PCI here")
@pytest.mark.parametrize("user", [0, 65534])
def test_real_lspci(user: int) -> None:
    """The functions of this machine, as root and as an ordinary user."""
    if os.getuid() != 0:
        user = os.getuid()
    done = subprocess.run(
        ["lspci", "-D", "-n", "-vv"],
        user=user,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,  # as node.sh does
        text=True,
        check=True,
    )
    if "access denied" in done.stdout:
        with pytest.raises(ParseError, match="needs root"):
            parse_lspci(done.stdout)
    else:
        assert [*parse_lspci(done.stdout).functions] == ADDRESSES


@pytest.mark.skipif(not ADDRESSES, reason="no PCI here")
def test_real_lspci_asked_by_node_sh(tmp_path: Path) -> None:
    """The first function of this machine, in a tree that calls it an HCA."""
    program = shutil.which("lspci", path="/usr/bin:/usr/sbin:/sbin")
    found = of_tools(tmp_path, Hca(address=ADDRESSES[0]), lspci=f'{program} "$@"')
    one = found[ADDRESSES[0], "pcie.max_read_request"]
    assert one.block.version.startswith("lspci version")
    assert f"{ADDRESSES[0]} " in one.block.text
    assert one.reason in ("lspci: needs root", f"lspci: no settings of {PORT}", "")


# ---- devlink


def test_devlink_tells_firmware_that_is_stored_without_root(tmp_path: Path) -> None:
    hca = Hca(firmware="20.42.1000")
    found = of_tools(tmp_path, hca, devlink=printing("devlink/two-makers.txt"))
    one = found[HCA, "firmware"]
    assert (one.value, one.pending) == ("20.42.1000", "20.43.2566")
    assert found[HCA, "firmware.stored"].value is None  # a burn needs mstflint
    assert found[HCA, "serial"].value == "MT2101X00001"


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_mstflint_reads_the_flash_itself(tmp_path: Path) -> None:
    flint = "cat " + str(HARDWARE / "mstflint/connectx6.txt")
    devlink = printing("devlink/two-makers.txt") + " | sed s/20.43.2566/20.42.1000/g"
    found = of_tools(tmp_path, devlink=devlink, mstflint=flint)
    assert found[HCA, "firmware"].pending == "20.43.2566"


@pytest.mark.parametrize("text", ['{"info":{}}', "Failed to connect"])
def test_devlink_that_tells_nothing(text: str, tmp_path: Path) -> None:
    found = of_tools(tmp_path, devlink=f"echo '{text}'")
    assert found[HCA, "firmware.stored"].value is None
    assert found[HCA, "firmware"].block.tool == "sysfs"


# ---- ibv_devinfo


def test_mtu_of_each_port(tmp_path: Path) -> None:
    hca = Hca(device="mlx4_0", driver="mlx4_core", ports=TWO_PORTS)
    found = of_tools(tmp_path, hca, ibv_devinfo=printing("ibv_devinfo/connectx.txt"))
    one = found[f"{HCA}/2", "mtu"]
    assert (one.value, one.reason) == ("1024", "the port supports 4096")
    assert found[f"{HCA}/1", "mtu"].value == "1024"
    assert found[f"{HCA}/2", "state"].block.tool == "sysfs"
    assert found[HCA, "firmware"].value == "20.43.2566"  # of sysfs


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (None, "is not installed"),
        ("echo 'No IB devices found' >&2; exit 255", "No IB devices found"),
        ("printf 'hca_id:\tmlx4_0\n'", "mlx4_0: no phys_port_cnt"),
    ],
)
def test_mtu_that_nobody_tells(
    command: str | None, reason: str, tmp_path: Path
) -> None:
    hca = Hca(device="mlx4_0", ports=TWO_PORTS)
    found = of_tools(tmp_path, hca, **({"ibv_devinfo": command} if command else {}))
    for port in (1, 2):
        one = found[f"{HCA}/{port}", "mtu"]
        assert one.value is None
        assert reason in one.reason
