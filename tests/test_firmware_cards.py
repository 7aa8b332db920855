"""Cards of other makers and families, and one part of the work; stand-ins, as root."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from fake_hardware import raw_of
from firmware_nodes import NEW, OLD, PRESENT, PSID, Node

from seatrial.audit.firmware import Plan, verified
from seatrial.errors import SeatrialError

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="needs root")
ADDRESS = PRESENT.address


def of_maker(folder: Path, psid: str) -> Node:
    """Return a node with a card of this PSID, which the declaration has, too."""
    node = Node(folder, replace(PRESENT, psid=psid))
    node.hardware.write_text(node.hardware.read_text().replace(PSID, psid))
    for image in (folder / "inventory/firmware").iterdir():
        image.write_text(image.read_text().replace(PSID, psid))
    return node


@pytest.mark.parametrize(
    "psid",
    [
        "DEL0000000010",
        pytest.param("LNV0000000003", marks=pytest.mark.slow),
        pytest.param("HP_1370110017", marks=pytest.mark.slow),
    ],
)
def test_a_card_of_another_maker(psid: str, tmp_path: Path) -> None:
    node = of_maker(tmp_path, psid)
    (hca,) = node.plan().hcas
    assert hca.psid == psid
    assert node.flash() == []
    assert node.boot() == []
    assert node.plan() == Plan()


def test_the_image_of_another_maker_does_not_change_the_card(tmp_path: Path) -> None:
    """mstflint itself refuses it, and the flash is as before."""
    node = Node(tmp_path)
    image = tmp_path / "inventory/firmware/new.bin"
    image.write_text(image.read_text().replace(PSID, "DEL0000000010"))
    assert f"{ADDRESS}: {NEW} was burned, but {OLD} is stored" in node.flash()


# ---- FS2: mstflint tells what is stored; sysfs alone what runs


def test_the_whole_way_of_fs2(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.mode("fs2")
    assert node.flash() == []
    waiting = node.plan()
    assert (waiting.hcas, waiting.reboot) == ([], True)
    assert f"{ADDRESS} firmware {NEW} is stored: reboot" in waiting.changes
    assert node.boot() == []
    assert node.plan() == Plan()


def test_firmware_of_fs2_that_does_not_start_is_found(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.mode("fs2")
    assert node.flash(parts=["firmware"]) == []
    raw = raw_of(node.root)  # no boot between
    faults = verified(raw, raw, node.declaration, "cpu", ["firmware"])
    wanted = f"firmware is {OLD}, after the next boot {NEW}, declared {NEW}"
    assert faults == [f"{ADDRESS}: {wanted}"]


def test_zeros_in_a_version_are_no_other_version(tmp_path: Path) -> None:
    """The driver mlx4 prints 2.9.640 for what mstflint calls 2.9.0640."""
    node = Node(tmp_path, replace(PRESENT, firmware=NEW))
    node.mode("fs2")
    file = node.root / "sys/class/infiniband/mlx5_0/fw_ver"
    file.write_text("20.043.2566\n")
    assert node.plan(parts=["firmware"]) == Plan()


# ---- One part of the work


@pytest.mark.parametrize("part", ["firmware", "nvconfig"])
def test_one_part_is_verified_alone(part: str, tmp_path: Path) -> None:
    """What the other part would change is no fault."""
    node = Node(tmp_path)
    assert node.flash(parts=[part]) == []
    assert node.boot([part]) == []
    assert node.plan(parts=[part]) == Plan()
    assert node.plan().hcas, "the other part is still to be done"


@pytest.mark.parametrize(
    ("part", "mode", "fault"),
    [
        ("firmware", "reset-refused", f"firmware is {OLD}, after the next boot {NEW}"),
        ("nvconfig", "setting-lost", "nvconfig.SRIOV_EN is True(1), declared False(0)"),
    ],
)
def test_faults_of_one_part_are_found(
    part: str, mode: str, fault: str, tmp_path: Path
) -> None:
    node = Node(tmp_path)
    assert node.flash(parts=[part]) == []
    node.mode(mode)
    assert fault in " ".join(node.boot([part]))


def test_a_setting_that_only_newer_firmware_has(tmp_path: Path) -> None:
    """The node is refused; firmware alone is a way on."""
    node = Node(tmp_path)
    declared = node.hardware.read_text()
    node.hardware.write_text(declared.replace("SRIOV_EN: false", "NEWER: 1"))
    (reason,) = node.plan().refused
    assert "NEWER cannot be read" in reason
    only = ["firmware"]
    assert node.plan(parts=only).refused == []
    assert node.flash(parts=only) == []
    assert node.boot(only) == []


# ---- A flash that answers no more


def test_a_flash_that_fails_after_the_reboot_is_found(tmp_path: Path) -> None:
    node = Node(tmp_path)
    assert node.flash(parts=["firmware"]) == []
    before = raw_of(node.root)
    node.run("boot")
    node.mode("query-fails")
    after = raw_of(node.root)
    faults = verified(before, after, node.declaration, "cpu", ["firmware"])
    (fault,) = faults
    assert fault.startswith(f"{ADDRESS}: its flash cannot be read: mstflint: ")


def test_a_flash_that_fails_after_the_burn_is_found(tmp_path: Path) -> None:
    node = Node(tmp_path)
    planned = node.plan()
    node.mode("query-fails")
    (fault,) = node.stored(planned)
    assert fault.startswith(f"{ADDRESS}: its flash cannot be read: mstflint: ")


@pytest.mark.slow
def test_a_query_that_hangs_is_refused(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.mode("query-hangs")
    (reason,) = node.plan().refused
    assert "its flash cannot be read: mstflint: no end within" in reason


# ---- A declaration that contradicts itself


def test_two_models_at_one_address_are_refused(tmp_path: Path) -> None:
    node = Node(tmp_path)
    other = "MT_0000000999"
    text = node.hardware.read_text()
    text = text.replace("hca_slots:", f"  {other}: {{}}\nhca_slots:")
    second = f'    - {{name: rail1, bdf: "{ADDRESS}", psid: {other}, port: 2}}\n'
    node.hardware.write_text(text + second)
    with pytest.raises(SeatrialError, match=r"hardware\.yml:\d+: .*one HCA, one PSID"):
        _ = node.declaration
