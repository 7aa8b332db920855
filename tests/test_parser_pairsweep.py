"""Sweeps of the lab read whole; every cut and every contradiction in them refused."""

import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from row_damage import with_values, without_key, without_line

from seatrial.parsers.errors import ParseError
from seatrial.parsers.pairsweep import PairSweep, parse_pairsweep

DATA = Path(__file__).parent / "data" / "pairsweep"
NODES = ["cn01", "cn02", "cn03", "cn04"]
PAIRS = set(combinations(NODES, 2))


def read(name: str) -> str:
    return (DATA / f"openmpi-4.1.4-{name}.jsonl").read_text()


CLEAN, SLOW, LOST = read("np4"), read("slow-cn03"), read("lost-cn03")
HUNG = {
    "type": "pair",
    "mode": "sweep",
    "status": "hung",
    "source": "cn01",
    "destination": "cn02",
    "rail": 0,
    "round": 2,
    "reason": "latency: no end within 60 s",
}
LEFT_OUT = {
    "type": "event",
    "event": "left_out",
    "node": "cn03",
    "stage": "after",
    "reason": "start: no end in time",
    "time": 1795271999.5,
}


def parse(text: str, nodes: list[str] = NODES) -> PairSweep:
    """Read a sweep that accounts for every pair of the nodes."""
    sweep = parse_pairsweep(text)
    sweep.verify_complete(nodes)
    return sweep


def with_row(text: str, line: int, row: dict[str, Any]) -> str:
    """Put a row in front of a line; line 1 is the first."""
    lines = text.splitlines()
    lines.insert(line - 1, json.dumps(row))
    return "\n".join(lines) + "\n"


def row_of(text: str, line: int) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(text.splitlines()[line - 1])
    return row


def with_hung(text: str) -> str:
    """Change the last pair lost in mid-sweep to one that hangs in a new start."""
    lines = text.splitlines()
    last = row_of(text, len(lines) - 1)
    pair = {name: last[name] for name in ("source", "destination")}
    lines[-2:] = [
        json.dumps(HUNG | pair),
        json.dumps(row_of(text, 5) | {"pairs": 0, "resumed": 4}),
        json.dumps(row_of(text, len(lines)) | {"measured": 0}),
    ]
    return "\n".join(lines) + "\n"


def test_a_clean_sweep_is_read_whole() -> None:
    sweep = parse(CLEAN)
    (run,) = sweep.runs
    assert (run.np, run.nodes, run.pairs, run.rail_names) == (4, 4, 6, ("host0",))
    assert {row.key[:2] for row in sweep.pairs} == PAIRS
    assert {row.hca for row in sweep.pairs} == {"host0"}
    assert Counter(row.round for row in sweep.pairs) == {1: 2, 2: 2, 3: 2}
    assert (sweep.hung, sweep.left_out) == ((), ())
    assert sweep.ended
    row = sweep.pairs[0]
    said = row_of(CLEAN, 2)
    assert row.latency_p50_us == said["latency_p50_us"]
    assert row.bw_back_mb_per_s == said["bw_back_mb_per_s"]
    assert sweep.answered(NODES) == dict.fromkeys(NODES, (3, 3))


def test_pairs_of_a_slow_node_were_tested_again() -> None:
    sweep = parse(SLOW)
    assert {key[:2] for key in sweep.quiet} == {p for p in PAIRS if "cn03" in p}
    for key, row in sweep.quiet.items():
        assert row.key == key
        assert row.bw_mb_per_s < 25


def test_a_lost_node_and_the_second_start() -> None:
    sweep = parse(LOST)
    assert [run.np for run in sweep.runs] == [4, 3]
    assert {row.key[:2] for row in sweep.pairs} >= set(
        combinations(["cn01", "cn02", "cn04"], 2)
    )
    (event,) = sweep.left_out
    assert (event.node, event.stage) == ("cn03", "sweep")
    assert sweep.answered(NODES) == {
        "cn01": (2, 2),
        "cn02": (2, 2),
        "cn03": (0, 3),
        "cn04": (2, 2),
    }


def test_a_pair_that_hangs_counts_for_both_nodes() -> None:
    text = with_hung(LOST)
    sweep = parse(text)
    (hung,) = sweep.hung
    counts = sweep.answered(NODES)
    for node in ("cn01", "cn02", "cn04"):
        lost = node in (hung.source, hung.destination)
        assert counts[node] == (2 - lost, 2)
    assert counts["cn03"] == (0, 3)


def test_a_pair_hangs_again_after_its_first_time_and_once() -> None:
    sweep = parse(CLEAN)
    pair = next(row for row in sweep.pairs if row.key not in sweep.quiet)
    names = {"source": pair.source, "destination": pair.destination}
    again = HUNG | names | {"mode": "quiet"}
    with pytest.raises(ParseError, match="tested again before the first time"):
        parse_pairsweep(with_row(CLEAN, 2, again))
    end = len(CLEAN.splitlines())
    once = with_row(CLEAN, end + 1, again)
    assert parse(once).answered(NODES)[pair.source] == (2, 3)
    with pytest.raises(ParseError, match="tested again twice"):
        parse_pairsweep(with_row(once, end + 1, again))


def test_a_node_that_died_afterwards_has_answered_nothing() -> None:
    sweep = parse(with_row(CLEAN, len(CLEAN.splitlines()) + 1, LEFT_OUT))
    assert len(sweep.pairs) == 6
    assert sweep.answered(NODES)["cn03"] == (0, 3)
    assert sweep.answered(NODES)["cn01"] == (2, 2)


def test_a_sweep_of_some_rounds_has_their_pairs() -> None:
    rows = [json.loads(line) for line in CLEAN.splitlines()]
    swept = [row for row in rows if row.get("mode") != "quiet"]
    kept = [row for row in swept if row.get("round", 0) <= 2]

    def some(rows: list[dict[str, Any]]) -> PairSweep:
        rows[0]["pairs"] = rows[-1]["measured"] = len(rows) - 2
        rows[-1]["retested"] = 0
        return parse_pairsweep("".join(f"{json.dumps(row)}\n" for row in rows))

    sweep = some(kept)
    sweep.verify_complete(NODES, 2)
    assert sweep.answered(NODES, 2) == dict.fromkeys(NODES, (2, 2))
    with pytest.raises(ParseError, match="pairs are missing"):
        sweep.verify_complete(NODES)
    with pytest.raises(ParseError, match="3 pairs of 4 nodes; expected 4 or more"):
        some([*kept[:1], *kept[2:]]).verify_complete(NODES, 2)


def test_of_two_nodes_one_is_left_out() -> None:
    before = json.dumps(LEFT_OUT | {"node": "cn02", "stage": "start"}) + "\n"
    sweep = parse(before, ["cn01", "cn02"])
    assert sweep.answered(["cn01", "cn02"]) == {"cn02": (0, 1)}
    amid = read("np2").splitlines()[0] + "\n" + before
    assert parse(amid, ["cn01", "cn02"]).answered(["cn01", "cn02"]) == {"cn02": (0, 1)}


@pytest.mark.parametrize("text", [CLEAN, SLOW, LOST, with_hung(LOST)])
def test_every_cut_is_refused(text: str) -> None:
    lines = text.splitlines(keepends=True)
    for count in range(len(lines)):
        with pytest.raises(ParseError):
            parse("".join(lines[:count]))
        with pytest.raises(ParseError):
            parse("".join(lines[:count]) + lines[count][:-1])
        with pytest.raises(ParseError):
            parse("".join(lines[:count]) + lines[count][:40] + "\n")


@pytest.mark.parametrize("text", [CLEAN, SLOW, LOST, with_hung(LOST)])
def test_every_missing_row_is_noticed(text: str) -> None:
    """Those of a lost node apart: nobody knows which pairs it had measured."""
    for line in range(1, len(text.splitlines()) + 1):
        row = row_of(text, line)
        if text is CLEAN or text is SLOW or "cn03" not in row.values():
            with pytest.raises(ParseError):
                parse(without_line(text, line))


@pytest.mark.parametrize("text", [CLEAN, SLOW, LOST, with_hung(LOST)])
def test_every_row_twice_is_refused(text: str) -> None:
    lines = text.splitlines(keepends=True)
    for i, line in enumerate(lines):
        if json.loads(line)["type"] == "run":
            continue  # a start that came to nothing
        with pytest.raises(ParseError):
            parse("".join(lines[:i]) + line + "".join(lines[i:]))


@pytest.mark.parametrize("line", [1, 2, 8, 11])
def test_every_key_is_needed_and_no_other(line: int) -> None:
    for key in row_of(SLOW, line):
        with pytest.raises(ParseError):
            parse(without_key(SLOW, line, key))
    with pytest.raises(ParseError, match="unknown keys: colour"):
        parse(with_values(SLOW, line, colour="red"))


@pytest.mark.parametrize(
    ("line", "values", "reason"),
    [
        (1, {"program": "halo2d"}, "program: 'halo2d' is none of"),
        (1, {"pairs": 7}, "line 11: pairs: 7, found 6 rows"),
        (1, {"rails": None}, "line 2: rail 0 is 'host0', of rails"),
        (1, {"rails": "host1"}, "line 2: rail 0 is 'host0', of rails"),
        (1, {"rails": "host0,host1"}, "6 pairs are missing"),
        (2, {"type": "trio"}, "line 2: a row of type 'trio'"),
        (2, {"status": "maybe"}, "status: 'maybe' is none of"),
        (2, {"mode": "loud"}, "mode: 'loud' is none of"),
        (2, {"mode": "quiet"}, "were tested again before the first time"),
        (2, {"destination": "cn01"}, "a node with itself"),
        (2, {"destination": "cn09"}, "cn09 is none of the 4 nodes"),
        (2, {"rail": 1}, "rail 1 is 'host0', of rails"),
        (2, {"round": 0}, "rounds and pairs begin with 1"),
        (2, {"latency_p50_us": 0}, "latencies are out of order"),
        (2, {"latency_p99_us": 1e9}, "latencies are out of order"),
        (2, {"latency_n": 0}, "no samples"),
        (2, {"bw_mb_per_s": 0.0}, "a bandwidth is not positive"),
        (2, {"bw_back_mb_per_s": None}, "None is not of type float"),
        (2, {"bw_mb_per_s": -1.0}, "-1.0 is not a number of at least 0"),
        (2, {"bw_mb_per_s": float("nan")}, "not a JSON row: NaN is not a number"),
        (2, {"validation": "fail"}, "between cn01 and cn04 failed validation"),
        (8, {"source": "cn01", "destination": "cn03"}, "tested again twice"),
        (11, {"measured": 5}, "measured: 5, found 6 rows"),
        (11, {"retested": 4}, "retested: 4, found 3 rows"),
    ],
)
def test_contradictions_are_refused(
    line: int, values: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ParseError) as caught:
        parse(with_values(SLOW, line, **values))
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("line", "row", "reason"),
    [
        (8, HUNG, "line 8: cn01 and cn02, rail 0: a second time"),
        (12, row_of(SLOW, 2), "a pair that belongs to no run"),
        (12, row_of(SLOW, 11), "the end of no run"),
        (12, row_of(SLOW, 1), "line 12: the last start of pairsweep has no end"),
        (4, LEFT_OUT, "a pair that belongs to no run"),
        (2, row_of(SLOW, 1) | {"resumed": 1}, "line 2: resumed: 1, found 0 pairs"),
    ],
)
def test_rows_out_of_place_are_refused(
    line: int, row: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ParseError) as caught:
        parse(with_row(SLOW, line, row))
    assert reason in str(caught.value)


def test_settings_never_change() -> None:
    second = 1 + next(
        i
        for i, line in enumerate(LOST.splitlines())
        if i and json.loads(line)["type"] == "run"
    )
    for name, value in {
        "mpi": "another",
        "seed": 2,
        "bandwidth_bytes": 4096,
        "iterations": 7,
        "rail_variable": None,
    }.items():
        with pytest.raises(ParseError, match=f"line {second}: {name}: "):
            parse(with_values(LOST, second, **{name: value}))


def test_a_delivered_node_that_is_nowhere_is_noticed() -> None:
    with pytest.raises(ParseError, match="4 pairs are missing, the first is cn01 cn05"):
        parse(CLEAN, [*NODES, "cn05"])


@pytest.mark.parametrize("text", ["", "\n", "pairsweep\n", "[]\n", "{}\n"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse_pairsweep(text)
