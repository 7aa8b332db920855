"""Comparing runs: what not all sides have, why, and what follows for a winner."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bakeoff_samples import (
    WEIGHTS,
    Rows,
    case,
    entrant,
    number,
    run_of,
    side,
    vendor,
    weights_of,
)

from seatrial.compare.compare import compare
from seatrial.compare.records import Unpaired
from seatrial.compare.sides import Entrant
from seatrial.model.cases import CaseResult


def failing(result: CaseResult, **more: Any) -> Callable[[Rows], Rows]:
    def spoil(rows: Rows) -> Rows:
        cases = [
            replace(one, result=result, **more) if one.check == "OsuLatency" else one
            for one in rows[0]
        ]
        return cases, [row for row in rows[1] if row.check != "OsuLatency"]

    return spoil


def without_check(rows: Rows) -> Rows:
    return (
        [one for one in rows[0] if one.check != "OsuLatency"],
        [row for row in rows[1] if row.check != "OsuLatency"],
    )


def without_size(rows: Rows) -> Rows:
    return rows[0], [row for row in rows[1] if row.size_bytes != 8]


def with_value(value: float) -> Callable[[Rows], Rows]:
    def spoil(rows: Rows) -> Rows:
        return rows[0], [
            replace(row, value=value)
            if row.size_bytes == 8 and row.repeat == 2
            else row
            for row in rows[1]
        ]

    return spoil


def on_more_nodes(rows: Rows) -> Rows:
    nodes = ("n1", "n2", "n3")
    return [
        replace(one, nodes=nodes) if one.check == "OsuLatency" else one
        for one in rows[0]
    ], [
        replace(row, nodes=" ".join(nodes)) if row.check == "OsuLatency" else row
        for row in rows[1]
    ]


ALONE = [
    (without_check, ("", ""), "not run"),
    (
        failing("fail", phase="sanity", reason="energy is\n off"),
        ("", ""),
        "failed in sanity (6 of 6): energy is off",
    ),
    (
        failing("skip", reason="no InfiniBand"),
        ("", ""),
        "skipped (6 of 6): no InfiniBand",
    ),
    (without_size, ("openmpi, 2 nodes", "latency_8B"), "it was not reported"),
    (
        with_value(0.0),
        ("openmpi, 2 nodes", "latency_8B"),
        "a value of 0 has no ratio",
    ),
    (
        with_value(-1.5),
        ("openmpi, 2 nodes", "latency_8B"),
        "a value of -1.5 has no ratio",
    ),
    (
        with_value(1e200),
        ("openmpi, 2 nodes", "latency_8B"),
        "a value of 1e+200 has no ratio",
    ),
    (
        with_value(float("nan")),
        ("openmpi, 2 nodes", "latency_8B"),
        "a value that is no finite number has no ratio",
    ),
    (
        with_value(float("inf")),
        ("openmpi, 2 nodes", "latency_8B"),
        "a value that is no finite number has no ratio",
    ),
]


@pytest.mark.parametrize(("spoil", "where", "reason"), ALONE)
def test_what_one_side_lacks_is_listed_and_nobody_wins(
    tmp_path: Path, spoil: Callable[[Rows], Rows], where: tuple[str, str], reason: str
) -> None:
    lacking = entrant("b", run_of(*spoil(vendor(1.5, seed=2)), "b"))
    found = compare([side("a"), lacking], weights_of(tmp_path))
    expected = Unpaired("OsuLatency", *where, "latency", ("", reason))
    assert found.unpaired == (expected,)
    assert found.ahead == "b"
    assert found.winner is None
    told = " ".join(
        filter(None, ["OsuLatency", where[1], where[0] and f"({where[0]})"])
    )
    assert found.why == (f"b lacks numbers that count: {told} - {reason}",)
    assert found.ranking[0].excluded == (
        f"it lacks numbers that count: {told} - {reason}"
    )
    assert sum(each.weight for each in found.numbers) == pytest.approx(1.0)


def test_part_of_a_campaign_is_noted() -> None:
    part = entrant("b", run_of(*vendor(seed=2), "b", partial=True))
    assert compare([side("a"), part]).notes == ("b: a part of the campaign only",)


def test_group_of_weight_0_is_shown_and_bars_nobody(tmp_path: Path) -> None:
    text = WEIGHTS.replace("weight: 1", "weight: 0")
    digest = weights_of(tmp_path, text).sha256
    rows = without_check(vendor(1.5, seed=2))
    b = entrant("b", run_of(*rows, "b"), weights_sha256=digest)
    found = compare([side("a", weights_sha256=digest), b], weights_of(tmp_path, text))
    assert [group.weight for group in found.groups] == [0.0, 1.0]
    assert found.winner == "b"
    assert [each.group for each in found.unpaired] == ["latency"]


def test_other_numbers_of_nodes_are_told_from_both_sides() -> None:
    other = entrant("b", run_of(*on_more_nodes(vendor(seed=2)), "b"))
    found = compare([side("a"), other])
    assert [(each.case, each.reasons) for each in found.unpaired] == [
        ("openmpi, 2 nodes", ("", "run on 3 nodes, not on 2")),
        ("openmpi, 3 nodes", ("run on 2 nodes, not on 3", "")),
    ]


def test_case_without_a_number_on_any_side_is_listed() -> None:
    spoil = failing("fail", phase="run", reason="timeout")
    sides = [entrant(n, run_of(*spoil(vendor(seed=2)), n)) for n in "ab"]
    found = compare(sides)
    reason = "failed in run (6 of 6): timeout"
    assert found.unpaired == (
        Unpaired("OsuLatency", "openmpi", "", "", (reason, reason)),
    )
    assert found.notes == (
        "a: of 18 cases 6 failed, 0 were skipped",
        "b: of 18 cases 6 failed, 0 were skipped",
    )


def without_repeats(better: float, metric: str, name: str = "b") -> Entrant:
    """Build a side whose metric is missing in the first two of six repeats."""
    cases, rows = vendor(better, seed=2)
    rows = [row for row in rows if row.metric != metric or row.repeat > 2]
    return entrant(name, run_of(cases, rows, name))


def test_repeats_that_a_number_lacks_are_noted() -> None:
    found = compare([side("a"), without_repeats(1.0, "loop_time")])
    notes = {each.metric: each.note for each in found.numbers}
    assert notes["loop_time"] == "b: in 4 of 6 repeats"
    assert notes["bw"] == ""


def test_repeats_are_noted_of_each_side_that_lacks_them() -> None:
    found = compare([without_repeats(1.0, "bw", name) for name in "ab"])
    notes = {each.metric: each.note for each in found.numbers}
    assert notes["bw"] == "a: in 4 of 6 repeats; b: in 4 of 6 repeats"


def test_numbers_with_parameters_of_their_own_lack_repeats_of_their_case() -> None:
    cases, rows = vendor(seed=2)
    rows = [replace(row, parameters='{"pattern": "ring"}') for row in rows]
    few = [row for row in rows if row.metric != "bw" or row.repeat > 1]
    found = compare(
        [entrant("a", run_of(cases, rows)), entrant("b", run_of(cases, few))]
    )
    notes = {each.metric: each.note for each in found.numbers}
    assert notes == {"latency": "", "bw": "b: in 5 of 6 repeats", "loop_time": ""}


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        ("loop_time", "it has LammpsRhodo loop_time only in 4 of 6 repeats"),
        (
            "latency",
            "it has OsuLatency latency_8B only in 4 of 6 repeats, and 1 more so",
        ),
    ],
)
def test_who_lacks_repeats_of_what_counts_does_not_win(
    tmp_path: Path, metric: str, reason: str
) -> None:
    """Those that crashed might have been the slow ones."""
    found = compare([side("a"), without_repeats(1.3, metric)], weights_of(tmp_path))
    assert (found.winner, found.ahead) == (None, "b")
    assert found.why == (f"b cannot win: {reason}",)
    assert [each.excluded for each in found.ranking] == [reason, ""]


@pytest.mark.parametrize(("better", "metric"), [(1.3, "bw"), (0.7, "loop_time")])
def test_repeats_lacking_elsewhere_bar_nobody(
    tmp_path: Path, better: float, metric: str
) -> None:
    """Neither of what does not count, nor of who is not ahead."""
    weights = weights_of(tmp_path)
    found = compare([side("a"), without_repeats(better, metric)], weights)
    assert found.winner == ("b" if better > 1 else "a")


def test_controls_of_a_campaign_have_repeats_of_their_own(tmp_path: Path) -> None:
    """They run before, between and after the blocks: more often than these."""

    def controlled(name: str, better: float = 1.0) -> Entrant:
        cases, rows = vendor(better, seed=2)
        controls = [case("ImbRing", repeat) for repeat in range(1, 11)]
        rows += [number(each, "bw_4MiB", 9e3 + each.repeat) for each in controls]
        return entrant(name, run_of(cases + controls, rows, name))

    found = compare([controlled("a"), controlled("b", 1.3)], weights_of(tmp_path))
    assert found.winner == "b"
    assert [side.repeats for side in found.sides] == [6, 6]
    assert {each.note for each in found.numbers} == {""}


def test_number_that_only_others_have_has_no_ratio() -> None:
    """Without a number of the baseline there is nothing to be better than."""
    without = entrant("a", run_of(*without_check(vendor()), "a"))
    found = compare([without, side("b", seed=2), side("c", seed=3)])
    (first, *_) = [each for each in found.numbers if each.check == "OsuLatency"]
    assert first.values[0] is None
    assert first.ratios == (None, None, None)
    assert first.weight == 0
    assert found.unpaired[0].reasons == ("not run", "", "")
