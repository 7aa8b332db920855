"""Assumptions of the bounds: Student's t applies, and nothing drifts."""

from math import inf, nan, sqrt

import numpy as np
import pytest
from random_values import Draw, Shape, bimodal, coarse, exponential, heavy_tail, normal

from seatrial.judge.assumptions import Floats, drift_p, t_shape_p

pytestmark = pytest.mark.filterwarnings("error")


# ---- does Student's t apply?


def unlike_places(rng: np.random.Generator, shape: Shape) -> Floats:
    values = normal(rng, shape) + rng.normal(0, 50, (shape[0], 1))
    values[rng.random(shape) < 0.1] = nan
    return values


def common_to_a_unit(rng: np.random.Generator, shape: Shape) -> Floats:
    return normal(rng, shape) + rng.normal(0, 9, (1, shape[1]))


@pytest.mark.parametrize("draw", [normal, unlike_places, common_to_a_unit])
@pytest.mark.parametrize(
    "shape", [(30, 5), pytest.param((150, 6), marks=pytest.mark.slow), (5, 12)]
)
def test_normal_values_are_rarely_held_for_others(draw: Draw, shape: Shape) -> None:
    rng = np.random.default_rng(8)
    p = np.array([t_shape_p(draw(rng, shape)) for _ in range(400)])
    for risk in (0.05, 0.3):
        error = 3.5 * sqrt(risk * (1 - risk) / len(p))
        assert risk * 0.6 - error <= np.mean(p <= risk) <= risk + error


@pytest.mark.parametrize("draw", [exponential, bimodal, coarse])
@pytest.mark.parametrize("places", [1000, 20_000])
def test_many_places_show_what_is_not_normal(draw: Draw, places: int) -> None:
    values = draw(np.random.default_rng(9), (places, 5))
    applies = draw is coarse and places == 1000
    assert (t_shape_p(values) > 0.001) == applies


def test_tails_need_many_places() -> None:
    rng = np.random.default_rng(10)
    assert t_shape_p(heavy_tail(rng, (50_000, 5))) < 1e-6
    assert t_shape_p(normal(rng, (50_000, 5))) > 0.05


def test_one_bad_place_among_few_with_many_units_is_found() -> None:
    values = normal(np.random.default_rng(11), (5, 20))
    assert t_shape_p(values) > 0.05
    alone = t_shape_p(np.exp(5 * values[:1] / values[:1].std()))
    assert alone < 1e-4
    values[0] = np.exp(5 * values[0] / values[0].std())
    assert t_shape_p(values) == pytest.approx(5 * alone)


@pytest.mark.parametrize(
    "values",
    [
        np.zeros((0, 4)),
        np.zeros((3, 0)),
        np.full((100, 6), nan),
        np.ones((100, 6)),
        np.exp(5 * normal(np.random.default_rng(12), (19, 7))),
        np.exp(5 * normal(np.random.default_rng(12), (1000, 3))),
    ],
)
def test_nothing_speaks_against_t_where_nothing_can_be_said(values: Floats) -> None:
    assert t_shape_p(values) == 1


def test_what_the_shape_leaves_out() -> None:
    rng = np.random.default_rng(13)
    values, equal = normal(rng, (200, 5)), np.ones((500, 5))
    p = t_shape_p(values)
    assert t_shape_p(np.vstack([equal, values])) == p
    assert t_shape_p(np.hstack([values, np.full((200, 1), nan)])) == p
    assert t_shape_p(np.hstack([values, np.full((200, 1), -inf)])) == p


# ---- drift


@pytest.mark.parametrize(
    ("series", "p"),
    [
        ((1, 2, 3, 4, 5, 6), 2 / 720),
        ((6, 5, 4, 3, nan, 2, 1), 2 / 720),
        ((2, 1, 3, 4, 5, 6), 2 * 6 / 720),  # one of 15 pairs the other way: 5 such
        ((1, 2, 3, 4, 5), 1),
        ((1, 2, nan, 3, 4, 5), 1),
        ((3, 3, 3, 3, 3, 3, 3), 1),
        ((), 1),
    ],
)
def test_drift(series: tuple[float, ...], p: float) -> None:
    assert drift_p(np.array(series, dtype=float)) == pytest.approx(p)


def test_drift_is_rarely_seen_where_there_is_none() -> None:
    rng = np.random.default_rng(14)
    p = np.array([drift_p(rng.normal(0, 1, 15)) for _ in range(1000)])
    assert 0.02 < np.mean(p <= 0.05) < 0.07
    assert drift_p(np.arange(15) / 5 + rng.normal(0, 1, 15)) < 0.05
