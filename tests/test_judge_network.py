"""The judge on machines of known truth: leaf, way, node or link, and no other."""

from dataclasses import replace

import pytest
from criteria_samples import criteria, criterion
from network_samples import Truth, run_of
from sweep_samples import BW_MB_PER_S, LATENCY_US, names

from seatrial.judge.judge import Judgement, judge

BW = criterion("bw_1MiB", 0.9 * BW_MB_PER_S, check="PairSweep")
LATENCY = criterion("latency_8B", LATENCY_US / 0.9, check="PairSweep")
ANSWERED = criterion("pairs_answered", 50.0, check="PairSweep", model="every")
LIMITS = criteria(BW, LATENCY, ANSWERED)
ALIKE = criteria(
    criterion("bw_1MiB", check="PairSweep", tolerance=0.1),
    criterion("latency_8B", check="PairSweep", tolerance=0.1),
    ANSWERED,
)
RAILS = ("mlx5_0", "mlx5_1")
SIX = tuple(f"cn{number}" for number in range(3, 9))
OF_L2 = {("l1", "l2"): 0.7}

MACHINES = {
    "sound": (Truth(8), set()),
    "sound, leafs": (Truth(16, (8, 8)), set()),
    "one slow node": (Truth(8).slow("cn3"), {"cn3"}),
    "6 of 8 slow": (Truth(8).slow(*SIX), {*SIX}),
    "6 of 8 slow by 15 %": (Truth(8).slow(*SIX, factor=0.85), {*SIX}),
    "slow link": (Truth(8, links={("cn2", "cn5"): 0.7}), {"cn2 - cn5"}),
    "two slow links of a node": (
        Truth(8, links={("cn2", "cn5"): 0.7, ("cn2", "cn7"): 0.7}),
        {"cn2 - cn5", "cn2 - cn7"},
    ),
    "slow leaf": (
        Truth(32, (12, 10, 10), uplinks={"l1": 0.7}),
        {"leaf l1"},
    ),
    "slow leaf, and a slow node in another": (
        Truth(32, (12, 10, 10), uplinks={"l1": 0.7}).slow("cn30", factor=0.5),
        {"leaf l1", "cn30"},
    ),
    "slow leaf, and a slow node in it": (
        Truth(32, (12, 10, 10), uplinks={"l1": 0.7}).slow("cn3", factor=0.5),
        {"leaf l1", "cn3"},
    ),
    "all nodes of a leaf": (
        Truth(24, (8, 8, 8)).slow(*names(24)[8:16]),
        {"leaf l2"},
    ),
    "slow way between two leafs of three": (
        Truth(24, (8, 8, 8), ways=OF_L2),
        {"leaf l1 - leaf l2"},
    ),
    "slow way between two leafs of two": (
        Truth(16, (8, 8), ways=OF_L2),
        {"leaf l1 - leaf l2"},
    ),
    "four rounds of a sweep": (
        replace(Truth(16).slow("cn3"), rounds=4, links={("cn4", "cn13"): 0.7}),
        {"cn3", "cn4 - cn13"},
    ),
    "a slow link of three rounds": (
        Truth(16, rounds=3, links={("cn1", "cn16"): 0.7}),
        {"cn1 - cn16"},
    ),
    "slow leaf of two nodes, eight rounds": (
        Truth(16, (2,) * 8, uplinks={"l1": 0.7}, rounds=8),
        {"leaf l1"},
    ),
    "one pair": (Truth(2).slow("cn2"), {"cn1 - cn2"}),
    "three nodes": (Truth(3).slow("cn2"), {"cn2"}),
}


def named(judgement: Judgement) -> set[str]:
    """Return the failing places; of a pair in either direction, the first by name."""
    places = {f.place for f in judgement.findings if f.verdict == "fail"}
    return {
        " - ".join(sorted(place.split(" - "), key=lambda end: (len(end), end)))
        for place in places
    }


@pytest.mark.parametrize("name", MACHINES)
def test_each_fault_is_named_once_and_nothing_else(name: str) -> None:
    truth, expected = MACHINES[name]
    judgement = judge(run_of(truth), LIMITS)
    assert named(judgement) == expected
    assert judgement.convicted == tuple(
        node for node in names(truth.nodes) if node in expected
    )


def test_slow_leaf_of_24_of_64_is_one_finding_a_metric() -> None:
    truth = Truth(64, (24, 20, 20), uplinks={"l1": 0.7}, repeats=5)
    for rules in (LIMITS, ALIKE):
        judgement = judge(run_of(truth), rules)
        failed = [f for f in judgement.findings if f.verdict == "fail"]
        assert sorted((f.place, f.metric) for f in failed) == [
            ("leaf l1", "bw_1MiB"),
            ("leaf l1", "latency_8B"),
        ]
        assert judgement.convicted == ()
        assert {f.kind for f in failed} == {"leaf" if rules is LIMITS else "sameness"}
        assert all("ways to other leafs do not pass" in f.reason for f in failed)


def test_nodes_of_a_bad_leaf_are_undecided_by_the_leaf() -> None:
    truth, _ = MACHINES["all nodes of a leaf"]
    judgement = judge(run_of(truth), LIMITS)
    verdicts = {node.name: node.verdict for node in judgement.nodes}
    own = names(24)[8:16]
    assert {name for name in verdicts if verdicts[name] != "pass"} == {*own}
    assert {verdicts[name] for name in own} == {"undecided"}
    assert judgement.nodes[8].reason.startswith("leaf l2: PairSweep latency_8B: ")


def test_nodes_are_judged_by_the_pairs_that_were_measured() -> None:
    """Missing numbers count against their pairs, not against the nodes."""
    truth = replace(Truth(16).slow("cn3", "cn7"), missing=0.5)
    assert judge(run_of(truth), criteria(BW)).convicted == ("cn3", "cn7")


@pytest.mark.parametrize(
    ("truth", "way", "other"),
    [
        (Truth(8, sending={"cn3": 0.7}), "sending", "receiving"),
        (Truth(8, receiving={"cn3": 0.7}), "receiving", "sending"),
    ],
)
def test_sender_and_receiver_are_told_apart(truth: Truth, way: str, other: str) -> None:
    judgement = judge(run_of(truth), criteria(BW))
    (finding,) = [f for f in judgement.findings if f.verdict == "fail"]
    assert finding.place == "cn3"
    assert f"it is bad when {way}" in finding.reason
    assert other not in finding.reason


def test_slow_rail_names_node_and_rail() -> None:
    truth = Truth(8, rails={("cn3", "mlx5_1"): 0.7}, rail_names=RAILS)
    judgement = judge(run_of(truth), LIMITS)
    assert named(judgement) == {"cn3"}
    for finding in judgement.findings:
        if finding.verdict == "fail":
            assert "it is bad on mlx5_1" in finding.reason


def test_of_one_pair_neither_node_is_convicted() -> None:
    judgement = judge(run_of(Truth(2).slow("cn2")), LIMITS)
    assert judgement.verdict == "fail"
    assert [node.verdict for node in judgement.nodes] == ["undecided", "undecided"]
    assert "its only partner was cn2: the fault may be there, or between them" in (
        judgement.nodes[0].reason
    )
    judgement = judge(run_of(Truth(2)), LIMITS)
    assert judgement.verdict == "pass"


def test_sound_node_without_a_sound_partner_is_not_blamed() -> None:
    """In two rounds cn1 meets cn16 and cn15, which are slow."""
    truth = replace(Truth(16).slow("cn15", "cn16"), rounds=2)
    judgement = judge(run_of(truth), LIMITS)
    assert "cn1" not in judgement.convicted
    verdicts = {node.name: node.verdict for node in judgement.nodes}
    assert verdicts["cn1"] == "undecided"
    assert "each of its partners looks bad too" in judgement.nodes[0].reason


@pytest.mark.parametrize("kept", ["three slow", "six slow"])
def test_sameness_of_pairs_needs_a_majority(kept: str) -> None:
    slow = names(9)[: 3 if kept == "three slow" else 6]
    judgement = judge(run_of(Truth(9).slow(*slow)), ALIKE)
    if kept == "three slow":
        assert judgement.convicted == tuple(slow)
        return
    assert (judgement.verdict, judgement.convicted) == ("undecided", ())
    reasons = {f.reason for f in judgement.findings if f.verdict == "undecided"}
    assert any(reason.startswith("6 of 9 differ: no majority") for reason in reasons)
