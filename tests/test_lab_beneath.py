"""Files of a node are written in its own file system, whatever links are in it."""

import os
from pathlib import Path

import pytest

from seatrial.system.lab.beneath import write_beneath
from seatrial.system.lab.node_files import write_node_files
from seatrial.system.lab.state import LabState

OWNER = os.getuid()


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """The machine, with a file that root of a node must not reach."""
    (tmp_path / "machine").mkdir()
    (tmp_path / "machine" / "hosts").write_text("the machine's")
    return tmp_path / "machine"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "node" / "etc").mkdir(parents=True)
    return tmp_path / "node"


def test_files_and_the_folders_above_them(root: Path) -> None:
    for text in ("first", "second"):
        write_beneath(root, "etc/systemd/system/a.conf", text, OWNER)
        assert (root / "etc/systemd/system/a.conf").read_text() == text
    assert [path.name for path in (root / "etc/systemd/system").iterdir()] == ["a.conf"]


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("what", ["folder", "file", "part"])
def test_a_link_of_the_node_leads_nowhere_else(
    root: Path, machine: Path, what: str, relative: bool
) -> None:
    """The attack: root of a node links what the machine's root will write."""
    target = machine if what == "folder" else machine / "hosts"
    link = {"folder": "etc", "file": "etc/hosts", "part": "etc/.hosts.seatrial"}[what]
    if what == "folder":
        (root / "etc").rmdir()
    up = "/".join([".."] * len(root.parts))
    (root / link).symlink_to(f"{up}{target}" if relative else target)
    if what == "folder":
        with pytest.raises(OSError, match="No such file or directory"):
            write_beneath(root, "etc/hosts", "the node's", OWNER)
    else:
        write_beneath(root, "etc/hosts", "the node's", OWNER)
        assert (root / "etc" / "hosts").read_text() == "the node's"
    assert (machine / "hosts").read_text() == "the machine's"
    assert [path.name for path in machine.iterdir()] == ["hosts"]


def test_a_link_within_the_node_is_followed_there(root: Path) -> None:
    (root / "data").mkdir()
    (root / "etc" / "systemd").symlink_to("/data")
    write_beneath(root, "etc/systemd/a.conf", "text", OWNER)
    assert (root / "data" / "a.conf").read_text() == "text"


def test_node_files_are_written_beneath(root: Path, machine: Path) -> None:
    (root / "etc" / "hosts").symlink_to(machine / "hosts")
    (root.parent / "id_ed25519.pub").write_text("ssh-ed25519 key\n")
    state = LabState(str(root.parent), "boot", nodes={"cn01": "10.0.0.1"})
    write_node_files(state, "cn01", root)
    assert (machine / "hosts").read_text() == "the machine's"
    assert "10.0.0.1 cn01" in (root / "etc" / "hosts").read_text()
    key = root / "root" / ".ssh" / "authorized_keys"
    assert key.read_text() == "ssh-ed25519 key\n"
