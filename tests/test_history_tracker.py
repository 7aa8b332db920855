"""Nodes night by night: watched, then convicted by fresh nights, or dropped."""

import numpy as np
import pytest

from seatrial.history.detector import Floats
from seatrial.history.part import Part
from seatrial.history.rules import Rules
from seatrial.history.tracker import Tracker

NODES, METRICS = 40, 3
RULES = Rules(every=1)


def played(
    *,
    loss: float = 0.0,
    onset: int = 40,
    nights: int = 80,
    metrics: int = METRICS,
    scatter: float = 0.02,
) -> tuple[Tracker, list[tuple[int, int]], list[bool]]:
    """Measure all nodes every night; node 7 loses a share in some of the metrics."""
    rng = np.random.default_rng(5)
    tracker = Tracker(NODES, METRICS, RULES, every=1, alarms=0.4)
    nodes, named, watched = np.arange(NODES), [], []
    for night in range(nights):
        signals = scatter * rng.standard_normal((NODES, METRICS))
        if night >= onset:
            signals[7, :metrics] += np.log(1 - loss)
        found = tracker.night(night, nodes, signals)
        named += [(night, int(node)) for node in found.series]
        watched.append(7 in tracker.watched)
    return tracker, named, watched


def test_a_sound_machine_has_no_alarm() -> None:
    assert played()[1] == []


def test_a_slow_node_is_watched_then_convicted_once() -> None:
    _, named, watched = played(loss=0.1)
    ((night, node),) = named
    assert node == 7
    assert 41 <= night <= 50
    assert any(watched[40:night]), "fresh nights convict, not those that began it"
    assert not watched[night], "afterwards it has a new baseline"


def test_a_loss_below_the_margin_is_no_alarm() -> None:
    """Even in all metrics, for a year, and far beyond the scatter."""
    _, named, watched = played(loss=0.008, nights=365)
    assert named == []
    assert sum(watched) < 120
    _, named, watched = played(loss=0.008, scatter=0.004)
    assert (named, any(watched)) == ([], True)


def test_a_new_configuration_begins_anew() -> None:
    tracker, _, _ = played(nights=40)
    low = np.full((1, METRICS), -0.1)
    tracker.forget(np.array([7]))
    for night in range(40, 60):
        assert not tracker.night(night, np.array([7]), low).series.size
    assert 7 not in tracker.watched


def test_the_first_nights_do_not_look_ahead() -> None:
    short, long = played(loss=0.1, nights=60), played(loss=0.1, nights=80)
    assert short[1] == [alarm for alarm in long[1] if alarm[0] < 60]
    assert short[2] == long[2][:60]


def signals(values: list[list[float]], signs: list[float]) -> Floats:
    """Return the signals of the first night of a class."""
    part = Part(len(values), np.array(signs), RULES)
    part.night(0, np.arange(len(values)), np.array(values))
    return np.asarray(part.nodes.past.signals[:, :, -1])


def test_signals_are_beside_the_level_of_the_class() -> None:
    values = [[100.0, 2.0], [110.0, 2.0], [121.0, 4.0]]
    found = signals(values, [1.0, -1.0])
    assert found[:, 0] == pytest.approx([-np.log(1.1), 0, np.log(1.1)])
    assert found[:, 1] == pytest.approx([0, 0, -np.log(2)])
    two = signals(values[:2], [1.0, 1.0])
    assert np.isnan(two).all(), "two nodes have no typical one"


def test_an_impossible_number_is_not_measured() -> None:
    found = signals([[0.0], [1.0], [1.0], [1.0], [np.nan]], [1.0])
    assert np.isnan(found[[0, 4]]).all()
    assert (found[1:4] == 0).all()


@pytest.mark.parametrize("every", [5, 1])
def test_more_visits_need_more_evidence(every: int) -> None:
    """The rate holds for the visits that happen, not only for those declared."""
    tracker = Tracker(NODES, METRICS, RULES, every=5, alarms=0.4)
    for night in range(100):
        nodes = np.arange(night % every, NODES, every)
        tracker.night(night, nodes, np.full((len(nodes), METRICS), np.nan))
    assert tracker.needed(99) == pytest.approx(NODES / every * 365 / 15 / 0.4)
    tracker = played(nights=60)[0]
    before = tracker.needed(59)
    tracker.compare(60, np.arange(NODES))
    assert tracker.needed(59) == pytest.approx(before + NODES / 0.4)
