"""The parsers of perftest, on quoted outputs of several versions."""

import re
from pathlib import Path

import pytest

from seatrial.parsers.errors import ParseError
from seatrial.parsers.perftest import (
    ALL_SIZES,
    parse_perftest_bw,
    parse_perftest_lat,
    parse_perftest_samples,
)
from seatrial.parsers.perftest_rows import BandwidthRow, LatencyRow

DATA = Path(__file__).parent / "data" / "perftest"
MIB = 1.048576


def read(name: str) -> str:
    return (DATA / name).read_text()


def table(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if re.match(r" ?\d", line)]


BANDWIDTH = {
    "connectx3-write-bw": ("RDMA_Write BW", ALL_SIZES, MIB),
    "connectx3-read-bw": ("RDMA_Read BW", ALL_SIZES, MIB),
    "connectx3-send-bw": ("Send BW", ALL_SIZES, MIB),
    "connectx3-atomic-bw": ("Atomic FETCH_AND_ADD BW", (8,), MIB),
    "efa-send-bw-mib": ("Send BW", ALL_SIZES[:13], MIB),
    "bidirectional-gbit": ("RDMA_Write Bidirectional BW", ALL_SIZES, 125.0),
    "duration-bidirectional-gbit": ("RDMA_Write Bidirectional BW", (65536,), 125.0),
    "cpu-util-gbit": ("RDMA_Write BW", (65536,), 125.0),
}


@pytest.mark.parametrize("name", BANDWIDTH)
def test_bandwidth(name: str) -> None:
    test, sizes, factor = BANDWIDTH[name]
    text = read(f"{name}.txt")
    rows = parse_perftest_bw(text, test, sizes)
    assert list(rows) == [
        BandwidthRow(
            size_bytes=int(size),
            iterations=int(iterations),
            bandwidth_mb_per_s=float(average) * factor,
            message_rate_per_s=float(rate) * 1e6,
        )
        for size, iterations, _, average, rate, *_ in table(text)
    ]
    assert len(rows) == len(sizes)


LATENCY = {
    "connectx3-write-lat": ("RDMA_Write Latency", ALL_SIZES, False),
    "connectx3-send-lat": ("Send Latency", ALL_SIZES, False),
    "connectx3-read-lat": ("RDMA_Read Latency", ALL_SIZES, True),
    "connectx3-atomic-lat": ("Atomic FETCH_AND_ADD Latency", (8,), True),
}


@pytest.mark.parametrize("name", LATENCY)
def test_latency_of_read_and_atomic_is_the_whole_round_trip(name: str) -> None:
    test, sizes, round_trip = LATENCY[name]
    text = read(f"{name}.txt")
    rows = parse_perftest_lat(text, test, sizes)
    expected = [
        LatencyRow(
            size_bytes=int(size),
            iterations=int(iterations),
            min_us=float(least),
            max_us=float(most),
            typical_us=float(typical),
            mean_us=float(mean),
            p99_us=float(p99),
            p99_9_us=float(p99_9),
            round_trip=round_trip,
        )
        for size, iterations, least, most, typical, mean, _, p99, p99_9 in table(text)
    ]
    assert list(rows) == expected
    assert len(rows) == len(sizes)


def test_sizes_of_all_begin_at_2() -> None:
    assert (ALL_SIZES[0], ALL_SIZES[-1], len(ALL_SIZES)) == (2, 8388608, 23)


WRITE = read("connectx3-write-bw.txt")
HEADER = next(line for line in WRITE.splitlines() if "#bytes" in line)
LAST = next(line for line in WRITE.splitlines() if line.startswith(" 8388608"))


def test_mb_and_mib_in_the_header_are_the_same_unit() -> None:
    renamed = WRITE.replace("[MB/sec]", "[MiB/sec]")
    rows = parse_perftest_bw(WRITE, "RDMA_Write BW", ALL_SIZES)
    assert parse_perftest_bw(renamed, "RDMA_Write BW", ALL_SIZES) == rows
    assert rows[-1].bandwidth_mb_per_s == pytest.approx(float(LAST.split()[3]) * MIB)


def test_wrong_unit_is_noticed_by_the_message_rate() -> None:
    text = read("cpu-util-gbit.txt").replace("[Gb/sec]", "[MB/sec]")
    with pytest.raises(ParseError, match=r"92\.57 MiB/s are 97\.07 MB/s, but"):
        parse_perftest_bw(text, "RDMA_Write BW", (65536,))


def test_cpu_frequency_warnings_between_header_and_rows() -> None:
    warning = (
        "Conflicting CPU frequency values detected: 800.000000 != 3177.498000. "
        "CPU Frequency is not max.\n"
    )
    assert "Conflicting" in read("duration-bidirectional-gbit.txt")
    noisy = re.sub(r"^(?= \d)", warning, WRITE, flags=re.MULTILINE)
    assert noisy.count(warning) == len(ALL_SIZES)
    assert parse_perftest_bw(noisy, "RDMA_Write BW", ALL_SIZES) == parse_perftest_bw(
        WRITE, "RDMA_Write BW", ALL_SIZES
    )


def test_no_peak_in_a_run_of_a_duration() -> None:
    text = read("duration-bidirectional-gbit.txt")
    (row,) = parse_perftest_bw(text, "RDMA_Write Bidirectional BW", (65536,))
    assert row.bandwidth_mb_per_s == 98.02 * 125


def test_stdev_is_not_read() -> None:
    text = read("connectx3-atomic-lat.txt")
    test = "Atomic FETCH_AND_ADD Latency"
    wrong = text.replace(" 0.31  ", " 0.00  ")
    assert wrong != text
    assert parse_perftest_lat(wrong, test, (8,)) == parse_perftest_lat(text, test, (8,))


def one_row(header: str, row: str) -> str:
    head = WRITE[: WRITE.index(HEADER)]
    return f"{head}{header}\n{row}\n{'-' * 87}\n"


PORTS = "BW Port1[MB/sec] MsgRate Port1[Mpps] BW Port2[MB/sec] MsgRate Port2[Mpps]"
ROW = " 65536      5000             0.00               2000.00             0.032000"
OTHER_COLUMNS = {
    # made from perftest's format strings
    "per port": (f"{HEADER} {PORTS}", f"{ROW} 1200.00 0.019200 800.00 0.012800"),
    "QoS": (HEADER.replace("#bytes", "#bytes #sl"), ROW.replace("5000", "3  5000", 1)),
    "CPU": (f"{HEADER}    CPU_Util[%]", f"{ROW}     5.07"),
    "two percent signs": (f"{HEADER}    CPU_Util[%%]", f"{ROW}     5.07"),
}


@pytest.mark.parametrize("name", OTHER_COLUMNS)
def test_columns_that_options_add_are_passed_over(name: str) -> None:
    text = one_row(*OTHER_COLUMNS[name])
    rows = parse_perftest_bw(text, "RDMA_Write BW", (65536,), 5000)
    assert rows == (BandwidthRow(65536, 5000, 2000 * MIB, 32000.0),)


def test_version_without_message_rate() -> None:
    header = " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]"
    text = one_row(header, " 65536      5000           2005.00            2000.00")
    rows = parse_perftest_bw(text, "RDMA_Write BW", (65536,))
    assert rows == (BandwidthRow(65536, 5000, 2000 * MIB, None),)


def test_version_without_percentiles() -> None:
    header = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]"
    text = one_row(header, " 2       1000          1.02           11.76        1.07   ")
    text = text.replace("RDMA_Write BW", "Send Latency")
    rows = parse_perftest_lat(text, "Send Latency", (2,))
    assert rows == (
        LatencyRow(2, 1000, 1.02, 11.76, 1.07, None, None, None, round_trip=False),
    )


def test_message_rate_too_low_to_be_shown() -> None:
    row = " 8388608    5                3.10               3.00                0.000000"
    rows = parse_perftest_bw(one_row(HEADER, row), "RDMA_Write BW", (8388608,))
    assert rows == (BandwidthRow(8388608, 5, 3.0 * MIB, None),)


@pytest.mark.parametrize(
    ("peak", "average", "is_refused"),
    [
        ("0.01", "0.02", False),  # 0.015 less a Hz in a clock of 1 MHz
        ("0.01", "0.03", True),
        ("1.99", "2.00", False),
        ("1.98", "2.00", True),
        ("0.00", "2.00", False),
        ("inf", "2.00", False),  # less than a cycle of a clock of 25 MHz a message
        ("12345.67", "12345.69", False),  # a millionth of it is a digit
        ("12345.65", "12345.69", True),
    ],
)
def test_peak_is_not_below_the_average(
    peak: str, average: str, is_refused: bool
) -> None:
    rate = float(average) * 1.048576 / 65536
    row = f" 65536      5000       {peak}      {average}     {rate:.6f}"
    text = one_row(HEADER, row)
    if is_refused:
        with pytest.raises(ParseError, match="is below BW average"):
            parse_perftest_bw(text, "RDMA_Write BW", (65536,))
    else:
        parse_perftest_bw(text, "RDMA_Write BW", (65536,))


def changed(value: str) -> str:
    """Change the average of the last row."""
    assert LAST.split()[3] == "3665.25"
    return WRITE.replace("3665.25", value)


RULE = f"\n{'-' * 87}\n"
BROKEN = {
    "empty": ("", 0, "no title 'RDMA_Write BW Test' in 0 lines"),
    "no rows": (WRITE[: WRITE.index(" 2  ")] + RULE[1:], 18, "0 of 23 rows of the"),
    "no table": (WRITE[: WRITE.index(" #bytes")], 16, "0 tables, expected one"),
    "cut after the header": (WRITE[: WRITE.index(" 2  ")], 17, "cut off: 0 of 23 rows"),
    "cut in the header": (WRITE[: WRITE.index("MsgRate")], 17, "cut off: 0 of 23 rows"),
    "cut in a row": (WRITE[: WRITE.index("3665.25")], 40, "cut off: 22 of 23 rows"),
    "cut after the rows": (
        WRITE[: WRITE.rindex("---\n") - 84],
        40,
        "23 of 23 rows",
    ),
    "a row lost": (
        WRITE.replace(f"{LAST}\n", ""),
        40,
        "22 of 23 rows of the table, the next is 838",
    ),
    "a middle row lost": (
        re.sub(r" 16 .*\n", "", WRITE),
        21,
        "row of 32 bytes, expected 16",
    ),
    "a row twice": (
        WRITE.replace(LAST, f"{LAST}\n{LAST}"),
        41,
        "row of 8388608 bytes, expected no further row",
    ),
    "the rule in the last row": (
        WRITE.replace(f"{LAST}\n", LAST),
        40,
        "MsgRate is 0.000458---",
    ),
    "two outputs": (WRITE + WRITE, 43, "a second title, 'RDMA_Write BW Test'"),
    "two tables": (
        WRITE + HEADER + "\n" + LAST + RULE,
        42,
        "2 tables, expected one",
    ),
    "both directions reported": (
        WRITE + "\n Local results: \n" + HEADER + "\n" + LAST + RULE,
        44,
        "2 tables, expected one",
    ),
    "another test": (
        WRITE.replace("RDMA_Write BW", "RDMA_Read BW"),
        2,
        "title of RDMA_Read BW, expected RDMA_Write BW",
    ),
    "latency": (
        read("connectx3-write-lat.txt").replace("Latency", "BW"),
        16,
        "bandwidth in None, expected ['MB/sec', 'MiB/sec', 'Gb/sec']",
    ),
    "another unit": (
        WRITE.replace("[MB/sec]", "[GB/sec]"),
        17,
        "bandwidth in GB/sec, expected",
    ),
    "two units": (
        WRITE.replace("average[MB/sec]", "average[Gb/sec]"),
        17,
        "bandwidth in Gb/sec, expected",
    ),
    "a column twice": (
        WRITE.replace("BW peak", "BW average"),
        17,
        "a column twice: #bytes, #iterations, BW average, BW average, MsgRate",
    ),
    "unknown column": (
        WRITE.replace(HEADER, f"{HEADER} BW minimum[MB/sec]"),
        17,
        "unknown columns: 'BW minimum[MB/sec]'",
    ),
    "columns swapped": (
        WRITE.replace(" #bytes     #iterations", " #iterations     #bytes"),
        17,
        "columns ['#bytes', 'BW peak'",
    ),
    "nan": (changed("nan"), 40, "BW average is nan, expected a number"),
    "inf": (changed("inf"), 40, "BW average is inf, expected a number"),
    "negative": (changed("-3665.25"), 40, "BW average is -3665.25, expected"),
    "zero": (changed("0.00"), 40, "BW average is 0.00, expected a positive number"),
    "absurd": (changed("1e30"), 40, "BW average is 1e30, expected a number"),
    "a digit lost": (changed("365.25"), 40, "365.25 MiB/s are 382.99 MB/s, but"),
    "a digit changed": (changed("3565.25"), 40, "3565.25 MiB/s are 3738.44 MB/s, but"),
    "peak below average": (
        WRITE.replace("3665.51", "365.49"),
        40,
        "BW peak 365.49 is below BW average 3665.25",
    ),
    "no iterations": (
        WRITE.replace(" 8388608    20000", " 8388608    0    "),
        40,
        "0 iterations, expected 20000",
    ),
    "other iterations": (
        WRITE.replace(" 8388608    20000", " 8388608    20001"),
        40,
        "20001 iterations, expected 20000",
    ),
    "size 0": (
        WRITE.replace(" 8388608    20000", " 0          20000"),
        40,
        "a message of 0 bytes",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_bandwidth_is_refused(name: str) -> None:
    text, line, reason = BROKEN[name]
    assert text != WRITE
    with pytest.raises(ParseError) as caught:
        parse_perftest_bw(text, "RDMA_Write BW", ALL_SIZES, 20000)
    assert reason in caught.value.reason
    assert caught.value.line == line


SEND = read("connectx3-send-lat.txt")
SEND_LAST = next(line for line in SEND.splitlines() if line.startswith(" 8388608"))
BROKEN_LATENCY = {
    "bandwidth": (
        WRITE.replace("RDMA_Write BW", "Send Latency"),
        17,
        "no column t_min[usec] (-D in place of -n?)",
    ),
    "duration": (
        SEND.replace(
            next(line for line in SEND.splitlines() if "#bytes" in line),
            " #bytes        #iterations       t_avg[usec]    tps average",
        ),
        16,
        "no column t_min[usec] (-D in place of -n?)",
    ),
    "cut in a row": (SEND[: SEND.index("3761.26")], 39, "cut off: 22 of 23 rows"),
    "nan": (SEND.replace("2247.02", "nan    "), 39, "t_typical is nan, expected"),
    "negative": (SEND.replace("2239.42", "-239.42"), 39, "t_min is -239.42, expected"),
    "zero": (SEND.replace("2239.42", "0.00   "), 39, "t_min is 0.00, expected a posi"),
    "absurd": (SEND.replace("4189.77", "1e30   "), 39, "t_max is 1e30, expected a nu"),
    "median below minimum": (
        SEND.replace("2247.02", "247.02 "),
        39,
        "times are out of order",
    ),
    "mean below minimum": (
        SEND.replace("2252.46", "252.46 "),
        39,
        "times are out of order",
    ),
    "mean above maximum": (
        SEND.replace("2252.46", "9252.46"),
        39,
        "times are out of order: {",
    ),
    "percentile above maximum": (
        SEND.replace("3761.26", "9761.26"),
        39,
        "times are out of order",
    ),
}


@pytest.mark.parametrize("name", BROKEN_LATENCY)
def test_broken_latency_is_refused(name: str) -> None:
    text, line, reason = BROKEN_LATENCY[name]
    assert text != SEND
    with pytest.raises(ParseError) as caught:
        parse_perftest_lat(text, "Send Latency", ALL_SIZES)
    assert reason in caught.value.reason
    assert caught.value.line == line


BOTH_SIDES = {
    "loopback-8MiB-both-sides.txt": ("RDMA_Write BW", (8388608,)),
    "loopback-all-both-sides.txt": ("RDMA_Write BW", ALL_SIZES),
    "ud-both-sides.txt": ("Send BW", (1024,)),
}


@pytest.mark.parametrize("name", BOTH_SIDES)
def test_server_and_client_in_one_file_are_refused(name: str) -> None:
    test, sizes = BOTH_SIDES[name]
    with pytest.raises(ParseError, match=f"a second title, '{test} Test'"):
        parse_perftest_bw(read(name), test, sizes)


def test_rows_of_server_and_client_in_one_line_are_refused() -> None:
    text = read("ud-both-sides.txt")
    row = next(line for line in text.splitlines() if line.startswith(" 1024"))
    with pytest.raises(ParseError, match="is no whole row of #bytes, #iterations"):
        parse_perftest_bw(one_row(HEADER, row), "RDMA_Write BW", (1024,))


SEND_HEADER = next(line for line in SEND.splitlines() if "#bytes" in line)
SAMPLES = SEND[: SEND.index(" #bytes")] + (
    # made from perftest's format strings: ib_send_lat -n 6 -U
    f"{SEND_HEADER}\n#, usec\n"
    "1, 1.0823\n2, 1.1\n3, 14.2345\n4, 1.08\n5, 1.2e+02\n"
    f"{RULE[1:]}{SEND_HEADER}\n"
    f" 2       6             1.08           1.10         1.08 1.09 0.00 1.10 1.10{RULE}"
)


def test_table_of_a_run_that_prints_samples_is_refused() -> None:
    with pytest.raises(ParseError, match="2 tables, expected one"):
        parse_perftest_lat(SAMPLES, "Send Latency", (2,))


def test_samples_in_their_order() -> None:
    samples = parse_perftest_samples(SAMPLES, "Send Latency", 6)
    assert samples == (1.0823, 1.1, 14.2345, 1.08, 120.0)


BROKEN_SAMPLES = {
    "none": (SEND, 40, "0 lists of samples, expected one"),
    "cycles": (SAMPLES.replace("#, usec", "#, cycles"), 17, "samples in cycles, expec"),
    "cut": (SAMPLES[: SAMPLES.index("5, 1.2")], 21, "4 samples, expected 5"),
    "cut in a line": (SAMPLES[: SAMPLES.index("e+02")], 21, "4 samples, expected 5"),
    "a sample lost": (SAMPLES.replace("2, 1.1\n", ""), 19, "expected sample 2"),
    "a sample twice": (
        SAMPLES.replace("2, 1.1\n", "2, 1.1\n2, 1.1\n"),
        20,
        "'2, 1.1', expected sample 3",
    ),
    "nan": (SAMPLES.replace("14.2345", "nan"), 20, "sample is nan, expected a posit"),
    "negative": (SAMPLES.replace("14.2345", "-1"), 20, "sample is -1, expected a pos"),
    "absurd": (SAMPLES.replace("14.2345", "1e30"), 20, "sample is 1e30, expected a p"),
    "two lists": (SAMPLES + "#, usec\n1, 1.0\n", 27, "2 lists of samples, expected"),
    "another test": (
        SAMPLES.replace("Send Lat", "RDMA_Read Lat"),
        2,
        "title of RDMA_Read Latency, expected Send Latency",
    ),
}


@pytest.mark.parametrize("name", BROKEN_SAMPLES)
def test_broken_samples_are_refused(name: str) -> None:
    text, line, reason = BROKEN_SAMPLES[name]
    with pytest.raises(ParseError) as caught:
        parse_perftest_samples(text, "Send Latency", 6)
    assert reason in caught.value.reason
    assert caught.value.line == line
