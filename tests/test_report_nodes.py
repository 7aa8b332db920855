"""The nodes in the report: the map of all, the heat map of their metrics, tables."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from criteria_samples import criterion
from judge_samples import CASE, judged, make_run, repeats, sample
from samples import sample_criteria, sample_run
from sweep_samples import SWEEP, names, sample_sweep

from seatrial.judge.findings import Judgement, NodeVerdict, Verdict
from seatrial.judge.judge import judge
from seatrial.report.chapters import chapters
from seatrial.report.node_heatmap import NAMES, node_heat, node_metrics
from seatrial.report.node_map import STATES, columns_for, node_map
from seatrial.report.pair_matrix import MAX_NODES
from seatrial.report.render.figure import Figure
from seatrial.runs.closed_run import Run

HOME = Path(__file__).resolve().parents[1]
STATE_NAMES = [name for name, *_ in STATES]
HOSTILE = '<script>alert(1)</script>\'"]+alert(1)+["'


def params(figure: Figure) -> dict[str, Any]:
    return {each["name"]: each["value"] for each in figure.spec["params"]}


def with_nodes(*nodes: NodeVerdict, suspects: tuple[str, ...] = ()) -> Judgement:
    run = make_run([CASE], [sample(CASE, 1.0)])
    return replace(judged(run), findings=(), nodes=nodes, suspects=suspects)


def node(name: str, verdict: Verdict = "pass", state: str = "present") -> NodeVerdict:
    return NodeVerdict(name, state, verdict, f"why {name}", {})


def test_map_has_a_square_per_node_in_natural_order() -> None:
    figure = node_map(
        with_nodes(
            node("cn10"),
            node("cn2", "fail"),
            node("cn1"),
            node("cn3", "fail", "absent"),
            node("cn4", "undecided"),
            node("cn5", "not shown"),
            suspects=("cn10 (socket 1)", "cn2"),
        )
    )
    given = params(figure)
    assert given["names"] == ["cn1", "cn2", "cn3", "cn4", "cn5", "cn10"]
    assert [STATE_NAMES[state] for state in given["states"]] == [
        "pass",
        "fail",
        "absent",
        "undecided",
        "not shown",
        "worth a look",
    ]
    assert given["reasons"]["1"] == "why cn2"
    assert figure.detail == (
        "1 pass, 1 fail, 1 not shown, 1 undecided, 1 absent, 1 worth a look"
    )
    assert figure.table.rows[1] == ("fail", "1", "cn2")
    assert "1 fail, 1 not shown, 1 undecided" in figure.spec["description"]


def test_every_state_but_pass_has_a_symbol_of_its_own() -> None:
    symbols = [symbol for _, symbol, *_ in STATES]
    assert symbols[0] == ""
    assert all(symbols[1:]) and len({*symbols}) == len(STATES)


@pytest.mark.parametrize(
    ("nodes", "columns", "rows"),
    [
        (1, 1, 1),
        (4, 4, 1),
        (12, 10, 2),
        (100, 20, 5),
        (1000, 50, 20),
        (10_000, 200, 50),
    ],
)
def test_map_has_rows_of_a_handy_width(nodes: int, columns: int, rows: int) -> None:
    assert columns_for(nodes) == columns
    figure = node_map(with_nodes(*(node(name) for name in names(nodes))))
    (squares, _) = figure.spec["layer"]
    assert len(squares["encoding"]["y"]["scale"]["domain"]) == rows
    assert len(squares["encoding"]["x"]["scale"]["domain"]) == columns


def test_map_of_a_large_machine_is_small() -> None:
    nodes = [
        NodeVerdict(name, "present", "fail", "it is slow" * 1000, {})
        for name in names(10_000)
    ]
    figure = node_map(with_nodes(*nodes))
    assert len(json.dumps(figure.spec)) < 300_000
    assert len(json.dumps(figure.table.rows)) < 2_000


METRICS = (
    criterion("latency_8B", 100.0),
    criterion("bw_4MiB", 60.0),
)


def node_run(values: dict[str, tuple[float, float]], **other: float) -> Run:
    """Build a run of numbers of single nodes: latency, bandwidth; memory unjudged.

    The bandwidth scatters by 0.1 % around its value.
    """
    noise = [0.999, 1.0, 1.001, 1.0, 0.9995, 1.0005]
    cases = [replace(case, declared=("latency_8B", "bw_4MiB")) for case in repeats(6)]
    rows = [
        row
        for case in cases
        for name, (latency, bw) in values.items()
        for row in (
            sample(case, latency, metric="latency", size=8, node=name),
            sample(case, bw * noise[case.repeat - 1], node=name),
            *(
                [sample(case, other[name], metric="mem_bw", size=None, node=name)]
                if name in other
                else []
            ),
        )
    ]
    return make_run(cases, rows, nodes=list(values))


FOUR = {
    "cn1": (10.0, 100.0),
    "cn2": (11.5, 100.0),
    "cn3": (10.0, 45.0),
    "cn4": (10.0, 101.0),
}


def test_numbers_stand_beside_the_median_of_all_nodes() -> None:
    run = node_run(FOUR, cn1=200.0, cn2=201.0, cn3=30.0)
    found = node_metrics(run, judged(run, *METRICS))
    assert found.metrics == ("latency_8B", "bw_4MiB", "mem_bw")
    assert found.units == ("us", "MB/s", "GB/s")
    assert found.medians.tolist() == pytest.approx([10.0, 100.0, 200.0], rel=1e-3)
    assert found.levels.tolist() == [[0, 0, 0], [1, 0, 0], [0, 3, 4], [0, 0, 0]]
    assert np.isnan(found.values[3, 2])
    assert found.failed.tolist()[2] == [False, True, False]
    assert found.failed.sum() == 1


def test_heat_marks_what_fails_and_what_was_not_measured() -> None:
    run = node_run(FOUR, cn1=200.0, cn2=201.0, cn3=30.0)
    figure = node_heat(run, judged(run, *METRICS))
    assert figure is not None
    given = params(figure)
    assert given["rows"] == ["cn1", "cn2", "cn3", "cn4"]
    assert given["columns"] == ["latency_8B", "bw_4MiB", "mem_bw"]
    assert given["levels"] == [*NAMES]
    marks = figure.spec["datasets"]["marks"]
    assert [(each["s"], each["d"], given["meanings"][each["m"]]) for each in marks] == [
        (2, 1, "fails its criterion"),
        (3, 2, "not measured"),
    ]
    assert figure.table.columns == (
        "node",
        "latency_8B (us)",
        "bw_4MiB (MB/s)",
        "mem_bw (GB/s)",
    )
    assert figure.table.rows[2:] == (
        ("cn3", "10.00", "45.00 ▼ ◇", "30.00 ▼"),
        ("cn4", "10.00", "101.0", "not measured"),
    )


def test_node_values_are_those_that_are_judged() -> None:
    run = sample_sweep(names(6), slow=["cn3"])
    judgement = judge(run, SWEEP)
    found = node_metrics(run, judgement)
    for row, each in enumerate(judgement.nodes):
        for flat, value in each.values.items():
            assert found.values[row, found.metrics.index(flat)] == value


def test_of_many_nodes_the_worst_are_shown_in_natural_order() -> None:
    values = dict.fromkeys(names(200), (10.0, 100.0))
    values["cn150"] = (30.0, 100.0)
    values["cn90"] = (10.0, 20.0)
    run = node_run(values)
    figure = node_heat(run, judged(run, *METRICS))
    assert figure is not None
    shown = params(figure)["rows"]
    assert len(shown) == MAX_NODES
    assert shown == sorted(shown, key=lambda name: int(name[2:]))
    assert {"cn90", "cn150"} <= {*shown}
    assert figure.note.startswith("Of 200 nodes the 64 worst are shown")


def test_median_of_nothing_bad_is_beside_zero() -> None:
    cases = repeats(2)
    rows = [
        sample(case, value, metric="throttle_events", size=None, node=name)
        for case in cases
        for name, value in (("cn1", 0.0), ("cn2", 0.0), ("cn3", 5.0))
    ]
    run = make_run(cases, rows, nodes=("cn1", "cn2", "cn3"))
    found = node_metrics(run, judged(run))
    assert found.levels[:3, 0].tolist() == [0, 0, 4]


def test_chapter_has_map_heat_and_tables() -> None:
    run = sample_run(slow="cn03", absent="cn04")
    judgement = judge(run, sample_criteria())
    chapter = chapters(run, judgement, HOME)[0]
    assert [figure.name for figure in chapter.figures] == ["node-map", "node-heat"]
    (_, values), (_, facts) = chapter.tables
    assert values.columns == (
        *("node", "state", "verdict", "latency_8B (us)", "bw_4MiB (MB/s)", "reason"),
    )
    assert values.rows[0][:3] == ("cn03", "present", "fail")
    assert values.rows[0][4] == "23.50 ✕"
    assert values.rows[1][:2] == ("cn04", "absent")
    assert facts.rows[0][-1] == "6.18.5"


def test_hostile_names_stay_data_and_are_cut() -> None:
    long = "x" * 10_000
    values = {**FOUR, HOSTILE: (10.0, 20.0), long: (10.0, 100.0)}
    run = node_run(values)
    judgement = judged(run, *METRICS)
    heat = node_heat(run, judgement)
    assert heat is not None
    for figure in (node_map(judgement), heat):
        spec = {**figure.spec, "params": [], "description": ""}
        assert "alert(1)" not in json.dumps(spec)
        assert len(json.dumps(figure.spec)) < 20_000
        names_at = "names" if figure.name == "node-map" else "rows"
        assert HOSTILE in params(figure)[names_at]
