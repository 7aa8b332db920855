"""Weights of a bake-off: read, shared out, refused."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bakeoff_samples import SHA256, WEIGHTS, weights_of
from reframe_runs import HOME

from seatrial.compare.records import Key
from seatrial.compare.weight_shares import grouped, shares
from seatrial.criteria.keys import ANY, Known
from seatrial.criteria.weights import Choice, Group, Weights
from seatrial.errors import SeatrialError


def test_file_is_read_as_it_is_written(tmp_path: Path) -> None:
    assert weights_of(tmp_path) == Weights(
        name="bakeoff",
        sha256=SHA256,
        rank_by="performance",
        margin=0.02,
        groups=(
            Group("latency", 1.0, (Choice("OsuLatency", ("latency",)),)),
            Group("programs", 3.0, (Choice("LammpsRhodo", ("loop_time",)),)),
        ),
    )


def test_what_is_left_out_has_a_default(tmp_path: Path) -> None:
    text = "schema: 1\ngroups: [{name: a, weight: 2, numbers: [{check: Npb}]}]\n"
    weights = weights_of(tmp_path, text)
    assert (weights.rank_by, weights.margin) == ("performance", 0.0)
    assert weights.groups[0].numbers == (Choice("Npb"),)


@pytest.mark.parametrize("file", sorted((HOME / "reference-data/weights").glob("*.*")))
def test_weights_of_the_suite_are_sound(file: Path) -> None:
    assert Weights.load(file).groups


BROKEN = [
    ("schema: 1", "schema: 2", 1, "schema: expected 1, got 2."),
    (
        "schema: 1\n",
        "",
        1,
        "schema: expected 1, got nothing.",
    ),
    (
        "margin: 0.02",
        "margins: 1",
        2,
        "margins: expected one of the keys schema, groups, rank_by, margin, got 'marg",
    ),
    (
        "margin: 0.02",
        "margin: 2 %",
        2,
        "margin: expected a share, from 0 to below 1, got '2 %'.",
    ),
    (
        "margin: 0.02",
        "margin: -1",
        2,
        "margin: expected a share, from 0 to below 1, got -1.",
    ),
    (
        "margin: 0.02",
        "margin: .nan",
        2,
        "margin: expected a number below 2^64, got .nan.",
    ),
    (
        "margin: 0.02",
        "rank_by: looks",
        2,
        "rank_by: expected one of performance, price, power, got 'looks'.",
    ),
    (
        "margin: 0.02",
        "rank_by: [a]",
        2,
        "rank_by: expected one of performance, price, power, got ['a'].",
    ),
    ("weight: 1", "weight: -1", 5, "groups[0].weight: expected a number >= 0, got -1."),
    (
        "weight: 1",
        "weight: .nan",
        5,
        "groups[0].weight: expected a number below 2^64, got .nan.",
    ),
    (
        "weight: 1",
        "weight: .inf",
        5,
        "groups[0].weight: expected a number below 2^64, got .inf.",
    ),
    (
        "weight: 1",
        "weight: heavy",
        5,
        "groups[0].weight: expected a number >= 0, got 'heavy'.",
    ),
    (
        "weight: 1",
        "weight: true",
        5,
        "groups[0].weight: expected a number >= 0, got True.",
    ),
    (
        "    weight: 1\n",
        "",
        4,
        "groups[0].weight: expected a number >= 0, got nothing.",
    ),
    ("name: latency", "name: ''", 4, "groups[0].name: expected a text, got ''."),
    (
        "name: latency",
        "title: a",
        4,
        "groups[0].title: expected one of the keys name, weight, numbers, got 'title'",
    ),
    (
        "name: latency",
        "name: programs",
        8,
        "groups[1]: line 4 has a group 'programs'. Rename one.",
    ),
    ("[latency]", "[lat]", 7, "unknown metric 'lat', expected a name such as latency"),
    ("[latency]", "[latency_8]", 7, "not a message size: '8'"),
    ("[latency]", "[]", 7, "expected a list of metrics such as bw_4MiB"),
    ("[latency]", "[latency, latency]", 7, "latency is listed twice"),
    (
        "OsuLatency",
        "OsuLate",
        7,
        "groups[0].numbers[0].check: expected one of the checks LammpsRhodo, OsuLaten",
    ),
    (
        "check: OsuL",
        "test: OsuL",
        7,
        "groups[0].numbers[0].test: expected one of the keys check, metrics, where, g",
    ),
    (
        "[latency]}",
        "[latency], where: {$system: a}}",
        7,
        "groups[0].numbers[0].where.$system: differs between sides. Leave it out.",
    ),
    (
        "[latency]}",
        "[latency], where: {$environ: '['}}",
        7,
        "groups[0].numbers[0].where.$environ: expected a regular expression (untermin",
    ),
    (
        "groups:",
        "groups: []\nx:",
        4,
        "x: expected one of the keys schema, groups, rank_by, margin, got 'x'.",
    ),
    (
        WEIGHTS[WEIGHTS.index("groups") :],
        "groups: []",
        3,
        "groups: expected a list of groups, got [].",
    ),
]


@pytest.mark.parametrize(("old", "new", "line", "reason"), BROKEN)
def test_fault_is_told_with_its_line(
    tmp_path: Path, old: str, new: str, line: int, reason: str
) -> None:
    assert old in WEIGHTS
    file = tmp_path / "w.yaml"
    file.write_text(WEIGHTS.replace(old, new, 1))
    with pytest.raises(SeatrialError) as caught:
        Weights.load(file, Known(("OsuLatency", "LammpsRhodo")))
    place, _, told = str(caught.value).partition(": ")
    assert place == f"{file}:{line}"
    assert reason in told


def test_weights_that_sum_to_0_are_refused(tmp_path: Path) -> None:
    text = re.sub(r"weight: \d", "weight: 0", WEIGHTS)
    with pytest.raises(SeatrialError) as caught:
        weights_of(tmp_path, text)
    assert str(caught.value) == (
        f"{tmp_path}/bakeoff.yaml:3: groups: expected a weight above 0, got a sum of 0."
    )


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SeatrialError, match="No such file"):
        Weights.load(tmp_path / "none.yaml", known=ANY)


def key(check: str, metric: str, size: int | None = None, **more: Any) -> Key:
    given = {"case": "", "environment": "", "partition": "", "num_nodes": None}
    return Key(check=check, metric=metric, size_bytes=size, **(given | more))


KEYS = [
    key("Osu", "latency", 1),
    key("Osu", "latency", 8),
    key("Osu", "bw", 8),
    key("Osu", "bw", 8, case="ppn=2"),
    key("Npb", "Mops_total"),
]


def test_shares_are_by_check_case_metric_and_size() -> None:
    found = shares(KEYS, range(5))
    np.testing.assert_allclose(found, [1 / 16, 1 / 16, 1 / 8, 1 / 4, 1 / 2])
    np.testing.assert_allclose(shares(KEYS, [0, 1, 2]), [1 / 4, 1 / 4, 1 / 2, 0, 0])
    assert not shares(KEYS, []).any()


def chosen(*groups: tuple[str, Choice]) -> Weights:
    return Weights(
        "w", "", "performance", 0, tuple(Group(name, 1, (it,)) for name, it in groups)
    )


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (Choice("Osu"), [0, 0, 0, 0, -1]),
        (Choice("Osu", ("latency",)), [0, 0, -1, -1, -1]),
        (Choice("Osu", ("latency_8B", "bw")), [-1, 0, 0, 0, -1]),
        (Choice("Osu", (), {"ppn": 2}), [-1, -1, -1, 0, -1]),
        (Choice("Osu", (), {"$environ": "open.*"}), [0, 0, 0, 0, -1]),
        (Choice("Osu", (), {"num_nodes": 4}), [0, 0, -1, -1, -1]),
    ],
)
def test_choice_takes_what_it_names(choice: Choice, expected: list[int]) -> None:
    stack = {"$environ": ["openmpi"]}
    values: list[dict[str, Any]] = [{**stack, "num_nodes": [4]}] * 2
    values += [stack, {**stack, "ppn": [2]}, stack]
    assert grouped(KEYS, values, chosen(("a", choice))).of_number == tuple(expected)


def test_two_groups_do_not_choose_one_number() -> None:
    weights = chosen(("a", Choice("Osu")), ("b", Choice("Osu", ("bw_8B",))))
    with pytest.raises(SeatrialError) as caught:
        grouped(KEYS, [{}] * 5, weights)
    assert str(caught.value) == (
        "weights w: groups 'a' and 'b' both choose Osu bw_8B; expected one group for "
        "each number"
    )


def test_without_weights_each_check_is_a_group() -> None:
    found = grouped(KEYS, [{}] * 5, None)
    assert [group.name for group in found.groups] == ["Osu", "Npb"]
    assert found.of_number == (0, 0, 0, 0, 1)
    np.testing.assert_allclose(found.weights(), [0.5, 0.5])


def test_what_nobody_measured_is_told() -> None:
    weights = chosen(("a", Choice("Hpcc", ("HPL_Tflops",), {"ppn": 4})))
    found = grouped(KEYS, [{}] * 5, weights)
    assert found.unmeasured == (("a", "Hpcc HPL_Tflops (ppn=4)"),)
