"""Parsers of what tools print about HCAs: samples, refusals and damage."""

from collections.abc import Callable
from dataclasses import is_dataclass
from pathlib import Path

import pytest

from seatrial.parsers.errors import ParseError
from seatrial.parsers.hardware.dcb import (
    parse_dcb_app,
    parse_dcb_buffer,
    parse_dcb_pfc,
)
from seatrial.parsers.hardware.devlink import parse_devlink_info
from seatrial.parsers.hardware.dmidecode import parse_dmidecode_memory
from seatrial.parsers.hardware.ethtool import (
    parse_ethtool_coalescing,
    parse_ethtool_driver,
)
from seatrial.parsers.hardware.ibv_devinfo import parse_ibv_devinfo
from seatrial.parsers.hardware.ipmitool import parse_ipmitool_mc_info
from seatrial.parsers.hardware.lspci import parse_lspci
from seatrial.parsers.hardware.mlnx_qos import parse_mlnx_qos
from seatrial.parsers.hardware.mlxfwmanager import ManagedHca, parse_mlxfwmanager
from seatrial.parsers.hardware.mlxlink import MlxLink, parse_mlxlink
from seatrial.parsers.hardware.mstconfig import (
    NvParameter,
    NvValue,
    parse_mstconfig_query,
)
from seatrial.parsers.hardware.mstflint import MstflintQuery, parse_mstflint_query
from seatrial.parsers.hardware.ofed_info import parse_ofed_info

DATA = Path(__file__).parent / "data" / "hardware"
PARSERS: dict[str, Callable[[str], object]] = {
    "mstflint": parse_mstflint_query,
    "mstconfig": parse_mstconfig_query,
    "mlxfwmanager": parse_mlxfwmanager,
    "mlxlink": parse_mlxlink,
    "lspci": parse_lspci,
    "devlink": parse_devlink_info,
    "ibv_devinfo": parse_ibv_devinfo,
    "ethtool_driver": parse_ethtool_driver,
    "ethtool_coalescing": parse_ethtool_coalescing,
    "ofed_info": parse_ofed_info,
    "mlnx_qos": parse_mlnx_qos,
    "dcb_pfc": parse_dcb_pfc,
    "dcb_app": parse_dcb_app,
    "dcb_buffer": parse_dcb_buffer,
    "dmidecode": parse_dmidecode_memory,
    "ipmitool": parse_ipmitool_mc_info,
}
SAMPLES = sorted(path for name in PARSERS for path in (DATA / name).iterdir())


def flint(name: str) -> MstflintQuery:
    return parse_mstflint_query((DATA / "mstflint" / f"{name}.txt").read_text())


def test_firmware_that_waits_for_a_reset() -> None:
    assert flint("connectx6") == MstflintQuery(
        image_type="FS4",
        stored_version="20.43.2566",
        running_version="20.42.1000",
        release_date="11.11.2024",
        product_version="20.43.2566",
        psid="MT_0000000222",
        original_psid=None,
        base_guid="0xb8599f0300aa0000",
        base_mac="b8:59:9f:aa:00:00",
        guids=(),
        macs=(),
        security=(),
        part_number=None,
    )


def test_image_has_no_guids() -> None:
    query = flint("connectx7-image")
    assert (query.stored_version, query.running_version) == ("28.41.1000", None)
    assert (query.psid, query.base_guid) == ("MT_0000000838", None)
    assert query.security == ("secure-fw",)


def test_columns_of_an_old_card() -> None:
    query = flint("connectx3")
    assert (query.image_type, query.psid) == ("FS2", "DEL1100001019")
    assert query.guids[0] == query.base_guid == "0x0002c90300aa1000"
    assert query.macs == ("00:02:c9:aa:10:01", "00:02:c9:aa:10:02")
    assert query.security is None


def test_settings_in_flash() -> None:
    query = parse_mstconfig_query((DATA / "mstconfig/connectx6.txt").read_text())
    assert (query.device, query.part) == ("0000:41:00.0", "MCX653105A-ECA_Ax")
    assert len(query.parameters) == 7
    on, off = NvValue("True", 1), NvValue("False", 0)
    assert query.parameters["SRIOV_EN"] == NvParameter(off, on, off, read_only=False)
    assert query.parameters["NUM_OF_VFS"].current == NvValue("8", 8)
    assert query.parameters["PCI_ATOMIC_MODE"].read_only
    array = query.parameters["HOST_CHAINING_DESCRIPTORS"].current
    assert array == NvValue("Array[0..7]", None)
    assert query.parameters["ROCE_CC_ALGORITHM_P1"].default is None


def test_xml_of_mlxfwmanager() -> None:
    found = parse_mlxfwmanager((DATA / "mlxfwmanager/bluefield.txt").read_text())
    assert found == (ManagedHca("32.43.2024", "MT_0000000884", "900-9D3B6-00CV-A_Ax"),)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("connectx6", MlxLink("Active", "Standard_RS-FEC - (544,514)", None)),
        ("unplugged", MlxLink("Polling", None, "Cable is unplugged")),
    ],
)
def test_json_of_mlxlink(name: str, expected: MlxLink) -> None:
    assert parse_mlxlink((DATA / f"mlxlink/{name}.txt").read_text()) == expected


LOCKED = """\
<Devices>
  <Device pciName="0000:b4:00.0" type="BlueField3" psid="" partNumber="--">
    <Versions>
      <FW current="--" available=""/>
    </Versions>
    <Status>Failed to open device</Status>
  </Device>
</Devices>
"""


@pytest.mark.parametrize(
    ("tool", "text", "reason"),
    [
        ("mlxfwmanager", LOCKED, "0000:b4:00.0: Failed to open device"),
        ("mlxfwmanager", LOCKED.replace(">", ">\n<!DOCTYPE a>", 1), "a declaration"),
        ("mlxfwmanager", "-E- No devices found.\n", "No devices found"),
        ("mlxfwmanager", "<Devices>\n</Devices>\n", "no devices"),
        ("mlxlink", '{"status": {"code": 1, "message": "No device"}}\n', "No device"),
        ("mlxlink", '{"result": {"output": {}}}\n', "no link"),
        ("mlxlink", "-E- Failed to open device\n", "no JSON"),
        ("mstflint", "", "no output"),
        ("mstflint", "-E- Cannot open Device: 41:00.0. No such file.\n", "Cannot open"),
        ("mstflint", "Image type: FS4\nFW Version: 20.43.2566\n", "Security"),
        ("mstconfig", "-E- Failed to open the device\n", "Failed to open"),
        ("mstconfig", "Device: x\nConfigurations:   Next Boot\n", "-e was not given"),
        ("mstconfig", "Device: x\n", "no parameters"),
    ],
)
def test_other_output_is_refused(tool: str, text: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        PARSERS[tool](text)


# ---- Damage


def parsed(path: Path, text: str) -> object:
    """Parse a damaged sample: a record, or None for a ParseError and nothing else."""
    try:
        return PARSERS[path.parent.name](text)
    except ParseError:
        return None


@pytest.mark.parametrize(
    "path", SAMPLES, ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_output_that_is_cut_off(path: Path) -> None:
    """In a line it is always noticed; at a line's end a record has no wrong value."""
    text = path.read_text()
    whole = parsed(path, text)
    assert whole is not None
    for size in range(len(text)):
        found = parsed(path, text[:size])
        if found is not None:
            assert text[:size].endswith("\n")
            assert_part_of(found, whole)


@pytest.mark.parametrize(
    "path", SAMPLES, ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_lines_that_are_lost_or_doubled(path: Path) -> None:
    lines = path.read_text().splitlines(keepends=True)
    whole = parsed(path, "".join(lines))
    for index, line in enumerate(lines):
        lost = parsed(path, "".join(lines[:index] + lines[index + 1 :]))
        if lost is not None:
            assert_part_of(lost, whole)
        twice = parsed(path, "".join([*lines[:index], line, *lines[index:]]))
        assert twice in (None, whole)


@pytest.mark.parametrize(
    "path", SAMPLES, ids=lambda path: f"{path.parent.name}-{path.stem}"
)
@pytest.mark.parametrize("byte", ["\0", "\x1b", "\ufffd"])
def test_bytes_of_something_else_are_refused(path: Path, byte: str) -> None:
    text = path.read_text()
    for position in range(0, len(text), 7):
        assert parsed(path, text[:position] + byte + text[position + 1 :]) is None


def assert_part_of(found: object, whole: object) -> None:
    """Every value of a record, at any depth, is that of the whole, or is left out."""
    if isinstance(found, dict):
        assert isinstance(whole, dict)
        assert found.keys() <= whole.keys()
        for name, value in found.items():
            assert_part_of(value, whole[name])
    elif isinstance(found, tuple) and isinstance(whole, tuple) and found:
        assert len(found) == len(whole)
        for one, other in zip(found, whole, strict=True):
            assert_part_of(one, other)
    elif is_dataclass(found):
        assert type(found) is type(whole)
        assert_part_of(vars(found), vars(whole))
    else:
        assert found in (None, (), whole)
