"""Parsers of lspci, devlink, ibv_devinfo, ethtool and ofed_info: values, refusals."""

from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial.parsers.errors import ParseError
from seatrial.parsers.hardware.devlink import Versions, parse_devlink_info
from seatrial.parsers.hardware.ethtool import (
    EthtoolDriver,
    parse_ethtool_coalescing,
    parse_ethtool_driver,
)
from seatrial.parsers.hardware.ibv_devinfo import IbvPort, parse_ibv_devinfo
from seatrial.parsers.hardware.lspci import PciFunction, parse_lspci
from seatrial.parsers.hardware.ofed_info import OfedInfo, parse_ofed_info

DATA = Path(__file__).parent / "data" / "hardware"
EXPRESS = "\tCapabilities: [60] Express (v2) Endpoint, IntMsgNum 0\n"


def text(name: str) -> str:
    return (DATA / name).read_text()


def test_lspci_of_an_hca_and_its_port() -> None:
    functions = parse_lspci(text("lspci/connectx6.txt")).functions
    assert list(functions) == ["0000:40:01.1", "0000:41:00.0"]
    assert functions["0000:41:00.0"] == PciFunction(
        max_payload=512,
        able_payload=512,
        max_read_request=4096,
        speed="8",
        width="16",
        able_speed="16",
        able_width="16",
        acs=None,
        part="MCX653105A-ECAT",
        serial="MT2101X00001",
    )
    assert functions["0000:40:01.1"].acs is False


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("DevCap:\tMaxPayload 256 bytes, PhantFunc 0\n", {"able_payload": 256}),
        ("LnkSta:\tSpeed 2.5GT/s, Width x8, TrErr- Train-\n", {"speed": "2.5"}),
        ("LnkSta:\tSpeed 5GT/s (downgraded), Width x4 (downgraded)\n", {"width": "4"}),
        ("LnkSta:\tSpeed unknown, Width x0\n", {"speed": None, "width": None}),
        ("LnkSta2: Current De-emphasis Level: -6dB\n", {"speed": None}),
        ("ACSCtl:\tSrcValid+ TransBlk- ReqRedir+\n", {"acs": True}),
        ("[PN] Part number: 764284-B21         \n", {"part": "764284-B21"}),
        ("!!! Unknown header type 7f\n", {"max_payload": None}),
    ],
)
def test_lines_of_lspci(line: str, expected: dict[str, object]) -> None:
    """Of versions 3.1 to 3.13, a domain of Grace, and an HCA that does not answer."""
    output = f"0002:01:00.0 0200: 15b3:a2dc (rev 01)\n{EXPRESS}\t\t{line}\n"
    function = parse_lspci(output).functions["0002:01:00.0"]
    assert {name: getattr(function, name) for name in expected} == expected


def test_devlink_of_two_makers() -> None:
    devices = parse_devlink_info(text("devlink/two-makers.txt")).devices
    assert list(devices) == ["0000:41:00.0", "0000:81:00.0"]
    assert devices["0000:41:00.0"].versions == Versions(
        fixed={"fw.psid": "MT_0000000222"},
        running={"fw.version": "20.42.1000", "fw": "20.42.1000"},
        stored={"fw.version": "20.43.2566", "fw": "20.43.2566"},
    )
    assert devices["0000:81:00.0"].serial_number == "B0-26-28-FF-FE-00-00-10"


def test_devlink_without_devices() -> None:
    assert parse_devlink_info('{"info":{}}\n').devices == {}


def test_ports_of_ibv_devinfo() -> None:
    devices = parse_ibv_devinfo(text("ibv_devinfo/connectx.txt")).devices
    assert devices["mlx5_0"].board_id == "MT_0000000222"
    assert devices["mlx5_0"].firmware == "20.43.2566"
    assert devices["mlx5_0"].transport == "InfiniBand (0)"
    assert devices["mlx4_0"].ports == {
        1: IbvPort("ACTIVE", 4096, 1024, "Ethernet"),
        2: IbvPort("DOWN", 4096, 1024, "Ethernet"),
    }


def test_board_of_omni_path_and_an_mtu_without_a_name() -> None:
    output = text("ibv_devinfo/omni-path.txt")
    device = parse_ibv_devinfo(output).devices["hfi1_0"]
    assert device.ports == {1: IbvPort("ACTIVE", 4096, 4096, "InfiniBand")}
    assert (device.board_id or "").startswith("Cornelis Omni-Path")
    output = output.replace("active_mtu:\t\t4096 (5)", "active_mtu:\t\tinvalid MTU (7)")
    device = parse_ibv_devinfo(output).devices["hfi1_0"]
    assert device.ports == {1: IbvPort("ACTIVE", 4096, None, "InfiniBand")}


def test_ethtool() -> None:
    assert parse_ethtool_driver(text("ethtool_driver/connectx6.txt")) == EthtoolDriver(
        driver="mlx5_core",
        version="5.14.0-427.13.1.el9_4.x86_64",
        firmware="20.43.2566 (MT_0000000222)",
        address="0000:41:00.0",
    )
    found = parse_ethtool_coalescing(text("ethtool_coalescing/adaptive.txt"))
    assert found.interface == "eth2"
    assert found.settings == {
        "adaptive-rx": "on",
        "adaptive-tx": "off",
        "rx-usecs": "8",
        "rx-frames": "128",
        "tx-usecs": "16",
        "tx-frames": "32",
        "cqe-mode-rx": "on",
        "cqe-mode-tx": "off",
    }


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("MLNX_OFED_LINUX-23.10-1.1.9.0:\n\n", ("MLNX_OFED_LINUX", "23.10-1.1.9.0")),
        ("OFED-internal-24.10-2.1.8:\n", ("OFED-internal", "24.10-2.1.8")),
    ],
)
def test_ofed_info(output: str, expected: tuple[str, str]) -> None:
    assert parse_ofed_info(output) == OfedInfo(*expected)


DENIED = "0000:41:00.0 0207: 15b3:101b\n\tCapabilities: <access denied>\n\n"
HEAD = "0000:41:00.0 0207: 15b3:101b\n"
DEVICE = "hca_id:\tmlx5_0\n"


@pytest.mark.parametrize(
    ("parser", "output", "reason"),
    [
        (parse_lspci, DENIED, "^needs root$"),
        (parse_lspci, "pcilib: Cannot open /sys/bus/pci\n", "no functions"),
        (parse_lspci, "\tLnkSta:\tSpeed 8GT/s\n", "expected a line of lspci"),
        (parse_lspci, HEAD + HEAD, "in the middle of another"),
        (parse_lspci, f"{HEAD}\n{HEAD}", "in the middle of another"),
        (parse_devlink_info, '{"info": []}\n', "object"),
        (parse_devlink_info, "Failed to connect to devlink Netlink\n", "no JSON"),
        (parse_ibv_devinfo, "No IB devices found\n", "expected a line of ibv_devinfo"),
        (parse_ibv_devinfo, f"{DEVICE}\tphys_port_cnt:\t2\n", "0 of 2 ports"),
        (parse_ibv_devinfo, f"{DEVICE}{DEVICE}", "hca_id in the wrong place"),
        (parse_ethtool_driver, "version: 1\n", "no driver"),
        (parse_ethtool_driver, "netlink error: No such device\n", "expected a field"),
        (parse_ethtool_coalescing, "rx-usecs:\t8\n", "no interface"),
        (parse_ethtool_coalescing, "rx-usecs: many\n", "expected a line"),
        (parse_ofed_info, "ofed_info: line 3: rpm: command not found\n", "expected"),
    ],
)
def test_other_output_is_refused(
    parser: Callable[[str], object], output: str, reason: str
) -> None:
    with pytest.raises(ParseError, match=reason):
        parser(output)
