"""Scaling in the report: which numbers it draws, its ideal, its efficiency."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from judge_samples import CASE, judged, make_run, sample, with_statements

from seatrial.model.cases import Case, parameters_text
from seatrial.model.records import Measurement
from seatrial.report.chapters import chapters
from seatrial.report.curve_chart import chart
from seatrial.report.measured_curves import curves
from seatrial.report.scaling import (
    IDEAL,
    Growth,
    Ideal,
    growth_figure,
    growth_table,
    growths,
    ideal_of,
)
from seatrial.runs.closed_run import Run

Values = Mapping[int, Mapping[str | None, float]]
LOOP: Values = {
    1: {None: 80.0},
    2: {"block": 44.0, "cyclic": 50.0},
    4: {"block": 25.0},
}
HOME = Path(__file__).resolve().parents[1]


def case_of(check: str, **more: Any) -> Case:
    return replace(CASE, check=check, case=check, declared=(), **more)


def taken(
    case: Case,
    value: float,
    metric: str,
    *,
    size: int | None = None,
    **parameters: Any,
) -> Measurement:
    row = sample(case, value, metric=metric, size=size)
    return replace(row, parameters=parameters_text(parameters))


def of_program(metric: str, check: str, values: Values) -> Run:
    """Build a run of a program: on all four nodes, then on fewer, in both orders."""
    case = case_of(check)

    def rows() -> Iterator[Measurement]:
        yield taken(case, 999.0, metric)
        for nodes, by_order in values.items():
            for order, value in by_order.items():
                more: dict[str, Any] = {"placement": order} if order else {}
                yield taken(case, value, metric, num_nodes=nodes, **more)

    return make_run([case], list(rows()))


def found(run: Run) -> list[Growth]:
    return growths(run, judged(run))


@pytest.fixture
def rhodo(tmp_path: Path) -> Run:
    """A problem of one size, which its run records."""
    run = of_program("loop_time", "LammpsRhodo", LOOP)
    return with_statements(run, tmp_path, LammpsRhodo={"scaled": False})


def test_block_and_cyclic_are_lines_that_start_at_one_node(rhodo: Run) -> None:
    (growth,) = found(rhodo)
    assert growth.ideal == "strong"
    assert {
        line.label: [(point.x, point.value) for point in line.points]
        for line in growth.curve.lines
    } == {
        "block": [(1, 80.0), (2, 44.0), (4, 25.0)],
        # What is judged, on all nodes in no order, stands where an order lacks it.
        "cyclic": [(1, 80.0), (2, 50.0), (4, 999.0)],
        IDEAL: [(1, 80.0), (2, 40.0), (4, 20.0)],
    }


def test_table_has_the_parallel_efficiency_of_each_line(rhodo: Run) -> None:
    (growth,) = found(rhodo)
    table = growth_table(growth)
    assert table.columns == (
        "nodes",
        "block (s)",
        "block, efficiency",
        "cyclic (s)",
        "cyclic, efficiency",
    )
    assert table.rows[1] == ("2", "44.00", "90.9 %", "50.00", "80 %")


@pytest.mark.parametrize(
    ("metric", "unit", "direction", "scaled", "ideal"),
    [
        ("loop_time", "s", "lower", False, "strong"),
        ("loop_time", "s", "lower", True, "weak"),
        ("loop_time", "s", "lower", None, "unknown"),
        ("Mops_total", "Mop/s", "higher", False, "rate"),
        ("communication_share", "%", "lower", False, ""),
        ("latency", "us", "lower", False, ""),
        ("launch_time", "s", "lower", False, ""),
        ("bw", "MB/s", "higher", False, ""),
    ],
)
def test_ideal(
    metric: str, unit: str, direction: str, scaled: bool | None, ideal: Ideal
) -> None:
    assert ideal_of(metric, unit, direction, scaled=scaled) == ideal


def test_time_of_a_problem_that_grows_stays_and_a_rate_grows(tmp_path: Path) -> None:
    values: Values = {1: {None: 10.0}, 2: {None: 16.0}, 4: {None: 30.0}}
    run = of_program("loop_time", "LammpsScaled", values)
    (growth,) = found(run)
    assert "does not record" in growth_figure(growth, "x").detail
    assert growth_table(growth).columns == ("nodes", "intelmpi (s)")
    (growth,) = found(with_statements(run, tmp_path, LammpsScaled={"scaled": True}))
    assert [point.value for point in growth.curve.lines[-1].points] == [10, 10, 10]
    (growth,) = found(of_program("Mops_total", "Npb", values))
    assert [point.value for point in growth.curve.lines[-1].points] == [10, 20, 40]
    # The judged 999 is of the same line as what else was taken on all nodes.
    assert growth_table(growth).rows[1] == ("2", "16.00", "80 %")


def collective() -> Run:
    case = case_of("OsuCollective", parameters={"benchmark": "bcast"})
    rows = [
        taken(
            case,
            float(nodes * (1 + size / 1000)),
            "latency",
            size=size,
            benchmark="bcast",
            **({} if nodes == 4 else {"num_nodes": nodes}),
        )
        for nodes in (2, 4)
        for size in (8, 1024, 65536)
    ]
    return make_run([case], rows)


def test_collective_is_drawn_at_its_smallest_and_largest_message_without_ideal() -> (
    None
):
    (growth,) = found(collective())
    assert growth.ideal == ""
    assert growth.curve.detail == "bcast, intelmpi"
    assert {
        line.label: [point.x for point in line.points] for line in growth.curve.lines
    } == {"8 B": [2, 4], "64 KiB": [2, 4]}
    assert growth_table(growth).columns == ("nodes", "8 B (us)", "64 KiB (us)")


def test_curves_over_size_are_those_of_all_nodes() -> None:
    run = collective()
    (curve,) = curves(run, judged(run))
    (line,) = curve.lines
    assert [point.x for point in line.points] == [8, 1024, 65536]
    assert line.points[0].value == pytest.approx(4 * 1.008)


def test_jobs_of_several_sizes_count_and_an_absent_node_does_not() -> None:
    def on(counts: tuple[int, ...]) -> Run:
        cases = [
            case_of("Npb", session=f"npb-{number}", repeat=number)
            for number in range(1, len(counts) + 1)
        ]
        rows = [
            replace(
                taken(case, 100.0 * count, "Mops_total"),
                nodes=" ".join(CASE.nodes[:count]),
            )
            for case, count in zip(cases, counts, strict=True)
        ]
        return make_run(cases, rows)

    (growth,) = found(on((4, 2, 4)))
    assert [point.x for point in growth.curve.lines[0].points] == [2, 4]
    assert found(on((4, 3, 4))) == []


def test_axis_counts_nodes_and_the_ideal_has_a_style_of_its_own(rhodo: Run) -> None:
    (growth,) = found(rhodo)
    spec = chart(growth.curve)
    (points,) = [
        layer["encoding"]
        for layer in spec["layer"]
        if "color" in layer.get("encoding", {})
    ]
    assert points["x"]["title"] == "nodes"
    assert points["x"]["scale"]["type"] == "log"
    scale = points["color"]["scale"]
    assert dict(zip(scale["domain"], scale["range"], strict=True))[IDEAL] == (
        "var(--muted)"
    )


@pytest.mark.parametrize(
    ("run", "figures", "empty"),
    [
        (collective(), 1, False),
        (make_run([CASE], [sample(CASE, 1.0)]), 0, True),
    ],
)
def test_chapter(run: Run, figures: int, empty: bool) -> None:
    (chapter,) = [
        each for each in chapters(run, judged(run), HOME) if each.name == "scaling"
    ]
    assert len(chapter.figures) == figures
    assert chapter.empty.startswith("No check of this run measured several numbers")
    assert (chapter.intro == "") == empty
