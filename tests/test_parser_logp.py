"""The parser of logp, on captured outputs; test_parser_rows.py has what all share."""

import json
from pathlib import Path
from typing import Any

import pytest
from row_damage import with_values, without_line

from seatrial.parsers.errors import ParseError
from seatrial.parsers.logp import LogpRow, parse_logp

DATA = Path(__file__).parent / "data" / "logp"


def read(name: str) -> str:
    return (DATA / name).read_text()


GOOD = read("openmpi-4.1.4.txt")
SENT = read("mpich-4.0.2-send-irecv.txt")


def test_reads_a_run_with_inserted_sizes() -> None:
    rows = parse_logp(GOOD)
    doubled = [row.size_bytes for row in rows if row.inserted == "no"]
    assert doubled == [0, *(2**k for k in range(3, 21))]
    inserted = [row.size_bytes for row in rows if row.inserted == "yes"]
    assert len(inserted) == 4
    for size in inserted:
        assert size not in doubled
    assert {(row.send, row.receive) for row in rows} == {("isend", "recv")}
    assert {(row.nodes, row.validation) for row in rows} == {(2, "pass")}


def test_reads_negative_gaps() -> None:
    rows = parse_logp(SENT)
    assert [row.size_bytes for row in rows] == [0, 2, 4, 8]
    assert {(row.send, row.receive) for row in rows} == {("send", "irecv")}
    assert {(row.nodes, row.validation) for row in rows} == {(1, "off")}
    assert min(row.g_p50_us for row in rows) < 0


@pytest.mark.parametrize("text", [GOOD, SENT])
def test_rows_are_read_whole(text: str) -> None:
    assert parse_logp(text) == [LogpRow(**json.loads(x)) for x in text.splitlines()]


def test_flood_that_never_doubled_has_no_change() -> None:
    text = with_values(SENT, 3, g_flood_change=None)
    assert parse_logp(text)[2].g_flood_change is None


def test_every_cut_is_refused() -> None:
    for end in range(len(SENT) - 2):
        with pytest.raises(ParseError):
            parse_logp(SENT[:end])


def test_negative_latency_is_read() -> None:
    """L follows from the first row alone; so does the gap of size 0."""
    (line,) = SENT.splitlines()[:1]
    row = json.loads(line) | {"rows": 1, "rtt_p50_us": 1.0, "g_flood_us": 0.75}
    row |= {"g_p50_us": 0.75, "g_mean_us": 0.75, "l_us": -0.25}
    assert parse_logp(json.dumps(row))[0].l_us == -0.25


@pytest.mark.parametrize(
    ("line", "values", "reason"),
    [
        (1, {"np": 3}, "np is 3, expected 2"),
        (1, {"nodes": 3}, "3 nodes for 2 processes"),
        (2, {"send": "isend"}, "send: 'isend', in the first row 'send'"),
        (2, {"send": "ssend"}, "send: 'ssend' is none of"),
        (2, {"l_us": 7.5}, "l_us: 7.5, in the first row"),
        (2, {"os_n": 3}, "os, rtt and g differ in their samples"),
        (2, {"or_n": 1}, "1 samples of 2 to"),
        (2, {"or_n": 10**6}, "1000000 samples of 2 to"),
        (2, {"g_flood_n": 0}, "a flood of 0 messages"),
        (2, {"g_flood_n": 10**9}, "a flood of 1000000000 messages"),
        (2, {"g_flood_us": 0}, "rtt or g is not positive"),
        (2, {"g_flood_us": -0.5}, "g_flood_us: -0.5 is not a number of at least 0"),
        (2, {"os_mean_us": 1e6}, "os_mean_us is above rtt_mean_us"),
        (2, {"or_half_us": 1e6, "precise": "yes"}, "the intervals say otherwise"),
        (
            2,
            {"os_half_us": 0, "or_half_us": 0, "rtt_half_us": 0, "precise": "no"},
            "the intervals say otherwise",
        ),
        (2, {"inserted": "maybe"}, "inserted: 'maybe' is none of"),
        (2, {"inserted": "yes"}, "1 inserted sizes, at most 0"),
        (3, {"size_bytes": 5}, "size 5 after 2, expected 4"),
        (3, {"size_bytes": 2}, "expected 0 and then larger ones"),
        (1, {"size_bytes": 1}, "expected 0 and then larger ones"),
        (3, {"g_p50_us": 123.0}, r"size 4: g is not RTT\(m\) - RTT\(0\) \+ g\(0\)"),
        (3, {"g_mean_us": -123.0}, r"size 4: g is not RTT\(m\) - RTT\(0\) \+ g\(0\)"),
        (1, {"rtt_p50_us": 77.0}, r"l_us is not RTT\(0\) / 2 - g\(0\)"),
        (4, {"validation": "fail"}, "contents failed validation"),
    ],
)
def test_contradictions_are_refused(
    line: int, values: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ParseError, match=reason):
        parse_logp(with_values(SENT, line, **values))


@pytest.mark.parametrize("line", [1, 2, 4])
def test_missing_row_is_refused(line: int) -> None:
    with pytest.raises(ParseError, match="row"):
        parse_logp(without_line(SENT, line))


def test_real_corruption_is_refused() -> None:
    with pytest.raises(ParseError, match="line 2: contents failed validation"):
        parse_logp(read("mpich-4.0.2-corrupt.txt"))
