"""The parsers of IMB, on captured outputs of 2019 Update 6 and 2021.11."""

import re
from pathlib import Path

import pytest

from seatrial.parsers.errors import ParseError
from seatrial.parsers.imb import (
    ImbBarrier,
    ImbRate,
    ImbRow,
    parse_imb,
    parse_imb_barrier,
    parse_imb_pairs,
    parse_imb_rate,
)

DATA = Path(__file__).parent / "data" / "imb"
POWERS = [1 << k for k in range(3, 17)]
FEW = [0, *(1 << k for k in range(3, 9))]
TO_256 = [0, *(1 << k for k in range(9))]
PINGPONG_SIZES = [0, *(1 << k for k in range(23))]


def read(name: str) -> str:
    return (DATA / f"{name}.txt").read_text()


def numbers_in(text: str) -> list[list[float]]:
    """Every row of the only table in a text."""
    rows = [line.split() for line in text.splitlines() if re.match(r" +\d", line)]
    return [[float(field) for field in row] for row in rows]


PINGPONG = read("pingpong-2021.11")


@pytest.mark.parametrize(
    ("name", "benchmark", "sizes"),
    [
        ("pingpong-2021.11", "PingPong", PINGPONG_SIZES),
        ("pingpong-2019.6", "PingPong", TO_256),
        ("pingping-2021.11", "PingPing", FEW),
    ],
)
def test_two_ranks_have_one_time(name: str, benchmark: str, sizes: list[int]) -> None:
    rows = parse_imb(read(name), benchmark, 2, sizes)
    found = [
        [row.size_bytes, row.repetitions, row.time_us, row.bandwidth_mb_per_s]
        for row in rows
    ]
    assert found == numbers_in(read(name))
    assert {(row.min_us, row.max_us) for row in rows} == {(None, None)}


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("Sendrecv-2021.11", POWERS),
        ("Sendrecv-2019.6", FEW),
        ("Exchange-2021.11", FEW),
        ("Alltoall-2021.11", POWERS),
        ("Bcast-2021.11", POWERS),
        ("Bcast-2019.6", FEW),
        ("Allgather-2021.11", POWERS),
        ("Allreduce-2021.11", [0, *(1 << k for k in range(2, 9))]),
    ],
)
def test_all_nodes_take_the_mean_over_ranks(name: str, sizes: list[int]) -> None:
    text = read(name.lower())
    benchmark = name.split("-")[0]
    rows = parse_imb(text, benchmark, 4, sizes)
    found = [
        [row.size_bytes, row.repetitions, row.min_us, row.max_us, row.time_us]
        + ([] if row.bandwidth_mb_per_s is None else [row.bandwidth_mb_per_s])
        for row in rows
    ]
    assert found == numbers_in(text)
    has_bandwidth = benchmark in ("Sendrecv", "Exchange")
    assert (rows[0].bandwidth_mb_per_s is not None) == has_bandwidth


@pytest.mark.parametrize(
    "name", ["Uniband-2019.6", "Uniband-2021.11", "Biband-2021.11"]
)
def test_message_rates(name: str) -> None:
    text = read(name.lower())
    rows = parse_imb_rate(text, name.split("-")[0], 4, TO_256)
    found = [
        [row.size_bytes, row.repetitions, row.mb_per_s, row.msg_per_s] for row in rows
    ]
    assert found == numbers_in(text)
    assert all(type(row) is ImbRate for row in rows)


@pytest.mark.parametrize("version", ["2019.6", "2021.11"])
def test_barrier_has_no_bytes(version: str) -> None:
    text = read(f"barrier-{version}")
    repetitions, least, greatest, mean = numbers_in(text)[0]
    assert parse_imb_barrier(text, 4) == ImbBarrier(
        int(repetitions), mean, least, greatest
    )


LAST = "      4194304           10       158.82     26409.38\n"
MIDDLE = "            8         1000         0.71        11.28\n"
TIME_OUT = (
    "      4194304 time-out.; Time limit (secs_per_sample * msg_sizes_list_len) is "
    'over; use "-time X" or SECS_PER_SAMPLE=X (IMB_settings.h) to increase it.\n'
)
COLUMNS = "       #bytes #repetitions      t[usec]   Mbytes/sec\n"
ABSURD = "     4194304          10 98765432101.00         0.00\n"
BROKEN = {
    "empty": ("", 0, "0 of 24 rows of PingPong, the next is 0 bytes"),
    "no last row": (PINGPONG.replace(LAST, ""), 61, "23 of 24 rows"),
    "no middle row": (PINGPONG.replace(MIDDLE, ""), 39, "16 bytes, expected 8 bytes"),
    "a row twice": (PINGPONG.replace(LAST, LAST * 2), 59, "expected no further row"),
    "cut in a row": (PINGPONG[: PINGPONG.index("26409")], 58, "cut off in '4194304  "),
    "cut in a number": (PINGPONG[: PINGPONG.index("09.38")], 58, "cut off in '419"),
    "cut in a row, and more": (
        PINGPONG.replace("26409.38", ""),
        58,
        "no whole row of #bytes #repetitions t[usec] Mbytes/sec",
    ),
    "a digit lost": (PINGPONG.replace("26409.38", "2640938"), 58, "no whole row"),
    "a decimal lost": (PINGPONG.replace("26409.38", "26409.3"), 58, "no whole row"),
    "time-out": (
        PINGPONG.replace(LAST, TIME_OUT),
        58,
        "IMB dropped 4194304 bytes: time-out.; Time limit",
    ),
    "int-overflow": (
        PINGPONG.replace(LAST, "      4194304 int-overflow.; The production rank*si\n"),
        58,
        "IMB dropped 4194304 bytes: int-overflow.",
    ),
    "nan": (PINGPONG.replace("158.82", "   nan"), 58, "no whole row"),
    "inf": (PINGPONG.replace("158.82", "   inf"), 58, "no whole row"),
    "negative": (PINGPONG.replace("158.82", "-58.82"), 58, "no whole row"),
    "zero time": (
        PINGPONG.replace("158.82", "  0.00"),
        58,
        "mean 0.0: expected positive",
    ),
    "no number": (PINGPONG.replace("158.82", "15o.82"), 58, "no whole row"),
    "absurd time": (
        PINGPONG.replace(LAST, ABSURD),
        58,
        "expected positive times",
    ),
    "zero bandwidth": (
        PINGPONG.replace("26409.38", "    0.00"),
        58,
        "Mbytes/sec 0.00, by the time it is 26408.34 to 26410.00",
    ),
    "bandwidth in MiB/s": (
        PINGPONG.replace("26409.38", "25185.95"),
        58,
        "Mbytes/sec 25185.95, by the time it is 26408.34 to 26410.00",
    ),
    "time of another row": (
        PINGPONG.replace("158.82", " 58.82"),
        58,
        "Mbytes/sec 26409.38, by the time it is 71301.39 to 71313.51",
    ),
    "nan bandwidth": (PINGPONG.replace("26409.38", "     nan"), 58, "no whole row"),
    "bandwidth of nothing": (
        PINGPONG.replace("         0.00\n", "         1.00\n", 1),
        35,
        "Mbytes/sec 1.00 of 0 bytes",
    ),
    "no repetition": (
        PINGPONG.replace("          10  ", "           0  "),
        58,
        "0 repetitions",
    ),
    "other benchmark": (PINGPONG.replace("king PingP", "king PongP"), 31, "PongPong"),
    "other ranks": (PINGPONG.replace("#processes = 2", "#processes = 4"), 32, "4 proc"),
    "two tables": (PINGPONG + PINGPONG, 93, "a second table, PingPong"),
    "other columns": (
        PINGPONG.replace("t[usec]", "t[sec] "),
        34,
        "unknown column t[sec]",
    ),
    "no title": (PINGPONG.replace("# Benchmarking PingPong", ""), 62, "no title of"),
    "no ranks": (PINGPONG.replace("# #processes", "#"), 62, "no number of processes"),
    "columns twice": (
        PINGPONG.replace(COLUMNS, COLUMNS * 2),
        35,
        "columns of a second table",
    ),
    "other columns of overlap": (
        PINGPONG.replace("     t[usec]", "t_ovrl[usec]"),
        34,
        "unknown column t_ovrl[usec]",
    ),
    "bandwidth under another name": (
        PINGPONG.replace("Mbytes/sec", "MBytes/sec"),
        34,
        "unknown column MBytes/sec",
    ),
    "no bandwidth": (
        re.sub(r"(?m)^( .{38}) {3,}\S+$", r"\1", PINGPONG),
        35,
        "no Mbytes/sec among the columns",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_output_is_refused(name: str) -> None:
    text, line, reason = BROKEN[name]
    with pytest.raises(ParseError) as caught:
        parse_imb(text, "PingPong", 2, PINGPONG_SIZES)
    assert reason in caught.value.reason
    assert caught.value.line == line


REFUSED: dict[str, tuple[str, int, list[int], int, str]] = {
    "alltoall-2-and-4-2021.11": (
        "Alltoall",
        4,
        [0, 8, 16, 32],
        32,
        "2 processes, expected 4",
    ),
    "groups-0-2021.11": (
        "PingPong",
        2,
        [0, 8, 16, 32, 64],
        31,
        "table of Multi-PingPong, expected PingPong",
    ),
    "groups-1-2021.11": (
        "Multi-PingPong",
        2,
        [0, 8, 16, 32, 64],
        32,
        "2 groups of 2 processes at the same time, expected one group",
    ),
    "out-of-mem-2021.11": (
        "PingPong",
        2,
        [0, *(1 << k for k in range(18, 23))],
        38,
        "IMB dropped 1048576 bytes: out-of-mem.; needed X=   0.003 GB",
    ),
    "out-of-mem-2019.6": (
        "PingPong",
        2,
        [0, *(1 << k for k in range(18, 20))],
        38,
        "IMB dropped 1048576 bytes: out-of-mem.; needed X=   0.003 GB",
    ),
    "time-out-2021.11": (
        "Alltoall",
        4,
        [0, *(1 << k for k in range(20, 23))],
        35,
        "IMB dropped 0 bytes: time-out.; Time limit",
    ),
    "unknown-2021.11": (
        "PongPong",
        2,
        [0, 8],
        50,
        "table of PingPong, expected PongPong",
    ),
    "uniband-2021.11": ("Uniband", 4, TO_256, 35, "no time among the columns #bytes"),
    "barrier-2021.11": ("Barrier", 4, [0], 35, "no #bytes among the columns"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_was_not_asked_for_is_refused(name: str) -> None:
    """IMB ended with status 0 every time."""
    benchmark, processes, sizes, line, reason = REFUSED[name]
    with pytest.raises(ParseError) as caught:
        parse_imb(read(name), benchmark, processes, sizes)
    assert reason in caught.value.reason
    assert caught.value.line == line


def test_barrier_on_fewer_ranks_is_refused() -> None:
    with pytest.raises(ParseError, match="line 32: 2 processes, expected 4"):
        parse_imb_barrier(read("barrier-2-and-4-2021.11"), 4)
    with pytest.raises(ParseError, match="line 39: a second table, Barrier"):
        parse_imb_barrier(read("barrier-2-and-4-2021.11"), 2)


BARRIER = read("barrier-2021.11")
BARRIER_ROW = BARRIER.splitlines(keepends=True)[34]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("", "0 of 1 rows of Barrier"),
        (BARRIER_ROW * 2, "row of 0 bytes, expected no further row"),
        (
            "           50         0.00         0.00         0.00\n",
            "mean 0.0: expected",
        ),
        ("           50         9.00         8.00         8.50\n", "out of order"),
        ("           50         8.00         9.00         9.02\n", "out of order"),
        ("            0         8.00         9.00         8.50\n", "0 repetitions"),
        ("           50         8.00         9.00\n", "no whole row of #repetitions"),
        (
            "           50         8.00         9.00          nan\n",
            "no whole row of #re",
        ),
    ],
)
def test_broken_barrier_is_refused(row: str, reason: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_imb_barrier(BARRIER.replace(BARRIER_ROW, row), 4)
    assert reason in caught.value.reason


RATE = read("uniband-2021.11")
RATE_ROW = RATE.splitlines(keepends=True)[43]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("          256           50       474.12      1852032\n", None),
        ("          256           50       474.12      1852050\n", None),
        ("          256           50       474.12      1852060\n", "are not 474.12"),
        ("          256           50       447.12      1852040\n", "are not 447.12"),
        ("          256           50         0.00            0\n", "0 messages/s"),
        ("          256           50       474.12   1852040.00\n", "no whole row"),
        ("          256            0       474.12      1852040\n", "0 repetitions"),
        ("          256           50          inf      1852040\n", "no whole row"),
        ("          256           50       474.12     -1852040\n", "no whole row"),
        ("          256           502560000000.0010000000000000\n", "no whole row"),
    ],
)
def test_message_rate_and_bandwidth_agree(row: str, reason: str | None) -> None:
    text = RATE.replace(RATE_ROW, row)
    if reason is None:
        assert parse_imb_rate(text, "Uniband", 4, TO_256)[-1].mb_per_s == 474.12
        return
    with pytest.raises(ParseError, match="line 44") as caught:
        parse_imb_rate(text, "Uniband", 4, TO_256)
    assert reason in caught.value.reason


def test_pingpong_has_no_message_rate() -> None:
    with pytest.raises(ParseError, match="line 35: no Msg/sec among the columns"):
        parse_imb_rate(PINGPONG, "PingPong", 2, PINGPONG_SIZES)


def test_build_that_checks_contents() -> None:
    """IMB built with -DCHECK has a column of defects."""
    text = re.sub(r"(\n +\d.*)", r"\1         0.00", PINGPONG)
    text = text.replace(COLUMNS, COLUMNS[:-1] + "      defects\n")
    rows = parse_imb(text, "PingPong", 2, PINGPONG_SIZES)
    assert rows == parse_imb(PINGPONG, "PingPong", 2, PINGPONG_SIZES)
    wrong = text.replace("26409.38         0.00", "26409.38         0.01")
    with pytest.raises(ParseError, match=r"line 58: contents failed validation: 0.01"):
        parse_imb(wrong, "PingPong", 2, PINGPONG_SIZES)


@pytest.mark.parametrize("name", ["PingPong", "Bcast", "Uniband", "Barrier"])
def test_every_cut_and_lost_character_of_a_row_is_noticed(name: str) -> None:
    text = read(f"{name.lower()}-2019.6")
    processes = 2 if name == "PingPong" else 4
    sizes = FEW if name == "Bcast" else TO_256

    def parse(text: str) -> object:
        if name == "Barrier":
            return parse_imb_barrier(text, processes)
        read_table = parse_imb_rate if name == "Uniband" else parse_imb
        return read_table(text, name, processes, sizes)

    right = parse(text)
    start, end = text.index("#repetitions"), text.index("\n\n\n# All")
    for cut in range(end):
        with pytest.raises(ParseError):
            parse(text[:cut])
    for place in range(text.index("\n", start) + 1, end):
        try:
            found = parse(text[:place] + text[place + 1 :])
        except ParseError:
            continue
        assert found == right


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
    "cut in the second": (RING[: RING.rindex("26409")], 122, "cut off in '4194304  "),
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
