"""The parsers of IMB's groups (-multi) and of IMB-RMA, on captured outputs."""

import re
from pathlib import Path

import pytest

from seatrial.parsers.errors import ParseError
from seatrial.parsers.imb import (
    ImbRow,
    parse_imb,
    parse_imb_groups,
    parse_imb_one_sided,
)

DATA = Path(__file__).parent / "data" / "imb"
POWERS = [1 << k for k in range(9)]
TO_256 = [0, *POWERS]
TO_4_MIB = [0, *(1 << k for k in range(23))]
MAPPED = [(0, 2), (1, 3)]


def read(name: str) -> str:
    return (DATA / f"{name}.txt").read_text()


def numbers_in(text: str) -> list[list[float]]:
    """Every row of the only table in a text."""
    rows = [line.split() for line in text.splitlines() if re.match(r" +\d", line)]
    return [[float(field) for field in row] for row in rows]


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("unidir_put-aggregate-2021.11", TO_4_MIB),
        ("unidir_put-aggregate-2019.6", TO_256),
        ("unidir_put-2021.11", TO_256),
        ("unidir_get-2021.11", TO_256),
        ("unidir_get-2019.6", TO_256),
    ],
)
def test_one_sided_rows_are_those_printed(name: str, sizes: list[int]) -> None:
    text, aggregate = read(name), "aggregate" in name
    benchmark = name.split("-")[0].capitalize()
    rows = parse_imb_one_sided(text, benchmark, sizes, aggregate=aggregate)
    found = [
        [row.size_bytes, row.repetitions, row.time_us, row.bandwidth_mb_per_s]
        for row in rows
    ]
    assert found == numbers_in(text)


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("groups-map-2021.11", MAPPED),
        ("groups-map-2019.6", MAPPED),
        ("groups-of-one-2021.11", [(0, 1)]),
    ],
)
def test_groups_have_the_mean_of_all_their_ranks(
    name: str, groups: list[tuple[int, ...]]
) -> None:
    rows = parse_imb_groups(read(name), "PingPong", groups, POWERS)
    found = [
        [
            *(row.size_bytes, row.repetitions),
            *(row.min_us, row.max_us, row.time_us, row.bandwidth_mb_per_s),
        ]
        for row in rows
    ]
    assert found == numbers_in(read(name))


def test_one_group_may_run_without_multi() -> None:
    """There is one time then, as IMB prints a group as if there was no -multi."""
    text = read("pingpong-2019.6")
    rows = parse_imb_groups(text, "PingPong", [(0, 1)], TO_256)
    assert rows == parse_imb(text, "PingPong", 2, TO_256)


def test_many_groups_are_numbered_as_imb_does() -> None:
    """Its numbers of groups grow to the right, those of ranks to the left."""
    text = "".join(
        f"# Group  {pair}:  {pair:4d} {pair + 12:4d}\n# \n" for pair in range(12)
    )
    right = read("groups-map-2021.11")
    listed = re.compile(r"# Group +0.*# Group[^\n]*\n# \n", re.DOTALL)
    many = listed.sub(text, right).replace("( 2 groups", "( 12 groups")
    assert "# Group  11:    11   23\n" in many
    groups = [(pair, pair + 12) for pair in range(12)]
    rows = parse_imb_groups(many, "PingPong", groups, POWERS)
    assert rows == parse_imb_groups(right, "PingPong", MAPPED, POWERS)


PUT = read("unidir_put-aggregate-2021.11")
GROUPS = read("groups-map-2021.11")
MODE = "#    MODE: AGGREGATE \n"
TIME = numbers_in(PUT)[-1][2]
LAST = PUT.splitlines(keepends=True)[60]

BROKEN_PUT = {
    "empty": ("", 0, "0 of 24 rows of Unidir_put, the next is 0 bytes"),
    "no last row": (PUT.replace(LAST, ""), 64, "23 of 24 rows"),
    "a row twice": (PUT.replace(LAST, LAST * 2), 62, "expected no further row"),
    "cut in a row": (PUT[: PUT.index(LAST) + 30], 61, "cut off in '4194304"),
    "nan": (PUT.replace(f"{TIME:9.2f}", "      nan"), 61, "no whole row"),
    "inf": (PUT.replace(f"{TIME:9.2f}", "      inf"), 61, "no whole row"),
    "negative": (PUT.replace(f"{TIME:9.2f}", "   -54.70"), 61, "no whole row"),
    "zero": (PUT.replace(f"{TIME:9.2f}", "     0.00"), 61, "mean 0.0: expected"),
    "other time": (PUT.replace(f"{TIME:9.2f}", " 12345.67"), 61, "by the time it is"),
    "no mode": (PUT.replace(MODE, ""), 64, "no mode of Unidir_put, expected AGGREGATE"),
    "other mode": (
        PUT.replace("AGGREGATE", "NON-AGGREGATE"),
        35,
        "mode NON-AGGREGATE, expected AGGREGATE",
    ),
    "other benchmark": (
        PUT.replace("king Unidir_put", "king Bidir_put"),
        31,
        "table of Bidir_put, expected Unidir_put",
    ),
    "other ranks": (PUT.replace("s = 2", "s = 4"), 32, "4 processes, expected 2"),
    "two tables": (PUT + PUT, 96, "a second table, Unidir_put"),
}


@pytest.mark.parametrize("name", BROKEN_PUT)
def test_broken_one_sided_output_is_refused(name: str) -> None:
    text, line, reason = BROKEN_PUT[name]
    with pytest.raises(ParseError) as caught:
        parse_imb_one_sided(text, "Unidir_put", TO_4_MIB, aggregate=True)
    assert (reason in caught.value.reason, caught.value.line) == (True, line)


REFUSED: dict[str, tuple[list[int], int, str]] = {
    "unidir_put-both-modes-2021.11": (
        [0, 8, 16, 32],
        44,
        "a second table, Unidir_put, after that of Unidir_put",
    ),
    "unidir_put-time-out-2021.11": (
        [0, *(1 << k for k in range(18, 21))],
        35,
        "mode AGGREGATE, expected NON-AGGREGATE",
    ),
    "unidir_get-2021.11": (TO_256, 31, "table of Unidir_get, expected Unidir_put"),
    "pingpong-2021.11": (TO_4_MIB, 31, "table of PingPong, expected Unidir_put"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_one_sided_output_that_was_not_asked_for_is_refused(name: str) -> None:
    """IMB ended with status 0 every time."""
    sizes, line, reason = REFUSED[name]
    with pytest.raises(ParseError) as caught:
        parse_imb_one_sided(read(name), "Unidir_put", sizes, aggregate=False)
    assert (caught.value.reason, caught.value.line) == (reason, line)


def test_sizes_that_took_too_long_are_refused() -> None:
    sizes = [0, *(1 << k for k in range(18, 21))]
    text = read("unidir_put-time-out-2021.11")
    with pytest.raises(ParseError, match="IMB dropped 0 bytes: time-out"):
        parse_imb_one_sided(text, "Unidir_put", sizes, aggregate=True)


def test_table_with_a_mode_is_none_of_imb_mpi1() -> None:
    with pytest.raises(ParseError, match="mode AGGREGATE, expected none"):
        parse_imb(PUT, "Unidir_put", 2, TO_4_MIB)


BROKEN_GROUPS = {
    "other pairs": (
        read("groups-0-2021.11"),
        33,
        "group 0 of the ranks 0 1, expected group 0 of 0 2",
    ),
    "a group lost": (
        GROUPS.replace("# Group  1:     1    3\n", ""),
        50,
        "1 of 2 groups of 2 processes have ranks",
    ),
    "a group more": (
        GROUPS.replace("    1    3\n", "    1    3\n# Group  2:     4    5\n"),
        36,
        "group 2 of the ranks 4 5, expected no further group",
    ),
    "groups swapped": (
        GROUPS.replace("0    2", "1    3", 1),
        33,
        "group 0 of the ranks 1 3, expected group 0 of 0 2",
    ),
    "more groups": (
        GROUPS.replace("( 2 groups", "( 4 groups"),
        32,
        "4 groups of 2 processes at the same time, expected 2 groups of 2 processes",
    ),
    "no number of groups": (
        GROUPS.replace("# ( 2 groups", "# ("),
        51,
        "no number of processes of Multi-PingPong",
    ),
    "one group": (
        read("groups-of-one-2021.11"),
        31,
        "table of PingPong, expected Multi-PingPong",
    ),
    "ranks of one group": (
        GROUPS.replace("# ( 2 groups", "# #processes = 2\n# ("),
        32,
        "2 processes, expected 2 groups of 2 processes",
    ),
    "a table for each group": (
        read("groups-1-2021.11")
        .replace("0    1\n", "0    2\n")
        .replace("2    3", "1    3"),
        57,
        "0 of 9 rows of Multi-PingPong, the next is 1 bytes",
    ),
}


@pytest.mark.parametrize("name", BROKEN_GROUPS)
def test_broken_groups_are_refused(name: str) -> None:
    text, line, reason = BROKEN_GROUPS[name]
    with pytest.raises(ParseError) as caught:
        parse_imb_groups(text, "PingPong", MAPPED, POWERS)
    assert (caught.value.reason, caught.value.line) == (reason, line)


def test_one_group_is_no_list_of_groups() -> None:
    text = read("groups-of-one-2021.11").replace(
        "# #processes = 2", "# Group  0:     0    1\n# #processes = 2"
    )
    with pytest.raises(ParseError, match="ranks 0 1, expected no further group"):
        parse_imb_groups(text, "PingPong", [(0, 1)], POWERS)


def test_bandwidth_is_that_of_the_slowest_group() -> None:
    fields = (256, 50, "10.00", "20.00", "15.00", "12.80")
    row = "".join(f"{field:>13}" for field in fields) + "\n"
    text = GROUPS.replace(GROUPS.splitlines(keepends=True)[46], row)
    rows = parse_imb_groups(text, "PingPong", MAPPED, POWERS)
    assert rows[-1] == ImbRow(256, 50, 15.0, 12.8, 10.0, 20.0)
    with pytest.raises(ParseError, match=r"line 47: Mbytes/sec 25\.60, by the"):
        parse_imb_groups(text.replace("12.80", "25.60"), "PingPong", MAPPED, POWERS)
