"""The e-detector: bets, baselines, normal scores, and the growth of the evidence."""

import numpy as np
import pytest

from seatrial.history.detector import (
    DEPTH,
    LAG,
    LEAST,
    Baselines,
    Detector,
    bet,
    independent_share,
)


def test_a_bet_is_fair_and_wins_on_losses() -> None:
    score = np.random.default_rng(1).standard_normal(400_000)
    assert bet(score).mean() == pytest.approx(1, abs=0.02)
    assert bet(score - 1).mean() > 2
    assert bet(score + 1).mean() < 0.5
    assert bet(np.array([-60.0])) == bet(np.array([-9.0]))


@pytest.mark.parametrize(
    ("correlation", "nights", "share"),
    [(0.0, 1, 1.0), (0.5, 1, 1 / 3), (0.5, 2, 0.6), (0.3, 50, 1.0)],
)
def test_news_of_a_visit(correlation: float, nights: float, share: float) -> None:
    found = independent_share(correlation, np.array([nights]))
    assert found == pytest.approx(share, abs=1e-6)


def test_a_baseline_leaves_out_the_newest_visits() -> None:
    baselines, one = Baselines.empty(1, 1), np.array([0])
    for visit in range(LAG + LEAST):
        assert np.isnan(baselines.of(one)[0]), visit
        baselines.add(one, np.full((1, 1), 100.0 if visit < LEAST else 50.0))
    mean, spread = baselines.of(one)
    assert (mean[0, 0], spread[0, 0]) == (100, 0)
    for _ in range(DEPTH):
        baselines.add(one, np.full((1, 1), 50.0))
    assert baselines.of(one)[0] == 50
    baselines.forget(one)
    assert np.isnan(baselines.of(one)[0])


def test_a_missing_number_leaves_the_evidence_alone() -> None:
    detector, one = Detector.empty(1, 2, 0.0), np.array([0])
    rng = np.random.default_rng(1)
    for night in range(30):
        detector.visit(night, one, rng.standard_normal((1, 2)))
    before = detector.sums.copy()
    detector.visit(30, one, np.array([[np.nan, -9.0]]))
    assert detector.sums[0, 0] == before[0, 0]
    assert detector.sums[0, 1] > 10 * before[0, 1]


@pytest.mark.parametrize("noise", ["normal", "t3", "bimodal"])
def test_scores_are_normal_for_any_noise(noise: str) -> None:
    """After some nights, by the ranks among the residuals of all series."""
    rng = np.random.default_rng(2)
    detector, series = Detector.empty(300, 2, 0.0), np.arange(300)
    late = []
    for night in range(60):
        size = (300, 2)
        drawn = {
            "normal": rng.standard_normal(size),
            "t3": rng.standard_t(3, size),
            "bimodal": 4.0 * (rng.random(size) < 0.3) + rng.standard_normal(size),
        }[noise]
        mean, spread = detector.baselines.of(series)
        if night >= 40:
            late.append(detector.baselines.scores((drawn - mean) / spread))
        detector.visit(night, series, drawn)
    scores = np.concatenate(late)
    assert np.quantile(scores, [0.01, 0.1, 0.5, 0.9]) == pytest.approx(
        [-2.326, -1.282, 0, 1.282], abs=0.15
    )
    assert bet(scores).mean() <= 1.03


def test_the_evidence_of_sound_series_grows_by_one_a_visit() -> None:
    """About: baselines of 8 to 28 visits are wrong by chance, so it is up to twice."""
    rng = np.random.default_rng(3)
    detector, series = Detector.empty(2000, 1, 0.0), np.arange(2000)
    for night in range(LAG + LEAST + 20):
        detector.visit(night, series, rng.standard_normal((2000, 1)))
    visits = 20 + 1  # the visit that completes the baseline is compared, too
    assert 0.3 * visits < detector.sums.mean() <= 2 * visits
