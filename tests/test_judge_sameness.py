"""Sameness: nodes and pairs held to the typical one, whatever that is."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from criteria_samples import criterion
from judge_samples import LIMIT, found, judged, make_run, places_run, repeats, sample

from seatrial.judge.judge import Judgement
from seatrial.judge.majority import beside_the_others
from seatrial.model.metrics import flat_name
from seatrial.runs.closed_run import Run

ALIKE = criterion(tolerance=0.1)
ANY = replace(ALIKE, model="any")
SCATTER = (1.0, 1.02, 0.99, 1.01)
LONG = (1.0, 1.02, 0.99, 1.01, 1.03, 0.98, 1.0, 0.99)


def nodes_at(level: float = 80.0, count: int = 8, **others: float) -> dict[str, float]:
    return {f"cn{number:02}": level for number in range(1, count + 1)} | others


def verdicts(judgement: Judgement) -> dict[str, str]:
    return {finding.place: finding.verdict for finding in found(judgement, "sameness")}


def test_the_median_of_the_others_leaves_the_place_itself_out() -> None:
    rng = np.random.default_rng(1)
    levels = rng.normal(size=(9, 4))
    levels[3, 1] = np.nan
    levels[:, 2] = np.round(levels[:, 2])
    levels[2:, 3] = np.nan
    found = beside_the_others(levels)
    for place in range(9):
        for unit in range(3):
            others = np.delete(levels[:, unit], place)
            expected = levels[place, unit] - np.nanmedian(others)
            assert found[place, unit] == pytest.approx(expected, nan_ok=True)
    assert np.isnan(found[:, 3]).all(), "two places have no typical one"


@pytest.mark.parametrize("criterion", [ALIKE, ANY])
def test_nodes_that_are_alike_pass(criterion: object) -> None:
    rule = ALIKE if criterion is ALIKE else ANY
    judgement = judged(places_run(nodes_at(), LONG, nodes=list(nodes_at())), rule)
    assert judgement.verdict == "pass"
    assert set(verdicts(judgement).values()) == {"pass"}
    (finding, *_) = found(judgement, "sameness")
    assert (finding.unit, finding.limit) == ("1", 0.9)
    assert finding.value == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("level", [1e-3, 1.0, 1e6])
def test_one_slow_node_is_convicted_at_any_level(level: float) -> None:
    places = nodes_at(level, cn05=0.7 * level)
    judgement = judged(places_run(places, LONG, nodes=list(places)), ALIKE)
    assert judgement.verdict == "fail"
    assert judgement.convicted == judgement.suspects == ("cn05",)
    (finding,) = [f for f in found(judgement, "sameness") if f.verdict == "fail"]
    assert finding.value == pytest.approx(0.7, abs=0.01)
    assert list(verdicts(judgement).values()).count("pass") == 7


def test_what_befalls_all_nodes_at_once_is_no_difference() -> None:
    """A machine that gets slower as a whole has nodes that are alike."""
    drift = tuple(1.0 - 0.08 * number for number in range(8))
    places = nodes_at()
    judgement = judged(places_run(places, drift, nodes=list(places)), ALIKE)
    assert judgement.verdict == "pass"


def test_a_node_at_the_tolerance_is_undecided() -> None:
    places = nodes_at(cn05=72.02)
    judgement = judged(places_run(places, LONG, nodes=list(places)), ALIKE)
    assert judgement.verdict == "undecided"
    assert verdicts(judgement)["cn05"] == "undecided"


def test_a_better_node_is_no_fault() -> None:
    places = nodes_at(cn05=120.0)
    judgement = judged(places_run(places, LONG, nodes=list(places)), ALIKE)
    assert judgement.verdict == "pass"


def test_two_nodes_have_no_typical_one() -> None:
    places = nodes_at(count=2)
    judgement = judged(places_run(places, LONG, nodes=list(places)), ALIKE)
    assert judgement.verdict == "undecided"
    (finding, _) = found(judgement, "sameness")
    assert finding.reason == "sameness takes at least 3 places"


def test_latency_is_worse_when_higher() -> None:
    low = criterion("latency_8B", tolerance=0.1)
    rows = [
        sample(case, (9.0 if node == "cn02" else 6.0) + 0.1 * number, node=node)
        for number, case in enumerate(repeats(5))
        for node in ("cn01", "cn02", "cn03", "cn04")
    ]
    rows = [
        replace(row, metric="latency", size_bytes=8, unit="us", direction="lower")
        for row in rows
    ]
    cases = [replace(case, declared=("latency_8B",)) for case in repeats(5)]
    rows = [
        replace(row, value=row.value * (1 + 0.002 * (index % 3)))
        for index, row in enumerate(rows)
    ]
    judgement = judged(make_run(cases, rows), low)
    assert judgement.convicted == ("cn02",)
    (finding, *_) = found(judgement, "sameness")
    assert finding.limit == pytest.approx(1 / 0.9)


def two_metrics(first: float, second: float) -> Run:
    """Build a run of 40 nodes with two metrics, in which cn07 is off by factors."""
    nodes = [f"cn{number:02}" for number in range(1, 41)]
    rng = np.random.default_rng(7)
    cases = [replace(case, declared=("bw_4MiB", "bw_64KiB")) for case in repeats(8)]
    rows = []
    for case in cases:
        for node in nodes:
            for size, off in ((4 << 20, first), (64 << 10, second)):
                level = 80.0 * (off if node == "cn07" else 1.0)
                noise = float(np.exp(rng.normal(0.0, 0.01)))
                rows.append(sample(case, level * noise, node=node, size=size))
    return make_run(cases, rows, nodes=nodes)


def test_suspicion_is_of_a_node_conviction_of_a_metric() -> None:
    both = (ALIKE, criterion("bw_64KiB", tolerance=0.1))
    judgement = judged(two_metrics(0.7, 1.0), *both)
    failed = [f for f in judgement.findings if f.verdict == "fail"]
    assert [(f.metric, f.place) for f in failed] == [("bw_4MiB", "cn07")]
    judgement = judged(two_metrics(0.7, 0.8), *both)
    failed = [f for f in judgement.findings if f.verdict == "fail"]
    assert {(f.metric, f.place) for f in failed} == {
        ("bw_4MiB", "cn07"),
        ("bw_64KiB", "cn07"),
    }
    assert judgement.convicted == ("cn07",)


def test_pairs_are_held_to_the_typical_pair_and_a_slow_link_is_named() -> None:
    names = ["cn01", "cn02", "cn03", "cn04", "cn05"]
    pairs = {
        f"{a} {b}": 30.0 if (a, b) == ("cn02", "cn04") else 80.0
        for index, a in enumerate(names)
        for b in names[index + 1 :]
    }
    judgement = judged(places_run(pairs, LONG, nodes=names), ALIKE)
    assert judgement.verdict == "fail"
    failed = [f.place for f in judgement.findings if f.verdict == "fail"]
    assert failed == ["cn02 - cn04"]
    assert judgement.convicted == ()
    assert judgement.suspects == ("cn02 - cn04",)


def test_a_slow_node_is_named_once_for_all_its_pairs() -> None:
    names = ["cn01", "cn02", "cn03", "cn04", "cn05"]
    pairs = {
        f"{a} {b}": 30.0 if "cn04" in (a, b) else 80.0
        for index, a in enumerate(names)
        for b in names[index + 1 :]
    }
    judgement = judged(places_run(pairs, LONG, nodes=names), ALIKE)
    failed = [f for f in judgement.findings if f.verdict == "fail"]
    assert [f.place for f in failed] == ["cn04"]
    assert failed[0].reason.endswith("4 of its 4 pairs do not pass")
    assert judgement.convicted == judgement.suspects == ("cn04",)


def test_four_allocations_convict_under_students_t_only() -> None:
    places = nodes_at(cn05=40.0)
    run = places_run(places, SCATTER, nodes=list(places))
    assert judged(run, ALIKE).verdict == "fail"
    assert judged(run, ANY).verdict == "undecided"


def test_a_suspicion_that_fell_away_hides_no_bad_pair() -> None:
    """A node looks bad in the first allocation only; one of its links is bad in all."""
    names = ["cn01", "cn02", "cn03", "cn04", "cn05"]
    pairs = {
        f"{a} {b}": 30.0 if (a, b) == ("cn02", "cn04") else 80.0
        for index, a in enumerate(names)
        for b in names[index + 1 :]
    }
    run = places_run(pairs, LONG * 2, nodes=names)
    first = pl.col("session") == "pairs-1"
    own = (pl.col("source") == "cn02") | (pl.col("destination") == "cn02")
    slow = pl.when(first & own).then(20.0).otherwise("value")
    run = replace(run, measurements=run.measurements.with_columns(value=slow))
    for model in ("any", "lognormal"):
        judgement = judged(run, replace(LIMIT, model=model))
        bad = [(f.place, f.verdict) for f in judgement.findings if f.verdict != "pass"]
        assert bad == [("cn02 - cn04", "fail")]
        assert judgement.convicted == ()


def test_a_node_that_is_bad_in_one_metric_of_many_is_convicted() -> None:
    """Its other ranks must not wash it clean."""
    nodes = [f"cn{number:02}" for number in range(1, 9)]
    sizes = [1 << power for power in range(12)]
    rng = np.random.default_rng(3)
    flats = tuple(flat_name("bw", size) for size in sizes)
    cases = [replace(case, declared=flats) for case in repeats(8)]
    rows = [
        sample(
            case,
            80.0
            * (0.6 if (node, size) == ("cn03", 8) else 1.0)
            * float(np.exp(rng.normal(0.0, 0.01))),
            node=node,
            size=size,
        )
        for case in cases
        for node in nodes
        for size in sizes
    ]
    rules = [criterion(flat, tolerance=0.1) for flat in flats]
    judgement = judged(make_run(cases, rows, nodes=nodes), *rules)
    failed = [(f.place, f.metric) for f in judgement.findings if f.verdict == "fail"]
    assert failed == [("cn03", "bw_8B")]


def test_a_bad_pair_beside_a_bad_node_is_convicted_too() -> None:
    names = [f"cn{number:02}" for number in range(1, 17)]
    slow = {("cn05", "cn08")}
    pairs = {
        f"{a} {b}": 16.0 if (a, b) in slow else 30.0 if "cn03" in (a, b) else 80.0
        for index, a in enumerate(names)
        for b in names[index + 1 :]
    }
    judgement = judged(places_run(pairs, LONG, nodes=names), ALIKE)
    failed = {f.place for f in judgement.findings if f.verdict == "fail"}
    assert failed == {"cn03", "cn05 - cn08"}


def test_a_node_that_ranks_low_is_suspected_before_it_misses_the_tolerance() -> None:
    """The first 4 of 16 allocations find it only 7 % off, of 10 % tolerated."""
    names = [f"cn{number:02}" for number in range(1, 31)]
    run = places_run(nodes_at(count=30), LONG * 2, nodes=names)
    first = pl.col("session").is_in([f"pairs-{number}" for number in range(1, 5)])
    off = pl.when(first).then(0.93).otherwise(0.7)
    factor = pl.when(pl.col("node") == "cn05").then(off).otherwise(1.0)
    rows = run.measurements.with_columns(value=pl.col("value") * factor)
    altered = replace(run, measurements=rows)
    for model in ("any", "lognormal"):
        judgement = judged(altered, replace(ALIKE, model=model))
        assert judgement.verdict == "fail"
        assert judgement.convicted == ("cn05",)
