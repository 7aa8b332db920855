"""The ring of nodes: rounds of disjoint pairs, each one step of all its nodes."""

import re
from pathlib import Path

import pytest
from fake_home import write
from reframe_runs import record_of
from test_checks import replay

from seatrial.checks.rank_start import verify_rank_lines
from seatrial.checks.ring import ring_rounds
from seatrial.parsers.errors import ParseError
from seatrial.parsers.imb import ImbRow, parse_imb, parse_imb_each_group

DATA = Path(__file__).parent / "data"
SIZES = [0, 8, 16, 32, 64]
EACH = (DATA / "imb" / "groups-1-2021.11.txt").read_text()
GROUPS = [(0, 1), (2, 3)]


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 7, 64, 255, 1024])
def test_rounds_have_disjoint_pairs_and_together_the_ring(count: int) -> None:
    nodes = [f"cn{number:04}" for number in range(count)]
    rounds = ring_rounds(count)
    assert len(rounds) == (1 if count == 2 else 3)
    pairs = [pair for each in rounds for pair in each.pairs(nodes)]
    ring = list(zip(nodes, [*nodes[1:], nodes[0]], strict=True))
    assert sorted(pairs) == ring[: 1 if count == 2 else count]
    for each in rounds:
        assert len({*each.members}) == len(each.members) == 2 * len(each.groups)
        assert list(each.members) == sorted(each.members)


def test_each_group_has_its_own_rows() -> None:
    first, second = parse_imb_each_group(EACH, "PingPong", GROUPS, SIZES)
    assert [row.size_bytes for row in first] == SIZES
    assert first[0] == ImbRow(0, 50, 150.68, 0.0)
    assert second[-2] == ImbRow(32, 50, 5.99, 5.34)


def test_one_group_is_a_plain_table() -> None:
    text = (DATA / "imb" / "pingpong-2021.11.txt").read_text()
    sizes = [0, *(1 << k for k in range(23))]
    (rows,) = parse_imb_each_group(text, "PingPong", [(0, 1)], sizes)
    assert rows == parse_imb(text, "PingPong", 2, sizes)


ROW = "            1            8           50       194.11         0.04\n"
BROKEN = {
    "no rows": (EACH[: EACH.index("\n            0")], "0 of 10 rows"),
    "a row less": (EACH.replace(ROW, ""), "expected 1 8 bytes of a group"),
    "a row twice": (EACH.replace(ROW, ROW * 2), "row of 1 8 bytes of a group"),
    "a damaged row": (EACH.replace(ROW, ROW[:-6] + "\n"), "is no whole row"),
    "a damaged row, and words": (
        EACH.replace(ROW, f"{ROW[:30]} on cn02: lost\n"),
        "is no whole row",
    ),
    "other groups": (EACH.replace("1:     2    3", "1:     1    3"), "group 1 of"),
    "dropped": (
        EACH.replace(ROW, "            1            8 time-out.; Time limit is over\n"),
        "IMB dropped 8 bytes: time-out",
    ),
    "of all groups": (
        (DATA / "imb" / "groups-0-2021.11.txt").read_text(),
        "expected 0 0 bytes of a group",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_damaged_groups_are_refused(name: str) -> None:
    text, reason = BROKEN[name]
    with pytest.raises(ParseError, match=reason):
        parse_imb_each_group(text, "PingPong", GROUPS, SIZES)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("# rank 1 cn02\n# rank 0 cn01\n", ""),
        ("# rank 0 cn02\n# rank 1 cn01\n", "rank 0 on cn02, expected rank 0 on cn01"),
        ("# rank 0 cn01\n", "1 of 2 ranks print their node"),
        ("# rank 0 cn01\n# rank 0 cn02\n", "rank 0 on cn02, expected rank 1 on cn02"),
    ],
)
def test_ranks_must_be_on_the_nodes_of_their_pairs(text: str, reason: str) -> None:
    if not reason:
        verify_rank_lines(text, ["cn01", "cn02"])
        return
    with pytest.raises(ParseError, match=reason):
        verify_rank_lines(text, ["cn01", "cn02"])


def test_ring_of_three_nodes_is_three_steps(tmp_path: Path) -> None:
    nodes = ["cn01", "cn02", "cn03"]
    (row,) = replay(tmp_path, nodes, only="ImbRing", SLOW_NODE="cn03")
    lines = re.findall("^run_step .*", Path(row["stagedir"], "steps.sh").read_text(), 8)
    assert len(lines) == 3
    samples = record_of(row)["samples"]
    slow = {
        (s["source"], s["destination"]): s["value"] < 40
        for s in samples
        if (s["metric"], s["size_bytes"]) == ("bw", 1 << 22)
    }
    assert slow == {
        ("cn01", "cn02"): False,
        ("cn02", "cn03"): True,
        ("cn03", "cn01"): True,
    }


def test_ring_that_was_recorded_pair_by_pair_is_replayed(tmp_path: Path) -> None:
    text = (DATA / "imb" / "pingpong-2021.11.txt").read_text()
    old = tmp_path / "recorded"
    told = '{"check": "ImbRing", "parameters": {}, "environment": "intelmpi"}'
    write(old / "seatrial.json", told)
    nodes = ["cn01", "cn02", "cn03", "cn04"]
    pairs = zip(nodes, [*nodes[1:], nodes[0]], strict=True)
    output = "".join(f"# pair {one} {other}\n{text}" for one, other in pairs)
    write(old / "rfm_job.out", output)
    job = f"nodes={' '.join(nodes)}\nstart=1.0\nend=7.0\nstatus=0\n"
    write(old / "seatrial.job", job)
    (row,) = replay(tmp_path, only="ImbRing", recorded=old)
    assert row["result"] == "pass", row["fail_reason"]
    assert len(record_of(row)["samples"]) == 4 * (24 + 23)
