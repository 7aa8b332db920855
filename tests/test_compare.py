"""Comparing runs: what is paired, and who wins."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bakeoff_samples import (
    WEIGHTS,
    case,
    entrant,
    number,
    numbers_of,
    of,
    published,
    run_of,
    side,
    vendor,
    weights_of,
)

from seatrial.compare.compare import compare
from seatrial.compare.formats import as_json
from seatrial.compare.records import Unpaired
from seatrial.compare.sides import Entrant, open_sides, priced
from seatrial.compare.wording import sentence
from seatrial.errors import SeatrialError

# ---- what is paired


def test_whole_comparison_of_one_number() -> None:
    """By hand: 2 us and 8 us are 4 us; 1 us and 4 us are 2 us, which is twice as good.

    The variances of the logarithms are (ln 4)^2 / 2 each if both repeats are
    independent; with the correlation of 0.5 that is assumed, twice that, and that of
    their mean is 3/4 of it. t of 2 degrees of freedom.
    """
    found = compare([of("a", {"latency_8B": [2, 8]}), of("b", {"latency_8B": [1, 4]})])
    (only,) = found.numbers
    assert only.values == pytest.approx((4.0, 2.0))
    assert only.n == (2, 2)
    ratio = only.ratios[1]
    assert ratio is not None
    half = 4.302652729 * np.log(4) * np.sqrt(2 * 3 / 4)
    assert ratio.value == pytest.approx(2.0)
    assert ratio.lower == pytest.approx(2 * np.exp(-half))
    assert ratio.upper == pytest.approx(2 * np.exp(half))
    assert (only.check, only.case, only.environment) == ("Osu", "", "openmpi")
    assert (only.metric, only.size_bytes, only.num_nodes) == ("latency", 8, 2)
    assert (only.unit, only.direction, only.weight) == ("us", "lower", 1.0)
    assert (only.group, only.marks, only.note) == ("Osu", ("", ""), "")
    (group,) = found.groups
    assert group.ratios == (None, ratio)
    first, second = found.ranking
    assert (first.side, first.rank, second.rank) == ("b", 1, 2)
    assert first.score == ratio
    assert second.score.value == 1.0
    assert second.score.lower is None
    assert found.lead == ratio
    assert (found.ahead, found.winner, found.frozen) == ("b", None, False)
    assert found.why[0] == "no weights say what counts how much"
    assert found.unpaired == ()


def test_rates_are_better_when_higher() -> None:
    found = compare([of("a", {"bw_8B": [2, 8]}), of("b", {"bw_8B": [1, 4]})])
    assert found.numbers[0].ratios[1]
    assert found.numbers[0].ratios[1].value == pytest.approx(0.5)
    assert found.ahead == "a"


def test_of_places_the_median_of_each_allocation_counts() -> None:
    cases = [case("NodeSweep", repeat) for repeat in (1, 2)]
    rows = [
        number(one, "mem_bw", value, node=f"cn{place}")
        for one in cases
        for place, value in enumerate((100.0, 200.0, 900.0))
    ]
    single = [number(one, "mem_bw", 100.0, node="n1") for one in cases]
    other = [replace(one, nodes=("n1",)) for one in cases]
    found = compare(
        [entrant("a", run_of(cases, rows)), entrant("b", run_of(other, single))]
    )
    (only,) = found.numbers
    assert only.values == pytest.approx((200.0, 100.0))
    assert only.n == (2, 2)
    assert only.num_nodes is None


def test_of_several_statistics_the_one_that_both_have_counts() -> None:
    cases, rows = numbers_of({"latency_8B": [2, 2]})
    both = rows + [replace(row, statistic="p50", value=9.0) for row in rows]
    middle = [replace(row, statistic="p50", value=3.0) for row in rows]
    first, second = run_of(cases, both), run_of(cases, middle)
    mean = compare([entrant("a", first), entrant("b", first)])
    assert mean.numbers[0].values == pytest.approx((2.0, 2.0))
    p50 = compare([entrant("a", first), entrant("b", second)])
    assert p50.numbers[0].values == pytest.approx((9.0, 3.0))


def test_parameters_of_a_number_are_part_of_its_case() -> None:
    cases, _ = numbers_of({"latency_8B": [1, 1]}, parameters={"ppn": 2})
    rows = [
        number(one, "match_time", depth, parameters=f'{{"depth": {depth}, "ppn": 2}}')
        for one in cases
        for depth in (8, 16)
    ]
    found = compare(
        [entrant("a", run_of(cases, rows)), entrant("b", run_of(cases, rows))]
    )
    assert [each.case for each in found.numbers] == [
        "depth=8, ppn=2",
        "depth=16, ppn=2",
    ]
    assert found.unpaired == ()


def test_environments_pair_by_name_unless_every_side_has_one() -> None:
    one = run_of(*numbers_of({"latency_8B": [2, 2]}), "acme")
    cases, rows = numbers_of({"latency_8B": [1, 1]}, environment="mpich")
    other = run_of(cases, rows, "zenith")
    found = compare([entrant("a", one, "openmpi"), entrant("z", other, "mpich")])
    assert [each.environment for each in found.numbers] == [""]
    with pytest.raises(SeatrialError) as caught:
        compare([entrant("a", one), entrant("z", other, "mpich")])
    assert str(caught.value) == (
        "no number that all sides have: a has Osu with openmpi on 2 nodes; z has Osu "
        "with mpich on 2 nodes; expected the same check, parameters, environment, "
        "number of nodes, metric and size; RUN@ENVIRONMENT compares different "
        "environments"
    )


def test_partitions_tell_cases_apart_where_a_side_has_several() -> None:
    def machine(system: str, *partitions: str) -> Entrant:
        parts = [
            numbers_of({"latency_8B": [level, level]}, partition=f"{system}:{name}")
            for level, name in enumerate(partitions, 1)
        ]
        cases = [one for part in parts for one in part[0]]
        return entrant(system, run_of(cases, [r for part in parts for r in part[1]]))

    plain = compare([machine("a", "batch"), machine("b", "cpu")])
    assert [each.partition for each in plain.numbers] == [""]
    several = compare([machine("a", "cpu", "gpu"), machine("b", "cpu")])
    assert [each.partition for each in several.numbers] == ["cpu"]
    assert several.unpaired == (
        Unpaired("Osu", "openmpi, gpu, 2 nodes", "", "Osu", ("", "not run")),
    )


# ---- who wins


def test_better_system_wins(tmp_path: Path) -> None:
    found = compare([side("a"), side("b", 1.2, 2)], weights_of(tmp_path))
    assert (found.winner, found.why, found.frozen) == ("b", (), True)
    assert found.more_repeats is None
    assert sentence(found).startswith("b wins: b is 20.9 % better than a (15.8 to 26.2")
    assert found.ranking[0].selected == 1.0
    for each in found.numbers:
        assert each.marks == ("", "better")
    assert [group.weight for group in found.groups] == [0.25, 0.75]


def test_close_systems_need_more_repeats(tmp_path: Path) -> None:
    found = compare([side("a"), side("b", 1.025, 2)], weights_of(tmp_path))
    assert found.winner is None
    assert found.more_repeats is not None
    assert 0 < found.more_repeats < 1000
    assert found.why[0].startswith("b is ahead of a by ")


BARRED = [
    ({"weights_sha256": ""}, "weights bakeoff were not frozen: b did not record them "),
    ({"weights_sha256": "5ea7"}, "weights bakeoff were not frozen: b did not record "),
    ({"verdict": "fail"}, "b cannot win: it fails the criteria"),
]


@pytest.mark.parametrize(("more", "reason"), BARRED)
def test_barred_side_does_not_win(
    tmp_path: Path, more: dict[str, Any], reason: str
) -> None:
    found = compare([side("a"), side("b", 1.5, 2, **more)], weights_of(tmp_path))
    assert (found.ahead, found.winner) == ("b", None)
    assert len(found.why) == 1
    assert found.why[0].startswith(reason)


def test_replays_are_compared_and_nobody_wins(tmp_path: Path) -> None:
    sides = [
        entrant(name, run_of(*vendor(better, seed=2), name, replay="recorded"))
        for name, better in (("a", 1.0), ("b", 1.5))
    ]
    found = compare(sides, weights_of(tmp_path))
    assert all(each.replay for each in found.sides)
    assert found.why[0] == (
        "b cannot win: it is a replay of recorded output, no measurement"
    )


def test_weights_of_what_nobody_measured_let_nobody_win(tmp_path: Path) -> None:
    text = WEIGHTS.replace("OsuLatency, metrics: [latency]", "Hpcc")
    weights = weights_of(tmp_path, text)
    sides = [
        side(name, better, 2, weights_sha256=weights.sha256)
        for name, better in (("a", 1.0), ("b", 1.5))
    ]
    found = compare(sides, weights)
    assert found.why == ("group latency: no side measured Hpcc",)
    assert [(group.name, group.numbers) for group in found.groups] == [
        ("latency", 0),
        ("programs", 1),
    ]
    assert found.groups[0].ratios == (None, None)


@pytest.mark.parametrize(
    ("rank_by", "ahead", "factor"), [("price", "a", 1 / 2), ("power", "b", 4.0)]
)
def test_price_and_power_are_what_performance_is_divided_by(
    tmp_path: Path, rank_by: str, ahead: str, factor: float
) -> None:
    text = WEIGHTS.replace("margin", f"rank_by: {rank_by}\nmargin")
    sides = priced(
        [side("a"), side("b", 1.2, 2)], {"a": 1.0, "b": 2.0}, {"a": 40.0, "b": 10.0}
    )
    found = compare(sides, weights_of(tmp_path, text))
    assert found.ahead == ahead
    other = "power" if rank_by == "price" else "price"
    assert found.notes == (
        f"{other} is shown and changes no rank: it goes by {rank_by}",
    )
    b = next(each for each in found.ranking if each.side == "b")
    assert b.score.value == pytest.approx(b.performance.value * factor)
    assert b.score.lower is not None
    assert b.performance.lower is not None
    assert b.score.lower == pytest.approx(b.performance.lower * factor)


def test_same_input_gives_the_same_record(tmp_path: Path) -> None:
    texts = {
        as_json(compare([side("a"), side("b", 1.02, 2)], weights_of(tmp_path)))
        for _ in range(2)
    }
    assert len(texts) == 1


def test_means_do_not_depend_on_the_order_of_threads() -> None:
    drawn = np.random.default_rng(1).lognormal(size=(2, 60, 7))
    a, b = (
        of(name, {f"latency_{size}B": [*row] for size, row in enumerate(values, 1)})
        for name, values in zip("ab", drawn, strict=True)
    )
    assert len({as_json(compare([a, b])) for _ in range(4)}) == 1


# ---- published beside a run


def test_run_beside_a_published_system() -> None:
    (paper,) = open_sides(["published:connectx3-qdr"], pytest.fail, published)
    found = compare(
        [side("acme"), paper],
        published=published(),
        experiments={"OsuLatency": ("E18", "E23", "E29", "E30", "E41")},
    )
    (only,) = found.numbers
    assert (only.check, only.metric, only.size_bytes) == ("OsuLatency", "latency", 8)
    assert only.values[1] == pytest.approx(1.6)
    assert only.note == (
        "connectx3-qdr is of another machine, of 2011 (MPI ping-pong; section 4, "
        "figure 4)"
    )
    assert only.ratios[1]
    assert only.ratios[1].lower is None
    assert only.n == (6, 0)
    assert found.ranking[0].selected is None
    assert ("LammpsRhodo", ("", "the paper has no such number")) in [
        (each.check, each.reasons) for each in found.unpaired
    ]
