"""The parser of IMB, on captured outputs of IMB-MPI1 2021.11."""

import re
from pathlib import Path

import pytest

from seatrial.parsers.errors import ParseError
from seatrial.parsers.imb import ImbRow, parse_imb, parse_imb_pairs

DATA = Path(__file__).parent / "data" / "imb"
POWERS = [1 << k for k in range(3, 17)]
PINGPONG_SIZES = [0, *(1 << k for k in range(23))]


def read(name: str) -> str:
    return (DATA / f"{name}-2021.11.txt").read_text()


PINGPONG = read("pingpong")


def test_pingpong() -> None:
    rows = parse_imb(PINGPONG, "PingPong", 2, PINGPONG_SIZES)
    table = [line.split() for line in PINGPONG.splitlines() if re.match(r" +\d", line)]
    expected = [ImbRow(int(s), int(n), float(t), float(b)) for s, n, t, b in table]
    assert list(rows) == expected
    assert len(rows) == 24


@pytest.mark.parametrize("name", ["Sendrecv", "Alltoall", "Bcast", "Allgather"])
def test_all_nodes_take_the_mean_over_ranks(name: str) -> None:
    text = read(name.lower())
    rows = parse_imb(text, name, 4, POWERS)
    table = [line.split() for line in text.splitlines() if re.match(r" +\d", line)]
    expected = [
        ImbRow(int(size), int(n), float(mean), float(bw[0]) if bw else None)
        for size, n, _, _, mean, *bw in table
    ]
    assert list(rows) == expected
    assert len(rows) == len(POWERS)
    assert (rows[0].bandwidth_mb_per_s is not None) == (name == "Sendrecv")


LAST = "      4194304           10       158.82     26409.38\n"
MIDDLE = "            8         1000         0.71        11.28\n"
TIME_OUT = (
    "      4194304 time-out.; Time limit (secs_per_sample * msg_sizes_list_len) is "
    'over; use "-time X" or SECS_PER_SAMPLE=X (IMB_settings.h) to increase it.\n'
)
BROKEN = {
    "empty": ("", 0, "0 of 24 rows of PingPong, the next is 0 bytes"),
    "no last row": (PINGPONG.replace(LAST, ""), 61, "23 of 24 rows"),
    "no middle row": (PINGPONG.replace(MIDDLE, ""), 39, "16 bytes, expected 8 bytes"),
    "a row twice": (PINGPONG.replace(LAST, LAST * 2), 59, "expected no further row"),
    "cut in a row": (PINGPONG[: PINGPONG.index("26409")], 58, "no whole row of #bytes"),
    "cut in a number": (PINGPONG[: PINGPONG.index("09.38")], 58, "no whole row"),
    "time-out": (PINGPONG.replace(LAST, TIME_OUT), 58, "no whole row"),
    "nan": (PINGPONG.replace("158.82", "   nan"), 58, "t[usec] nan, expected a pos"),
    "inf": (PINGPONG.replace("158.82", "   inf"), 58, "t[usec] inf, expected a pos"),
    "negative": (PINGPONG.replace("158.82", "-58.82"), 58, "t[usec] -58.82, expected"),
    "zero time": (PINGPONG.replace("158.82", "  0.00"), 58, "t[usec] 0.0, expected a"),
    "no number": (PINGPONG.replace("158.82", "15o.82"), 58, "could not convert"),
    "zero bandwidth": (PINGPONG.replace("26409.38", "0.00"), 58, "Mbytes/sec 0.0, exp"),
    "nan bandwidth": (PINGPONG.replace("26409.38", "nan"), 58, "Mbytes/sec nan"),
    "no repetition": (
        PINGPONG.replace("          10  ", "           0  "),
        58,
        "0 repetitions",
    ),
    "other benchmark": (PINGPONG.replace("king PingP", "king PongP"), 31, "PongPong"),
    "other ranks": (PINGPONG.replace("#processes = 2", "#processes = 4"), 32, "4 proc"),
    "two tables": (PINGPONG + PINGPONG, 93, "a second table, after that of PingPong"),
    "other columns": (PINGPONG.replace("t[usec]", "t[sec] "), 35, "no time among"),
    "no title": (PINGPONG.replace("# Benchmarking PingPong", ""), 62, "no title of"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_output_is_refused(name: str) -> None:
    text, line, reason = BROKEN[name]
    with pytest.raises(ParseError) as caught:
        parse_imb(text, "PingPong", 2, PINGPONG_SIZES)
    assert reason in caught.value.reason
    assert caught.value.line == line


def test_table_of_fewer_ranks_is_refused() -> None:
    with pytest.raises(ParseError, match="2 processes, expected 4"):
        parse_imb(read("alltoall-2-and-4"), "Alltoall", 4, [0, 8, 16, 32])


def test_small_message_over_a_slow_network_has_no_visible_bandwidth() -> None:
    row = "            1         1000      2000.00         0.00\n"
    text = PINGPONG.replace(
        "            1         1000         0.69         1.45\n", row
    )
    assert parse_imb(text, "PingPong", 2, PINGPONG_SIZES)[1] == ImbRow(
        1, 1000, 2000.0, 0.0
    )


PAIRS = [("cn01", "cn02"), ("cn02", "cn03")]
RING = f"# pair cn01 cn02\n{PINGPONG}# pair cn02 cn03\n{PINGPONG}"


def test_pairs() -> None:
    first, second = parse_imb_pairs(RING, PAIRS, PINGPONG_SIZES)
    assert (first.source, first.destination) == ("cn01", "cn02")
    assert (second.source, second.destination) == ("cn02", "cn03")
    assert first.rows == parse_imb(PINGPONG, "PingPong", 2, PINGPONG_SIZES)


BROKEN_RING = {
    "empty": ("", 0, "0 of 2 pairs, the next is cn01 cn02"),
    "no second pair": (RING[: RING.index("# pair cn02")], 63, "1 of 2 pairs"),
    "pairs swapped": (RING.replace("cn01 cn02", "cn02 cn01"), 1, "expected cn01 cn02"),
    "a third pair": (RING + "# pair cn03 cn01\n", 127, "expected no further pair"),
    "cut in the second": (RING[: RING.rindex("26409")], 122, "no whole row"),
    "a pair without rows": (
        RING[: RING.index("# pair cn02")] + "# pair cn02 cn03\n",
        64,
        "0 of 24 rows",
    ),
}


@pytest.mark.parametrize("name", BROKEN_RING)
def test_broken_ring_is_refused(name: str) -> None:
    text, line, reason = BROKEN_RING[name]
    with pytest.raises(ParseError) as caught:
        parse_imb_pairs(text, PAIRS, PINGPONG_SIZES)
    assert reason in caught.value.reason
    assert caught.value.line == line
