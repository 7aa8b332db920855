"""Parsers of our own programs of verbs: values and refusals, on real outputs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seatrial.parsers.errors import ParseError
from seatrial.parsers.mp_rdma import parse_mp_rdma_bw, parse_mp_rdma_lat
from seatrial.parsers.mqp_lat import parse_mqp_lat
from seatrial.parsers.mr_cost import parse_mr_cost
from seatrial.parsers.winbw import parse_winbw

DATA = Path(__file__).parent / "data" / "verbs"


def changed(name: str, row: int, **values: Any) -> str:
    """Return an output with other values in one of its rows, the first is 0."""
    lines = (DATA / f"{name}.txt").read_text().splitlines()
    lines[row] = json.dumps(json.loads(lines[row]) | values)
    return "\n".join(lines) + "\n"


def test_pairs_of_ranks() -> None:
    rows = parse_mp_rdma_lat((DATA / "mp_rdma_lat.txt").read_text())
    assert [(row.operation, row.pairs, row.size_bytes) for row in rows] == [
        (operation, pairs, size)
        for operation in ("write", "read")
        for pairs in (1, 2)
        for size in (8, 16)
    ]
    assert rows[0].addressing == "roce_v2_ipv4"
    many = parse_mp_rdma_bw((DATA / "mp_rdma_bw.txt").read_text())
    assert all(0.5 <= row.fairness <= 1 for row in many)


def test_stripes() -> None:
    rows = parse_winbw((DATA / "winbw-2.txt").read_text())
    pieces = {(row.policy, row.size_bytes): row.pieces for row in rows}
    assert pieces["striped", 16384] == 2
    assert pieces["striped", 8192] == pieces["bound", 16384] == 1


DROPPED: dict[str, Any] = {
    **dict.fromkeys(("min_us", "p50_us", "p99_us", "max_us", "mean_us")),
    **{"n": 0, "dropped": 5, "spread_p50_ns": 400.0, "spread_max_ns": 900.0},
}


@pytest.mark.parametrize(
    ("parser", "name", "row", "values", "reason"),
    [
        (parse_mp_rdma_lat, "mp_rdma_lat", 2, DROPPED, "all 5 operations were dropped"),
        (
            parse_mp_rdma_lat,
            "mp_rdma_lat",
            2,
            {"dropped": 3},
            "samples of 2 operations",
        ),
        (parse_mp_rdma_lat, "mp_rdma_lat", 0, {"n": 0}, "times of no sample|samples"),
        (parse_mp_rdma_lat, "mp_rdma_lat", 0, {"pairs": 3}, "3 pairs of 4"),
        (parse_mp_rdma_bw, "mp_rdma_bw", 0, {"fairness": 1.01}, "fairness 1.01 of 1"),
        (parse_mp_rdma_bw, "mp_rdma_bw", 2, {"fairness": 0.4}, "fairness 0.4 of 2"),
        (parse_mp_rdma_bw, "mp_rdma_bw", 0, {"interval_us": 1.0}, "by its time it is"),
        (parse_winbw, "winbw-2", 8, {"pieces": 1}, "1 pieces of 16384 B, striped"),
        (parse_winbw, "winbw-1", 0, {"direction": "bi"}, "by its time it is"),
        (parse_mqp_lat, "mqp_lat", 0, {"mb_per_s": 1.0}, "a latency with a bandwidth"),
        (parse_mqp_lat, "mqp_lat", 6, {"mb_per_s": 9e9}, "by its messages it is"),
        (parse_mr_cost, "mr_cost", 0, {"us_per_page": 9.0}, "us_per_page 9.0, expect"),
        (parse_mr_cost, "mr_cost", 1, {"dereg_p50_us": 9e9}, "ibv_dereg_mr are out"),
    ],
)
def test_contradictions_are_refused(
    parser: Callable[[str], Any],
    name: str,
    row: int,
    values: dict[str, Any],
    reason: str,
) -> None:
    with pytest.raises(ParseError, match=reason):
        parser(changed(name, row, **values))
