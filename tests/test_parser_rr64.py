"""The parser of rr64, on captured outputs; test_parser_rows.py has what all share."""

from pathlib import Path
from typing import Any

import pytest
from row_damage import with_values

from seatrial.parsers.errors import ParseError
from seatrial.parsers.rr64 import RegionsRow, parse_rr64

DATA = Path(__file__).parent / "data" / "rr64"


def read(name: str) -> str:
    return (DATA / name).read_text()


GOOD = read("openmpi-4.1.4-off.txt")


def test_reads_real_output() -> None:
    rows = parse_rr64(read("mpich-4.0.2-np2.txt"))
    assert [row.size_bytes for row in rows] == [2**power for power in range(3, 17)]
    assert {(row.np, row.nodes, row.regions) for row in rows} == {(2, 1, 64)}
    assert {row.validation for row in rows} == {"pass"}


def test_row_is_read_whole() -> None:
    assert parse_rr64(GOOD)[0] == RegionsRow(
        program="rr64",
        version="0.1.0",
        commit="0545127a2b8b",
        mpi="Open MPI v4.1.4",
        np=2,
        iterations=20,
        warmup=2,
        row=1,
        rows=3,
        nodes=1,
        regions=3,
        window=64,
        windows=4,
        size_bytes=0,
        min_us=0.488885,
        p50_us=0.823885,
        p99_us=5.13260999999999,
        max_us=6.086885,
        mean_us=1.040185,
        n=20,
        one_p50_us=0.97928,
        one_n=20,
        latency_ratio=0.841317090107017,
        bw_mb_per_s=0,
        bw_one_mb_per_s=0,
        bw_ratio=None,
        bw_n=4,
        bw_one_n=4,
        validation="off",
    )


def test_every_cut_is_refused() -> None:
    for end in range(len(GOOD) - 2):
        with pytest.raises(ParseError):
            parse_rr64(GOOD[:end])


@pytest.mark.parametrize(
    ("line", "values", "reason"),
    [
        (1, {"np": 3}, "not two ranks"),
        (1, {"nodes": 3}, "not two ranks"),
        (1, {"regions": 0}, "no regions"),
        (1, {"bw_mb_per_s": 1}, "empty messages with a bandwidth"),
        (1, {"bw_ratio": 1}, "empty messages with a bandwidth"),
        (2, {"regions": 4}, "regions: 4, in the first row 3"),
        (2, {"n": 21}, "n 21, expected at most 20"),
        (2, {"one_n": 0}, "one_n 0, expected at most 20"),
        (2, {"bw_n": 5}, "bw_n 5, expected at most 4"),
        (2, {"bw_one_n": 0}, "bw_one_n 0, expected at most 4"),
        (2, {"one_p50_us": 0}, "one_p50_us is not positive"),
        (2, {"latency_ratio": 9}, "latency_ratio 9, by its values it is"),
        (2, {"bw_ratio": None}, "bw_ratio None, by its values it is"),
        (2, {"bw_one_mb_per_s": 0}, "bw_one_mb_per_s is not positive"),
        (2, {"p50_us": 1e9}, "out of order"),
        (3, {"size_bytes": 8}, "size 8 after 2, expected 4"),
    ],
)
def test_contradictions_are_refused(
    line: int, values: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ParseError) as refusal:
        parse_rr64(with_values(GOOD, line, **values))
    assert reason in refusal.value.reason


def test_real_corruption_is_refused() -> None:
    with pytest.raises(ParseError, match="line 2: contents failed validation"):
        parse_rr64(read("openmpi-4.1.4-corrupt.txt"))
