"""Images on the control machine: stand-ins for mstflint, and the real one."""

import hashlib
import os
import re
import shutil
from pathlib import Path

import pytest
from fake_home import fake_program
from firmware_nodes import (
    NEW,
    PRESENT,
    PSID,
    write_declaration,
    write_firmware_node,
)

from seatrial.audit import images
from seatrial.audit.hardware_file import HardwareFile
from seatrial.audit.images import check_images
from seatrial.errors import SeatrialError


@pytest.fixture
def standin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the stand-in for mstflint first on PATH; give the folder of an inventory."""
    tools = write_firmware_node(tmp_path / "node", PRESENT) / "tools"
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    return tmp_path / "inventory"


def check(hardware: Path) -> list[Path]:
    return check_images(HardwareFile(hardware, ["cpu"], hardware.parent / "none"))


def refusal(hardware: Path) -> str:
    with pytest.raises(SeatrialError) as caught:
        check(hardware)
    return str(caught.value)


def test_images_as_declared(standin: Path) -> None:
    found = check(write_declaration(standin))
    assert [path.name for path in found] == ["new.bin", "old.bin"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (f"MT_0000000999 {NEW}", f"is an image of MT_0000000999, version {NEW}"),
        (f"{PSID} 20.43.9999", f"is an image of {PSID}, version 20.43.9999"),
        ("nothing", "is no image: line 1: Failed to open"),
    ],
)
def test_an_image_of_something_else_is_refused(
    content: str, expected: str, standin: Path
) -> None:
    reason = refusal(write_declaration(standin, new=content))
    assert re.match(r".*/hardware\.yml:3: hca_models\.\w+\.firmware\.file: ", reason)
    assert expected in reason


def test_another_checksum_is_refused(standin: Path) -> None:
    hardware = write_declaration(standin)
    (standin / "firmware/old.bin").write_text("changed")
    reason = refusal(hardware)
    digest = hashlib.sha256(b"changed").hexdigest()
    assert "hardware.yml:5: " in reason
    assert f"has SHA-256 {digest}, declared is " in reason


def test_a_missing_image_is_refused(standin: Path) -> None:
    hardware = write_declaration(standin)
    (standin / "firmware/new.bin").unlink()
    assert "new.bin: No such file or directory" in refusal(hardware)


def test_an_image_that_is_not_verified_is_refused(
    standin: Path, tmp_path: Path
) -> None:
    tool = tmp_path / "node/tools/mstflint"
    tool.write_text(
        tool.read_text().replace("-I- FW image verification succ", "-E- no: ")
    )
    assert "mstflint does not verify it: -E- no: " in refusal(
        write_declaration(standin)
    )


def test_without_mstflint_nothing_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    reason = refusal(write_declaration(tmp_path / "inventory"))
    assert "mstflint is not installed on this machine" in reason


def test_a_program_that_fails_in_silence_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_program(tmp_path / "bin", "mstflint", "exit 3")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert "mstflint: exit status 3" in refusal(
        write_declaration(tmp_path / "inventory")
    )


def test_a_program_that_hangs_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_program(tmp_path / "bin", "mstflint", "exec sleep 60")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setattr(images, "_TIMEOUT_S", 1)
    reason = refusal(write_declaration(tmp_path / "inventory"))
    assert "mstflint: no end within 1 s" in reason


def test_a_program_that_may_not_run_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_program(tmp_path / "bin", "mstflint", "exit 0")
    (tmp_path / "bin/mstflint").chmod(0o644)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    reason = refusal(write_declaration(tmp_path / "inventory"))
    assert "mstflint: Permission denied" in reason


def test_an_image_of_fs2(standin: Path, tmp_path: Path) -> None:
    (tmp_path / "node/mode").write_text("fs2")
    assert len(check(write_declaration(standin))) == 2


def test_images_of_models_without_a_slot_are_not_checked(standin: Path) -> None:
    hardware = write_declaration(standin, new="nothing")
    hardware.write_text(hardware.read_text().partition("hca_slots:")[0])
    assert check(hardware) == []


@pytest.mark.skipif(shutil.which("mstflint") is None, reason="mstflint, the real one")
def test_the_real_mstflint_refuses_a_damaged_image(tmp_path: Path) -> None:
    reason = refusal(write_declaration(tmp_path / "inventory", new=4096 * "\x00"))
    assert "hardware.yml:3: " in reason
    assert "is no image: " in reason
