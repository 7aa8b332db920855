"""nvconfig of hardware.yml: names and values as mstflint's database has them."""

from pathlib import Path

import pytest
from mstflint_database import write_database

from seatrial.audit import nvconfig
from seatrial.audit.hardware_file import HardwareFile
from seatrial.errors import SeatrialError

MODEL = "hca_models:\n  MT_0000000222:\n    nvconfig: {}\n"


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        (
            "LINK_TYPE: IB",
            "LINK_TYPE: mstflint knows no such parameter; did you mean LINK_TYPE_P1?",
        ),
        (
            "SRIOV_EN_P1: true",
            "SRIOV_EN_P1: mstflint knows no such parameter; did you mean SRIOV_EN?",
        ),
        ("XXX: 1", "XXX: mstflint knows no such parameter; remove it."),
        (
            "CNP_DSCP_P2: 64",
            "CNP_DSCP_P2: expected a whole number from 0 to 63, got 64.",
        ),
        ("LOG_SIZE: 21", "LOG_SIZE: expected a whole number from 0 to 20, got 21."),
        (
            "NUM_OF_VFS: true",
            "NUM_OF_VFS: expected a whole number from 0 to 65535, got True.",
        ),
        (
            "DESCRIPTORS: 4",
            "DESCRIPTORS: expected no value, as it is an array or binary data, got 4.",
        ),
    ],
)
def test_parameter_is_checked(parameter: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "hardware.yml"
    file.write_text(MODEL.replace("{}", f"{{{parameter}}}"))
    with pytest.raises(SeatrialError) as refused:
        HardwareFile(file, ["cpu"], write_database(tmp_path))
    at = f"{file}:3: hca_models.MT_0000000222.nvconfig."
    assert str(refused.value) == at + message


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("LLDP_NB_RX_MODE_P1", False, "OFF(0)"),
        ("SRIOV_EN", True, "True(1)"),
        ("SRIOV_EN", 0, "False(0)"),
        ("SRIOV_EN", "False(0)", "False(0)"),
        ("NUM_OF_VFS", 16, "16"),
        ("CNP_DSCP_P2", "048", "48"),
        ("POWER_OVERRIDE_M1", 3, "3"),
        ("WIDE", 2**64 - 1, "18446744073709551615"),
    ],
)
def test_value_is_written_as_mstconfig_does(
    name: str, value: str | int, text: str, tmp_path: Path
) -> None:
    known = nvconfig.parameters(write_database(tmp_path))
    assert nvconfig.written(name, value, known) == text


def test_other_file_is_no_database(tmp_path: Path) -> None:
    file = tmp_path / "host.db"
    file.write_text("no database")
    with pytest.raises(SeatrialError) as refused:
        nvconfig.parameters(file)
    assert str(refused.value) == (
        f"{file}: expected the parameters of mstconfig, got: file is not a database. "
        "Install the package mstflint again."
    )


def test_real_database_has_ports_and_ranges() -> None:
    known = nvconfig.parameters()
    if known is None:
        pytest.skip("mstflint is not installed: its database is not read")
    assert nvconfig.find("LINK_TYPE", known) is None
    assert nvconfig.find("SRIOV_EN_P1", known) is None
    dscp = nvconfig.find("CNP_DSCP_P1", known)
    assert dscp is not None
    assert (dscp.written(63), dscp.written(64)) == ("63", None)
    array = nvconfig.find("HOST_CHAINING_DESCRIPTORS", known)
    assert array is not None
    assert array.written(4) is None
    assert nvconfig.written("PCI_WR_ORDERING", 1, known) == "force_relax(1)"


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("IB(1)", "IB(1)", True),
        ("TRUST_PCP(5)", "TRUST_PCP(1)", True),  # numbers differ between versions
        ("IB(1)", "ib", True),
        ("IB(1)", "1", True),
        ("8", "8", True),
        ("IB(1)", "ETH(2)", False),
        ("IB(1)", "2", False),
        ("ETH", "1", False),
    ],
)
def test_values_are_compared_by_name(one: str, other: str, expected: bool) -> None:
    assert nvconfig.same(one, other) == expected
    assert nvconfig.same(other, one) == expected
