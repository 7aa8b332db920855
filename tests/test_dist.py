"""`make dist`: the same files give the same bytes, and Spack's recipe knows them."""

import gzip
import hashlib
import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
from spack_sources import dist

HOME = Path(__file__).resolve().parents[1]
VERSION = "1.2.3"
TARBALL = f"build/dist/seatrial-benchmarks-{VERSION}.tar.gz"


FILES = {
    "pyproject.toml": f'[project]\nversion = "{VERSION}"\n',
    "LICENSE": "terms\n",
    ".gitignore": "/build/\n*.o\n",
    "benchmarks/CMakeLists.txt": "project(x)\n",
    "benchmarks/b/long.c": "x" * 200_000,  # more than a block of gzip
    "benchmarks/a/run.sh": "#!/bin/sh\n",
    "outside.txt": "not of the benchmarks\n",
    dist.RECIPE: f'class X:\n    version("0", sha256="{"0" * 64}")\n',
}


def git(checkout: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", checkout, *arguments], check=True, capture_output=True)


def make_checkout(folder: Path, names: list[str]) -> Path:
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(FILES[name])
    (folder / "benchmarks/a/run.sh").chmod(0o755)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    return folder


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return make_checkout(tmp_path / "checkout", list(FILES))


def packed(checkout: Path) -> bytes:
    dist.main(checkout)
    return (checkout / TARBALL).read_bytes()


def test_checksum_of_the_recipe_is_that_of_the_benchmarks() -> None:
    version = dist.version_of(HOME)
    content = dist.gzip_of(dist.tar_of(HOME, f"{dist.NAME}-{version}"))
    line = f'version("{version}", sha256="{hashlib.sha256(content).hexdigest()}")'
    recipe = (HOME / dist.RECIPE).read_text()
    assert line in recipe, "benchmarks/ changed: run make dist"


def test_same_files_give_same_bytes(checkout: Path, tmp_path: Path) -> None:
    first = packed(checkout)
    assert packed(checkout) == first
    other = make_checkout(tmp_path / "elsewhere", sorted(FILES, reverse=True))
    for name in FILES:
        os.utime(other / name, (1, 1))
    (other / "LICENSE").chmod(0o600)
    (other / "benchmarks/a/run.sh").chmod(0o700)
    assert packed(other) == first


def test_tarball_holds_the_benchmarks_and_nothing_else(checkout: Path) -> None:
    content = gzip.decompress(packed(checkout))
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        members = {each.name: each for each in tar}
        long = tar.extractfile("seatrial-benchmarks-1.2.3/b/long.c")
        assert long and long.read() == b"x" * 200_000
    folder = f"seatrial-benchmarks-{VERSION}"
    names = ["LICENSE", "CMakeLists.txt", "a/run.sh", "b/long.c"]
    assert list(members) == [f"{folder}/{name}" for name in names]
    owners = {(m.uid, m.gid, m.uname, m.gname, m.mtime) for m in members.values()}
    assert owners == {(0, 0, "", "", 315532800)}
    modes = {name.rpartition("/")[2]: each.mode for name, each in members.items()}
    assert modes.pop("run.sh") == 0o755
    assert set(modes.values()) == {0o644}


@pytest.mark.parametrize(
    ("change", "changes"),
    [
        pytest.param({"benchmarks/b/long.c": "y"}, True, id="a change, not committed"),
        pytest.param({"benchmarks/new.c": "z"}, True, id="a file that git would add"),
        pytest.param({"benchmarks/b/long.c": None}, True, id="a file that is gone"),
        pytest.param({"benchmarks/b/long.o": "z"}, False, id="what git ignores"),
        pytest.param({"outside.txt": "z"}, False, id="other files"),
    ],
)
def test_dirty_tree_is_taken_as_it_lies(
    checkout: Path, change: dict[str, str | None], changes: bool
) -> None:
    before = packed(checkout)
    for name, text in change.items():
        if text is None:
            (checkout / name).unlink()
        else:
            (checkout / name).write_text(text)
    dirty = packed(checkout)
    assert (dirty != before) is changes
    git(checkout, "add", "--all")
    assert packed(checkout) == dirty


def test_recipe_and_checksum_file_name_what_was_made(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sha256 = hashlib.sha256(packed(checkout)).hexdigest()
    recipe = (checkout / dist.RECIPE).read_text()
    assert recipe == f'class X:\n    version("{VERSION}", sha256="{sha256}")\n'
    beside = (checkout / f"{TARBALL}.sha256").read_text()
    assert beside == f"{sha256}  seatrial-benchmarks-{VERSION}.tar.gz\n"
    changed = f"new checksum in {dist.RECIPE}: commit it with the change of benchmarks/"
    assert capsys.readouterr().out == f"{sha256}  {TARBALL}\n{changed}\n"
    packed(checkout)
    assert capsys.readouterr().out == f"{sha256}  {TARBALL}\n"


def test_recipe_without_its_line_is_refused(checkout: Path) -> None:
    (checkout / dist.RECIPE).write_text("class X:\n    pass\n")
    with pytest.raises(SystemExit, match="expected one line version"):
        dist.main(checkout)


def test_make_calls_it() -> None:
    printed = subprocess.run(
        ["make", "--dry-run", "dist"], cwd=HOME, check=True, capture_output=True
    )
    assert b"tools/dist.py" in printed.stdout
