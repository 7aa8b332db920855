"""Machines of known truth: the generator, the rates, and the declared risks."""

import csv
import io
import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import binomtest

from seatrial.calibration.simulate.arithmetic import facts
from seatrial.calibration.simulate.draw import draw
from seatrial.calibration.simulate.machine import SHAPES, Machine, Shape
from seatrial.calibration.simulate.rates import Rate, Tally
from seatrial.calibration.simulate.rules import RULES, fixed_tolerance, flagged_nodes
from seatrial.calibration.simulate.runs import RISKS, criteria_for, run_of
from seatrial.calibration.simulate.scenarios import SCENARIOS, Model
from seatrial.calibration.simulate.study import OURS, study
from seatrial.cli import main
from seatrial.judge.findings import Judgement
from seatrial.judge.judge import judge
from seatrial.runs.measurement_table import SCHEMA

SMALL = Machine(nodes=5, metrics=1, repeats=10)
"""A machine that is judged in 20 ms."""

SLOW = pytest.mark.slow
ANY: list[tuple[Model, Shape]] = [("any", shape) for shape in SHAPES]
MODELS: list[tuple[Model, Shape]] = [
    *ANY,
    ("normal", "normal"),
    ("lognormal", "lognormal"),
]
"""Each model with the shapes of noise that it is meant for."""
HEAVY_FIRST = [
    pytest.param(*each, marks=[] if each == ("any", "heavy") else SLOW)
    for each in MODELS
]
"""The same; only heavy tails, the hardest, are in `make test`."""
QUICK = {
    ("value", "normal", "normal"),
    ("at-limit", "any", "heavy"),
    ("borderline", "lognormal", "lognormal"),
}
"""Variants that are not slow: each model and each scenario once."""


def drawn(machine: Machine, seed: int = 1) -> Any:
    return draw(machine, np.random.default_rng(seed))


def judged(machine: Machine, model: Model = "any", seed: int = 1) -> Judgement:
    return judge(run_of(drawn(machine, seed)), criteria_for(machine, model))


def measured(
    scenario: str, model: Model, shape: Shape, runs: int = 60, **changes: Any
) -> Tally:
    base = replace(SMALL, **changes)
    (result,) = study(
        base, [SCENARIOS[scenario]], [shape], model=model, runs=runs, seed=7
    )
    return result.tallies[OURS]


def assert_risk(rate: Rate, declared: float) -> None:
    """Hold a rate to its declared risk: at most 3 standard errors above it."""
    assert rate.trials
    error = math.sqrt(declared * (1 - declared) / rate.trials)
    assert rate.hits / rate.trials <= declared + 3 * error, rate


# --- The generator ---


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("shared", [0.0, 0.5])
def test_a_level_is_the_median_of_its_numbers(shape: Shape, shared: float) -> None:
    machine = Machine(
        nodes=20, metrics=4, repeats=5000, shape=shape, level=1, spread=0, shared=shared
    )
    values = drawn(machine).values
    assert np.median(values) == pytest.approx(1, abs=0.001)
    whole = math.hypot(machine.noise, machine.allocation)
    assert values.std() == pytest.approx(whole, rel=0.1)


@pytest.mark.parametrize("kind", ["value", "nodes", "sameness", "pairs"])
def test_the_same_seed_gives_the_same_machine(kind: Any) -> None:
    machine = Machine(kind=kind, slow_nodes=int(kind != "value"))
    first, second, other = (drawn(machine, seed) for seed in (1, 1, 2))
    assert (first.values == second.values).all()
    assert (first.values != other.values).any()


def test_metrics_of_a_node_are_alike_as_much_as_is_said() -> None:
    machine = Machine(nodes=5, metrics=2, repeats=4000, allocation=0, shared=0.7)
    noise = np.log(drawn(machine).values)
    both = [np.corrcoef(noise[0, node], noise[1, node])[0, 1] for node in range(5)]
    assert np.mean(both) == pytest.approx(0.7, abs=0.03)


def test_allocations_hit_all_nodes_alike_and_drift_is_a_fall() -> None:
    machine = Machine(nodes=50, metrics=1, repeats=300, allocation=0.05, noise=0.001)
    values = np.log(drawn(machine).values[0])
    assert values.mean(axis=0).std() == pytest.approx(0.05, rel=0.2)
    falling = replace(machine, allocation=0, drift=0.1, repeats=11)
    means = np.log(drawn(falling).values[0]).mean(axis=0)
    assert means[0] - means[-1] == pytest.approx(0.1, abs=0.002)
    assert means[5] == pytest.approx(math.log(1.1), abs=0.002)


@pytest.mark.parametrize(
    ("changes", "good", "bad"),
    [
        ({}, True, False),
        ({"level": 1.0, "spread": 0.0}, True, True),
        ({"slow_nodes": 1}, False, True),
        ({"slow_nodes": 1, "slow_level": 1.0}, True, True),
        ({"kind": "sameness", "level": 1.0}, True, False),
        ({"kind": "sameness", "level": 1.0, "slow_nodes": 1}, False, True),
        ({"kind": "pairs"}, True, False),
        ({"kind": "pairs", "slow_links": 1}, False, True),
        ({"kind": "value"}, True, False),
    ],
)
def test_truth(changes: dict[str, Any], good: bool, bad: bool) -> None:
    machine = drawn(Machine(**changes))
    assert (machine.good, machine.bad) == (good, bad)
    is_faulty = not good and machine.machine.kind != "value"
    assert bool(machine.slow_nodes | machine.slow_links) == is_faulty


def test_all_pairs_of_a_slow_node_are_slow_and_a_slow_link_is_one() -> None:
    machine = drawn(Machine(kind="pairs", nodes=8, slow_nodes=1, slow_links=1))
    (node,) = machine.slow_nodes
    (link,) = machine.slow_links
    assert node not in link
    names = machine.machine.names
    slow = {
        tuple(names[end] for end in ends)
        for ends, level in zip(machine.ends, machine.levels[0], strict=True)
        if level < 1
    }
    assert slow == {link} | {pair for pair in slow if node in pair}
    assert len(slow) == 1 + 7


def test_more_faults_than_nodes_are_refused() -> None:
    with pytest.raises(ValueError, match="need more than 3 nodes"):
        drawn(Machine(nodes=3, slow_nodes=2, slow_links=1))


@pytest.mark.parametrize(
    ("kind", "rows"),
    [("value", 2 * 3), ("nodes", 2 * 3 * 6), ("pairs", 3 * 3 * 15)],
)
def test_a_run_has_a_job_for_every_allocation(kind: Any, rows: int) -> None:
    machine = Machine(kind=kind, nodes=6, metrics=2, repeats=3)
    run = run_of(drawn(machine))
    frame = run.measurements.collect()
    assert frame.schema == SCHEMA
    assert len(frame) == rows
    jobs = frame.select("job_id", "session", "repeat").unique()
    assert len(jobs) == len(run.cases) == 3
    places = frame.select("node", "source", "destination", "job_id").unique()
    assert len(places) == 3 * {"value": 1, "nodes": 6, "pairs": 30}[kind]


def test_lower_is_better_for_latency() -> None:
    machine = Machine(kind="pairs", nodes=4, metrics=2, slow_nodes=1)
    made = drawn(machine)
    frame = run_of(made).measurements.collect()
    (slow,) = made.slow_nodes
    bad = (frame["source"] == slow) | (frame["destination"] == slow)
    latency, bw = frame["metric"] == "latency", frame["metric"] == "bw"
    worst = frame.filter(latency & ~bad)["value"].max()
    # min() and max() of polars may be of any type.
    assert frame.filter(latency & bad)["value"].min() > worst  # type: ignore[operator]
    worst = frame.filter(bw & ~bad)["value"].min()
    assert frame.filter(bw & bad)["value"].max() < worst  # type: ignore[operator]


# --- Rates and other rules ---


@pytest.mark.parametrize(("hits", "trials"), [(0, 50), (3, 50), (50, 50), (7, 1000)])
def test_intervals_are_those_of_another_library(hits: int, trials: int) -> None:
    exact = binomtest(hits, trials).proportion_ci(method="exact")
    assert Rate(hits, trials).interval == pytest.approx((exact.low, exact.high))


def test_nothing_counted_has_no_rate() -> None:
    assert (Rate(0, 0).value, Rate(0, 0).interval) == (None, None)


def test_a_tally_counts_mistakes() -> None:
    machine = drawn(Machine(slow_nodes=1))
    (slow,) = machine.slow_nodes
    sound = next(name for name in machine.machine.names if name != slow)
    tally = Tally()
    tally.add(machine, "fail", [slow], [slow, sound])
    tally.add(machine, "pass", [], [])
    tally.add(machine, "fail", [sound], [sound])
    assert tally["false_pass"] == Rate(1, 3)
    assert tally["false_fail"] == Rate(0, 0)
    assert tally["found"] == Rate(1, 3)
    assert tally["blamed_wrong"] == Rate(1, 3)
    assert tally["false_suspects"] == Rate(1.5, 3)


def test_other_rules_flag_what_they_say() -> None:
    machine = Machine(nodes=21, metrics=1, repeats=3, noise=0, allocation=0)
    made = drawn(replace(machine, slow_nodes=1))
    for name, rule in RULES.items():
        assert made.slow_nodes <= flagged_nodes(made, rule(made)), name
    assert flagged_nodes(made, fixed_tolerance(made)) == made.slow_nodes


def test_one_value_is_not_enough() -> None:
    two, three, passed = facts(seed=1)
    assert two.expected == pytest.approx(455, abs=0.5)
    assert two.measured == pytest.approx(455, abs=3 * math.sqrt(455))
    assert three.measured == pytest.approx(27, abs=3 * math.sqrt(27))
    assert passed.measured == pytest.approx(50, abs=3.5)


# --- The declared risks ---


@pytest.mark.parametrize(
    ("scenario", "model", "shape"),
    [
        pytest.param(scenario, *each, marks=[] if (scenario, *each) in QUICK else SLOW)
        for scenario in ("value", "at-limit", "borderline")
        for each in MODELS
    ],
)
def test_risks_at_the_limit(scenario: str, model: Model, shape: Shape) -> None:
    """Exactly at the limit both mistakes are as likely as they can be."""
    tally = measured(scenario, model, shape, runs=80)
    assert_risk(tally["false_fail"], RISKS.seller)
    assert_risk(tally["false_pass"], RISKS.buyer)
    if scenario != "value":
        assert_risk(tally["blamed_wrong"], RISKS.seller)
        assert_risk(tally["false_suspects"], RISKS.discovery)


@pytest.mark.parametrize(("model", "shape"), HEAVY_FIRST)
def test_a_clear_fault_is_found(model: Model, shape: Shape) -> None:
    tally = measured("slow-node", model, shape, runs=40, slow_level=0.8, repeats=14)
    found = tally["found"]
    assert found.hits / found.trials > 0.9
    assert_risk(tally["false_pass"], RISKS.buyer)
    assert_risk(tally["blamed_wrong"], RISKS.seller)


@pytest.mark.parametrize("scenario", ["same", "same-borderline", "drift", "pairs"])
@pytest.mark.parametrize(("model", "shape"), HEAVY_FIRST)
def test_risks_of_sameness_pairs_and_drift(
    scenario: str, model: Model, shape: Shape
) -> None:
    """A drift makes allocations unequal: a limit may stay undecided, never fails."""
    runs, nodes = (25, 4) if scenario == "pairs" else (40, 5)
    tally = measured(scenario, model, shape, runs=runs, nodes=nodes)
    assert_risk(tally["false_fail"], RISKS.seller)
    if tally["false_pass"].trials:
        assert_risk(tally["false_pass"], RISKS.buyer)
    assert_risk(tally["blamed_wrong"], RISKS.seller)
    assert_risk(tally["false_suspects"], RISKS.discovery)


@pytest.mark.parametrize(("model", "shape"), HEAVY_FIRST)
@pytest.mark.parametrize("scenario", ["same-slow", "same-drift"])
def test_who_is_below_the_others_is_found_also_when_all_drift(
    scenario: str, model: Model, shape: Shape
) -> None:
    changes = {"slow_level": 0.85, "nodes": 6, "repeats": 14}
    tally = measured(scenario, model, shape, runs=30, **changes)
    found = tally["found"]
    assert found.hits / found.trials > 0.9
    assert_risk(tally["blamed_wrong"], RISKS.seller)


@pytest.mark.parametrize(("model", "shape"), HEAVY_FIRST)
def test_metrics_that_depend_on_each_other_break_no_risk(
    model: Model, shape: Shape
) -> None:
    machine = {"shared": 0.9, "metrics": 3, "nodes": 4}
    tally = measured("at-limit", model, shape, runs=50, **machine)
    assert_risk(tally["false_fail"], RISKS.seller)
    assert_risk(tally["blamed_wrong"], RISKS.seller)
    tally = measured("correlated", model, shape, runs=20, slow_level=0.8, repeats=14)
    assert tally["found"].hits / tally["found"].trials > 0.9


@pytest.mark.parametrize(("model", "shape"), HEAVY_FIRST)
def test_a_slow_link_and_a_slow_node_are_told_apart(model: Model, shape: Shape) -> None:
    for scenario in ("slow-link", "slow-node-link"):
        tally = measured(scenario, model, shape, runs=12, nodes=5, repeats=16)
        assert tally["found"].hits / tally["found"].trials > 0.9, scenario
        assert_risk(tally["blamed_wrong"], RISKS.seller)


@pytest.mark.parametrize("model", ["any", "lognormal"])
def test_one_bad_node_in_a_sweep_is_named_once_and_alone(model: Model) -> None:
    machine = Machine(kind="pairs", nodes=8, metrics=2, repeats=16, slow_nodes=1)
    (slow,) = drawn(machine).slow_nodes
    judgement = judged(machine, model)
    assert judgement.verdict == "fail"
    assert judgement.convicted == (slow,)
    assert {*judgement.suspects} == {slow}
    blamed = [f.place for f in judgement.findings if f.verdict == "fail"]
    assert {*blamed} == {slow}
    assert len(blamed) == 2  # latency and bandwidth, not 7 pairs of each


@pytest.mark.parametrize(
    ("model", "repeats"), [("any", 1), ("any", 4), ("normal", 2), ("lognormal", 2)]
)
@pytest.mark.parametrize("kind", ["value", "nodes", "pairs"])
@pytest.mark.parametrize("level", [0.5, 2.0])
def test_too_few_allocations_never_decide(
    kind: Any, level: float, model: Model, repeats: int
) -> None:
    machine = Machine(kind=kind, nodes=4, metrics=1, repeats=repeats, level=level)
    assert judged(machine, model).verdict == "undecided"


# --- The command ---


def simulate(*arguments: str) -> str:
    base = ("simulate", "--nodes", "4", "--metrics", "1", "--runs", "2")
    result = CliRunner().invoke(main, [*base, *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_command_prints_rates_beside_risks() -> None:
    text = simulate("--scenario", "borderline", "--noise", "heavy")
    assert "false fail" in text
    assert "≤ 5 %" in text
    assert "one node exactly at the limit" in text
    assert "2 machines a row, 4 nodes, 12 allocations" in text


def test_the_same_seed_prints_the_same_in_every_format() -> None:
    choice = ("--scenario", "slow-node", "--noise", "normal", "--seed", "5")
    rows = json.loads(simulate(*choice, "--format", "json"))
    assert simulate(*choice, "--format", "json") == json.dumps(rows, indent=1) + "\n"
    table = csv.DictReader(io.StringIO(simulate(*choice, "--format", "csv")))
    assert [row["rate"] for row in table] == [row["rate"] for row in rows]
    assert {row["rule"] for row in rows} == {OURS, *RULES}
    found = next(row for row in rows if row["rate"] == "found")
    assert (found["trials"], found["scenario"]) == (2, "slow-node")
    declared = {row["rate"]: row["declared"] for row in rows if row["rule"] == OURS}
    assert declared["false_pass"] == 0.05
    assert declared["found"] is None
