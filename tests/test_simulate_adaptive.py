"""Adaptive sweeps of model machines with bad nodes and bad up-links."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from criteria_samples import criteria, criterion

from seatrial.calibration.simulate.adaptive import swept_and_judged
from seatrial.calibration.simulate.fabric import Fabric, Machine

LIMITS = criteria(
    criterion("bw_1MiB", 0.95, check="PairSweep"),
    criterion("latency_8B", 1 / 0.95, check="PairSweep"),
)
SMALL = Fabric(nodes=192, per_leaf=16, uplinks=8, bad_nodes=2, bad_links=1)
swept = partial(swept_and_judged, criteria=LIMITS, repeats=4)


def sound(fabric: Fabric) -> Fabric:
    """Return the machine without faults."""
    return replace(fabric, bad_nodes=0, bad_links=0)


@pytest.mark.parametrize("seed", [1, 2])
def test_bad_nodes_and_the_leaf_of_a_bad_link_are_named(seed: int) -> None:
    outcome = swept(SMALL, seed=seed)
    assert outcome.fails
    assert (outcome.nodes_found, outcome.links_found) == (2, 1)
    assert outcome.sound_blamed == ()
    assert outcome.rounds <= 48


def test_a_sound_machine_does_not_fail() -> None:
    outcome = swept(sound(SMALL), seed=3)
    assert not outcome.fails
    assert outcome.sound_blamed == ()
    assert outcome.share < swept(SMALL, seed=3).share


def test_without_leafs_a_bad_link_shows_in_pairs() -> None:
    outcome = swept(replace(SMALL, bad_nodes=0), seed=1, leafs_known=False)
    assert outcome.fails
    assert outcome.links_found == 0


def test_routes_of_the_model() -> None:
    fabric = Fabric(nodes=64, per_leaf=8, uplinks=4, bad_nodes=0, bad_links=1)
    machine = Machine(fabric, np.random.default_rng(5))
    ((leaf, cable),) = machine.bad_links
    source, destination = (side.ravel() for side in np.indices((64, 64)))
    slow = machine.slowed(source, destination)
    inside = machine.leaf == leaf
    up = slow & inside[source]
    assert up.sum() == 8 * sum(~inside & (np.arange(64) % 4 == cable))
    assert (machine.leaf[source] != machine.leaf[destination])[slow].all()
    bandwidth = machine.bandwidth(source, destination)
    assert bandwidth[slow].max() < 0.6 < 0.9 < bandwidth[~slow].min()
