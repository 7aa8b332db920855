"""The parser of balance, on captured outputs; test_parser_rows.py: what all share."""

from pathlib import Path
from typing import Any

import pytest
from row_damage import with_values

from seatrial.parsers.balance import BalanceRow, parse_balance
from seatrial.parsers.errors import ParseError

DATA = Path(__file__).parent / "data" / "balance"


def read(name: str) -> str:
    return (DATA / name).read_text()


GOOD = read("openmpi-4.1.4-off.txt")


def test_reads_real_output() -> None:
    rows = parse_balance(read("mpich-4.0.2-np4.txt"))
    assert [row.size_bytes for row in rows] == [2**power for power in range(3, 17)]
    assert {(row.np, row.pairs, row.validation) for row in rows} == {(4, 1, "pass")}
    assert {(row.source, row.destination) for row in rows} == {("cn01", "cn02")}


def test_row_is_read_whole() -> None:
    assert parse_balance(GOOD)[1] == BalanceRow(
        program="balance",
        version="0.1.0",
        commit="0545127a2b8b",
        mpi="Open MPI v4.1.4",
        np=4,
        iterations=20,
        warmup=2,
        row=2,
        rows=3,
        source="cn01/0",
        destination="cn01/1",
        window=64,
        windows=4,
        pairs=1,
        size_bytes=2,
        latency_within_us=4.3615,
        latency_between_us=4.31625,
        latency_ratio=0.989625128969391,
        latency_n=20,
        bw_within_mb_per_s=6.91817100853962,
        bw_between_mb_per_s=6.95368735569741,
        bw_ratio=0.994892444060101,
        bw_n=4,
        bibw_within_mb_per_s=9.04849427399972,
        bibw_between_mb_per_s=10.2389761023898,
        bibw_ratio=0.883730383147179,
        bibw_n=4,
        multi_bw_within_mb_per_s=7.37284718622199,
        multi_bw_between_mb_per_s=7.02640390843717,
        multi_bw_ratio=1.04930591555786,
        multi_bw_n=4,
        validation="off",
    )


def test_empty_messages_have_ratios() -> None:
    row = parse_balance(GOOD)[0]
    assert row.size_bytes == row.bw_within_mb_per_s == row.bw_between_mb_per_s == 0
    assert row.bw_ratio > 0


def test_every_cut_is_refused() -> None:
    for end in range(len(GOOD) - 2):
        with pytest.raises(ParseError):
            parse_balance(GOOD[:end])


@pytest.mark.parametrize(
    ("line", "values", "reason"),
    [
        (2, {"pairs": 2}, "2 pairs of 4"),
        (2, {"source": "cn01/1"}, "one node is no network"),
        (2, {"latency_within_us": 8}, "latency_ratio 0.989625128969391, by its"),
        (2, {"latency_ratio": 1.01}, "latency_ratio 1.01, by its values it is 0.9896"),
        (2, {"latency_n": 21}, "latency_n 21, expected at most 20"),
        (2, {"bw_between_mb_per_s": 0}, "bw is not positive"),
        (2, {"bw_ratio": 1.1}, "bw_ratio 1.1, by its values it is 0.994892"),
        (2, {"bibw_n": 0}, "bibw_n 0, expected at most 4"),
        (2, {"multi_bw_n": 5}, "multi_bw_n 5, expected at most 4"),
        (2, {"size_bytes": 0}, "bw of empty messages"),
        (1, {"bw_ratio": 0}, "bw_ratio is not positive"),
        (1, {"size_bytes": 1}, "bw is not positive"),
        (3, {"size_bytes": 8}, "size 8 after 2, expected 4"),
        (3, {"destination": "cn02"}, "destination: 'cn02', in the first row 'cn01/1'"),
        (3, {"validation": "pass"}, "validation: 'pass', in the first row 'off'"),
    ],
)
def test_contradictions_are_refused(
    line: int, values: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ParseError) as refusal:
        parse_balance(with_values(GOOD, line, **values))
    assert reason in refusal.value.reason


def test_real_corruption_is_refused() -> None:
    with pytest.raises(ParseError, match="line 2: contents failed validation"):
        parse_balance(read("openmpi-4.1.4-corrupt.txt"))
