"""Levels of nodes, leafs and ways from numbers of pairs, on known machines."""

from itertools import permutations

import numpy as np
import pytest

from seatrial.judge.pair_effects import NO_PART, part_levels

SOUND, SLOW = 0.0, -0.3


def directed(
    sending: list[float], receiving: list[float], cv: float = 0.01, units: int = 6
) -> tuple[np.ndarray, np.ndarray]:
    """Return levels and paths of all pairs: as good as the worse of both ends."""
    nodes = len(sending)
    pairs = np.array(list(permutations(range(nodes), 2)))
    noise = np.random.default_rng(7).normal(0, cv, (len(pairs), units))
    levels = [min(sending[a], receiving[b]) for a, b in pairs]
    paths = np.column_stack([pairs[:, 0], nodes + pairs[:, 1]])
    return np.array(levels)[:, np.newaxis] + noise, paths


@pytest.mark.parametrize(
    ("nodes", "slow"),
    [(3, 1), (4, 0), (4, 2), (8, 1), (8, 4), (8, 6), (64, 0), (64, 16), (64, 56)],
)
def test_levels_of_sound_and_slow_nodes_have_no_bias(nodes: int, slow: int) -> None:
    truth = [SLOW] * slow + [SOUND] * (nodes - slow)
    levels, paths = directed(truth, truth)
    parts = part_levels(levels, paths)
    assert parts.levels == pytest.approx(
        np.repeat(np.array(truth + truth)[:, np.newaxis], 6, axis=1), abs=0.035
    )
    assert parts.typical.mean() == pytest.approx(np.mean(truth), abs=0.01)


def test_sender_and_receiver_have_levels_of_their_own() -> None:
    truth = [SOUND] * 8
    levels, paths = directed([*truth[:7], SLOW], [SLOW, *truth[1:]])
    typical = part_levels(levels, paths).typical
    assert np.flatnonzero(typical < SLOW / 2).tolist() == [7, 8]


def test_slow_link_and_lost_numbers_are_no_fault_of_a_node() -> None:
    levels, paths = directed([SOUND] * 6, [SOUND] * 6)
    levels[3] += SLOW
    levels[np.random.default_rng(1).random(levels.shape) < 0.4] = np.nan
    levels[7] = np.nan
    parts = part_levels(levels, paths)
    assert (parts.typical > SLOW / 2).all()
    assert not parts.alone.any()


def test_part_without_a_number_has_no_level() -> None:
    levels, paths = directed([SOUND] * 4, [SOUND] * 4)
    levels[paths[:, 0] == 2] = np.nan
    parts = part_levels(levels, paths)
    assert np.isnan(parts.levels[2]).all()
    assert np.isfinite(np.delete(parts.levels, 2, axis=0)).all()
    nothing = part_levels(np.full_like(levels, np.nan), paths)
    assert np.isnan(nothing.levels).all()


@pytest.mark.parametrize("units", [1, 2, 6])
def test_traffic_between_leafs_is_no_fault_of_their_nodes(units: int) -> None:
    """Nodes 0 to 3 are in leaf 8, the others in leaf 9; the way between them is 10."""
    pairs = np.array([(a, b) for a in range(8) for b in range(a + 1, 8)])
    outside = (pairs[:, 0] < 4) & (pairs[:, 1] >= 4)
    leafs = np.where(outside[:, np.newaxis], [8, 9], NO_PART)
    way = np.where(outside, 10, NO_PART)
    rng = np.random.default_rng(1)
    levels = rng.normal(0, 0.01, (len(pairs), units)) + SLOW * outside[:, np.newaxis]
    parts = part_levels(levels, np.column_stack([pairs, leafs, way]))
    assert (parts.typical[:8] > SLOW / 2).all()
    assert (parts.typical[8:] < SLOW / 2).all()
    assert parts.alone.tolist()[:10] == [False] * 8 + [True] * 2
    assert parts.beside[8:] == pytest.approx(SLOW, abs=0.03), "each blames the other"


def test_one_pair_tells_nothing_of_its_nodes() -> None:
    parts = part_levels(np.full((1, 4), SLOW), np.array([[0, 1]]))
    assert parts.alone.all()
    assert parts.levels.tolist() == [[SLOW] * 4] * 2
