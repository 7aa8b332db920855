"""The parser of mq_unexp and mq_posted, on captured outputs."""

import json
from pathlib import Path
from typing import Any

import pytest
from row_damage import with_values, without_line

from seatrial.parsers.errors import ParseError
from seatrial.parsers.match_queue import QueueRow, parse_match_queue

DATA = Path(__file__).parent / "data" / "match_queue"
DEPTHS = [0, *(2**k for k in range(1, 14))]


def read(name: str) -> str:
    return (DATA / name).read_text()


GOOD = read("mq_posted-mpich-4.0.2.txt")  # sizes 0, 2, 4; depths 0, 2, 4, 8, 16


@pytest.mark.parametrize(
    ("name", "program", "tags", "sizes", "depths"),
    [
        ("mq_unexp-openmpi-4.1.4.txt", "mq_unexp", "ordered", [8], DEPTHS),
        ("mq_posted-openmpi-4.1.4.txt", "mq_posted", "same", [8], DEPTHS),
        ("mq_posted-mpich-4.0.2.txt", "mq_posted", "random", [0, 2, 4], DEPTHS[:5]),
    ],
)
def test_reads_real_output(
    name: str, program: str, tags: str, sizes: list[int], depths: list[int]
) -> None:
    rows = parse_match_queue(read(name), program)
    found = [(row.size_bytes, row.depth) for row in rows]
    assert found == [(size, depth) for size in sizes for depth in depths]
    assert {(row.program, row.np) for row in rows} == {(program, 2)}
    assert {(row.tags, row.entry_bytes) for row in rows} == {(tags, 8)}
    assert {row.validation for row in rows} == {"pass"}


def test_row_is_read_whole() -> None:
    line = GOOD.splitlines()[1]
    assert parse_match_queue(GOOD, "mq_posted")[1] == QueueRow(**json.loads(line))


def test_single_depth_has_no_slope() -> None:
    first = {"rows": 1, "ratio": 1.0, "slope_ns": None}
    text = with_values(GOOD.splitlines()[0], 1, **first)
    (row,) = parse_match_queue(text, "mq_posted")
    assert row.slope_ns is None
    with pytest.raises(ParseError, match="a slope of one depth"):
        parse_match_queue(with_values(text, 1, slope_ns=1.0), "mq_posted")


def test_slope_may_fall_by_noise() -> None:
    """Two depths whose latencies are swapped have the opposite slope."""
    two = GOOD.splitlines(keepends=True)[:2]
    low, high = (json.loads(line)["p50_us"] for line in two)
    text = "".join(two)
    for line, p50 in ((1, max(low, high)), (2, min(low, high))):
        text = with_values(
            text, line, rows=2, min_us=0.1, p50_us=p50, p99_us=900.0, max_us=1000.0,
            mean_us=500.0, ratio=p50 / max(low, high),
            slope_ns=-1e3 * abs(high - low) / 2,
        )  # fmt: skip
    first, second = parse_match_queue(text, "mq_posted")
    assert first.slope_ns == second.slope_ns
    assert first.slope_ns is not None
    assert first.slope_ns < 0


def test_every_cut_is_refused() -> None:
    for end in range(0, len(GOOD) - 2, 7):
        with pytest.raises(ParseError):
            parse_match_queue(GOOD[:end], "mq_posted")


def test_other_program_is_refused() -> None:
    with pytest.raises(ParseError, match="a row of 'mq_posted', expected 'mq_unexp'"):
        parse_match_queue(GOOD, "mq_unexp")


@pytest.mark.parametrize(
    ("line", "values", "reason"),
    [
        (2, {"np": 4}, "np is 4, expected 2"),
        (2, {"tags": "same"}, "tags: 'same', in the first row 'random'"),
        (2, {"tags": "none"}, "tags: 'none' is none of"),
        (2, {"entry_bytes": 16}, "entry_bytes: 16, in the first row 8"),
        (2, {"validation": "off"}, "validation: 'off', in the first row 'pass'"),
        (2, {"n": 101}, "101 samples, expected at most 100"),
        (2, {"depth": 3}, "size 3 after 0, expected 2"),
        (9, {"depth": 16}, "size 2: depths [0, 2, 4, 16, 16], expected"),
        (2, {"p50_us": 9e9}, "out of order"),
        (2, {"ratio": 5.0}, "size 0: ratio 5.0, expected"),
        (7, {"slope_ns": 1e6}, "size 2: slope_ns 1000000.0, expected"),
        (7, {"slope_ns": None}, "size 2: slope_ns None, expected"),
        (7, {"slope_ns": "1"}, "slope_ns: '1' is not of type float or NoneType"),
    ],
)
def test_contradictions_are_refused(
    line: int, values: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ParseError) as refusal:
        parse_match_queue(with_values(GOOD, line, **values), "mq_posted")
    assert reason in refusal.value.reason


def test_missing_depth_is_refused() -> None:
    with pytest.raises(ParseError, match="row 9, expected row 8"):
        parse_match_queue(without_line(GOOD, 8), "mq_posted")


def test_real_corruption_is_refused() -> None:
    with pytest.raises(ParseError, match="line 1: contents failed validation"):
        parse_match_queue(read("mq_unexp-corrupt.txt"), "mq_unexp")
