"""The judge on sweeps over all pairs: which node is named, and how much is said."""

from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from criteria_samples import criteria
from judge_samples import LIMIT, places_run
from sweep_samples import SWEEP, Pair, names, sample_sweep

from seatrial.judge.findings import Finding, Judgement
from seatrial.judge.judge import judge
from seatrial.judge.place_findings import MAX_FAULTS, MAX_PASSING, _pairs
from seatrial.runs.closed_run import Run

RAILS = ("mlx5_0", "mlx5_1")


def judged(count: int, **faults: Any) -> Judgement:
    run = sample_sweep(names(count), **faults)
    return judge(run, SWEEP)


def failed(judgement: Judgement, kind: str) -> list[Finding]:
    return [
        finding
        for finding in judgement.findings
        if (finding.kind, finding.verdict) == (kind, "fail")
    ]


def named(judgement: Judgement) -> list[tuple[str, str]]:
    """Return metric and node of every failing finding on a node."""
    return sorted((found.metric, found.place) for found in failed(judgement, "node"))


@pytest.mark.parametrize("count", [4, 5, 8, 64])
def test_sound_sweep_passes(count: int) -> None:
    judgement = judged(count)
    assert judgement.verdict == "pass"
    assert {node.verdict for node in judgement.nodes} == {"pass"}


@pytest.mark.parametrize("count", [4, 5, 8, 64])
@pytest.mark.parametrize("slow", [("cn3",), ("cn1", "cn4")])
def test_slow_nodes_are_named_once_per_metric(count: int, slow: Pair) -> None:
    judgement = judged(count, slow=slow)
    assert judgement.convicted == slow
    assert named(judgement) == [
        (metric, node) for metric in ("bw_1MiB", "latency_8B") for node in slow
    ]
    assert failed(judgement, "limit") == [], "their pairs are not named again"
    for finding in failed(judgement, "node"):
        pairs = count - 1 if finding.metric == "latency_8B" else 2 * (count - 1)
        assert finding.reason.endswith(f"{pairs} of its {pairs} pairs do not pass")


@pytest.mark.parametrize("count", [4, 5, 8, 64])
def test_slow_pair_fails_and_names_no_node(count: int) -> None:
    judgement = judged(count, slow_pairs=[("cn2", "cn4")])
    assert (judgement.verdict, judgement.convicted) == ("fail", ())
    assert named(judgement) == []
    (latency,) = [f for f in failed(judgement, "limit") if f.metric == "latency_8B"]
    assert set(latency.place.split(" - ")) == {"cn2", "cn4"}
    places = [f.place for f in failed(judgement, "limit") if f.metric == "bw_1MiB"]
    assert sorted(places) == ["cn2 - cn4", "cn4 - cn2"]


@pytest.mark.parametrize("count", [4, 5, 8, 64])
def test_dead_node_is_named_by_the_pairs_it_did_not_answer(count: int) -> None:
    judgement = judged(count, dead=["cn2"])
    assert judgement.convicted == ("cn2",)
    (finding,) = failed(judgement, "limit")
    assert (finding.metric, finding.place, finding.value) == (
        "pairs_answered",
        "cn2",
        0.0,
    )
    assert named(judgement) == []


def test_hung_pair_names_no_node() -> None:
    judgement = judged(4, hung=[("cn1", "cn2")])
    assert (judgement.verdict, judgement.convicted) == ("pass", ())
    lost = [f.value for f in judgement.findings if f.metric == "pairs_answered"]
    assert [round(value or 0.0) for value in lost] == [67, 67, 100, 100]


@pytest.mark.parametrize("count", [4, 5, 8])
def test_node_that_is_slow_in_one_direction_is_named(count: int) -> None:
    judgement = judged(count, slow_to_send=["cn3"])
    assert judgement.convicted == ("cn3",)
    assert named(judgement) == [("bw_1MiB", "cn3")]
    (finding,) = failed(judgement, "node")
    assert "; it is bad when sending; " in finding.reason
    assert judgement.nodes[2].reason == f"PairSweep bw_1MiB: {finding.reason}"


@pytest.mark.parametrize("count", [4, 8])
def test_node_with_one_slow_rail_is_named_with_the_rail(count: int) -> None:
    judgement = judged(count, rails=RAILS, slow_rails=[("cn3", "mlx5_1")])
    assert judgement.convicted == ("cn3",)
    assert named(judgement) == [("bw_1MiB", "cn3"), ("latency_8B", "cn3")]
    for finding in failed(judgement, "node"):
        assert "; it is bad on mlx5_1; " in finding.reason
    assert failed(judgement, "limit") == []


def test_one_rail_alone_is_no_part_of_a_place() -> None:
    judgement = judged(4, rails=RAILS[:1], slow=["cn3"])
    assert judgement.convicted == ("cn3",)
    assert "mlx5_0" not in str(judgement)


def test_repeats_are_samples_of_a_node() -> None:
    judgement = judged(5, slow=["cn3"], repeats=6)
    assert named(judgement) == [("bw_1MiB", "cn3"), ("latency_8B", "cn3")]
    assert {finding.n for finding in failed(judgement, "node")} == {6}


def turned(run: Run, rows: pl.Expr) -> Run:
    """Let the other node of a pair start where latencies are of these rows."""
    where = rows & (pl.col("metric") == "latency")
    source = pl.when(where).then("destination").otherwise("source")
    destination = pl.when(where).then("source").otherwise("destination")
    changed = run.measurements.with_columns(source=source, destination=destination)
    return replace(run, measurements=changed)


def test_latency_has_no_direction_whichever_node_starts() -> None:
    run = turned(sample_sweep(names(4), repeats=4), pl.col("session") == "pairs-2")
    judgement = judge(run, SWEEP)
    found = passing(judgement, "latency_8B")
    assert [(finding.place, finding.n) for finding in found] == [
        ("cn1 - cn2", 4),
        ("cn1 - cn3", 4),
        ("cn1 - cn4", 4),
        ("cn2 - cn3", 4),
        ("cn2 - cn4", 4),
        ("cn3 - cn4", 4),
    ]
    assert len(passing(judgement, "bw_1MiB")) == 12


def test_another_node_may_start_in_another_run() -> None:
    first, other = (sample_sweep(names(4), seed=seed) for seed in (1, 7))
    other = turned(other, pl.lit(value=True))
    manifest = other.manifest | {"run": "other", "started": "2027-01-01T00:00:00Z"}
    judgement = judge(first, SWEEP, [replace(other, manifest=manifest)])
    found = passing(judgement, "latency_8B")
    assert [finding.n for finding in found] == [8] * 6


def passing(judgement: Judgement, metric: str) -> list[Finding]:
    return [
        finding
        for finding in judgement.findings
        if (finding.kind, finding.metric, finding.verdict) == ("limit", metric, "pass")
    ]


def test_many_passing_pairs_share_a_finding() -> None:
    judgement = judged(12)
    assert 12 * 11 // 2 == 66 > MAX_PASSING
    (latency,) = passing(judgement, "latency_8B")
    assert (latency.place, latency.n, latency.limit) == ("", 264, 2.5)
    assert 1.8 <= (latency.value or 0) <= 2.0
    assert latency.reason.startswith("all 66 pairs pass; the worst is cn")
    (bw,) = passing(judgement, "bw_1MiB")
    assert bw.reason.startswith("all 132 pairs, each direction counted pass; ")
    assert len(passing(judgement, "pairs_answered")) == 12


def test_few_passing_pairs_keep_their_findings() -> None:
    judgement = judged(8)
    assert len(passing(judgement, "latency_8B")) == 28
    assert len(passing(judgement, "bw_1MiB")) == 56


def test_pairs_of_a_bad_node_are_not_counted_among_those_that_pass() -> None:
    judgement = judged(13, slow=["cn13"])
    (shared,) = passing(judgement, "latency_8B")
    assert shared.reason.startswith("all 66 pairs pass; the worst is cn")
    assert named(judgement) == [("bw_1MiB", "cn13"), ("latency_8B", "cn13")]


def test_of_very_many_failing_places_the_worst_keep_their_findings() -> None:
    levels = {f"cn{number:04}": 40.0 for number in range(MAX_FAULTS + 225)}
    levels |= {f"cn{number:04}": 40.0 - number * 0.01 for number in range(30)}
    run = places_run(levels, (1.0, 1.02, 0.99, 1.01, 1.0), nodes=list(levels))
    judgement = judge(run, criteria(LIMIT))
    found = failed(judgement, "limit")
    assert len(found) == MAX_FAULTS + 1
    (shared,) = [finding for finding in found if not finding.place]
    assert shared.n == 225 * 5
    assert shared.reason.startswith(
        "225 more nodes, less bad than those with findings of their own; the worst: cn"
    )
    assert "cn0029" in {finding.place for finding in found}
    assert judgement.convicted == tuple(levels), "all of them, findings or not"


def test_every_node_bad_means_to_look_at_what_they_share() -> None:
    nodes = names(12)
    judgement = judged(12, slow=nodes)
    assert judgement.convicted == tuple(nodes)
    assert "every node fails" in judgement.nodes[0].reason


def test_of_one_pair_either_node_may_be_the_cause() -> None:
    scatter = (1.0, 1.02, 0.99, 1.01)
    run = places_run({"cn01 cn02": 40.0}, scatter, nodes=["cn01", "cn02"])
    judgement = judge(run, criteria(LIMIT))
    assert (judgement.verdict, judgement.convicted) == ("fail", ())
    assert [f.place for f in failed(judgement, "limit")] == ["cn01 - cn02"]
    chain = {"cn01 cn02": 40.0, "cn02 cn03": 80.0}
    run = places_run(chain, scatter, nodes=["cn01", "cn02", "cn03"])
    judgement = judge(run, criteria(LIMIT))
    assert judgement.convicted == ()
    assert [f.place for f in failed(judgement, "limit")] == ["cn01 - cn02"]
    assert "its only partner was cn02: the fault may be there" in (
        judgement.nodes[0].reason
    )


def test_large_sweep_has_few_findings() -> None:
    judgement = judged(100, slow=["cn77"])
    assert judgement.convicted == ("cn77",)
    assert len(judgement.findings) < 700


def test_a_node_that_fails_while_its_pairs_pass_is_no_contradiction() -> None:
    assert _pairs(2, 6) == "; 2 of its 6 pairs do not pass"
    words = _pairs(0, 6)
    assert words.startswith("; each of its 6 pairs passes when judged alone, but ")
    assert _pairs(0, 1).startswith("; its only pair passes when judged alone, but ")
