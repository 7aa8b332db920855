"""Sameness needs a majority: with 6 of 9 slow nodes, the typical one is a slow one."""

import math

import numpy as np
import pytest
from criteria_samples import criterion
from judge_samples import found, judged, places_run

from seatrial.judge.majority import better_than_typical

ALIKE = criterion(tolerance=0.1)
SCATTER = (1.0, 1.02, 0.99, 1.01, 1.03, 0.98)


@pytest.mark.parametrize(
    ("levels", "marked"),
    [
        ([0, 0, 0, 0, 0, 0, -3, -3, -3], 0),
        ([0, 0, 0, -3, -3, -3, -3, -3, -3], 3),
        ([0, 0, -3, -3, -3, -3, -3, -3, -3], 0),
        ([0, -3, -3], 1),
        ([0, 0, -3], 0),
        ([0, 0, -3, -3], 2),
        ([0, -3], 0),
        ([0, 0, 0, -0.1, -0.1, -0.1, -0.1, -0.1, -0.1], 0),
    ],
)
def test_a_third_of_better_places_leaves_no_majority(
    levels: list[float], marked: int
) -> None:
    noise = np.random.default_rng(1).normal(0, 0.01, (len(levels), 6))
    values = np.array(levels)[:, np.newaxis] + noise
    values[0, 2] = np.nan
    better = better_than_typical(values, 0.2)
    assert np.flatnonzero(better).tolist() == list(range(marked))


@pytest.mark.parametrize("shape", ["normal", "heavy"])
@pytest.mark.parametrize("places", [3, 4, 9, 64])
@pytest.mark.parametrize(("cv", "tolerance"), [(0.05, 0.03), (0.05, 0.1), (0.01, 0.03)])
def test_alike_places_keep_their_majority(
    shape: str, places: int, cv: float, tolerance: float
) -> None:
    rng = np.random.default_rng(places)
    denied = 0
    for _ in range(200):
        size = (places, 4)
        noise = rng.normal(size=size)
        if shape == "heavy":
            noise = rng.standard_t(3, size) / math.sqrt(3)
        spread, shared = rng.normal(size=(places, 1)), rng.normal(size=(1, 4))
        levels = cv * noise + 0.005 * spread + 0.01 * shared
        denied += bool(better_than_typical(levels, -math.log1p(-tolerance)).any())
    assert denied <= 5, "1 % of 200 is 2"


@pytest.mark.parametrize("slow", [3, 5, 6])
def test_six_slow_of_nine_are_undecided_and_said_so(slow: int) -> None:
    places = {f"cn{n}": 56.0 if n <= slow else 80.0 for n in range(1, 10)}
    judgement = judged(places_run(places, SCATTER, nodes=list(places)), ALIKE)
    if slow == 3:
        assert judgement.convicted == ("cn1", "cn2", "cn3")
        return
    assert (judgement.verdict, judgement.convicted) == ("undecided", ())
    (reason,) = {finding.reason for finding in found(judgement, "sameness")}
    assert reason.startswith(f"{slow} of 9 differ: no majority; ")
