"""Leafs that failing pairs share, and nodes behind a bad up-link."""

from itertools import product

from network_samples import Truth, run_of
from sweep_samples import SWEEP, names

from seatrial.judge.judge import judge

LEAFS = (8, 8, 8)
OWN = names(24)[:8]


def test_a_bad_up_link_names_its_leaf_as_worth_a_look() -> None:
    """It carries two destinations of each leaf: slow pairs of all nodes of a leaf."""
    ways = product(OWN, ["cn10", "cn18"])
    truth = Truth(24, LEAFS, links=dict.fromkeys(ways, 0.5))
    judgement = judge(run_of(truth), SWEEP)
    assert judgement.verdict == "fail"
    assert judgement.convicted == ()
    assert "leaf l1" in judgement.suspects
    assert not {"leaf l2", "leaf l3"} & {*judgement.suspects}
    (note,) = [note for note in judgement.notes if "up-links" in note]
    assert note == (
        "leaf l1: 32 of its 256 pairs with other leafs fail, more than chance "
        "explains: look at its up-links"
    )


def test_a_node_that_is_good_on_its_leaf_is_not_convicted() -> None:
    """All traffic to it from other leafs takes the bad up-link."""
    links = {("cn3", other): 0.5 for other in names(24)[4:]}
    truth = Truth(24, (4,) * 6, links=links)
    judgement = judge(run_of(truth), SWEEP)
    assert judgement.verdict == "fail"
    assert judgement.convicted == ()
    assert "leaf l1" in judgement.suspects
    reasons = {f.reason for f in judgement.findings if f.place == "cn3"}
    assert any("its pairs on its own leaf are good" in reason for reason in reasons)


def test_single_slow_pairs_name_no_leaf() -> None:
    links = {("cn1", "cn9"): 0.5, ("cn12", "cn20"): 0.5, ("cn2", "cn23"): 0.5}
    judgement = judge(run_of(Truth(24, LEAFS, links=links)), SWEEP)
    assert judgement.verdict == "fail"
    assert not {"leaf l1", "leaf l2", "leaf l3"} & {*judgement.suspects}
