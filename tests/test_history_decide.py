"""Decisions about nights: alarms, their onset, cause and end; what is no alarm."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from seatrial.history.decide import NEEDED, decide
from seatrial.history.records import Alarm, Decision, Metric, Visits
from seatrial.history.rules import Rules

NODES, METRICS, NIGHTS, ONSET = 60, 3, 150, 100
START = np.datetime64("2026-01-01")
RULES = Rules(every=1)
SLOW = pytest.mark.slow
EACH_NIGHT = [1, pytest.param(5, marks=SLOW)]
IN_TURNS = [pytest.param(1, marks=SLOW), 5]
"""Values of `every`: each night, or each fifth; the other one of the two is slow."""
LEAF = {"leaf l03": tuple(f"cn{node:02}" for node in range(8, 32))}

Floats = NDArray[np.float64]
Edit = Callable[[int, Floats], None]
Versions = Callable[[int], NDArray[np.int64]]


@dataclass(frozen=True)
class World:
    """Nodes measured every night, or in turns; `edit` changes a night's numbers.

    `versions` returns the firmware of each node in a night.
    """

    edit: Edit = lambda night, values: None
    versions: Versions = lambda night: np.zeros(NODES, dtype=np.int64)
    every: int = 1
    nights: int = NIGHTS
    nodes: int = NODES
    missing: float = 0.0
    repaired: tuple[tuple[int, int], ...] = ()
    leaf: bool = False
    classes: tuple[str, ...] = ()
    slower_is_worse: tuple[bool, ...] = (True, True, False)

    def visits(self, seed: int = 1) -> Visits:
        """Draw the numbers: scatter of 2 %, places of 1 %, 0.5 % shared by a night."""
        rng = np.random.default_rng(seed)
        nodes, nights = self.nodes, self.nights
        signs = np.where(self.slower_is_worse, 1, -1)
        places = rng.normal(0, 0.01, (nodes, METRICS))
        values = np.full((nights, nodes, METRICS), np.nan)
        versions = np.full((nights, nodes), -1)
        repaired = np.zeros((nights, nodes), dtype=bool)
        for night, node in self.repaired:
            repaired[night, node] = True
        for night in range(nights):
            noise = rng.normal(0, 0.02, (nodes, METRICS)) + rng.normal(0, 0.005)
            level = np.ones((nodes, METRICS))
            self.edit(night, level)
            here = (np.arange(nodes) + night) % self.every == 0
            here &= rng.random(nodes) >= self.missing
            drawn = 100 * level**signs * np.exp(places + noise)
            values[night, here] = drawn[here]
            versions[night, here] = self.versions(night)[here]
        metrics = tuple(
            Metric("Stream", f"case{i}", "gnu", "cpu", "bw", "median", "GB/s", higher)
            for i, higher in enumerate(self.slower_is_worse)
        )
        return Visits(
            nights=START + np.arange(nights),
            runs=tuple(f"run{night}" for night in range(nights)),
            nodes=tuple(f"cn{node:02}" for node in range(nodes)),
            classes=self.classes or ("cpu",) * nodes,
            metrics=metrics,
            values=values,
            configurations=versions,
            configured=tuple({"firmware": str(i), "os": "a"} for i in range(3)),
            repaired=repaired,
            groups=LEAF if self.leaf else {},
        )


def slow(
    nodes: slice, share: float, *, until: int = NIGHTS, metrics: int = METRICS
) -> Edit:
    """Slow some nodes by a share from the onset until a night."""

    def edit(night: int, values: Floats) -> None:
        if ONSET <= night < until:
            values[nodes, :metrics] *= 1 - share

    return edit


def updated(nodes: slice) -> Versions:
    """Return a new firmware of some nodes from the onset on."""

    def versions(night: int) -> NDArray[np.int64]:
        now = np.zeros(NODES, dtype=np.int64)
        now[nodes] = night >= ONSET
        return now

    return versions


def rolling(night: int) -> NDArray[np.int64]:
    """Return the firmware of an update of two nodes a night."""
    return np.asarray(np.arange(NODES) < 2 * (night - ONSET), dtype=np.int64)


def rolled(share: float) -> Edit:
    """Change the level of a node by a share when it is updated."""

    def edit(night: int, values: Floats) -> None:
        values[rolling(night) == 1] *= 1 + share

    return edit


ONE, FIRST, ALL = slice(7, 8), slice(0, 20), slice(0, NODES)


@cache
def decided(world: World) -> Decision:
    return decide(world.visits(), RULES)


def night_of(moment: np.datetime64 | None) -> int:
    assert moment is not None
    return int((moment - START) / np.timedelta64(1, "D"))


def the_alarm(world: World) -> Alarm:
    """Return the only alarm, raised soon, with an onset that has the true night."""
    (alarm,) = decided(world).alarms
    first, last = map(night_of, alarm.onset)
    assert first <= ONSET <= last, alarm
    assert last - first <= 5 * world.every
    assert ONSET < night_of(alarm.night) <= ONSET + 15 + world.every
    assert alarm.evidence > 100
    return alarm


@pytest.mark.parametrize("every", EACH_NIGHT)
def test_a_healthy_year_has_no_alarm(every: int) -> None:
    decision = decided(World(every=every, nights=365))
    assert decision.alarms == ()
    assert len(decision.watched) < 12
    assert decision.learning == ()


@pytest.mark.parametrize("every", EACH_NIGHT)
def test_a_slow_node(every: int) -> None:
    alarm = the_alarm(World(slow(ONE, 0.1, metrics=1), every=every, nights=130))
    assert (alarm.kind, alarm.nodes) == ("node", ("cn07",))
    assert alarm.name == f"{alarm.night}-cn07"
    (loss,) = alarm.losses
    assert str(loss.metric) == "case0 bw (gnu)"
    assert loss.before == pytest.approx(100, rel=0.04)
    assert loss.after / loss.before == pytest.approx(0.9, abs=0.02)
    assert loss.share == pytest.approx(1 - loss.after / loss.before)
    assert alarm.closed is None


def test_losses_are_worse_for_times_too() -> None:
    alarm = the_alarm(World(slow(ONE, 0.1)))
    losses = {loss.metric.case: loss for loss in alarm.losses}
    assert losses["case2"].after > losses["case2"].before
    shares = [loss.share for loss in alarm.losses]
    assert shares == sorted(shares, reverse=True)
    assert min(shares) > 0.05


def test_a_good_node_closes_its_alarm_and_may_have_another() -> None:
    def edit(night: int, values: Floats) -> None:
        if 100 <= night < 120 or night >= 160:
            values[7] *= 0.9

    decision = decided(World(edit, nights=190))
    first, second = decision.alarms
    assert 122 <= night_of(first.closed) <= 126, "the third good night, or soon"
    assert night_of(second.onset[0]) <= 160 <= night_of(second.onset[1])
    assert (second.nodes, second.closed) == (("cn07",), None)
    assert decision.notes == (), "a recovery is no improvement"


def test_a_repair_that_helps_closes_an_alarm() -> None:
    world = World(slow(ONE, 0.1, until=120), nights=130, repaired=((120, 7),))
    assert 122 <= night_of(the_alarm(world).closed) <= 126


def test_a_repair_that_does_not_help_begins_anew_and_closes_nothing() -> None:
    world = World(slow(ONE, 0.1), nights=125, repaired=((120, 7),))
    assert the_alarm(world).closed is None
    (learning,) = decided(world).learning
    assert (learning.node, learning.visits, learning.needed) == ("cn07", 5, NEEDED)


def test_a_repaired_node_is_not_compared_with_its_past() -> None:
    world = World(slow(ONE, 0.1), repaired=((ONSET, 7),), versions=updated(ONE))
    assert decided(world).alarms == ()


@pytest.mark.parametrize("every", IN_TURNS)
def test_an_update_of_all_nodes_that_costs_is_reported_once(every: int) -> None:
    world = World(slow(ALL, 0.08), updated(ALL), every=every)
    alarm = the_alarm(world)
    assert (alarm.kind, len(alarm.nodes)) == ("explained", NODES)
    assert alarm.closed == alarm.night
    (change,) = alarm.changes
    assert (change.key, change.was, change.now) == ("firmware", "0", "1")
    assert change.differs is None, "no node is left to compare"
    assert alarm.losses[0].share == pytest.approx(0.08, abs=0.02)


@pytest.mark.parametrize("every", EACH_NIGHT)
def test_an_update_of_some_nodes_that_costs_is_reported_once(every: int) -> None:
    alarm = the_alarm(World(slow(FIRST, 0.08), updated(FIRST), every=every))
    assert (alarm.kind, len(alarm.nodes)) == ("explained", 20)
    assert [change.differs for change in alarm.changes] == [True]


@pytest.mark.parametrize("every", IN_TURNS)
def test_a_rolling_update_that_costs_is_reported_once(every: int) -> None:
    decision = decided(World(rolled(-0.08), rolling, every=every, nights=250))
    (alarm,) = decision.alarms
    assert (alarm.kind, len(alarm.nodes)) == ("explained", NODES)
    assert [change.differs for change in alarm.changes] == [True]


@pytest.mark.parametrize(
    ("gain", "rate", "every"),
    [
        (-0.08, 4, 1),
        (-0.08, 6, 5),
        (0.08, 20, 1),
        pytest.param(-0.08, 4, 5, marks=SLOW),
        pytest.param(-0.08, 6, 1, marks=SLOW),
        pytest.param(-0.08, 20, 1, marks=SLOW),
        pytest.param(0.08, 4, 1, marks=SLOW),
        pytest.param(0.08, 4, 5, marks=SLOW),
        pytest.param(0.08, 6, 1, marks=SLOW),
        pytest.param(0.08, 6, 5, marks=SLOW),
    ],
)
def test_a_fast_rolling_update(gain: float, rate: int, every: int) -> None:
    """It moves neither the nodes that wait nor those that changed first."""

    def versions(night: int) -> NDArray[np.int64]:
        return np.asarray(np.arange(NODES) < rate * (night - ONSET), dtype=np.int64)

    def edit(night: int, values: Floats) -> None:
        values[versions(night) == 1] *= 1 + gain

    alarms = decided(World(edit, versions, every=every, nights=200)).alarms
    assert [alarm.kind for alarm in alarms] == ["explained"] * (gain < 0)


UPDATES = {"all": updated(ALL), "some": updated(FIRST), "rolling": rolling}
QUICK = {("all", 1, 0.08), ("some", 5, 0.0), ("rolling", 5, 0.08)}


@pytest.mark.parametrize(
    ("update", "every", "gain"),
    [
        pytest.param(*each, marks=[] if each in QUICK else SLOW)
        for each in product(UPDATES, (1, 5), (0.0, 0.08))
    ],
)
def test_an_update_that_costs_nothing(update: str, every: int, gain: float) -> None:
    versions = UPDATES[update]

    def edit(night: int, values: Floats) -> None:
        values[versions(night) == 1] *= 1 + gain

    decision = decided(World(edit, versions, every=every, nights=250))
    assert decision.alarms == ()


@pytest.mark.parametrize("every", EACH_NIGHT)
def test_a_fault_beside_an_update_is_not_explained(every: int) -> None:
    """The other updated nodes are as good as before."""
    alarm = the_alarm(World(slow(ONE, 0.1), updated(FIRST), every=every))
    assert (alarm.kind, alarm.nodes) == ("node", ("cn07",))
    assert [change.differs for change in alarm.changes] == [False]


def test_a_change_of_one_node_is_listed_and_proves_nothing() -> None:
    """It was chosen for its loss, so it is no evidence against the change."""

    def versions(night: int) -> NDArray[np.int64]:
        return np.asarray((np.arange(150) == 7) & (night >= ONSET), dtype=np.int64)

    alarm = the_alarm(World(slow(ONE, 0.1), versions, nodes=150))
    assert alarm.kind == "node"
    assert [(c.nodes, c.differs) for c in alarm.changes] == [(("cn07",), None)]


@pytest.mark.parametrize("every", IN_TURNS)
def test_a_slow_leaf_is_one_alarm(every: int) -> None:
    """Of all its nodes; up to two were accused before the third."""
    leaf = slice(8, 32)
    world = World(slow(leaf, 0.1, until=999), every=every, nights=180, leaf=True)
    world = replace(world, nodes=90, versions=lambda _: np.zeros(90, dtype=np.int64))
    *single, common = decided(world).alarms
    assert {alarm.kind for alarm in single} <= {"node"}
    assert len(single) <= 2
    assert (common.kind, common.shared) == ("common", "leaf l03")
    assert common.nodes == LEAF["leaf l03"]
    assert common.closed is None


def test_a_good_leaf_closes_its_alarm() -> None:
    world = World(slow(slice(8, 12), 0.1, until=120), leaf=True)
    (alarm,) = decided(world).alarms
    assert (alarm.kind, len(alarm.nodes)) == ("common", 4)
    assert 122 <= night_of(alarm.closed) <= 132


def test_more_suspects_than_the_cap_are_one_alarm_of_unknown_cause() -> None:
    (alarm,) = decided(World(slow(slice(0, NODES, 9), 0.2))).alarms
    assert (alarm.kind, alarm.shared, len(alarm.nodes)) == ("common", "", 7)


@pytest.mark.parametrize("every", IN_TURNS)
def test_a_slow_machine_is_one_alarm(every: int) -> None:
    alarm = the_alarm(World(slow(ALL, 0.08), every=every))
    assert (alarm.kind, len(alarm.nodes)) == ("machine", NODES)
    assert alarm.name == f"{alarm.night}-cpu"
    assert alarm.changes == ()


def test_a_slow_class_does_not_blame_the_other() -> None:
    classes = ("cpu",) * 30 + ("gpu",) * 30
    alarm = the_alarm(World(slow(slice(30, 60), 0.08, until=130), classes=classes))
    assert alarm.kind == "machine"
    assert alarm.nodes == tuple(f"cn{node}" for node in range(30, 60))
    assert 132 <= night_of(alarm.closed) <= 136


def test_missing_nights_are_no_fault() -> None:
    assert decided(World(missing=0.4)).alarms == ()
    alarm = the_alarm(World(slow(ONE, 0.1), missing=0.4))
    assert alarm.nodes == ("cn07",)


def test_an_improvement_is_a_note() -> None:
    decision = decided(World(slow(ONE, -0.1, metrics=1)))
    assert decision.alarms == ()
    (note,) = decision.notes
    assert note.node == "cn07"
    assert note.text.startswith("cn07: case0 bw (gnu): ")
    assert "% better" in note.text


def test_half_a_recovery_is_no_improvement() -> None:
    def edit(night: int, values: Floats) -> None:
        values[7] *= 1 if night < ONSET else 0.9 if night < 140 else 0.97

    decision = decided(World(edit, nights=170))
    (alarm,) = decision.alarms
    assert (alarm.closed, decision.notes) == (None, ())


def test_watched_and_learning_nodes() -> None:
    decision = decided(World(slow(ONE, 0.1), nights=ONSET + 3))
    assert "cn07" in {one.node for one in decision.watched}
    learning = decided(World(nights=9)).learning
    assert {(one.visits, one.needed) for one in learning} == {(9, NEEDED)}
    assert len(learning) == NODES


LOOKED_AHEAD = (
    World(slow(ONE, 0.1), updated(FIRST), nights=125),
    World(slow(ALL, 0.08), updated(ALL), nights=125),
    pytest.param(World(slow(slice(8, 16), 0.1), leaf=True, nights=125), marks=SLOW),
    pytest.param(World(slow(ONE, -0.1), nights=125), marks=SLOW),
)


@pytest.mark.parametrize("world", LOOKED_AHEAD)
def test_the_first_nights_do_not_look_ahead(world: World) -> None:
    """Later nodes may join an alarm, and it may close; all else stays."""
    visits, whole = world.visits(), decided(world)
    for nights in (98, 103, 105, 110):
        part, last = decide(visits.first(nights), RULES), visits.nights[nights - 1]
        expected = [alarm for alarm in whole.alarms if alarm.night <= last]
        assert [_fixed(alarm) for alarm in part.alarms] == [*map(_fixed, expected)]
        for alarm, later in zip(part.alarms, expected, strict=True):
            assert {*alarm.nodes} <= {*later.nodes}
        assert part.notes == tuple(n for n in whole.notes if n.night <= last)


def _fixed(alarm: Alarm) -> Alarm:
    return replace(alarm, closed=None, nodes=())
