"""Machines judged by the criteria of a file: truths, intervals, rates, output."""

import ast
import csv
import io
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from criteria_samples import RISKS, criteria, criterion
from msgspec import structs

from seatrial.calibration.simulate import machines as generator_module
from seatrial.calibration.simulate.criteria_rates import Question, Row, questions, rows
from seatrial.calibration.simulate.criteria_table import holds
from seatrial.calibration.simulate.machines import (
    TRUTHS,
    Drawn,
    Metric,
    Setting,
    draw,
)
from seatrial.calibration.simulate.noises import NOISES, RHO, Noise, unit_noise
from seatrial.calibration.simulate.rates import Rate
from seatrial.cli import main
from seatrial.criteria.criteria import Criteria
from seatrial.criteria.keys import ANY

SAMPLE = Path(__file__).parents[1] / "docs" / "simulated-criteria.yaml"
SKEWNESS: dict[Noise, float] = {"skewed": math.sqrt(2), "one-sided": -2.0}


def drawn(truth: str, *metrics: Metric, seed: int = 1, **setting: Any) -> Drawn:
    chosen = Setting(**{"nodes": 9, "repeats": 10, **setting})
    generator = np.random.default_rng(seed)
    return draw(TRUTHS[truth], chosen, metrics or (Metric(),), generator)


# --- The generator ---


def test_the_generator_shares_no_code_with_the_judge() -> None:
    """It imports NumPy, the standard library, and its own noises."""
    folder = Path(str(generator_module.__file__)).parent
    allowed = {"numpy", "collections", "dataclasses", "functools", "math", "typing"}
    for name in ("machines", "noises"):
        tree = ast.parse((folder / f"{name}.py").read_text())
        found = {
            node.module or "" if isinstance(node, ast.ImportFrom) else alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        own = {module for module in found if module.startswith("seatrial")}
        assert own <= {"seatrial.calibration.simulate.noises"}
        assert {module.partition(".")[0] for module in found - own} <= allowed


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("shared", [0.0, 0.4])
def test_a_level_is_the_median_over_allocations(noise: Noise, shared: float) -> None:
    machine = drawn(
        "inside-5", nodes=20, repeats=20_000, noise=noise, cv=0.02, shared=shared
    )
    (numbers,) = machine.runs[0]
    assert (numbers.levels == 1.05).all()
    assert np.median(numbers.values) == pytest.approx(1.05, abs=0.0008)
    within = (numbers.values / 1.05).std(axis=1)
    assert within.mean() == pytest.approx(0.02, rel=0.05)
    luck = np.asarray(np.corrcoef(numbers.values))[np.triu_indices(20, 1)]
    assert luck.mean() == pytest.approx(shared, abs=0.03)


@pytest.mark.parametrize("noise", NOISES)
def test_shapes(noise: Noise) -> None:
    series = unit_noise(noise, (40, 5000), np.random.default_rng(3))
    assert series.mean() == pytest.approx(0, abs=0.02)
    assert series.std() == pytest.approx(1, rel=0.1)
    lag = np.mean(series[:, 1:] * series[:, :-1])
    assert lag == pytest.approx(RHO if noise == "ar1" else 0, abs=0.02)
    if noise in SKEWNESS:
        assert np.mean(series**3) == pytest.approx(SKEWNESS[noise], rel=0.1)
    near_the_mean = np.mean(np.abs(series) < 0.3)
    assert (near_the_mean < 0.1) == (noise == "bimodal")
    assert (np.mean(np.abs(series) > 5) > 1e-4) == (noise in ("heavy", *SKEWNESS))
    assert (series.max() <= 1) == (noise == "one-sided")


@pytest.mark.parametrize(
    ("truth", "level", "count"),
    [
        ("inside-0", 1.0, 9),
        ("inside-2", 1.02, 9),
        ("limit-node", 1.0, 1),
        ("bad-node", 0.95, 1),
        ("slow-leaf", 0.9, 2),
        ("slow-majority", 0.9, 6),
        ("half-speed", 0.5, 1),
    ],
)
def test_levels_of_nodes(truth: str, level: float, count: int) -> None:
    machine = drawn(truth, cv=0.0)
    (numbers,) = machine.runs[0]
    assert (numbers.levels == pytest.approx(level)) is (count == 9)
    at_level = np.isclose(numbers.levels, level)
    assert at_level.sum() == count
    assert numbers.values == pytest.approx(np.tile(numbers.levels[:, None], 10))
    assert len(machine.bad) == (count if level < 1 else 0)
    assert {*machine.bad} <= {*np.flatnonzero(at_level).tolist()}


def test_half_speed_hits_all_metrics_and_a_bad_node_one() -> None:
    metrics = [Metric()] * 5
    for truth, hit in (("half-speed", 5), ("bad-node", 1)):
        machine = drawn(truth, *metrics)
        assert sum(each.levels.min() < 1 for each in machine.runs[0]) == hit


def test_a_leaf_spoils_its_uplink_and_a_node_all_its_pairs() -> None:
    pairs = Metric("pairs", both_ways=True)
    ends = pairs.ends(9)
    assert len(ends) == len({*map(tuple, ends.tolist())}) == 9 * 8
    for truth, struck in (("slow-leaf", 2 * 2 * 7), ("half-speed", 2 * 8)):
        machine = drawn(truth, pairs)
        slow = machine.runs[0][0].levels < 1
        assert slow.sum() == struck
        touches = np.isin(ends[slow], [*machine.bad]).sum(axis=1)
        assert (touches == 1).all()
    (whole,) = drawn("half-speed", Metric("whole")).runs[0]
    assert whole.levels.tolist() == [0.5]


def test_an_intermittent_fault_is_there_in_4_of_10_allocations() -> None:
    machine = drawn("intermittent", repeats=20_000)
    (numbers,) = machine.runs[0]
    (bad,) = machine.bad
    assert np.mean(numbers.values[bad] < 0.8) == pytest.approx(0.4, abs=0.02)
    assert np.median(numbers.values[bad]) > 1
    assert numbers.levels[bad] == 0.5


def test_survivors_leave_a_crash_and_no_number_below_the_limit() -> None:
    machine = drawn("survivors", nodes=4, repeats=4000)
    (numbers,) = machine.runs[0]
    node = int(np.argmin(numbers.levels))
    crashed = np.isneginf(numbers.values[node])
    assert machine.bad == {node}
    # Half of the tries crash, and each is retried once: 1.5 tries for a repeat.
    assert numbers.values.shape[1] == pytest.approx(1.5 * 4000, rel=0.03)
    assert crashed.mean() == pytest.approx(0.5, abs=0.03)
    assert (numbers.values[node][~crashed] >= 1).all()
    others = np.delete(numbers.values, node, axis=0)
    assert np.isnan(others[:, crashed]).all()
    assert np.isfinite(others[:, ~crashed]).all()


def test_until_pass_has_runs_of_one_machine() -> None:
    machine = drawn("until-pass", Metric(), Metric())
    levels = [np.stack([each.levels for each in run]) for run in machine.runs]
    assert len(machine.runs) == 5
    assert all((each == levels[0]).all() for each in levels)
    assert (machine.runs[0][0].values != machine.runs[1][0].values).all()


# --- From criteria to numbers ---


@pytest.mark.parametrize(
    ("rule", "numbers", "values"),
    [
        (criterion(limit=60.0), [1.0, 1.1, 0.5], [60, 66, 30]),
        (criterion("latency_8B", 2.0), [1.0, 0.5], [2, 4]),
        (criterion("latency_8B", 0.0), [1.0, 0.9], [0, 0.1]),
    ],
)
def test_numbers_are_relative_to_the_limit(
    rule: Any, numbers: Sequence[float], values: Sequence[float]
) -> None:
    (asked,) = questions(criteria(rule), {})
    assert asked.values(np.array(numbers)) == pytest.approx(np.array(values))
    assert asked.floor(1.1) == 1.0


@pytest.mark.parametrize("metric", ["bw_4MiB", "latency_8B"])
def test_places_that_are_alike_are_as_far_inside_as_their_tolerance(
    metric: str,
) -> None:
    (asked,) = questions(criteria(criterion(metric, None, tolerance=0.1)), {})
    assert asked.metric.margin == pytest.approx(1 / 0.9 - 1)
    healthy = 1 + (asked.metric.margin or 0)
    assert asked.floor(healthy) == pytest.approx(1.0)
    typical, bound = asked.values(np.array([healthy, 1.0]))
    ratio = typical / bound if asked.lower else bound / typical
    assert ratio == pytest.approx(0.9)


def test_criteria_on_the_same_numbers_share_them() -> None:
    rules = [
        criterion(limit=60.0),
        criterion(limit=80.0, name="stricter"),
        criterion(tolerance=0.02),
        criterion(limit=70.0, model="every", name="counted"),
        criterion(limit=70.0, where={"num_nodes": 2}, name="elsewhere"),
    ]
    asked = questions(criteria(*rules), {"ImbRing": "pairs"})
    assert [len(each.criteria) for each in asked] == [3, 1, 1]
    assert [each.bound for each in asked] == [80.0, 70.0, 70.0]
    assert [each.metric.steady for each in asked] == [False, True, False]
    assert asked[0].floor(1.1) == pytest.approx(0.98 * 1.1)
    assert len(asked[0].places(4)) == 12


def test_places_have_the_columns_of_the_judge() -> None:
    one = Question((criterion(),), Metric("whole"), 1.0)
    assert one.places(5).rows() == [(None,) * 5]
    nodes = replace(one, metric=Metric())
    assert nodes.places(2)["node"].to_list() == ["cn00001", "cn00002"]


# --- Rates ---


@pytest.mark.parametrize(
    ("hits", "trials", "low", "high"),
    [
        # Tables of Clopper and Pearson, 95 %.
        (0, 10, 0.0, 0.3085),
        (1, 10, 0.0025, 0.4450),
        (5, 10, 0.1871, 0.8129),
        (10, 10, 0.6915, 1.0),
        (4, 20, 0.0573, 0.4366),
    ],
)
def test_intervals_are_exact(hits: int, trials: int, low: float, high: float) -> None:
    assert Rate(hits, trials).interval == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(
    ("hits", "kept"), [(0, True), (5, True), (9, True), (12, False), (100, False)]
)
def test_a_risk_holds_within_the_interval_or_above_it(hits: int, kept: bool) -> None:
    assert holds(Rate(hits, 100), 0.05) is kept


def judged(*truths: str, **changes: Any) -> dict[str, Row]:
    setting = Setting(nodes=6, repeats=12, cv=0.01)
    options: dict[str, Any] = {"machines": 12, "seed": 5, **changes}
    sample = Criteria.load(SAMPLE, known=ANY)
    counted = rows(sample, {"PairSweep": "pairs"}, [setting], truths, **options)
    return {row.truth.name: row for row in counted}


def test_machines_are_judged_by_every_model() -> None:
    sample = Criteria.load(SAMPLE, known=ANY)
    models = {rule.model for rule in sample.criteria}
    assert models == {"any", "normal", "lognormal", "every"}
    found = judged("inside-5", "bad-node", "half-speed", "inside-0")
    assert found["inside-5"].rates["pass"].value == 1
    assert "false_pass" not in found["inside-5"].rates
    assert "false_fail" not in found["bad-node"].rates
    assert found["half-speed"].rates["found"].value == 1
    assert found["half-speed"].rates["false_pass"] == Rate(0, 12)
    # At the limit both mistakes are possible.
    assert {"false_fail", "false_pass"} <= {*found["inside-0"].rates}


def test_the_criteria_are_judged_as_they_are() -> None:
    """The cap and a risk of its own count."""
    setting = Setting(nodes=4, repeats=6, cv=0.02)

    def verdicts(truth: str = "inside-0", **more: Any) -> dict[str, float]:
        rule = criterion(model="any", **more)
        (row,) = rows(criteria(rule), {}, [setting], [truth], machines=5, seed=1)
        return {name: rate.hits for name, rate in row.rates.items()}

    assert verdicts(cap=20)["undecided"] == 5
    assert verdicts(cap=6)["not shown"] == 5
    small = structs.replace(RISKS, buyer=0.001)
    setting = replace(setting, repeats=9, cv=0.001)
    assert verdicts("inside-5")["pass"] == 5
    assert verdicts("inside-5", risks=small)["undecided"] == 5


def test_processes_and_their_number_change_nothing() -> None:
    one = judged("limit-node", "survivors", machines=6)
    assert judged("limit-node", "survivors", machines=6, workers=2) == one
    alone = judged("survivors", machines=6)
    assert alone == {"survivors": one["survivors"]}
    assert judged("survivors", machines=6, seed=6) != alone


# --- The command ---


def simulate(*arguments: str) -> str:
    base = ("simulate", "--criteria", str(SAMPLE), "--nodes", "4", "--runs", "3")
    result = CliRunner().invoke(main, [*base, *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_first_line_says_that_machines_are_simulated() -> None:
    text = simulate("--scenario", "half-speed", "--noise", "ar1", "--repeats", "8")
    first, *others = text.splitlines()
    assert first.startswith("SIMULATED machines, no measurement: 3 a row, 5 criteria")
    assert "8 allocations" in first
    row = next(line for line in others if line.startswith("half-speed  ar1"))
    assert row.split()[-1] == "hold"
    assert "half-speed: one node at half its limits" in text


def test_repeats_are_those_of_the_acceptance_campaign() -> None:
    text = simulate("--scenario", "inside-5", "--noise", "normal")
    assert "4 nodes, 8 allocations" in text.splitlines()[0]


def test_json_and_csv_have_the_same_rates() -> None:
    choice = ("--scenario", "bad-node", "--noise", "skewed", "--repeats", "6")
    records = json.loads(simulate(*choice, "--format", "json"))
    table = [*csv.DictReader(io.StringIO(simulate(*choice, "--format", "csv")))]
    assert [row["rate"] for row in table] == [record["rate"] for record in records]
    assert {record["data"] for record in records} == {"simulated"}
    by_rate = {record["rate"]: record for record in records}
    assert by_rate["false_pass"]["declared"] == 0.05
    assert by_rate["false_pass"]["holds"] is True
    assert by_rate["found"]["machines"] == 3
    assert by_rate["found"]["holds"] is None


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--scenario", "drift"), "'drift': with and without --criteria"),
        (("--noise", "ar2"), "is not one of"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], error: str) -> None:
    result = CliRunner().invoke(
        main, ("simulate", "--criteria", str(SAMPLE), *arguments)
    )
    assert result.exit_code == 2
    assert error in result.stderr


def test_criteria_of_declarations_have_no_number(tmp_path: Path) -> None:
    file = tmp_path / "criteria.yaml"
    head = "schema: 1\nrisks: {seller: 0.05, buyer: 0.05}\n"
    file.write_text(f"{head}criteria: [{{kind: declared}}]\n")
    result = CliRunner().invoke(main, ("simulate", "--criteria", str(file)))
    assert result.exit_code == 2
    assert (
        "all criteria are of declarations; expected one with a limit" in result.stderr
    )


def test_what_only_criteria_know_is_refused_without() -> None:
    result = CliRunner().invoke(main, ("simulate", "--noise", "ar1"))
    assert result.exit_code == 2
    assert "expected normal, lognormal, heavy, bimodal" in result.stderr
