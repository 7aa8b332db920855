"""The parser of the OSU Micro-Benchmarks, on captured outputs of 5.6 to 7.4."""

import re
from pathlib import Path
from typing import Any

import pytest

from seatrial.parsers.errors import ParseError
from seatrial.parsers.osu import OsuRow, parse_osu

DATA = Path(__file__).parent / "data" / "osu"


def read(name: str) -> str:
    return (DATA / f"{name}.txt").read_text()


SIZES = [1 << k for k in range(9)]
WITH_ZERO = [0, *SIZES]
FROM_4 = SIZES[2:]
TAILS = (50, 90, 99)
REAL: dict[str, tuple[list[int], dict[str, Any]]] = {
    "latency-5.6.1": (WITH_ZERO, {}),
    "latency-6.2": (WITH_ZERO, {}),
    "latency-7.1": (SIZES, {}),
    "latency-7.4": (SIZES, {}),
    "latency-c-6.2": (SIZES, {"validated": True}),
    "latency-c-7.4": (SIZES, {"validated": True}),
    "latency-z-7.4": (SIZES, {"percentiles": TAILS}),
    "latency-z10-50-7.4": (SIZES, {"percentiles": (10, 50)}),
    "latency-c-z-7.4": (SIZES, {"validated": True, "percentiles": TAILS}),
    "bw-6.2": (SIZES, {}),
    "bw-7.4": (SIZES, {}),
    "bw-z-7.4": (SIZES, {"percentiles": TAILS}),
    "bibw-6.2": (SIZES, {}),
    "bibw-c-7.4": (SIZES, {"validated": True}),
    "mbw_mr-5.6.1": (SIZES, {"pairs": 2, "window": 64}),
    "mbw_mr-c-6.0": (SIZES, {"pairs": 2, "window": 64, "validated": True}),
    "mbw_mr-6.2": (SIZES, {"pairs": 2, "window": 64}),
    "mbw_mr-7.1": (SIZES, {"pairs": 2, "window": 64}),
    "mbw_mr-7.4": (SIZES, {"pairs": 2, "window": 64}),
    "mbw_mr-W512-7.4": (SIZES, {"pairs": 2, "window": 512}),
    "mbw_mr-c-z-7.4": (SIZES, {"validated": True, "percentiles": TAILS}),
    "multi_lat-6.2": (SIZES, {}),
    "multi_lat-7.4": (SIZES, {}),
    "alltoall-f-c-5.9": (SIZES, {"full": True, "validated": True}),
    "alltoall-f-6.2": (SIZES, {"full": True}),
    "alltoall-7.4": (SIZES, {}),
    "alltoall-f-c-z-7.4": (
        SIZES,
        {"full": True, "validated": True, "percentiles": TAILS},
    ),
    "allreduce-6.2": (FROM_4, {}),
    "bcast-f-7.4": (SIZES, {"full": True}),
    "bcast-f-c-7.4": (SIZES, {"full": True, "validated": True}),
    "allgather-f-7.4": (SIZES, {"full": True}),
    "scatter-f-7.4": (SIZES, {"full": True}),
    "barrier-f-6.2": ([], {"full": True}),
    "barrier-f-7.1": ([], {"full": True}),
    "barrier-7.4": ([], {}),
    "barrier-f-z-7.4": ([], {"full": True, "percentiles": TAILS}),
    "put_latency-6.2": (SIZES, {}),
    "put_latency-7.4": (SIZES, {}),
    "put_latency-z-7.4": (SIZES, {"percentiles": TAILS}),
    "get_latency-6.2": (SIZES, {}),
    "get_latency-7.4": (SIZES, {}),
    "put_bw-6.2": (SIZES, {}),
    "put_bw-7.4": (SIZES, {}),
    "get_bw-7.4": (SIZES, {}),
    "put_bibw-7.4": (SIZES, {}),
}


def benchmark_of(name: str) -> str:
    return "osu_" + name.split("-")[0]


def parse(name: str, text: str) -> tuple[OsuRow, ...]:
    sizes, options = REAL[name]
    return parse_osu(text, benchmark_of(name), sizes, **options)


@pytest.mark.parametrize("name", REAL)
def test_reads_real_output(name: str) -> None:
    """Every number in the file is where it belongs."""
    sizes, options = REAL[name]
    benchmark = benchmark_of(name)
    found = []
    for row in parse(name, read(name)):
        numbers: list[Any] = [row.size_bytes] if sizes else []
        is_bandwidth = benchmark.endswith(("bw", "mbw_mr"))
        numbers.append(row.mb_per_s if is_bandwidth else row.latency_us)
        assert (row.latency_us is None) == is_bandwidth
        numbers += [] if row.msg_per_s is None else [row.msg_per_s]
        numbers += [row.min_us, row.max_us, row.iterations] if row.iterations else []
        found.append([*numbers, *row.percentiles])
    lines = [line.split() for line in read(name).splitlines() if "." in line]
    expected = [
        [float(field) for field in line if field != "Pass"]
        for line in lines
        if line[0][0].isdigit()
    ]
    assert found == expected
    assert len(found) == (len(sizes) or 1)
    assert len(found[0]) == (
        (2 if sizes else 1)
        + (benchmark == "osu_mbw_mr")
        + 3 * options.get("full", False)
        + len(options.get("percentiles", ()))
    )


def test_rows_are_read_whole() -> None:
    assert parse("alltoall-f-c-z-7.4", read("alltoall-f-c-z-7.4"))[3] == OsuRow(
        size_bytes=8,
        latency_us=26.08,
        min_us=0.49,
        max_us=35.43,
        iterations=100,
        percentiles=(19.64, 24.39, 280.95),
    )
    assert parse("mbw_mr-7.1", read("mbw_mr-7.1"))[8] == OsuRow(
        size_bytes=256, mb_per_s=323.75, msg_per_s=1264636.56
    )
    assert parse("barrier-f-7.1", read("barrier-f-7.1")) == (
        OsuRow(None, latency_us=8.45, min_us=8.45, max_us=8.45, iterations=100),
    )
    assert parse("latency-6.2", read("latency-6.2"))[0] == OsuRow(0, latency_us=0.57)


@pytest.mark.parametrize("name", REAL)
def test_every_cut_is_refused(name: str) -> None:
    text = read(name)
    for end in range(len(text)):
        with pytest.raises(ParseError):
            parse(name, text[:end])


@pytest.mark.parametrize("name", REAL)
def test_every_lost_character_of_a_row_is_noticed(name: str) -> None:
    """The width of columns tells; osu_barrier 7.1 has no header to compare with."""
    text = read(name)
    right = parse(name, text)
    for place in range(text.index(".", text.rindex("#")), len(text) - 1):
        try:
            found = parse(name, text[:place] + text[place + 1 :])
        except ParseError:
            continue
        assert found == right or name == "barrier-f-7.1"


@pytest.mark.parametrize("name", REAL)
def test_other_options_than_those_asked_for_are_refused(name: str) -> None:
    sizes, options = REAL[name]
    for other in (
        {"full": not options.get("full", False)},
        {"validated": not options.get("validated", False)},
        {"percentiles": () if "percentiles" in options else TAILS},
        {"percentiles": (50, 90, 95)},
    ):
        with pytest.raises(ParseError):
            parse_osu(read(name), benchmark_of(name), sizes, **{**options, **other})


@pytest.mark.parametrize("name", REAL)
def test_output_of_another_benchmark_is_refused(name: str) -> None:
    sizes, options = REAL[name]
    kinds = ("latency", "bw", "bibw", "mbw_mr", "multi_lat", "alltoall", "bcast")
    for other in (f"osu_{kind}" for kind in kinds):
        if other != benchmark_of(name):
            with pytest.raises(ParseError, match=r"line [123]: output of 'OSU MPI"):
                parse_osu(read(name), other, sizes or [1], **options)


LATENCY = read("latency-7.4")
ROW_8 = re.search(r"^8 .*\n", LATENCY, re.MULTILINE)
assert ROW_8 is not None
ROW = ROW_8[0]
"""The row of 8 bytes, the fourth: line 8 of osu_latency 7.4."""


def value(text: str) -> str:
    """Put another value into the row of 8 bytes, as wide as before."""
    return LATENCY.replace(ROW, f"8{text:>27}\n")


BROKEN = {
    "empty": ("", 0, "no title of osu_latency"),
    "exit status 0 and no rows": ("".join(LATENCY.partition("(us)\n")[:2]), 4, "0 of"),
    "no title": (LATENCY.replace("# OSU MPI", "OSU MPI"), 13, "no title"),
    "no last row": (LATENCY[: LATENCY.index("\n256 ") + 1], 12, "8 of 9 rows"),
    "no row in the middle": (LATENCY.replace(ROW, ""), 8, "16 bytes, expected 8 bytes"),
    "a row twice": (LATENCY.replace(ROW, ROW * 2), 9, "8 bytes, expected 16 bytes"),
    "a row too much": (LATENCY + ROW.replace("8", "512", 1), 14, "no whole row"),
    "last row twice": (
        LATENCY + LATENCY[LATENCY.index("\n256 ") + 1 :],
        14,
        "row of 256 bytes, expected no further row",
    ),
    "two tables": (LATENCY * 2, 15, "a second table: '# OSU MPI Latency Test v7.4'"),
    "nan": (value("nan"), 8, "is no whole row of size, us"),
    "-nan": (value("-nan"), 8, "is no whole row of size, us"),
    "inf": (value("inf"), 8, "is no whole row of size, us"),
    "negative": (value("-0.20"), 8, "is no whole row of size, us"),
    "zero": (value("0.00"), 8, "us is 0.00, expected a positive number below 1e+10"),
    "absurd": (value("12345678901.00"), 8, "12345678901.00, expected a positive"),
    "exponent": (value("1.00e+30"), 8, "is no whole row of size, us"),
    "one decimal": (value("0.2"), 8, "is no whole row of size, us"),
    "no number": (value("0.2O"), 8, "is no whole row of size, us"),
    "more columns": (LATENCY.replace(ROW, ROW[:-1] + " 1.00\n"), 8, "no whole row"),
    "narrower": (LATENCY.replace(ROW, ROW.replace("8 ", "8", 1)), 8, "no whole row"),
    "lines mixed": (LATENCY.replace(ROW, ROW[:20] + ROW + ROW[20:]), 8, "no whole row"),
    "a launcher's tag": (
        LATENCY.replace(ROW, f"[1,0]<stdout>:{ROW}"),
        9,
        "row of 16 bytes, expected 8 bytes",
    ),
    "a number where a row is expected": (
        LATENCY.replace(ROW, "8 more processes have sent help message\n" + ROW),
        8,
        "no whole row",
    ),
    "a number of 5000 digits": (LATENCY.replace(ROW, "9" * 5000 + "\n"), 8, "no whole"),
    "failed": (value("Fail"), 8, "is no whole row of size, us"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_output_is_refused(name: str) -> None:
    text, line, reason = BROKEN[name]
    with pytest.raises(ParseError) as caught:
        parse("latency-7.4", text)
    assert reason in caught.value.reason
    assert caught.value.line == line


def test_lines_of_others_are_passed_over() -> None:
    noise = "[cn01:4711] UCX WARN no device\n\n-----\ninformation\nsrun: 1 task\n"
    text = "3 nodes\n" + LATENCY.replace(ROW, noise + ROW + noise) + noise
    assert parse("latency-7.4", text) == parse("latency-7.4", LATENCY)


def test_carriage_returns_are_passed_over() -> None:
    text = LATENCY.replace("\n", "\r\n")
    assert parse("latency-7.4", text) == parse("latency-7.4", LATENCY)


REFUSED: dict[str, tuple[dict[str, Any], int, str]] = {
    "allreduce-f-c-7.4": (
        {"full": True, "validated": True},
        9,
        "contents failed validation",
    ),
    "barrier-c-7.4": ({"validated": True}, 27, "no title of osu_barrier"),
    "barrier-f-c-5.9": ({"full": True, "validated": True}, 4, "no whole row of us"),
    "multi_lat-z-7.4": ({"percentiles": TAILS}, 5, "no whole row of size, us, P50"),
    "latency-Tall-7.4": ({}, 10, "a second table: '# Datatype: MPI_INT.'"),
    "latency-Tall-7.1": ({}, 9, "a second table: '# Datatype: MPI_INT.'"),
    "latency-D-7.4": ({}, 5, "no whole row of size, us"),
    "mbw_mr-V-7.4": ({}, 2, "a table for many window sizes, expected one size"),
    "mbw_mr-R0-7.4": ({}, 5, "no whole row of size, MB/s, messages/s"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_output_with_other_meaning_is_refused(name: str) -> None:
    options, line, reason = REFUSED[name]
    is_barrier = name.startswith("barrier")
    with pytest.raises(ParseError) as caught:
        parse_osu(
            read(name), benchmark_of(name), [] if is_barrier else SIZES, **options
        )
    assert reason in caught.value.reason
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("latency_mt-7.4", "OSU MPI Multi-threaded Latency Test"),
        ("ialltoall-7.4", "OSU MPI Non-blocking All-to-All Latency Test"),
        ("put_latency-7.4", "OSU MPI_Put Latency Test"),
    ],
)
def test_a_neighbour_of_the_benchmark_is_refused(name: str, title: str) -> None:
    with pytest.raises(ParseError, match=f"output of '{title}', expected 'OSU MPI Lat"):
        parse_osu(read(name), "osu_latency", SIZES)


def test_memory_of_accelerators_is_refused() -> None:
    text = LATENCY.replace("OSU MPI Latency", "OSU MPI-CUDA Latency")
    with pytest.raises(ParseError, match="line 2: output of 'OSU MPI-CUDA Latency"):
        parse("latency-7.4", text)


def test_rows_missing_with_exit_status_0() -> None:
    """osu_neighbor_alltoall aborts on 4 ranks, and mpiexec gives 0."""
    with pytest.raises(ParseError, match="no title of osu_alltoall"):
        parse_osu(read("neighbor-7.4"), "osu_alltoall", SIZES)


def test_unknown_benchmarks_and_sizes_are_errors_of_the_caller() -> None:
    with pytest.raises(ValueError, match="unknown benchmark 'osu_ialltoall'") as caught:
        parse_osu("", "osu_ialltoall", SIZES)
    assert not isinstance(caught.value, ParseError)
    for benchmark, sizes in (("osu_barrier", SIZES), ("osu_latency", [])):
        with pytest.raises(ValueError, match=benchmark) as caught:
            parse_osu(LATENCY, benchmark, sizes)
        assert not isinstance(caught.value, ParseError)


RATE = read("mbw_mr-7.4")


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ("pairs: 2", "pairs: 1", 2, "pairs: 1, expected 2"),
        ("size: 64", "size: 32", 2, "window size: 32, expected 64"),
        ("# [ pairs: 2 ] [ window size: 64 ]\n", "", 4, "no line of pairs and window"),
    ],
)
def test_pairs_and_window_are_verified(
    old: str, new: str, line: int, reason: str
) -> None:
    with pytest.raises(ParseError) as caught:
        parse("mbw_mr-7.4", RATE.replace(old, new))
    assert (caught.value.line, reason) == (line, caught.value.reason[: len(reason)])


def test_pairs_and_window_need_not_be_told() -> None:
    text = RATE.replace("pairs: 2", "pairs: 3").replace("size: 64", "size: 5")
    assert len(parse_osu(text, "osu_mbw_mr", SIZES)) == 9


def test_line_of_pairs_is_of_mbw_mr_only() -> None:
    text = LATENCY.replace("# Data", "# [ pairs: 2 ] [ window size: 64 ]\n# Data")
    with pytest.raises(ParseError, match="line 3: pairs and window size of a second"):
        parse("latency-7.4", text)


def test_title_of_mbw_mr_comes_twice_from_6_0_to_7_2() -> None:
    text = read("mbw_mr-6.2")
    assert text.count("# OSU MPI Multiple") == 2
    with pytest.raises(ParseError, match="a second table"):
        parse("mbw_mr-6.2", text * 2)
    late = re.sub(r"(.*\n)\1(\n# \[.*\n)", r"\1\2\1", text)
    with pytest.raises(ParseError, match="line 4: a second table"):
        parse("mbw_mr-6.2", late)


def row_of(mb_per_s: str, rate: str) -> str:
    """An output of osu_mbw_mr with one row, of 4096 bytes."""
    head = RATE[: RATE.index("\n1 ") + 1]
    return f"{head}4096{mb_per_s:>24}{rate:>18}\n"


@pytest.mark.parametrize(
    ("mb_per_s", "rate", "reason"),
    [
        ("10.00", "2441.41", None),
        ("10.00", "2442.62", None),
        ("10.00", "2442.64", "2442.64 messages/s of 4096 bytes are not 10.00 MB/s"),
        ("10.00", "2440.18", "2440.18 messages/s of 4096 bytes are not 10.00 MB/s"),
        ("1.00", "2441.41", "2441.41 messages/s of 4096 bytes are not 1.00 MB/s"),
        ("10.00", "0.00", "messages/s is 0.00, expected a positive number"),
        ("0.00", "0.10", "MB/s is 0.00, expected a positive number below 1e+09"),
        ("1000000000.00", "244140625000.00", "expected a positive number below 1e+09"),
    ],
)
def test_message_rate_and_bandwidth_agree(
    mb_per_s: str, rate: str, reason: str | None
) -> None:
    text = row_of(mb_per_s, rate)
    if reason is None:
        (row,) = parse_osu(text, "osu_mbw_mr", [4096], pairs=2, window=64)
        assert row == OsuRow(4096, None, float(mb_per_s), float(rate))
        return
    with pytest.raises(ParseError, match="line 5") as caught:
        parse_osu(text, "osu_mbw_mr", [4096])
    assert reason in caught.value.reason


FULL_HEAD = (
    "\n# OSU MPI Broadcast Latency Test v7.4\n# Datatype: MPI_CHAR.\n"
    "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations"
    "        Validation  P50 Tail Lat(us)  P90 Tail Lat(us)  P99 Tail Lat(us)\n"
)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (("2.00", "0.10", "3.00", "100", "Pass", "1.00", "2.00", "2.00"), None),
        (("2.00", "2.01", "2.00", "100", "Pass", "0.00", "2.00", "9.00"), None),
        (("2.00", "0.00", "3.00", "100", "Pass", "1.00", "2.00", "9.00"), None),
        (("2.00", "2.02", "3.00", "100", "Pass", "1.00", "2.00", "9.00"), "min 2.02"),
        (("2.00", "0.10", "1.98", "100", "Pass", "1.00", "2.00", "9.00"), "max 1.98"),
        (("2.00", "0.10", "3.00", "0", "Pass", "1.00", "2.00", "9.00"), "0 iterations"),
        (("2.00", "0.10", "3.00", "1.00", "Pass", "1.00", "2.00", "9.00"), "no whole"),
        (("2.00", "0.10", "3.00", "-1", "Pass", "1.00", "2.00", "9.00"), "no whole"),
        (("2.00", "0.10", "3.00", "100", "Fail", "1.00", "2.00", "9.00"), "failed val"),
        (("2.00", "0.10", "3.00", "100", "pass", "1.00", "2.00", "9.00"), "no whole"),
        (("2.00", "0.10", "3.00", "100", "Pass", "2.00", "1.00", "9.00"), "out of ord"),
        (
            ("2.00", "0.10", "3.00", "100", "Pass", "1.00", "2.00", "98765432101.00"),
            "absurd",
        ),
        (("2.00", "0.10", "3.00", "100", "Pass", "1.00", "2.00", "nan"), "no whole"),
        (("2.00", "0.10", "98765432101.00", "100", "Pass", *3 * ["1.00"]), "out of"),
    ],
)
def test_spread_and_percentiles_are_in_order(
    fields: tuple[str, ...], reason: str | None
) -> None:
    widths = (18, 18, 18, 12, 18, 18, 18, 18)
    row = "64        " + "".join(
        f"{field:>{width}}" for field, width in zip(fields, widths, strict=True)
    )
    options: Any = {"full": True, "validated": True, "percentiles": TAILS}
    text = f"{FULL_HEAD}{row}\n"
    if reason is None:
        (found,) = parse_osu(text, "osu_bcast", [64], **options)
        assert (found.min_us, found.max_us) == (float(fields[1]), float(fields[2]))
        assert found.percentiles == tuple(map(float, fields[5:]))
        return
    with pytest.raises(ParseError, match="line 5") as caught:
        parse_osu(text, "osu_bcast", [64], **options)
    assert reason in caught.value.reason


def test_headers_of_other_versions_do_not_matter() -> None:
    """A latency is `Latency (us)` up to 7.2, and 7.1 has the datatype below it."""
    header = "# Size       Avg Latency(us)"
    for other in ("# Size          Latency (us)", f"{header}\n# New: yes.", "# "):
        text = LATENCY.replace(header, other)
        assert parse("latency-7.4", text) == parse("latency-7.4", LATENCY)


def test_barrier_has_one_row() -> None:
    text = read("barrier-7.4")
    with pytest.raises(ParseError, match="line 5: row of 0 bytes, expected no further"):
        parse("barrier-7.4", text + text.splitlines()[-1] + "\n")
    with pytest.raises(ParseError, match="line 3: 0 of 1 rows of osu_barrier"):
        parse("barrier-7.4", "".join(text.splitlines(keepends=True)[:-1]))
