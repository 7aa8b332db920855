"""Alarms by the limits of each night, and with those of history, as one list."""

from collections.abc import Mapping, Sequence

import numpy as np

from seatrial.history.records import Alarm, Loss, Metric, Visits
from seatrial.nightly.alarms import limit_alarms, merged

NODES = ("cn01", "cn02", "cn03", "cn04")
METRIC = Metric("ImbRing", "ImbRing", "mpi", "p", "bw_4MiB", "mean", "MB/s", True)
DAYS = np.arange("2026-03-01", "2026-03-11", dtype="datetime64[D]")


def visits(missing: Mapping[int, Sequence[str]] | None = None) -> Visits:
    size = (len(DAYS), len(NODES))
    configurations = np.zeros(size, dtype=np.int64)
    for night, nodes in (missing or {}).items():
        configurations[night, [NODES.index(node) for node in nodes]] = -1
    return Visits(
        nights=DAYS,
        runs=("r",) * len(DAYS),
        nodes=NODES,
        classes=("batch",) * len(NODES),
        metrics=(METRIC,),
        values=np.ones((*size, 1)),
        configurations=configurations,
        configured=({},),
        repaired=np.zeros(size, dtype=bool),
    )


def alarms(
    found: Mapping[int, Mapping[str, Sequence[str]]],
    missing: Mapping[int, Sequence[str]] | None = None,
    most: int = 1,
) -> list[Alarm]:
    faults = [found.get(night, {}) for night in range(len(DAYS))]
    pairs = [{"cn01 - cn02", "cn01 - cn03", "cn02 - cn04"}] * len(DAYS)
    return limit_alarms(visits(missing), faults, pairs, most)


def test_a_fault_that_lasts_is_one_alarm() -> None:
    (alarm,) = alarms({night: {"cn02": ["slow"]} for night in range(2, 10)})
    assert (alarm.name, alarm.kind) == ("2026-03-03-cn02", "node")
    assert alarm.faults == ("slow",)
    assert alarm.closed is None


def test_three_good_nights_in_a_row_end_it() -> None:
    (alarm,) = alarms({1: {"cn02": ["slow"]}, 3: {"cn02": ["slow"]}})
    assert alarm.closed == DAYS[6]


def test_nights_without_a_measurement_do_not_count_as_good() -> None:
    (alarm,) = alarms({1: {"cn02": ["slow"]}}, {2: ["cn02"], 3: ["cn02"], 4: ["cn02"]})
    assert alarm.closed == DAYS[7]


def test_a_node_can_fail_again() -> None:
    first, second = alarms({0: {"cn02": ["slow"]}, 8: {"cn02": ["slow"]}})
    assert (first.closed, second.night) == (DAYS[3], DAYS[8])


def test_more_nodes_than_the_cap_have_a_common_cause() -> None:
    (alarm,) = alarms({4: {"cn01": ["slow"], "cn03": ["slow"]}})
    assert (alarm.kind, alarm.nodes) == ("common", ("cn01", "cn03"))
    two = alarms({4: {"cn01": ["slow"], "cn03": ["slow"]}}, most=2)
    assert [one.kind for one in two] == ["node", "node"]


def test_pairs_leafs_and_the_whole_are_no_nodes() -> None:
    found = {"cn01 - cn02": ["slow"], "leaf l3": ["slow"], "": ["crashed"]}
    every = alarms(dict.fromkeys(range(10), found))
    assert [(one.name[11:], one.kind, one.nodes, one.shared) for one in every] == [
        ("run", "common", (), "the whole run"),
        ("cn01-cn02", "common", ("cn01", "cn02"), "cn01 - cn02"),
        ("leafl3", "common", (), "leaf l3"),
    ]


def test_a_slow_pair_of_a_bad_node_is_no_alarm_of_its_own() -> None:
    pair = {"cn02 - cn01": ["slow"], "cn01 - cn02": ["slow"]}
    (both,) = alarms({3: {"cn02": ["bad"], **pair}})
    assert (both.name, both.faults) == ("2026-03-04-cn02", ("bad", "slow", "slow"))
    (later,) = alarms({1: {"cn02": ["bad"]}, 3: pair})
    assert later.closed == DAYS[6]
    (alone,) = alarms(dict.fromkeys((1, 2), pair))
    assert alone.name == "2026-03-02-cn01-cn02"
    assert len(merged([alone, history(2, "cn02")])) == 2
    (left,) = alarms({night: {"cn02 - cn99": ["slow"]} for night in (1, 2)})
    assert left.nodes == ("cn02",)
    assert len(merged([left, history(2, "cn02")])) == 2


def test_nodes_of_a_common_alarm_may_be_good_in_different_nights() -> None:
    odd = {night: ["cn01"] for night in range(1, 10, 2)}
    even = {night: ["cn02"] for night in range(2, 10, 2)}
    (alarm,) = alarms({0: {"cn01": ["slow"], "cn02": ["slow"]}}, odd | even)
    assert alarm.closed == DAYS[6]


def test_a_pair_ends_only_by_nights_that_measured_it() -> None:
    (alarm,) = alarms({0: {"cn03 - cn04": ["slow"]}})
    assert alarm.closed is None


def test_an_alarm_of_a_node_is_not_lost_in_a_common_one() -> None:
    of_limits = alarms({2: {"cn01": ["slow"], "cn02": ["slow"]}})
    assert [one.kind for one in merged([*of_limits, history(3, "cn02")])] == [
        "common",
        "node",
    ]


def test_many_pairs_in_one_night_are_one_alarm() -> None:
    pairs = ("cn01 - cn02", "cn01 - cn03", "cn04 - cn02")
    found = {pair: ["slow"] for pair in pairs}
    (alarm,) = alarms(dict.fromkeys(range(3, 10), found))
    assert (alarm.name, alarm.nodes) == ("2026-03-04-pairs", NODES)
    assert alarm.shared == "3 pairs of nodes"
    (closed,) = alarms({3: found})
    assert closed.closed == DAYS[6], "each of these pairs is measured every night"


def history(night: int, node: str, closed: int | None = None) -> Alarm:
    return Alarm(
        f"{DAYS[night]}-{node}",
        "node",
        (node,),
        DAYS[night],
        (DAYS[night - 1], DAYS[night]),
        losses=(Loss(METRIC, 100.0, 90.0, 0.1),),
        evidence=5000.0,
        closed=None if closed is None else DAYS[closed],
    )


def test_history_adds_evidence_to_an_alarm_that_lasts() -> None:
    of_limits = alarms({night: {"cn02": ["slow"]} for night in range(2, 10)})
    (alarm,) = merged([*of_limits, history(5, "cn02")])
    assert (alarm.name, alarm.evidence) == ("2026-03-03-cn02", 5000.0)
    assert alarm.losses
    assert alarm.faults == ("slow",)


def test_a_later_alarm_is_another() -> None:
    of_limits = alarms({0: {"cn02": ["slow"]}})
    assert len(merged([*of_limits, history(5, "cn02")])) == 2
    assert len(merged([*of_limits, history(2, "cn03")])) == 2


def test_a_merged_alarm_lasts_as_long_as_either() -> None:
    of_limits = alarms({2: {"cn02": ["slow"]}})
    assert merged([*of_limits, history(3, "cn02")])[0].closed is None
    assert merged([*of_limits, history(3, "cn02", 8)])[0].closed == DAYS[8]
