"""The parser of bufreuse, on captured outputs."""

import json
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from row_damage import with_values, without_line

from seatrial.parsers.bufreuse import ReuseRow, median_ratio, parse_bufreuse
from seatrial.parsers.errors import ParseError

DATA = Path(__file__).parent / "data" / "bufreuse"


def read(name: str) -> str:
    return (DATA / name).read_text()


GOOD = read("openmpi-4.1.4.txt")  # sizes 2 to 64 KiB; shares 100, 0


def test_reads_real_output() -> None:
    rows = parse_bufreuse(GOOD)
    found = [(row.size_bytes, row.reuse_percent, row.protocol) for row in rows]
    assert found == [
        (size, share, "eager" if size <= 8192 else "rendezvous")
        for size in (2048, 4096, 8192, 16384, 32768, 65536)
        for share in (100, 0)
    ]
    assert {row.validation for row in rows} == {"pass"}
    for row in rows:
        assert row.buffers_used == (1 if row.reuse_percent == 100 else row.n)


def test_reads_output_without_full_reuse() -> None:
    rows = parse_bufreuse(read("mpich-4.0.2-off.txt"))
    assert [(row.size_bytes, row.ratio) for row in rows] == [(0, None), (2, None)]
    assert {row.reuse_percent for row in rows} == {25}
    assert {row.validation for row in rows} == {"off"}


def test_row_is_read_whole() -> None:
    line = GOOD.splitlines()[1]
    assert parse_bufreuse(GOOD)[1] == ReuseRow(**json.loads(line))


@pytest.mark.parametrize(("protocol", "at"), [("eager", 1), ("rendezvous", 7)])
def test_median_ratio_is_that_of_the_protocol_s_sizes(protocol: str, at: int) -> None:
    lines = [json.loads(line) for line in GOOD.splitlines()]
    expected = median(lines[i]["ratio"] for i in (at, at + 2, at + 4))
    assert median_ratio(parse_bufreuse(GOOD), protocol) == expected


def test_protocol_without_sizes_has_no_median() -> None:
    rows = parse_bufreuse(GOOD)[:6]
    with pytest.raises(ParseError, match="no ratio without re-use of a size that is"):
        median_ratio(rows, "rendezvous")


def test_every_cut_is_refused() -> None:
    for end in range(0, len(GOOD) - 2, 7):
        with pytest.raises(ParseError):
            parse_bufreuse(GOOD[:end])


@pytest.mark.parametrize(
    ("line", "values", "reason"),
    [
        (2, {"np": 4}, "np is 4, expected 2"),
        (2, {"buffers": 2048}, "buffers: 2048, in the first row 1024"),
        (2, {"swept_bytes": 0}, "swept_bytes: 0, in the first row"),
        (2, {"n": 1025}, "1025 samples, expected at most 1024"),
        (2, {"protocol": "rendezvous"}, "protocol rendezvous, eager_limit_bytes 8192"),
        (12, {"protocol": "eager"}, "protocol eager, eager_limit_bytes 8192"),
        (2, {"buffers_used": 0}, "buffers_used 0 of 1024"),
        (2, {"buffers_used": 1025}, "buffers_used 1025 of 1024"),
        (1, {"reuse_percent": 0}, "shares of re-use [0, 0], expected"),
        (1, {"reuse_percent": 101}, "shares of re-use [101, 0], expected"),
        (4, {"reuse_percent": 25}, "size 4096: shares [100, 25], expected [100, 0]"),
        (2, {"p50_us": 9e9}, "out of order"),
        (2, {"ratio": 55.0}, "size 2048: ratio 55.0, expected"),
        (2, {"ratio": None}, "size 2048: ratio None, expected"),
    ],
)
def test_contradictions_are_refused(
    line: int, values: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ParseError) as refusal:
        parse_bufreuse(with_values(GOOD, line, **values))
    assert reason in refusal.value.reason


def test_missing_row_is_refused() -> None:
    with pytest.raises(ParseError, match="row 3, expected row 2"):
        parse_bufreuse(without_line(GOOD, 2))


def test_real_corruption_is_refused() -> None:
    with pytest.raises(ParseError, match="line 1: contents failed validation"):
        parse_bufreuse(read("corrupt.txt"))
