"""Processes of a node are found in its cgroups, which come and go."""

import errno
from pathlib import Path

import pytest

from seatrial.system.lab import container


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two cgroups, one within the other, with one process each."""
    for folder, pid in ((tmp_path, "7\n"), (tmp_path / "system.slice", "8\n")):
        folder.mkdir(exist_ok=True)
        (folder / "cgroup.procs").write_text(pid)
    monkeypatch.setattr(container, "_below_hierarchies", lambda _: [tmp_path])
    return tmp_path


def test_processes_of_all_cgroups(groups: Path) -> None:
    assert container._processes("cn01") == {7, 8}


def test_a_cgroup_removed_while_it_is_read_has_no_processes(groups: Path) -> None:
    (groups / "system.slice" / "cgroup.procs").unlink()
    assert container._processes("cn01") == {7}


@pytest.mark.parametrize("number", [errno.ENODEV, errno.EACCES])
def test_only_a_removed_cgroup_is_passed_over(
    groups: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ENODEV: removed between open and read."""
    read = Path.read_text

    def refuse(path: Path) -> str:
        if path.parent == groups:
            return read(path)
        raise OSError(number, "a text")

    monkeypatch.setattr(Path, "read_text", refuse)
    if number == errno.ENODEV:
        assert container._processes("cn01") == {7}
    else:
        with pytest.raises(OSError, match="a text"):
            container._processes("cn01")
