"""`seatrial simulate --scenario nightly`: machines, rules, and rates."""

import csv
import io
import json

import numpy as np
import pytest
from click.testing import CliRunner

from seatrial.calibration.simulate.nightly import (
    DIVISIVE,
    OURS,
    RULES,
    divides,
    machines_of,
    night_rows,
    one_year,
)
from seatrial.calibration.simulate.nightly_table import declared, interval
from seatrial.calibration.simulate.nights import (
    BEFORE,
    FAULTS,
    NIGHT_NOISES,
    NightFault,
    NightMachine,
    NightNoise,
    Nights,
)
from seatrial.cli import main
from seatrial.history.rules import Rules

SMALL = NightMachine(nodes=60, metrics=4, faulty=6)
NONE = np.zeros(0, dtype=np.int64)


@pytest.mark.parametrize("noise", NIGHT_NOISES)
def test_noises_have_their_scatter(noise: NightNoise) -> None:
    nights = Nights(NightMachine(noise, nodes=400, every=1), np.random.default_rng(1))
    nodes = np.arange(400)
    logs = np.log([nights.measured(night, nodes) for night in range(30)])
    logs -= np.median(logs, axis=1, keepdims=True)
    steps = logs - logs.mean(axis=0)
    expected = 0.02 * (np.sqrt(1 + 0.02 * 0.98 * 25) if noise == "outliers" else 1)
    assert steps.std() == pytest.approx(expected, rel=0.1)
    neighbours = np.mean(steps[1:] * steps[:-1]) / np.mean(steps**2)
    assert neighbours == pytest.approx(0.25 if noise == "ar1" else -0.03, abs=0.05)


def test_nodes_may_have_a_scatter_of_their_own() -> None:
    size = NightMachine("lognormal", nodes=400, every=1, unequal=0.3)
    nights = Nights(size, np.random.default_rng(1))
    logs = np.log([nights.measured(night, np.arange(400)) for night in range(30)])
    own = np.log((logs - np.median(logs, axis=1, keepdims=True)).std(axis=0))
    assert own.mean(axis=1).std() == pytest.approx(0.3, rel=0.15)


def test_each_node_is_measured_in_turn_and_watched_ones_always() -> None:
    nights = Nights(SMALL, np.random.default_rng(1))
    watched = np.array([3, 50])
    seen = np.zeros(60, dtype=int)
    for night in range(10):
        nodes = nights.chosen(watched)
        assert len(nodes) == 14
        nights.measured(night, nodes)
        seen[nodes] += 1
    assert (seen[watched] == 10).all()
    assert set(np.delete(seen, watched)) <= {2, 3}


def test_a_night_may_miss_nodes() -> None:
    nights = Nights(NightMachine("missing", nodes=5000), np.random.default_rng(1))
    assert len(nights.chosen(NONE)) == pytest.approx(800, rel=0.1)


def test_faults_begin_on_a_night_of_their_own() -> None:
    nights = Nights(
        NightMachine("normal", FAULTS[-1], nodes=50, metrics=6, cv=1e-9),
        np.random.default_rng(1),
    )
    assert (nights.onsets >= 0).sum() == 5
    node = int(np.argmax(nights.onsets))
    onset = int(nights.onsets[node])
    assert onset >= BEFORE
    left = [
        nights.measured(night, np.arange(50))[node] / nights.levels[node]
        for night in (onset - 1, onset + 49, onset + 99, onset + 150)
    ]
    hit = np.log(left)[:, 0] - np.log(left)[:, 5]
    assert hit == pytest.approx(np.log([1, 0.95, 0.9, 0.9]), abs=0.06)


def test_divisive_finds_a_step_and_seldom_more() -> None:
    rng = np.random.default_rng(1)
    series = rng.standard_normal(60)
    assert divides(np.where(np.arange(60) < 40, series, series - 2), rng)
    found = sum(divides(rng.standard_normal(60), rng) for _ in range(60))
    assert found <= 8
    assert not divides(np.zeros(4), rng)


def test_interval_of_a_rate() -> None:
    """Garwood's tables: 0 events up to 3.689, 10 events 4.795 to 18.39."""
    assert interval(0, 1) == pytest.approx((0, 3.689), abs=0.001)
    assert interval(10, 2) == pytest.approx((4.795 / 2, 18.39 / 2), abs=0.01)


@pytest.mark.slow
def test_the_same_seed_plays_the_same_years() -> None:
    (machine,) = machines_of(["ar1"], [], SMALL)
    first, again = (one_year(machine, Rules(), [1, 0]) for _ in range(2))
    assert (first.visits, first.false) == (again.visits, again.false)
    assert one_year(machine, Rules(), [2, 0]).false != first.false
    later = one_year(machine, Rules(), [1, 90])
    assert (later.beside, {*later.false}) == (0, {OURS})


@pytest.mark.slow
def test_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.calibration.simulate.nightly.BEFORE", 20)
    monkeypatch.setattr("seatrial.calibration.simulate.nights.FAULTS", FAULTS[-2:])
    options = ["--nodes", "30", "--metrics", "4", "--runs", "1", "--noise", "t3"]
    command = ["simulate", "--scenario", "nightly", *options]
    done = CliRunner().invoke(main, [*command, "--format", "json"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.output)
    assert {row["rule"] for row in rows} == {*RULES}
    assert {row["fault"] for row in rows} == {"healthy", *(f.name for f in FAULTS[-2:])}
    assert {row["data"] for row in rows} == {"simulated"}
    table = CliRunner().invoke(main, command).output
    assert "SIMULATED nights, no measurement: 1 machine-years a row" in table
    text = CliRunner().invoke(main, [*command, "--format", "csv"]).output
    assert len([*csv.DictReader(io.StringIO(text))]) == len(rows)
    for wrong in (["--scenario", "healthy"], ["--noise", "bimodal"]):
        done = CliRunner().invoke(main, [*command, *wrong])
        assert done.exit_code == 2, done.output


@pytest.mark.slow
@pytest.mark.parametrize("noise", NIGHT_NOISES)
def test_the_declared_rate_holds(noise: NightNoise) -> None:
    machines = machines_of([noise], [], NightMachine())
    (row,) = night_rows(machines, Rules(), years=20, seed=7, workers=2)
    assert interval(row.year.false[OURS], 20)[0] <= declared(Rules())


@pytest.mark.slow
@pytest.mark.parametrize("every", [1, 5])
def test_the_declared_rate_holds_for_nodes_of_unequal_scatter(every: int) -> None:
    size = NightMachine("ar1", nodes=300, metrics=10, every=every, unequal=0.3)
    (row,) = night_rows([size], Rules(every=every), years=20, seed=7, workers=2)
    assert interval(row.year.false[OURS], 20)[0] <= declared(Rules())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "nights"), [("10 %, 1 metric", 15), ("5 %, 4 metrics", 20)]
)
def test_faults_are_confirmed_in_time(fault: str, nights: int) -> None:
    chosen: list[NightFault] = [one for one in FAULTS if one.name == fault]
    machines = machines_of([], chosen, NightMachine())
    (row,) = night_rows(machines, Rules(), years=6, seed=7, workers=2)
    assert np.median(row.year.delays[OURS]) <= nights
    assert np.isfinite(row.year.delays[OURS]).mean() > 0.9
    assert row.year.delays[DIVISIVE]
