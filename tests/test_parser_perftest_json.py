"""The parser of what perftest writes with `--out_json`, before and since it is JSON."""

import json
from pathlib import Path

import pytest

from seatrial.parsers.errors import ParseError
from seatrial.parsers.perftest_json import (
    parse_perftest_json_bw,
    parse_perftest_json_lat,
)
from seatrial.parsers.perftest_rows import BandwidthRow, LatencyRow

DATA = Path(__file__).parent / "data" / "perftest"
OLD = (DATA / "write-lat-before-2024.json").read_text()
NEW = (DATA / "write-bw.json").read_text()
MIB = 1.048576
NEW_ROW = BandwidthRow(65536, 5000, 2229.27 * MIB, 35668.0)
OLD_ROW = LatencyRow(128, 5000, 2.37, 5.39, 2.42, 2.42, 2.47, 4.03, round_trip=False)


def bandwidth(text: str) -> BandwidthRow:
    return parse_perftest_json_bw(text, "RDMA_Write BW", 65536, "MiB/s", 5000)


def latency(text: str) -> LatencyRow:
    return parse_perftest_json_lat(text, "RDMA_Write Latency", 128, 5000)


def test_bandwidth() -> None:
    json.loads(NEW)
    assert bandwidth(NEW) == NEW_ROW


def test_as_perftest_writes_it_without_indents() -> None:
    assert bandwidth("".join(line.lstrip() for line in NEW.splitlines(True))) == NEW_ROW


def test_before_2024_it_was_not_json() -> None:
    with pytest.raises(ValueError, match="Expecting property name"):
        json.loads(OLD)
    assert latency(OLD) == OLD_ROW


def test_read_and_atomic_are_the_whole_round_trip() -> None:
    text = OLD.replace("RDMA_Write_Latency", "Atomic_FETCH_AND_ADD_Latency")
    row = parse_perftest_json_lat(text, "Atomic FETCH_AND_ADD Latency", 128)
    assert row.round_trip
    assert row.typical_us == OLD_ROW.typical_us


def test_service_level_of_a_qos_test_is_never_quoted() -> None:
    text = NEW.replace('"n_iterations"', 'sl: 3,\n    "n_iterations"')
    with pytest.raises(ValueError, match="Expecting property name"):
        json.loads(text)
    assert bandwidth(text) == NEW_ROW


def test_cpu_use_is_passed_over() -> None:
    text = NEW.replace("0.035668", '0.035668,\n    "CPU_util": 5.07')
    assert bandwidth(text) == NEW_ROW


def test_unit_is_that_of_report_gbits() -> None:
    text = NEW.replace("5293.52", "44.40").replace("2229.27", "18.70")
    row = parse_perftest_json_bw(text, "RDMA_Write BW", 65536, "Gbit/s")
    assert row.bandwidth_mb_per_s == 18.70 * 125


@pytest.mark.parametrize("unit", ["Gbit/s", "MB/s"])
def test_wrong_unit_is_noticed_by_the_message_rate(unit: str) -> None:
    with pytest.raises(ParseError, match=f"2229.27 {unit} are .* MB/s, but 0.035668"):
        parse_perftest_json_bw(NEW, "RDMA_Write BW", 65536, unit)


BROKEN = {
    "empty": ("", 0, "no results in 0 lines"),
    "cut after a section": (NEW[: NEW.index('  "results"')], 21, "'},', expected '}'"),
    "cut in the results": (NEW[: NEW.index('    "MsgRate"')], 26, "expected '}'"),
    "cut in a number": (NEW[: NEW.index("668")], 27, "expected '}'"),
    "cut before the end": (NEW[:-2], 28, "'}', expected '}'"),
    "two files": (NEW + NEW, 29, "'}', expected a section"),
    "an entry twice": (
        NEW.replace('"BW_peak"', '"BW_average"'),
        26,
        "a second BW_average",
    ),
    "a section twice": (NEW.replace("test_info", "results"), 22, "a second results"),
    "no results": (NEW.replace("results", "result"), 22, "'\"result\": {', expected a"),
    "another test": (NEW.replace("Write", "Read"), 2, "test is RDMA_Read_BW_Test, exp"),
    "another size": (
        NEW.replace("65536", "65537"),
        22,
        "MsgSize is 65537, expected 65",
    ),
    "other iterations": (
        NEW.replace("5000", "1000"),
        22,
        "1000 iterations, expected 5",
    ),
    "no value": (NEW.replace(" 2229.27", ""), 26, '"BW_average":,\', expected a name'),
    "half a text": (NEW.replace('"OFF"', '"OFF'), 4, "expected a name and a value"),
    "nan": (NEW.replace("2229.27", "nan"), 22, "BW average is nan, expected a num"),
    "minus nan": (NEW.replace("5293.52", "-nan"), 22, "BW peak is -nan, expected a n"),
    "inf": (NEW.replace("2229.27", "inf"), 22, "BW average is inf, expected a numbe"),
    "negative": (NEW.replace("2229.27", "-1.00"), 22, "BW average is -1.00, expected"),
    "zero": (NEW.replace("2229.27", "0.00"), 22, "BW average is 0.00, expected a pos"),
    "a text for a number": (
        NEW.replace("2229.27", '"fast"'),
        22,
        "BW average is fast, expected a number",
    ),
    "output=bandwidth": (
        # made from perftest's format strings
        NEW[: NEW.index('    "MsgSize"')] + '    "bw_avg": 2229.270000,\n\n  }\n}\n',
        22,
        "no MsgSize in the results (-D or --output?)",
    ),
    "latency": (OLD.replace("Latency", "BW"), 21, "no BW_peak in the results"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_bandwidth_is_refused(name: str) -> None:
    text, line, reason = BROKEN[name]
    assert text != NEW
    with pytest.raises(ParseError) as caught:
        bandwidth(text)
    assert reason in caught.value.reason
    assert caught.value.line == line


BROKEN_LATENCY = {
    "cut": (OLD[: OLD.index("percentile_99.9")], 29, "expected '}'"),
    "duration": (
        # made from perftest's format strings
        OLD[: OLD.index("t_min")] + "t_avg: 2.42,\ntps_average: 206611.57,\n},\n}\n",
        21,
        "no t_min in the results (-D or --output?)",
    ),
    "nan": (OLD.replace("t_avg: 2.42", "t_avg: nan"), 21, "t_avg is nan, expected a"),
    "out of order": (OLD.replace("2.47", "2.00"), 21, "times are out of order"),
    "another size": (OLD.replace("128", "64"), 21, "MsgSize is 64, expected 128"),
}


@pytest.mark.parametrize("name", BROKEN_LATENCY)
def test_broken_latency_is_refused(name: str) -> None:
    text, line, reason = BROKEN_LATENCY[name]
    assert text != OLD
    with pytest.raises(ParseError) as caught:
        latency(text)
    assert reason in caught.value.reason
    assert caught.value.line == line
