"""The parser of congestion, on captured outputs."""

from pathlib import Path
from typing import Any

import pytest
from row_damage import with_values

from seatrial.parsers.congestion import VICTIMS, parse_congestion
from seatrial.parsers.errors import ParseError

DATA = Path(__file__).parent / "data" / "congestion"
GOOD = (DATA / "openmpi-4.1.4-np8.txt").read_text()
MIXED = (DATA / "mpich-4.0.2-np10-mixed.txt").read_text()


def test_reads_real_output() -> None:
    for text, aggressors, nodes in ((GOOD, "alltoall", 4), (MIXED, "mixed", 10)):
        rows = parse_congestion(text)
        assert tuple(row.victim for row in rows) == VICTIMS
        assert {(row.aggressors, row.nodes) for row in rows} == {(aggressors, nodes)}
        assert {row.victim_nodes for row in rows} == {2}
        assert all(row.aggressor_operations > 0 for row in rows)


def test_every_cut_is_refused() -> None:
    for end in range(0, len(GOOD) - 2, 7):
        with pytest.raises(ParseError):
            parse_congestion(GOOD[:end])


@pytest.mark.parametrize(
    ("line", "values", "reason"),
    [
        (1, {"victim_nodes": 3}, "4 nodes, but 3 of victims and 2 of aggressors"),
        (1, {"victim_nodes": 1, "aggressor_nodes": 3}, "a ring takes two nodes"),
        (1, {"unit": "MB/s"}, "unit MB/s"),
        (1, {"isolated_n": 24001}, "isolated_n 24001, expected at most 24000"),
        (2, {"congested_n": 0}, "congested_n 0, expected at most 960"),
        (2, {"congested_mean": 0}, "congested_mean is not positive"),
        (1, {"impact_mean": 1}, "impact_mean 1, by its values it is 9.52656"),
        (2, {"impact_p99": 1.2}, "impact_p99 1.2, by its values it is 0.817861"),
        (3, {"aggressor_operations": 0}, "0 operations of aggressors alltoall"),
        (1, {"aggressors": "none"}, "5552 operations of aggressors none"),
        (2, {"seed": 2}, "seed: 2, in the first row 1"),
        (2, {"victim": "latency", "unit": "us"}, "impact_mean"),
        (3, {"victim": "latency"}, "victims latency, bw, latency, expected each"),
        (2, {"validation": "fail"}, "contents failed validation"),
    ],
)
def test_contradictions_are_refused(
    line: int, values: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ParseError) as refusal:
        parse_congestion(with_values(GOOD, line, **values))
    assert reason in str(refusal.value)
