"""A run as one file: it opens into the same run, elsewhere and offline."""

import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from closed_runs import CRITERIA, close_run, rewrite_manifest, ssh_key
from fake_home import write

from seatrial.cli import main
from seatrial.errors import SeatrialError
from seatrial.runs.pack import pack, unpack


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return close_run(tmp_path / "results")


def seatrial(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


def test_packed_run_opens_into_the_same_files(run: Path, tmp_path: Path) -> None:
    for name in ("one.tar.xz", "two.tar.xz"):
        pack(run, tmp_path / name)
    one = (tmp_path / "one.tar.xz").read_bytes()
    assert one == (tmp_path / "two.tar.xz").read_bytes()
    (tmp_path / "there").mkdir()
    opened = unpack(tmp_path / "one.tar.xz", tmp_path / "there")
    assert opened.name == run.name
    assert files(opened) == files(run)


def test_sealed_file_of_another_centre_is_judged_offline(
    run: Path, tmp_path: Path
) -> None:
    """Neither network nor inventory nor results, only the file and the criteria."""
    key = ssh_key(tmp_path / "keys", "vendor")
    assert seatrial("seal", run, "--key", key).exit_code == 0
    file = tmp_path / "offer.seatrial.tar.xz"
    assert seatrial("pack", run, file).exit_code == 0
    signers = tmp_path / "signers"
    signers.write_text(f"offers@example.org {key.with_suffix('.pub').read_text()}")
    home = tmp_path / "home"
    write(home / "reference-data" / "other" / "criteria.yaml", CRITERIA)
    write(home / "reframe-checks" / "checks" / "none.py", "")
    alone = [
        "unshare",
        "--user",
        "--net",
        str(Path(sys.executable).parent / "seatrial"),
    ]
    said = {}
    for command in (
        ("verify", file, "--sealed", "--signers", signers),
        ("judge", file, "--criteria", home / "reference-data/other/criteria.yaml"),
    ):
        done = subprocess.run(
            [*alone, *map(str, command), "--format", "json"],
            env={"PATH": "/usr/bin:/bin", "SEATRIAL_HOME": str(home)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == (3 if "judge" in command else 0), done.stderr
        said[command[0]] = json.loads(done.stdout)
    assert said["verify"]["whole"] and said["verify"]["seal"] == "known"
    assert said["verify"]["signer"] == "offers@example.org"
    assert said["judge"]["run"] == run.name
    here = seatrial("judge", run, "--criteria", command[3], "--format", "json")
    assert json.loads(here.stdout)["digest"] == said["judge"]["digest"]


def archive(tmp_path: Path, *members: tarfile.TarInfo) -> Path:
    file = tmp_path / "made.tar"
    with tarfile.open(file, "w") as target:
        for member in members:
            target.addfile(member, io.BytesIO(b"x" * member.size))
    return file


def member(name: str, **more: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size = 0 if more else 1
    for key, value in more.items():
        setattr(info, key, value)
    return info


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ([member("../evil")], "is outside the folder"),
        ([member("run/link", type=tarfile.SYMTYPE, linkname="/etc")], "no plain file"),
        ([member("run/dev", type=tarfile.CHRTYPE)], "no plain file"),
        ([member("run/other")], "0 runs in it; expected one"),
        ([member("a/manifest.json"), member("b/manifest.json")], "2 runs in it"),
    ],
)
def test_what_is_no_run_is_refused(
    members: list[tarfile.TarInfo], said: str, tmp_path: Path
) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(SeatrialError, match=said):
        unpack(archive(tmp_path, *members), tmp_path / "there")
    assert not (tmp_path / "evil").exists()


def test_damaged_file_is_refused(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.tar.xz"
    pack(run, file)
    file.write_bytes(file.read_bytes()[:-200])
    result = seatrial("verify", file)
    assert result.exit_code == 2
    assert "not a packed run, or damaged on the way" in result.stderr


def test_changed_open_and_doubled_runs_are_not_packed(
    run: Path, tmp_path: Path
) -> None:
    file = tmp_path / "run.tar.xz"
    pack(run, file)
    with pytest.raises(SeatrialError, match="exists already"):
        pack(run, file)
    (run / "cases.json").write_text("[]")
    result = seatrial("pack", run, tmp_path / "changed.tar.xz")
    assert result.exit_code == 1
    assert "only a whole run is packed" in result.stderr
    rewrite_manifest(run)
    opened = run.with_name(run.name + ".open")
    run.rename(opened)
    with pytest.raises(SeatrialError, match="not closed"):
        pack(opened, tmp_path / "open.tar.xz")
    assert not list(tmp_path.glob(".*.part")) and len(list(tmp_path.glob("*.xz"))) == 1


def test_a_packed_run_is_not_sealed(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.tar.xz"
    pack(run, file)
    result = seatrial("seal", file, "--key", ssh_key(tmp_path / "keys", "a"))
    assert result.exit_code == 2
    assert "seal it, then pack it" in result.stderr
