"""What HCAs need and whether it was done, over stand-ins for the programs; as root."""

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from fake_hardware import raw_of
from firmware_nodes import (
    NEW,
    OLD,
    PRESENT,
    PSID,
    Node,
    rails,
    write_declaration,
)

from seatrial.audit.firmware import Plan, verified

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="needs root")
ADDRESS = "0000:41:00.0"


def test_the_whole_way(tmp_path: Path) -> None:
    node = Node(tmp_path)
    first = node.plan()
    assert first.changes == [
        f"{ADDRESS} firmware {OLD} -> {NEW}: burn, reboot",
        f"{ADDRESS} SRIOV_EN True(1) -> False(0): reboot",
    ]
    (hca,) = first.hcas
    assert (hca.settings, first.reboot, first.refused) == (["SRIOV_EN=0"], True, [])
    assert hca.image == str(tmp_path / "inventory/firmware/new.bin")
    assert hca.back == str(tmp_path / "inventory/firmware/old.bin")
    assert node.flash() == []
    waiting = node.plan()
    assert (waiting.hcas, waiting.reboot) == ([], True)
    assert waiting.changes == [
        f"{ADDRESS} firmware {NEW} is stored: reboot",
        f"{ADDRESS} SRIOV_EN False(0) waits: reboot",
    ]
    assert node.boot() == []
    assert node.plan() == Plan(), "a second run changes nothing"


def test_parts_are_planned_alone(tmp_path: Path) -> None:
    node = Node(tmp_path)
    (firmware,) = node.plan(parts=["firmware"]).hcas
    assert (bool(firmware.image), firmware.settings) == (True, [])
    (settings,) = node.plan(parts=["nvconfig"]).hcas
    assert (settings.image, settings.settings) == ("", ["SRIOV_EN=0"])


def test_all_rails_of_a_node_are_planned(tmp_path: Path) -> None:
    addresses = ("0000:41:00.0", "0000:a1:00.0")
    node = Node(tmp_path, *rails(*addresses))
    write_declaration(tmp_path / "inventory", addresses)
    assert [hca.address for hca in node.plan().hcas] == [*addresses]


def test_two_ports_of_an_hca_are_burned_once(tmp_path: Path) -> None:
    port = PRESENT.ports[0]
    node = Node(tmp_path, replace(PRESENT, ports=(port, port)))
    text = node.hardware.read_text()
    second = f'    - {{name: rail1, bdf: "{ADDRESS}", psid: {PSID}, port: 2}}\n'
    node.hardware.write_text(text + second)
    (hca,) = node.plan().hcas
    assert hca.rails == ["rail0", "rail1"]


# ---- What is left alone


def refused(node: Node, **allowed: object) -> str:
    found = node.plan(**allowed)
    assert (found.hcas, found.reboot) == ([], False)
    (reason,) = found.refused
    return reason


def test_another_card_is_left_alone(tmp_path: Path) -> None:
    node = Node(tmp_path, replace(PRESENT, psid="DEL0000000010"))
    assert refused(node) == (
        f"{ADDRESS} (rail0): its PSID is DEL0000000010, declared is {PSID}"
    )


def test_an_empty_slot_is_left_alone(tmp_path: Path) -> None:
    node = Node(tmp_path, replace(PRESENT, address="0000:61:00.0"))
    assert refused(node) == f"{ADDRESS} (rail0): no HCA at its address"


def test_a_flash_that_cannot_be_read_is_left_alone(tmp_path: Path) -> None:
    node = Node(tmp_path)
    (node.root / "tools/mstflint").unlink()
    reason = refused(node)
    assert reason.endswith("its flash cannot be read: mstflint: is not installed")


def test_older_firmware_needs_its_version_named(tmp_path: Path) -> None:
    node = Node(tmp_path, replace(PRESENT, firmware="20.44.1030"))
    reason = refused(node, no_way_back=True)
    assert f"{NEW} is older than 20.44.1030, which it has" in reason
    refused(node, no_way_back=True, downgrade=["20.43.1000"])  # another version
    (hca,) = node.plan(no_way_back=True, downgrade=[NEW]).hcas
    assert hca.image


def test_versions_are_numbers(tmp_path: Path) -> None:
    node = Node(tmp_path, replace(PRESENT, firmware="20.9.1000"))
    (hca,) = node.plan(no_way_back=True).hcas  # 9 is less than 43
    assert hca.image


def test_without_a_way_back_nothing_is_burned(tmp_path: Path) -> None:
    node = Node(tmp_path)
    write_declaration(tmp_path / "inventory", previous="")
    assert f"no image of {OLD}, which it has, in previous of {PSID}" in refused(node)
    (hca,) = node.plan(no_way_back=True).hcas
    assert (bool(hca.image), hca.back) == (True, "")


def test_a_version_without_an_image_is_not_burned(tmp_path: Path) -> None:
    node = Node(tmp_path)
    text = re.sub(
        r", file: firmware/new.bin, sha256: \w+", "", node.hardware.read_text()
    )
    node.hardware.write_text(text)
    assert f"firmware {NEW} is declared without a file" in refused(node)


# ---- What went wrong


@pytest.mark.parametrize(
    ("mode", "fault"),
    [
        ("burn-does-nothing", f"{NEW} was burned, but {OLD} is stored"),
        ("set-does-nothing", "SRIOV_EN=0 was set, but SRIOV_EN is True(1)"),
    ],
)
def test_what_is_not_stored_is_found(mode: str, fault: str, tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.mode(mode)
    assert node.flash() == [f"{ADDRESS}: {fault}"]


FAULTS: Mapping[str, list[str]] = {
    "link-down": ["rail0: state is DOWN", "rail0: physical_state is Polling"],
    "hca-gone": [f"{ADDRESS}: PCI or the driver lost the HCA"],
    "reset-refused": [
        f"{ADDRESS}: firmware is {OLD}, after the next boot {NEW}, declared {NEW}"
    ],
    "setting-lost": [f"{ADDRESS}: nvconfig.SRIOV_EN is True(1), declared False(0)"],
}


@pytest.mark.parametrize("mode", FAULTS)
def test_what_a_reboot_breaks_is_found(mode: str, tmp_path: Path) -> None:
    node = Node(tmp_path)
    assert node.flash() == []
    node.mode(mode)
    assert sorted(node.boot()) == sorted(FAULTS[mode])


def test_another_identity_after_a_reboot_is_found(tmp_path: Path) -> None:
    node = Node(tmp_path)
    assert node.flash() == []
    before = raw_of(node.root)
    node.run("boot")
    (node.root / "sys/class/infiniband/mlx5_0/node_guid").write_text("0:0:0:0\n")
    width = next(node.root.glob(f"sys/devices/*/*/{ADDRESS}/current_link_width"))
    width.write_text("8\n")
    faults = verified(before, raw_of(node.root), node.declaration, "cpu")
    assert faults == [
        f"{ADDRESS}: guid was b8599f0300aa0000, is 0000",
        f"{ADDRESS}: pcie.width was 16, is 8",
    ]
