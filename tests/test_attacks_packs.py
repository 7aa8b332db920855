"""Attacks by a file: packs, tables and YAML that are small and stand for much."""

import io
import lzma
import tarfile
import time
import zlib
from pathlib import Path

import polars as pl
import pytest
from closed_runs import CRITERIA, close_run, rewrite_manifest
from fake_home import write

from seatrial import limits
from seatrial.criteria.criteria import Criteria
from seatrial.criteria.keys import ANY
from seatrial.errors import SeatrialError
from seatrial.runs.closed_run import load_run
from seatrial.runs.pack import pack, unpack
from seatrial.runs.run_contents import read_contents

RAISE = "set SEATRIAL_LIMITS=10 to raise all limits"


def size_below(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def archive(file: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(file, "w:xz", format=tarfile.PAX_FORMAT) as target:
        for info, content in members:
            info.size = len(content)
            target.addfile(info, io.BytesIO(content))
    return file


def test_pack_of_zeros(tmp_path: Path) -> None:
    """A few kilobytes of pack are 100 MB of file."""
    file = archive(tmp_path / "bomb", (tarfile.TarInfo("r/zeros"), bytes(100 << 20)))
    assert file.stat().st_size < 20_000
    with pytest.raises(SeatrialError, match="compression of a pack") as raised:
        unpack(file, tmp_path / "out")
    assert RAISE in str(raised.value)
    assert size_below(tmp_path / "out") <= limits.PACK_SMALL


def test_sparse_file_in_a_pack(tmp_path: Path) -> None:
    """Some bytes of a sparse file are 1 GiB on the disk."""
    info = tarfile.TarInfo("r/sparse")
    info.pax_headers = {
        "GNU.sparse.major": "0",
        "GNU.sparse.minor": "1",
        "GNU.sparse.size": str(1 << 30),
        "GNU.sparse.map": f"{(1 << 30) - 1},1",
    }
    file = archive(tmp_path / "bomb", (info, b"x"))
    assert file.stat().st_size < 400
    with pytest.raises(SeatrialError, match="is no plain file"):
        unpack(file, tmp_path / "out")
    assert size_below(tmp_path) < 1000


def test_header_of_a_pack(tmp_path: Path) -> None:
    """Headers of PAX are read into memory, whatever their size."""
    info = tarfile.TarInfo("r/x")
    info.pax_headers = {"comment": "x" * (40 << 20)}
    file = archive(tmp_path / "bomb", (info, b""))
    with pytest.raises(SeatrialError, match="header of a file in a pack"):
        unpack(file, tmp_path / "out")


def test_memory_of_a_pack(tmp_path: Path) -> None:
    """The dictionary of an xz file may be 1.5 GiB."""
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1536 << 20}]
    file = tmp_path / "bomb"
    # The declared size is in the header of the block; compressing takes ten times it.
    small = lzma.compress(b"x", filters=[{**filters[0], "dict_size": 1 << 20}])
    patched = bytearray(small)
    at = patched.index(b"\x21\x01", 12) + 2
    patched[at] = 37  # 1.5 GiB, as the .xz format writes it
    start, size = 12, (patched[12] + 1) * 4
    crc = zlib.crc32(bytes(patched[start : start + size - 4]))
    patched[start + size - 4 : start + size] = crc.to_bytes(4, "little")
    file.write_bytes(patched)
    with pytest.raises(SeatrialError, match="Memory usage limit"):
        unpack(file, tmp_path / "out")


def test_many_files_in_a_pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = limits.Limit(limits.PACK_FILES.what, 5, "files")
    monkeypatch.setattr("seatrial.limits.PACK_FILES", few)
    members = [(tarfile.TarInfo(f"r/{number}"), b"") for number in range(6)]
    file = archive(tmp_path / "bomb", *members)
    with pytest.raises(SeatrialError, match="more than 5 files"):
        unpack(file, tmp_path / "out")
    monkeypatch.setenv("SEATRIAL_LIMITS", "2")
    with pytest.raises(SeatrialError, match="0 runs in it"):
        unpack(file, tmp_path / "out2")


def test_file_that_is_twice_in_a_pack(tmp_path: Path) -> None:
    members = [(tarfile.TarInfo("r/x"), content) for content in (b"1", b"2")]
    file = archive(tmp_path / "twice", *members)
    with pytest.raises(SeatrialError, match="is in it twice"):
        unpack(file, tmp_path / "out")


def test_pack_takes_nothing_that_is_not_of_the_run(tmp_path: Path) -> None:
    """A link that appears after the run was verified brings no secret along."""
    run = close_run(tmp_path / "results")
    secret = tmp_path / "secret"
    secret.write_text("key")

    def and_then(path: Path) -> object:
        contents = read_contents(path)
        (path / "raw" / "link").symlink_to(secret)
        return contents

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("seatrial.runs.pack.read_contents", and_then)
        pack(run, tmp_path / "run.tar.xz")
    with tarfile.open(tmp_path / "run.tar.xz") as packed:
        assert not [name for name in packed.getnames() if "link" in name]


def test_table_of_a_hundred_million_rows(tmp_path: Path) -> None:
    """Equal values take nothing in a file, and gigabytes in memory."""
    run = close_run(tmp_path)
    table = run / "measurements.parquet"
    row = pl.read_parquet(table).head(1).select("metric")
    pl.concat([row] * 1000).select(pl.col("metric").repeat_by(3000).explode()).select(
        metric=pl.col("metric")
    ).write_parquet(table, compression="zstd")
    rewrite_manifest(run)
    with pytest.raises(SeatrialError, match="number of measurements") as raised:
        load_run(run)
    assert RAISE in str(raised.value)


def test_real_table_is_not_refused(tmp_path: Path) -> None:
    """2 million rows of different numbers, as a sweep of 1,000 nodes has them."""
    run = close_run(tmp_path)
    table = run / "measurements.parquet"
    row = pl.read_parquet(table).head(1)
    number = 1_200_000
    rows = row.select(pl.all().repeat_by(number).explode())
    values = pl.int_range(number, eager=True).shuffle(seed=1).cast(pl.Float64) / 7 + 1
    rows.with_columns(value=values).write_parquet(table)
    rewrite_manifest(run)
    assert load_run(run).measurements.collect().height == number


def merges() -> str:
    lines = ["a0: &a0 {x: 1, y: 2, z: 3}"]
    for number in range(1, 9):
        parts = ", ".join([f"*a{number - 1}"] * 8)
        lines.append(f"a{number}: &a{number} {{<<: [{parts}]}}")
    return "\n".join(lines)


def aliases() -> str:
    lines = ["a0: &a0 [x]"]
    for number in range(1, 12):
        parts = ", ".join([f"*a{number - 1}"] * 9)
        lines.append(f"a{number}: &a{number} [{parts}]")
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (merges(), "merges .* are not supported"),
        (aliases(), "number of values, aliases written out"),
        ("a: &a [*a]", "an alias of what it is in"),
        ("[" * 5000, "nested too deeply"),
        ("a: " + "1:" * 40_000 + "1", "length of one value"),
        ("a: " + "x" * (2 << 20), "size of the file"),
    ],
    ids=["merges", "aliases", "itself", "deep", "long", "large"],
)
def test_yaml_that_stands_for_much(tmp_path: Path, text: str, said: str) -> None:
    write(tmp_path / "criteria.yaml", text)
    before = time.monotonic()
    with pytest.raises(SeatrialError, match=said):
        Criteria.load(tmp_path / "criteria.yaml", known=ANY)
    assert time.monotonic() - before < 20


def test_limits_are_raised_by_a_whole_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "criteria.yaml", CRITERIA)
    for text in ("0", "-1", "1.5", "much", "", "9" * 5000):
        monkeypatch.setenv("SEATRIAL_LIMITS", text)
        with pytest.raises(SeatrialError, match=r"SEATRIAL_LIMITS=.*whole number"):
            Criteria.load(tmp_path / "criteria.yaml", known=ANY)
