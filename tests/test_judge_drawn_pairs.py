"""The judge on sweeps that drew their pairs, others in each allocation."""

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from network_samples import Truth, run_of
from sweep_samples import SWEEP, names

from seatrial.judge.judge import judge
from seatrial.runs.closed_run import Run

NODES = 24
KEPT, OWN = 4, 4
"""Rounds that are the same in each allocation, and those that differ."""


def matching(seed: int) -> set[frozenset[str]]:
    """Pair all nodes at random."""
    order = np.random.default_rng(seed).permutation(names(NODES)).tolist()
    return {frozenset(pair) for pair in zip(order[::2], order[1::2], strict=True)}


def drawn(truth: Truth, *, draws: bool = True, gone: Collection[str] = ()) -> Run:
    """Keep the pairs that each repeat drew; `gone` nodes are left out of the first."""
    run = run_of(truth)
    same = set[frozenset[str]]().union(*map(matching, range(KEPT)))
    of_repeat = {
        case.repeat: same.union(*(matching(100 * case.repeat + n) for n in range(OWN)))
        for case in run.cases
    }
    columns = pl.col("source", "destination").cast(pl.String)
    ends = run.measurements.select("repeat", columns).collect().rows()
    kept = [
        a is None
        or (
            frozenset((a, b)) in of_repeat[repeat]
            and not (repeat == 1 and {a, b} & {*gone})
        )
        for repeat, a, b in ends
    ]
    cases = tuple(replace(case, draws_pairs=draws) for case in run.cases)
    return replace(run, cases=cases, measurements=run.measurements.filter(kept))


def test_a_pair_of_some_allocations_is_no_missing_number() -> None:
    judgement = judge(drawn(Truth(NODES)), SWEEP)
    assert judgement.verdict == "pass"
    latencies = [f for f in judgement.findings if f.metric.startswith("latency")]
    same = set[frozenset[str]]().union(*map(matching, range(KEPT)))
    assert {frozenset(f.place.split(" - ")) for f in latencies} >= same
    assert len(latencies) == len(same) + NODES
    undrawn = judge(drawn(Truth(NODES), draws=False), SWEEP)
    assert undrawn.verdict != "pass"


def test_pairs_differ_without_a_node() -> None:
    assert judge(drawn(Truth(NODES), gone=["cn7"]), SWEEP).verdict == "pass"


@pytest.mark.parametrize("slow", [["cn3"], ["cn3", "cn11", "cn20"]])
def test_nodes_are_judged_by_all_their_pairs(slow: list[str]) -> None:
    judgement = judge(drawn(Truth(NODES).slow(*slow)), SWEEP)
    assert judgement.verdict == "fail"
    assert {f.place for f in judgement.findings if f.verdict == "fail"} == {*slow}


def test_nodes_that_fail_without_known_leafs_are_doubtful() -> None:
    """The sample's machine without leafs, and with a leaf of each node."""
    slow = Truth(NODES).slow("cn3")
    (note,) = [one for one in judge(drawn(slow), SWEEP).notes if "may be sound" in one]
    assert note.startswith("PairSweep: cn3 may be sound. Only some pairs were measured")
    assert "seatrial fabric discover --keep" in note
    known = drawn(Truth(NODES, (12, 12)).slow("cn3"))
    notes = judge(known, SWEEP).notes
    assert not any("may be sound" in one for one in notes)
    whole = judge(drawn(slow, draws=False), SWEEP).notes
    assert not any("may be sound" in one for one in whole)


def test_an_allocation_without_a_number_bars_a_pass() -> None:
    run = drawn(Truth(NODES))
    first, *others = run.cases
    failed = replace(first, result="fail", phase="sanity", draws_pairs=False)
    again = replace(first, attempt=2, job_id="999")
    rows = run.measurements.collect()
    mine = pl.col("repeat") == first.repeat
    rows = rows.with_columns(
        attempt=pl.when(mine).then(2).otherwise("attempt").cast(rows["attempt"].dtype),
        job_id=pl.when(mine)
        .then(pl.lit("999"))
        .otherwise(pl.col("job_id").cast(pl.String))
        .cast(rows["job_id"].dtype),
    )
    run = replace(run, cases=(failed, again, *others), measurements=rows.lazy())
    judgement = judge(run, SWEEP)
    assert judgement.verdict == "undecided"
    assert judgement.convicted == ()
