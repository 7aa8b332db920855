"""The parser of memlat, on captured outputs; test_parser_rows.py has what all share."""

from pathlib import Path
from typing import Any

import pytest
from row_damage import with_values

from seatrial.parsers.errors import ParseError
from seatrial.parsers.memlat import MemlatRow, parse_memlat

DATA = Path(__file__).parent / "data" / "memlat"


def read(name: str) -> str:
    return (DATA / name).read_text()


GOOD = read("0.1.0-off.txt")
WHOLE = read("0.1.0-transparent.txt")


def test_reads_real_output() -> None:
    rows = parse_memlat(WHOLE)
    assert [row.size_bytes for row in rows] == [2**power for power in range(14, 28)]
    assert {row.cpu for row in rows} == {1}
    assert {row.validation for row in rows} == {"pass"}
    assert rows[-1].huge_bytes == rows[-1].size_bytes
    assert rows[-1].min_ns > 20 * rows[0].min_ns


def test_row_is_read_whole() -> None:
    assert parse_memlat(GOOD)[0] == MemlatRow(
        program="memlat",
        version="0.1.0",
        commit="d9bb962144b6",
        mpi="none",
        np=1,
        iterations=100,
        warmup=1,
        row=1,
        rows=3,
        host="cn01",
        stride=64,
        loads=4096,
        cache_bytes=33554432,
        huge_pages="off",
        size_bytes=16384,
        huge_bytes=0,
        cpu=0,
        min_ns=1.0897119140625,
        p50_ns=1.1729638671875,
        p99_ns=1.54061767578125,
        max_ns=1.6351220703125,
        mean_ns=1.20658203125,
        n=100,
        validation="off",
    )


def test_every_cut_is_refused() -> None:
    for end in range(len(GOOD) - 2):
        with pytest.raises(ParseError):
            parse_memlat(GOOD[:end])


@pytest.mark.parametrize(
    ("line", "values", "reason"),
    [
        (1, {"p50_ns": 1e9}, "out of order"),
        (1, {"mean_ns": 1e9}, "mean_ns 1000000000.0 is not between"),
        (1, {"min_ns": 0}, "min_ns is not positive"),
        (1, {"min_ns": -1}, "min_ns: -1 is not a number of at least 0"),
        (1, {"min_ns": None}, "min_ns: None is not of type"),
        (
            1,
            dict.fromkeys(("p50_ns", "p99_ns", "max_ns", "mean_ns"), 2e6),
            "p50_ns is 2000000.0: a load takes no ms",
        ),
        (1, {"n": 0}, "n 0, expected at most 100"),
        (1, {"n": 101}, "n 101, expected at most 100"),
        (1, {"stride": 0}, "no loads"),
        (1, {"size_bytes": 64}, "no room for two loads"),
        (1, {"huge_bytes": 16385}, "more huge pages than memory"),
        (1, {"huge_pages": "big"}, "'big' is none of"),
        (2, {"host": "cn02"}, "host: 'cn02', in the first row 'cn01'"),
        (2, {"cache_bytes": 1}, "cache_bytes: 1, in the first row 33554432"),
        (3, {"size_bytes": 16384}, "size 16384 after 32768, expected 65536"),
    ],
)
def test_contradictions_are_refused(
    line: int, values: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ParseError) as refusal:
        parse_memlat(with_values(GOOD, line, **values))
    assert reason in refusal.value.reason


def test_real_corruption_is_refused() -> None:
    with pytest.raises(ParseError, match="line 1: contents failed validation"):
        parse_memlat(read("0.1.0-corrupt.txt"))
