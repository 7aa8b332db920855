import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seatrial.parsers.errors import ParseError
from seatrial.parsers.halo2d import HaloRow, parse_halo2d

DATA = Path(__file__).parent / "data" / "halo2d"


def read(name: str) -> str:
    return (DATA / name).read_text()


JSON = read("mpich_4.0.2_json_validate.txt")
TABLE = read("openmpi_4.1.4_table_validate.txt")


@pytest.mark.parametrize(
    ("name", "protocol", "np", "grid", "sizes", "n", "validation"),
    [
        (
            "openmpi_4.1.4_json_validate.txt",
            "irecv_isend",
            4,
            (2, 2),
            [0, *(2**k for k in range(1, 11))],
            1000,
            "pass",
        ),
        (
            "openmpi_4.1.4_table_validate.txt",
            "sendrecv",
            4,
            (2, 2),
            [0, *(2**k for k in range(1, 11))],
            1000,
            "pass",
        ),
        (
            "mpich_4.0.2_json_validate.txt",
            "sendrecv",
            2,
            (1, 2),
            [8, 16, 32, 64],
            1000,
            "pass",
        ),
        (
            "mpich_4.0.2_table.txt",
            "irecv_isend",
            2,
            (1, 2),
            [0, 2, 4, 8, 16, 32, 64],
            600,
            "off",
        ),
    ],
)
def test_reads_real_output(
    name: str,
    protocol: str,
    np: int,
    grid: tuple[int, int],
    sizes: list[int],
    n: int,
    validation: str,
) -> None:
    rows = parse_halo2d(read(name))
    assert [row.subdomain for row in rows] == sizes
    assert [row.size_bytes for row in rows] == [8 * size for size in sizes]
    assert {row.protocol for row in rows} == {protocol}
    assert {(row.np, row.px, row.py) for row in rows} == {(np, *grid)}
    assert {(row.n, row.validation) for row in rows} == {(n, validation)}


def test_json_row_is_read_whole() -> None:
    assert parse_halo2d(JSON)[0] == HaloRow(
        version="0.1.0",
        commit="054ba4828ff4",
        mpi="MPICH Version: 4.0.2",
        protocol="sendrecv",
        np=2,
        px=1,
        py=2,
        iterations=200,
        warmup=200,
        repetitions=5,
        size_bytes=64,
        subdomain=8,
        time_median_us=2.12135,
        time_min_us=2.049795,
        min_us=1.743,
        p50_us=2.083,
        p99_us=2.9554,
        max_us=3472.007,
        n=1000,
        validation="pass",
    )


def test_table_row_is_read_whole() -> None:
    first = next(line for line in TABLE.splitlines() if line.startswith("0 "))
    row = parse_halo2d(TABLE)[0]
    assert row.commit == "054ba4828ff4"
    assert row.mpi == "Open MPI v4.1.4"
    assert (row.iterations, row.warmup, row.repetitions) == (200, 200, 5)
    means = [row.time_median_us, row.time_min_us]
    times = [*means, row.min_us, row.p50_us, row.p99_us, row.max_us]
    assert [f"{time:.2f}" for time in times] == first.split()[2:8]


@pytest.mark.parametrize("text", [JSON, TABLE])
def test_passes_over_lines_of_others(text: str) -> None:
    noisy = f"nodes cn01,cn02\n\n{text}slurmstepd: done\n"
    assert parse_halo2d(noisy) == parse_halo2d(text)


def test_every_cut_is_refused() -> None:
    for text in (JSON, TABLE):
        for end in range(len(text) - 2):
            with pytest.raises(ParseError):
                parse_halo2d(text[:end])


def with_value(key: str, value: object) -> Callable[[], str]:
    """Change one value of the second JSON row."""

    def change() -> str:
        lines = JSON.splitlines()
        values: dict[str, Any] = json.loads(lines[1])
        values[key] = value
        lines[1] = json.dumps(values)
        return "\n".join(lines)

    return change


def without_line(text: str, index: int) -> Callable[[], str]:
    lines = text.splitlines()
    return lambda: "\n".join(lines[:index] + lines[index + 1 :])


def replaced(text: str, pattern: str, by: str) -> Callable[[], str]:
    def change() -> str:
        changed, count = re.subn(pattern, by, text, count=1, flags=re.MULTILINE)
        assert count == 1
        return changed

    return change


@pytest.mark.parametrize(
    ("damage", "line", "reason"),
    [
        (lambda: "", 0, "no output of halo2d in 0 lines"),
        (lambda: "srun: error\n", 0, "no output of halo2d in 1 lines"),
        (with_value("p50_us", float("nan")), 2, "NaN is not a number"),
        (with_value("max_us", float("inf")), 2, "Infinity is not a number"),
        (with_value("max_us", None), 2, "max_us: None is not of type float"),
        (with_value("min_us", -1.5), 2, "min_us: -1.5 is not a positive time"),
        (with_value("time_min_us", 0), 2, "time_min_us: 0 is not a positive time"),
        (with_value("np", True), 2, "np: True is not of type int"),
        (with_value("n", 1000.0), 2, "n: 1000.0 is not of type int"),
        (with_value("warmup", -1), 2, "warmup: -1 is negative"),
        (with_value("mpi", 4), 2, "mpi: 4 is not of type str"),
        (with_value("validation", "fail"), 2, "contents failed validation"),
        (with_value("validation", "ok"), 2, "validation: 'ok'"),
        (with_value("validation", "off"), 2, "validation: 'off', in the row before"),
        (with_value("np", 3), 2, "np is not px x py"),
        (with_value("size_bytes", 127), 2, "size_bytes is not 8 x subdomain"),
        (with_value("n", 999), 2, "999 samples, expected at most 200 x 5"),
        (with_value("time_min_us", 9e9), 2, "time_min_us above time_median_us"),
        (with_value("p50_us", 9e9), 2, "out of order"),
        (with_value("protocol", "put"), 2, "protocol: 'put', in the row before"),
        (with_value("rows", 5), 2, "rows: 5, in the row before 4"),
        (with_value("row", 3), 2, "row 3, expected row 2"),
        (with_value("program", "logp"), 2, "a row of 'logp', expected 'halo2d'"),
        (with_value("extra", 1), 2, "missing or unknown keys: extra"),
        (replaced(JSON, '"n": 1000, ', ""), 1, "missing or unknown keys: n"),
        (replaced(JSON, '"subdomain": 8,', '"subdomain": 8'), 1, "not a JSON row"),
        (
            replaced(
                JSON,
                '"size_bytes": 128, "subdomain": 16',
                '"size_bytes": 192, "subdomain": 24',
            ),
            2,
            "subdomain 24, expected 16",
        ),
        (without_line(JSON, 0), 1, "row 2, expected row 1"),
        (without_line(JSON, 2), 3, "row 4, expected row 3"),
        (without_line(JSON, 3), 3, "3 rows, expected 4"),
        (lambda: JSON + JSON, 5, "row 1, expected row 5"),
        (lambda: TABLE + TABLE, 17, "a second run begins"),
        (without_line(TABLE, 0), 5, "lacks: commit, mpi, version"),
        (without_line(TABLE, 1), 5, "lacks: np, protocol, px, py"),
        (without_line(TABLE, 8), 15, "10 rows, expected 11"),
        (without_line(TABLE, 15), 15, "10 rows, expected 11"),
        (replaced(TABLE, r" pass$", " fail"), 6, "contents failed validation"),
        (replaced(TABLE, r" pass$", ""), 6, "9 columns, expected 10"),
        (replaced(TABLE, r"^(16 +2 +)\S+", r"\1nan"), 7, "'nan' is not a valid"),
        (replaced(TABLE, r"^(16 +2 +)\S+", r"\1inf"), 7, "'inf' is not a valid"),
        (replaced(TABLE, r"^(16 +2 +)\S+", r"\1-1.00"), 7, "'-1.00' is not a valid"),
        (replaced(TABLE, r"^16 ", "-16"), 7, "size_bytes: '-16' is not a valid"),
        (replaced(TABLE, "rows: 11", "rows: many"), 3, "rows: 'many' is not a valid"),
    ],
)
def test_refuses(damage: Callable[[], str], line: int, reason: str) -> None:
    with pytest.raises(ParseError, match=re.escape(reason)) as refusal:
        parse_halo2d(damage())
    assert refusal.value.line == line


def test_real_corruption_is_refused() -> None:
    with pytest.raises(ParseError, match="line 2: contents failed validation"):
        parse_halo2d(read("mpich_4.0.2_json_corrupt.txt"))


def test_complete_json_without_last_newline_is_whole() -> None:
    assert len(parse_halo2d(JSON.rstrip("\n"))) == 4
