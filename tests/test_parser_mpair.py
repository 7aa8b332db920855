"""The parser of mpair, on captured outputs; test_parser_rows.py has what all share."""

import json
from pathlib import Path
from typing import Any

import pytest
from row_damage import with_values

from seatrial.parsers.errors import ParseError
from seatrial.parsers.mpair import MpairRow, parse_mpair

DATA = Path(__file__).parent / "data" / "mpair"


def read(name: str) -> str:
    return (DATA / name).read_text()


GOOD = read("openmpi-4.1.4-within-off.txt")
"""Rate of 1, 2 and 3 pairs, of 0 B and 2 B each."""

LARGE = read("mpich-4.0.2-np4.txt")
"""All modes of 2 pairs, 14 sizes each."""


@pytest.mark.parametrize(("name", "pairs"), [("np2", 1), ("np4", 2)])
def test_reads_real_output(name: str, pairs: int) -> None:
    rows = parse_mpair(read(f"mpich-4.0.2-{name}.txt"))
    assert [(row.mode, row.size_bytes) for row in rows] == [
        (mode, 2**power)
        for mode in ("latency", "bw", "bibw", "rate")
        for power in range(3, 17)
    ]
    assert {(row.np, row.pairs) for row in rows} == {(2 * pairs, pairs)}
    assert {(row.source, row.destination) for row in rows} == {("cn01", "cn02")}
    assert {(row.window, row.windows, row.validation) for row in rows} == {
        (64, 100, "pass")
    }


def test_pairs_need_not_be_doubled() -> None:
    found = [(row.pairs, row.size_bytes, row.sync) for row in parse_mpair(GOOD)]
    assert found == [(p, size, "each") for p in (1, 2, 3) for size in (0, 2)]


def test_row_is_read_whole() -> None:
    assert parse_mpair(GOOD)[1] == MpairRow(
        program="mpair",
        version="0.1.0",
        commit="9be7fbc92fd8",
        mpi="Open MPI v4.1.4",
        np=6,
        iterations=20,
        warmup=2,
        row=2,
        rows=6,
        source="cn01",
        destination="cn01",
        window=64,
        windows=4,
        mode="rate",
        sync="each",
        pairs=1,
        size_bytes=2,
        clock_us=0.02213,
        mb_per_s=11.1330970449455,
        msg_per_s=5566548.52247277,
        min_us=10.906,
        p50_us=11.287,
        p99_us=12.47504,
        max_us=12.509,
        mean_us=11.49725,
        n=4,
        slowest_us=11.49725,
        start_spread_us=0,
        validation="off",
    )


def test_every_cut_is_refused() -> None:
    for end in range(len(GOOD) - 2):
        with pytest.raises(ParseError):
            parse_mpair(GOOD[:end])


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"np": 8}, "np: 8, in the first row 6"),
        ({"destination": "cn02"}, "destination: 'cn02', in the first row 'cn01'"),
        ({"windows": 5}, "windows: 5, in the first row 4"),
        ({"pairs": 4}, "4 pairs of 6"),
        ({"pairs": 0}, "0 pairs of 6"),
        ({"pairs": 3}, "4 samples, expected at most 4 of each pair"),
        ({"n": 5}, "5 samples, expected at most 4 of each pair"),
        ({"slowest_us": 11}, "slowest_us is not between mean_us and max_us"),
        ({"slowest_us": 13}, "slowest_us is not between mean_us and max_us"),
        ({"sync": "start"}, "a rate not in step"),
        ({"mode": "latency"}, "a latency with a bandwidth"),
        ({"mode": "bibw"}, "msg_per_s 5566548.52247277, by the mean time it is"),
        ({"mode": "bw"}, "sizes of ('bw', 1) are not those of ('rate', 1)"),
        ({"mode": "multi"}, "mode: 'multi' is none of"),
        ({"size_bytes": 4}, "mb_per_s 11.1330970449455, by the mean time it is"),
        ({"mb_per_s": None}, "mb_per_s None, by the mean time it is"),
        ({"msg_per_s": 0}, "msg_per_s 0, by the mean time it is"),
        ({"p50_us": 99}, "out of order"),
    ],
)
def test_contradictions_are_refused(values: dict[str, Any], reason: str) -> None:
    with pytest.raises(ParseError) as refusal:
        parse_mpair(with_values(GOOD, 2, **values))
    assert reason in refusal.value.reason


def renumbered(text: str, *lines: int) -> str:
    """Take some lines only, and number them as if they were all; 1 is the first."""
    rows = [json.loads(line) for line in text.splitlines()]
    return "".join(
        json.dumps(rows[line - 1] | {"row": number, "rows": len(lines)}) + "\n"
        for number, line in enumerate(lines, start=1)
    )


def test_any_modes_and_sizes_are_read() -> None:
    rows = parse_mpair(renumbered(LARGE, 4, 5, 18, 19))
    found = [(row.mode, row.size_bytes) for row in rows]
    assert found == [("latency", 64), ("latency", 128), ("bw", 64), ("bw", 128)]


@pytest.mark.parametrize(
    ("text", "lines", "reason"),
    [
        (GOOD, [1, 2, 3], "sizes of ('rate', 2) are not those of ('rate', 1)"),
        (GOOD, [1, 2, 5, 6], "3 pairs after 1"),
        (GOOD, [3, 4, 1, 2], "1 pairs after 2"),
        (LARGE, [1, 3, 15, 17], "size 32 after 8, expected 16"),
        (LARGE, [1, 2, 16, 17], "sizes of ('bw', 2) are not those of ('latency', 2)"),
        (LARGE, [1, 15, 1], "a mode comes back after another"),
    ],
)
def test_only_whole_series_are_read(text: str, lines: list[int], reason: str) -> None:
    with pytest.raises(ParseError) as refusal:
        parse_mpair(renumbered(text, *lines))
    assert reason in refusal.value.reason


def test_all_modes_have_the_same_pairs() -> None:
    text = with_values(with_values(GOOD, 5, mode="bw"), 6, mode="bw")
    with pytest.raises(ParseError, match="pairs of bw are not those of rate"):
        parse_mpair(text)


def test_real_corruption_is_refused() -> None:
    with pytest.raises(ParseError, match="line 2: contents failed validation"):
        parse_mpair(read("openmpi-4.1.4-corrupt.txt"))
