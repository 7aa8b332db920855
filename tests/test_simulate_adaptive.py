"""Adaptive sweeps of model machines with bad nodes and bad up-links."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from click.testing import CliRunner
from criteria_samples import criteria, criterion

from seatrial.calibration.simulate.adaptive import Outcome, swept_and_judged
from seatrial.calibration.simulate.adaptive_rates import FAULTS, SweepRow, sweep_rows
from seatrial.calibration.simulate.criteria_table import holds
from seatrial.calibration.simulate.fabric import Fabric, Machine
from seatrial.calibration.simulate.rates import Rate
from seatrial.cli import main

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


def test_rates_count_machines_and_faults() -> None:
    good = Outcome(0, 2, 1, (), 0.02, 0.01, 40.0)
    poor = Outcome(0, 1, 0, ("cn0001",), 0.03, 0.01, 20.0)
    row = SweepRow("some", SMALL, 8, (good, poor))
    assert row.rates == {
        "false_fail": Rate(0, 0),
        "sound_blamed": Rate(1, 2),
        "nodes_found": Rate(3, 4),
        "links_found": Rate(1, 2),
    }
    assert (row.share, row.rounds) == (0.03, 30.0)
    sound_row = SweepRow("none", sound(SMALL), 8, (good, poor))
    assert sound_row.rates["false_fail"] == Rate(2, 2)


def simulated(*options: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["simulate", "--scenario", "adaptive", *options])
    return done.exit_code, done.output


@pytest.mark.slow
def test_the_command_writes_the_rates_of_each_fault() -> None:
    options = ("--nodes", "96", "--runs", "1", "--repeats", "4", "--format", "json")
    code, text = simulated(*options)
    assert code == 0, text
    rows = json.loads(text)
    assert {row["faults"] for row in rows} == set(FAULTS)
    assert {row["data"] for row in rows} == {"simulated"}
    links = [row for row in rows if row["rate"] == "links_found"]
    assert [row["trials"] for row in links] == [2, 2, 2]


def test_other_scenarios_beside_it_are_refused() -> None:
    code, text = simulated("--scenario", "pairs")
    assert code == 2
    assert "adaptive: expected it alone" in " ".join(text.split())


@pytest.mark.slow
@pytest.mark.parametrize("faults", ["none", "3 nodes 10 %, 2 up-links 50 %"])
def test_large_machines_at_the_declared_risks(faults: str) -> None:
    fabrics = {faults: FAULTS[faults]}
    (row,) = sweep_rows(fabrics, repeats=8, machines=200, seed=1, workers=2)
    assert row.share <= 0.05
    for name in ("false_fail", "sound_blamed"):
        assert holds(row.rates[name], 0.05)
    for name in ("nodes_found", "links_found"):
        assert row.rates[name].value in (None, pytest.approx(1, abs=0.02))
