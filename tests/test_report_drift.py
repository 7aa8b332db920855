"""Drift over the campaign: what is found, how often wrongly, and in which words."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from criteria_samples import criteria, criterion
from judge_samples import CASE, make_run, sample
from samples import STARTED, sample_criteria, sample_run

from seatrial.judge.assumptions import drift_p
from seatrial.judge.judge import Judgement, judge
from seatrial.report.drift import LEAST_SESSIONS, RISK, drifts
from seatrial.report.drift_chapter import (
    MAX_ROWS,
    drift_chapter,
    drift_figure,
    trend_words,
    words,
)
from seatrial.runs.closed_run import Run

SIZES = [2**power for power in range(20)]
Levels = Callable[[int, int], float]
"""The level of a metric, by its number, in a session, by its number."""


def campaign(
    level: Levels,
    *,
    sessions: int = 8,
    metrics: int = 20,
    seed: int = 1,
    scatter: float = 0.01,
    apart_s: float = 900.0,
) -> Run:
    """Build a run of one check, whose two cases have levels of their own."""
    noise = np.random.default_rng(seed)
    cases = [
        replace(
            CASE,
            case=f"ImbRing {name}",
            session=f"pairs-{number}",
            repeat=number,
            start_time=STARTED + apart_s * number,
        )
        for number in range(1, sessions + 1)
        for name in ("a", "b")
    ]
    rows = [
        replace(
            sample(
                case,
                (100.0 if case.case.endswith("a") else 5000.0)
                * level(metric, case.repeat)
                * np.exp(scatter * noise.standard_normal()),
                size=SIZES[metric],
            ),
            start_time=case.start_time,
        )
        for case in cases
        for metric in range(metrics)
    ]
    return make_run(cases, rows)


def judged(run: Run, metrics: int = 20) -> Judgement:
    names = [f"bw_{size}B" for size in SIZES[:10]]
    names += [f"bw_{size // 1024}KiB" for size in SIZES[10:]]
    return judge(run, criteria(*(criterion(name, 1.0) for name in names[:metrics])))


def falls(metric: int, session: int) -> float:
    """Metric 3 falls by 3 % a session, of which there are four in an hour."""
    return 1 - 0.03 * session if metric == 3 else 1.0


def test_a_drift_that_is_there_is_found_and_no_other() -> None:
    run = campaign(falls)
    first, *others = drifts(run, judged(run))
    assert (first.check, first.metric, first.drifts) == ("ImbRing", "bw_8B", True)
    assert first.per_hour == pytest.approx(-0.12 / 0.865, rel=0.1)
    assert first.worse
    assert first.p is not None and first.p < 1e-3
    assert not any(each.drifts for each in others)
    assert len(others) == 19


@pytest.mark.slow
def test_noise_drifts_about_as_seldom_as_declared() -> None:
    runs = 60
    drawn = [campaign(lambda metric, session: 1.0, seed=seed) for seed in range(runs)]
    judgement = judged(drawn[0])
    wrong = sum(any(each.drifts for each in drifts(run, judgement)) for run in drawn)
    # Without any drift, each pick is wrong: at most 5 % of the runs may have one.
    assert wrong <= 3 + runs * RISK


@pytest.mark.parametrize("seed", range(3))
def test_p_of_noise_is_uniform(seed: int) -> None:
    noise = np.random.default_rng(seed)
    p = np.array([drift_p(noise.standard_normal(12)) for _ in range(400)])
    assert 0.02 <= np.mean(p <= 0.05) <= 0.08
    assert 0.4 <= np.mean(p <= 0.5) <= 0.6


@pytest.mark.parametrize(
    ("values", "p"),
    [
        ([1.0, 2.0, 3.0, 4.0, 5.0], 2 / 120),
        ([5.0, 4.0, 3.0, 2.0, 1.0], 2 / 120),
        ([1.0, 1.0, 1.0, 1.0, 1.0], 1.0),
    ],
)
def test_p_of_few_sessions_is_exact(values: Sequence[float], p: float) -> None:
    assert drift_p(np.array(values), LEAST_SESSIONS) == pytest.approx(p)


def test_few_sessions_are_not_tested_and_said_to_be_too_few() -> None:
    run = campaign(falls, sessions=LEAST_SESSIONS - 1)
    found = drifts(run, judged(run))
    assert {each.p for each in found} == {None}
    assert words(found) == (
        "None of 20 metrics was measured in 5 or more sessions, the least for a test "
        "of a trend."
    )


def test_words_name_what_drifts() -> None:
    run = campaign(falls)
    found = drifts(run, judged(run))
    assert words(found) == (
        f"No drift shown in 19 of 20 metrics; {trend_words(found[0])}."
    )
    assert trend_words(found[0]).startswith("ImbRing bw_8B falls by 1")
    assert "% per hour, worse (p = " in trend_words(found[0])
    lucky = replace(found[0], per_hour=0.03, p=0.00002)
    assert trend_words(lucky) == (
        "ImbRing bw_8B rises by 3 % per hour, better (p = 2e-05)"
    )


def test_calm_campaign_says_so() -> None:
    run = campaign(lambda metric, session: 1.0)
    assert words(drifts(run, judged(run))) == "No drift shown in 20 metrics."


def test_only_metrics_with_a_criterion_are_tested() -> None:
    run = campaign(falls)
    assert {each.metric for each in drifts(run, judged(run, metrics=2))} == {
        "bw_1B",
        "bw_2B",
    }


def test_cases_with_other_levels_make_no_drift() -> None:
    """A case that is measured only early, and is slower, is beside its own median."""
    run = campaign(lambda metric, session: 1.0, scatter=0.0)
    early = run.measurements.collect()["repeat"] <= 4
    kept = run.measurements.collect()["case"].str.ends_with("a") | early
    found = drifts(
        replace(run, measurements=run.measurements.filter(kept)), judged(run)
    )
    assert {level.value for each in found for level in each.levels} == {1.0}
    assert not any(each.drifts for each in found)


def test_everything_that_drifts_is_in_the_table() -> None:
    run = campaign(lambda metric, session: 1 - 0.02 * session)
    chapter = drift_chapter(run, judged(run))
    ((title, table),) = chapter.tables
    assert title == "Metrics that drift"
    assert len(table.rows) == 20 <= MAX_ROWS
    assert all(row[4] == "worse" and row[5] == "8" for row in table.rows)


def test_figure_names_what_drifts_and_has_the_median_of_each_session() -> None:
    run = campaign(falls)
    spec = drift_figure(drifts(run, judged(run))).spec
    rows = spec["datasets"]["levels"]
    lines = {row["line"] for row in rows}
    assert lines == {"ImbRing bw_8B", "median of all", "others"}
    middle = [row for row in rows if row["line"] == "median of all"]
    assert [row["x"] for row in middle] == [15.0 * number for number in range(8)]
    assert all(0.98 < row["y"] < 1.02 for row in middle)


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (sample_run(repeats=1), "No metric with a criterion was measured in several"),
        (sample_run(repeats=6, replay=True), "A replay has no times of its own."),
    ],
)
def test_what_cannot_drift_is_empty(run: Run, said: str) -> None:
    chapter = drift_chapter(run, judge(run, sample_criteria()))
    assert chapter.empty.startswith(said)
    assert not chapter.figures


def test_clock_without_times_is_no_drift() -> None:
    run = campaign(falls, apart_s=0.0)
    assert {each.p for each in drifts(run, judged(run))} == {None}
