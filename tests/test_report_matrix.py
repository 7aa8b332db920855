"""The matrices of pairs in the report: what is in a cell, a mark, a table."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from criteria_samples import criterion
from samples import sample_criteria, sample_run
from sweep_samples import SWEEP, names, sample_sweep

from seatrial.judge.judge import Judgement, judge
from seatrial.report.chapters import chapters
from seatrial.report.pair_heatmap import LEVEL_NAMES, heat_chart, matrix_figure
from seatrial.report.pair_matrix import (
    MAX_NODES,
    MAX_RETESTED,
    MIN_NODES,
    Cell,
    Matrix,
    matrices,
)
from seatrial.report.render.figure import Figure
from seatrial.report.render.heat_grid import LEVELS
from seatrial.runs.closed_run import Run

HOME = Path(__file__).resolve().parents[1]
HOSTILE = "<script>alert(1)</script>"


def judged(run: Run) -> Judgement:
    return judge(run, SWEEP)


def found(nodes: list[str] | int, **faults: Any) -> list[Matrix]:
    nodes = names(nodes) if isinstance(nodes, int) else nodes
    run = sample_sweep(nodes, **faults)
    return matrices(run, judged(run))


def test_matrix_has_a_cell_per_pair_and_direction() -> None:
    latency, bw = found(4, slow=["cn3"])
    every = [(row, column) for row in range(4) for column in range(4) if row != column]
    assert list(latency.cells) == list(bw.cells) == every
    assert (latency.metric, latency.size_bytes, latency.directed) == (
        "latency",
        8,
        False,
    )
    assert (bw.metric, bw.size_bytes, bw.directed) == ("bw", 1 << 20, True)
    assert latency.cells[0, 2] == latency.cells[2, 0]
    assert bw.cells[0, 1].value != bw.cells[1, 0].value
    assert latency.convicted == ("cn3",)
    assert latency.marked == (False, False, True, False)
    assert (latency.limit, latency.missed, latency.slow) == (2.5, 3, 3)
    assert (bw.limit, bw.missed, bw.slow) == (10000.0, 6, 6)


def test_pairs_that_nodes_speak_for_are_held_to_the_strictest_limit() -> None:
    more = criterion("latency_8B", 2.2, check="PairSweep", name="stricter")
    run = sample_sweep(names(3), slow=names(3))
    judgement = judge(run, replace(SWEEP, criteria=(*SWEEP.criteria, more)))
    assert judgement.convicted == ("cn1", "cn2", "cn3")
    assert not [found for found in judgement.findings if " - " in found.place]
    latency, bw = matrices(run, judgement)
    assert (latency.limit, latency.missed) == (2.2, 3)
    assert (bw.limit, bw.missed) == (10000.0, 6)


def test_median_of_half_good_and_half_bad_pairs_is_a_good_one() -> None:
    latency, bw = found(4, slow=["cn3"])
    assert 1.9 < latency.median < 2.0
    assert 11600 < bw.median < 12000
    assert {cell.level for cell in latency.cells.values()} == {0, 3}


@pytest.mark.parametrize(
    ("direction", "ratio", "level"),
    [
        ("lower", 0.5, 0),
        ("lower", 1.09, 0),
        ("lower", 1.15, 1),
        ("lower", 1.5, 2),
        ("lower", 3, 3),
        ("lower", 6, 4),
        ("higher", 2, 0),
        ("higher", 0.91, 0),
        ("higher", 0.85, 1),
        ("higher", 0.7, 2),
        ("higher", 0.3, 3),
        ("higher", 0.1, 4),
    ],
)
def test_levels(direction: str, ratio: float, level: int) -> None:
    metric = "latency" if direction == "lower" else "bw"
    run = sample_sweep(names(5))
    hit = (pl.col("source") == "cn2") & (pl.col("destination") == "cn1")
    hit |= (pl.col("source") == "cn1") & (pl.col("destination") == "cn2")
    value = pl.when(hit & (pl.col("metric") == metric)).then(ratio * 100).otherwise(100)
    rows = run.measurements.with_columns(value=value.cast(pl.Float64))
    run = replace(run, measurements=rows)
    (matrix,) = [m for m in matrices(run, judged(run)) if m.metric == metric]
    assert matrix.cells[0, 1] == matrix.cells[1, 0] == Cell(ratio * 100, level)
    assert {c.level for at, c in matrix.cells.items() if {*at} != {0, 1}} == {0}
    assert len(LEVEL_NAMES[direction]) == len(LEVELS[direction]) + 1


def test_pairs_tested_again_show_what_they_were_in_the_crowd() -> None:
    latency, bw = found(5, slow_pairs=[("cn2", "cn4")])
    again = latency.cells[1, 3]
    assert again == latency.cells[3, 1]
    assert again.crowded == pytest.approx(1.5 * again.value)
    assert [{*pair} for *pair, _ in latency.retested] == [{"cn2", "cn4"}]
    assert len(bw.retested) == 2
    assert bw.cells[1, 3].crowded == pytest.approx(0.5 * bw.cells[1, 3].value)
    assert sum(cell.crowded is not None for cell in bw.cells.values()) == 2


def test_what_was_not_measured_is_no_good_cell() -> None:
    latency, bw = found(5, dead=["cn2"], hung=[("cn1", "cn5")])
    assert latency.nodes == ("cn1", "cn2", "cn3", "cn4", "cn5")
    assert (latency.measured, latency.missing, latency.silent) == (5, 5, ("cn2",))
    assert (bw.measured, bw.missing, bw.silent) == (10, 10, ("cn2",))
    assert not any(1 in at for at in latency.cells)
    assert (0, 4) not in latency.cells and (4, 0) not in latency.cells
    marks = heat_chart(latency)["datasets"]["marks"]
    assert len([mark for mark in marks if mark["m"] == 0]) == 2 * latency.missing


def test_nodes_stand_in_natural_order() -> None:
    assert found(11)[0].nodes == tuple(names(11))


def test_rails_and_environments_have_matrices_of_their_own() -> None:
    rails = ("mlx5_0", "mlx5_1")
    slow = [("cn2", "mlx5_1")]
    given = found(4, rails=rails, slow_rails=slow, environments=("openmpi", "mpich"))
    slow_pairs = {(matrix.metric, matrix.detail): matrix.slow for matrix in given}
    assert slow_pairs == {
        ("latency", "openmpi, mlx5_0"): 0,
        ("latency", "openmpi, mlx5_1"): 3,
        ("bw", "openmpi, mlx5_0"): 0,
        ("bw", "openmpi, mlx5_1"): 6,
        ("latency", "mpich, mlx5_0"): 0,
        ("latency", "mpich, mlx5_1"): 3,
        ("bw", "mpich, mlx5_0"): 0,
        ("bw", "mpich, mlx5_1"): 6,
    }


def test_cells_hold_the_median_of_repeats() -> None:
    runs = [sample_sweep(names(4), seed=seed, repeats=1) for seed in (1, 11, 21)]
    single = [matrices(run, judged(run))[0].cells[0, 1].value for run in runs]
    (latency, _) = found(4, repeats=3)
    assert latency.repeats == 3
    assert latency.cells[0, 1].value == sorted(single)[1]


def test_a_ring_is_no_matrix() -> None:
    run = sample_run(slow="cn03")
    assert matrices(run, judge(run, sample_criteria())) == []


def test_of_many_nodes_the_worst_are_shown() -> None:
    faults: dict[str, Any] = {
        "slow": ["cn77"],
        "dead": ["cn88"],
        "slow_pairs": [("cn91", "cn92")],
        "hung": [("cn95", "cn96")],
    }
    for matrix in found(100, **faults):
        assert (len(matrix.nodes), matrix.of) == (MAX_NODES, 100)
        spoilt = {"cn77", "cn88", "cn91", "cn92", "cn95", "cn96"}
        assert spoilt <= {*matrix.nodes}
        ways = 2 if matrix.directed else 1
        assert matrix.measured == ways * (99 * 98 // 2 - 1)
        assert matrix.slow == ways * 99


def test_of_many_matrices_each_shows_fewer_nodes() -> None:
    given = found(
        50,
        rails=[f"mlx5_{rail}" for rail in range(4)],
        environments=("openmpi", "mpich", "intelmpi"),
    )
    assert len(given) == 24
    assert {len(matrix.nodes) for matrix in given} == {45}
    assert MIN_NODES < 45


def figures(run: Run) -> list[Figure]:
    return [
        matrix_figure(matrix, f"matrix-{number}")
        for number, matrix in enumerate(matrices(run, judged(run)), 1)
    ]


def test_figure_says_what_was_measured_and_what_is_missing() -> None:
    run = sample_sweep(names(9), slow=["cn3"], dead=["cn5"], hung=[("cn1", "cn2")])
    latency, bw = figures(run)
    assert latency.title == "PairSweep: latency 8 B, openmpi"
    assert latency.detail == (
        "us, lower is better; p50, median of 4 repeats; a pair has one value, which "
        "both halves show"
    )
    assert latency.note.startswith("The median of 27 pairs is 1.9")
    assert latency.note.endswith(
        "; 7 are more than 20 % worse. The limit is at most 2.5 us; 7 miss it. Not "
        "measured: 9, among them every pair of cn5."
    )
    assert bw.note.startswith("The median of 54 values, two of each pair, is 11")
    assert bw.detail.endswith("rows send to columns")


def test_figure_of_a_drawn_sweep_says_what_it_covers() -> None:
    run = sample_sweep(names(9), hung=[("cn1", other) for other in names(9)[3:]])
    cases = tuple(replace(case, draws_pairs=True) for case in run.cases)
    latency, bw = figures(replace(run, cases=cases))
    words = (
        "The sweep covers 83.3 % of 36 pairs: it finds slow nodes and what many pairs "
        "share; a fault of a single pair needs the full sweep."
    )
    assert words in latency.note
    assert words in bw.note
    assert "The sweep covers" not in figures(run)[0].note


def test_legend_and_keyboard_have_the_words_of_levels_and_symbols() -> None:
    latency, bw = figures(sample_sweep(names(4), slow=["cn3"]))
    given = [
        {each["name"]: each["value"] for each in figure.spec["params"]}
        for figure in (latency, bw)
    ]
    assert [each["levels"] for each in given] == [
        list(LEVEL_NAMES["lower"]),
        list(LEVEL_NAMES["higher"]),
    ]
    assert given[0]["brief"][0] == "≤ 1.1 times"
    assert given[1]["brief"][-1] == "< 20 %"
    assert given[0]["meanings"] == ["not measured", "tested again alone"]
    assert latency.spec["usermeta"] == {"grid": True, "least_width": 44}


def test_table_marks_slow_pairs_and_nodes_named_as_cause() -> None:
    latency, bw = figures(sample_sweep(names(5), slow=["cn3"], hung=[("cn1", "cn2")]))
    assert latency.table.columns == ("node", "cn1", "cn2", "✕ cn3", "cn4", "cn5")
    assert bw.table.columns[0] == "from \\ to"
    first = latency.table.rows[0]
    assert first[:3] == ("cn1", "", "not measured")
    assert first[3].endswith(" ▼") and not first[4].endswith("▼")


def test_chapter_says_which_pairs_were_tested_again() -> None:
    run = sample_sweep(names(100), slow=["cn7"])
    chapter = chapters(run, judged(run), HOME)[1]
    latency = chapter.figures[0]
    assert latency.wide
    assert "Of 100 nodes the 64 worst are shown" in latency.note
    title, table = chapter.tables[0]
    assert title == "Tested again alone: PairSweep: latency 8 B, openmpi"
    assert len(table.rows) == MAX_RETESTED
    assert f"the worst {MAX_RETESTED} of 99 retested pairs" in chapter.notes[0]
    assert sum(len(json.dumps(each.spec)) for each in chapter.figures) < 500_000


def test_chapter_without_a_sweep_says_so() -> None:
    run = sample_run()
    chapter = chapters(run, judge(run, sample_criteria()), HOME)[1]
    assert chapter.figures == ()
    assert chapter.empty == "No check of this run measured every pair of nodes."


def test_hostile_names_stay_data() -> None:
    hostile = [*names(3), f'{HOSTILE}\'"]+alert(1)+["', "{{ 7 * 7 }}\x00", "x" * 10_000]
    run = sample_sweep(hostile, slow=hostile[3:4], rails=("mlx5_0", HOSTILE))
    for figure in figures(run):
        params = {each["name"]: each["value"] for each in figure.spec["params"]}
        assert [*params["rows"]].count(hostile[3]) == 1
        assert max(map(len, params["rows"])) < 50
        rest = {**figure.spec, "params": [], "description": ""}
        assert "alert(1)" not in json.dumps(rest)
        assert len(json.dumps(figure.spec)) < 30_000
