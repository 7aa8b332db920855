"""The parser of halo2d, on captured outputs; test_parser_rows.py has what all share."""

from pathlib import Path
from typing import Any

import pytest
from row_damage import with_values

from seatrial.parsers.errors import ParseError
from seatrial.parsers.halo2d import HaloRow, parse_halo2d

DATA = Path(__file__).parent / "data" / "halo2d"


def read(name: str) -> str:
    return (DATA / name).read_text()


GOOD = read("mpich-4.0.2-np2.txt")


@pytest.mark.parametrize(
    ("name", "protocol", "np", "grid", "sizes", "n", "validation"),
    [
        (
            "openmpi-4.1.4-np4.txt",
            "irecv_isend",
            4,
            (2, 2),
            [0, *(2**k for k in range(1, 11))],
            1000,
            "pass",
        ),
        ("mpich-4.0.2-np2.txt", "sendrecv", 2, (1, 2), [8, 16, 32, 64], 1000, "pass"),
        (
            "mpich-4.0.2-np2-off.txt",
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


def test_row_is_read_whole() -> None:
    assert parse_halo2d(GOOD)[0] == HaloRow(
        program="halo2d",
        version="0.1.0",
        commit="65acc6f0cbee",
        mpi="MPICH Version: 4.0.2",
        np=2,
        iterations=200,
        warmup=200,
        row=1,
        rows=4,
        protocol="sendrecv",
        px=1,
        py=2,
        repetitions=5,
        size_bytes=64,
        subdomain=8,
        time_median_us=2.04023,
        time_min_us=1.814845,
        min_us=1.643,
        p50_us=1.913,
        p99_us=2.5156,
        max_us=252.064,
        mean_us=2.772943,
        n=1000,
        validation="pass",
    )


def test_every_cut_is_refused() -> None:
    for end in range(len(GOOD) - 2):
        with pytest.raises(ParseError):
            parse_halo2d(GOOD[:end])


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"np": 3}, "np is not px x py, or below 2"),
        ({"np": 1, "py": 1}, "np is not px x py, or below 2"),
        ({"px": 2, "py": 1}, "px: 2, in the first row 1"),
        ({"protocol": "persistent"}, "protocol: 'persistent', in the first row"),
        ({"repetitions": 4, "n": 800}, "repetitions: 4, in the first row 5"),
        ({"validation": "off"}, "validation: 'off', in the first row 'pass'"),
        ({"size_bytes": 127}, "size_bytes is not 8 x subdomain"),
        ({"size_bytes": 192, "subdomain": 24}, "size 24 after 8, expected 16"),
        ({"n": 999}, "999 samples, expected at most 200 x 5"),
        ({"n": 1005}, "1005 samples, expected at most 200 x 5"),
        ({"time_min_us": 0}, "time_min_us is not positive"),
        ({"time_min_us": 9e9}, "above time_median_us"),
        ({"p50_us": 9e9}, "out of order"),
    ],
)
def test_contradictions_are_refused(values: dict[str, Any], reason: str) -> None:
    with pytest.raises(ParseError) as refusal:
        parse_halo2d(with_values(GOOD, 2, **values))
    assert reason in refusal.value.reason


def test_fewer_iterations_are_read() -> None:
    """As `--time` makes them; every repetition has as many."""
    assert parse_halo2d(with_values(GOOD, 2, n=35))[1].n == 35


def test_real_corruption_is_refused() -> None:
    with pytest.raises(ParseError, match="line 2: contents failed validation"):
        parse_halo2d(read("mpich-4.0.2-corrupt.txt"))
