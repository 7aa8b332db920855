"""Curves of the report: which lines they have, over what, and with which words."""

import gzip
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from judge_samples import with_statements
from samples import sample_criteria, sample_run

from seatrial.criteria.published import Published
from seatrial.criteria.published_numbers import Number, PublishedSystem
from seatrial.judge.judge import Judgement, judge
from seatrial.report.chapters import chapters
from seatrial.report.curve_chart import chart, describe
from seatrial.report.curve_layers import far_words
from seatrial.report.curves import MAX_PLACES, Curve, table
from seatrial.report.measured_curves import curves
from seatrial.report.published_overlay import Overlay
from seatrial.report.render import text
from seatrial.report.render.text import short
from seatrial.runs.closed_run import Run
from seatrial.runs.stated import stated

HOME = Path(__file__).resolve().parents[1]
CurvesOf = Callable[..., dict[tuple[str, str, str], Curve]]


def judged(run: Run) -> Judgement:
    return judge(run, sample_criteria())


@pytest.fixture
def curves_of() -> CurvesOf:
    def found(**options: Any) -> dict[tuple[str, str, str], Curve]:
        run = sample_run(**options)
        return {
            (curve.check, curve.metric, curve.detail): curve
            for curve in curves(run, judged(run))
        }

    return found


def test_curves_have_a_line_per_environment_parameter_or_pair(
    curves_of: CurvesOf,
) -> None:
    found = curves_of(slow="cn03")
    assert {
        key: [line.label for line in curve.lines] for key, curve in found.items()
    } == {
        ("HaloExchange", "exchange_time", ""): [
            "isend_irecv, mpich",
            "isend_irecv, openmpi",
            "sendrecv, mpich",
            "sendrecv, openmpi",
        ],
        ("ImbRing", "latency", "PingPong, intelmpi"): [
            "cn01 - cn02",
            "cn02 - cn03",
            "cn03 - cn04",
            "cn04 - cn01",
        ],
        ("ImbRing", "bw", "PingPong, intelmpi"): [
            "cn01 - cn02",
            "cn02 - cn03",
            "cn03 - cn04",
            "cn04 - cn01",
        ],
        ("ImbCollective", "latency", "intelmpi"): ["Allgather", "Alltoall", "Bcast"],
    }
    ring = found["ImbRing", "bw", "PingPong, intelmpi"]
    assert [line.label for line in ring.lines if line.convicted] == [
        "cn02 - cn03",
        "cn03 - cn04",
    ]
    assert [(limit.x, limit.label) for limit in ring.limits] == [
        (4194304, "at least 60 MB/s")
    ]
    assert table(ring).columns[-1] == "limit"
    assert table(ring).rows[-1][0] == "4 MiB"
    assert table(ring).rows[-1][2:] == ("23.50", "23.50", "1,566", "at least 60 MB/s")


def test_limit_of_a_curve_is_shown_where_nodes_speak_for_every_pair(
    curves_of: CurvesOf,
) -> None:
    """All nodes fail, so no pair has a finding of its own."""
    run = sample_run(nodes=("cn01", "cn02", "cn03"), slow="cn01")
    ring_bw = (pl.col("check") == "ImbRing") & (pl.col("metric") == "bw")
    capped = pl.when(ring_bw).then(pl.col("value").clip(upper_bound=23.5))
    run = replace(
        run, measurements=run.measurements.with_columns(capped.otherwise("value"))
    )
    (ring,) = [
        curve
        for curve in curves(run, judged(run))
        if (curve.check, curve.metric) == ("ImbRing", "bw")
    ]
    assert ring.convicted == ("cn01", "cn02", "cn03")
    assert [limit.label for limit in ring.limits] == ["at least 60 MB/s"]


def test_limit_that_would_flatten_the_curve_is_named_and_not_drawn(
    curves_of: CurvesOf,
) -> None:
    curve = next(c for c in curves_of().values() if c.limits and not c.over)
    top = max(point.high for line in curve.lines for point in line.points)
    near = replace(curve.limits[0], value=20 * top)
    far = replace(curve.limits[0], value=40 * top, label="at most far 1")
    curve = replace(curve, limits=(near, far))
    drawn = chart(curve)["datasets"]["limits"]
    assert [row["y"] for row in drawn] == [near.value]
    size = text.size(int(far.x))
    assert far_words(curve) == f"Too far off to draw: at most far 1 at {size}."
    assert far_words(replace(curve, limits=(near,))) == ""


def test_curves_show_median_and_range_of_repeats(curves_of: CurvesOf) -> None:
    given: dict[str, Any] = {"repeats": 3, "scatter": 0.04}
    (curve,) = [c for key, c in curves_of(**given).items() if key[0] == "HaloExchange"]
    point = curve.lines[0].points[0]
    taken = sample_run(**given).measurements.filter(
        case="HaloExchange %protocol=isend_irecv", environment="mpich", size_bytes=16
    )
    low, middle, high = taken.collect()["value"].sort()
    assert curve.repeats == 3
    assert (point.low, point.value, point.high) == (low, middle, high)
    assert low < 0.99 * middle and high > 1.01 * middle


def test_curves_of_many_places_show_the_convicted_the_worst_and_the_median(
    curves_of: CurvesOf,
) -> None:
    nodes = [f"n{number}" for number in range(40)]
    found = curves_of(nodes=nodes, slow="n20")
    ring = found["ImbRing", "bw", "PingPong, intelmpi"]
    labels = [line.label for line in ring.lines]
    assert len(labels) == MAX_PLACES
    assert labels[:2] == ["n19 - n20", "n20 - n21"]
    assert labels[-1] == "median of 40"
    assert ring.note.startswith("40 places")
    names = {row["group"] for row in chart(ring)["datasets"]["points"]}
    assert names == {"at n20", "others", "median of all"}


def test_curve_over_a_parameter_that_varies_more_than_the_size(
    curves_of: CurvesOf,
) -> None:
    curve = curves_of(queues=True)["MatchQueue", "latency", "posted"]
    assert curve.over == "depth"
    assert [line.label for line in curve.lines] == [
        "first, mpich",
        "first, openmpi",
        "last, mpich",
        "last, openmpi",
    ]
    points = {point.x: point.value for point in curve.lines[2].points}
    assert list(points) == [0, 1, 4, 16, 64, 256, 1024, 4096, 8192]
    assert points[8192] == pytest.approx(1.9 + 0.004 * 8192)
    assert curve.limits == ()
    spec = json.dumps(chart(curve))
    assert '"symlog"' in spec and '"title": "depth"' in spec
    assert "message size" not in spec
    shown = table(curve)
    assert (shown.columns[0], shown.rows[-1][0]) == ("depth", "8,192")


@pytest.mark.parametrize(
    ("metric", "title"),
    [
        ("latency", "message size"),
        ("mem_latency", "memory size"),
        ("exchange_time", "bytes of a row, 8 N"),
        ("of_a_later_version", "size"),
    ],
)
def test_axis_says_what_has_the_size(
    curves_of: CurvesOf, metric: str, title: str
) -> None:
    curve = replace(curves_of()["ImbRing", "bw", "PingPong, intelmpi"], metric=metric)
    assert f'"title": "{title}"' in json.dumps(chart(curve))
    assert f"over {title}, " in describe(curve)
    assert table(curve).columns[0] == title


def test_lines_name_the_numbers_among_their_parameters(curves_of: CurvesOf) -> None:
    found = curves_of(queues=True)
    assert [
        line.label for line in found["MatchQueue", "bw", "posted, mpich"].lines
    ] == ["reuse 0", "reuse 25", "reuse 50", "reuse 75", "reuse 100"]
    assert ("MatchQueue", "bw", "posted, openmpi") in found
    assert ("MatchQueue", "match_time", "posted") not in found


def test_curve_over_a_narrow_parameter_is_linear_and_may_hold_zero() -> None:
    run = sample_run(queues=True)
    rows = run.measurements.filter(
        (pl.col("metric") == "bw")
        & (pl.col("check") == "MatchQueue")
        & (pl.col("size_bytes") <= 4)
    )
    rows = rows.with_columns(
        value=pl.when(pl.col("parameters").str.contains('"reuse": 0}'))
        .then(0.0)
        .otherwise("value")
    )
    run = replace(run, measurements=rows)
    (curve,) = curves(run, judged(run))
    assert curve.over == "reuse"
    assert [line.label for line in curve.lines] == [
        "1 B, mpich",
        "1 B, openmpi",
        "4 B, mpich",
        "4 B, openmpi",
    ]
    spec = json.dumps(chart(curve))
    assert '"log"' not in spec and '"symlog"' not in spec


def layers_of(spec: dict[str, Any], dataset: str, mark: str) -> list[dict[str, Any]]:
    return [
        layer
        for layer in spec["layer"]
        if layer["data"] == {"name": dataset} and layer["mark"]["type"] == mark
    ]


def test_side_that_fails_is_shaded_to_the_edge_of_the_axis(curves_of: CurvesOf) -> None:
    found = curves_of()
    edges = {}
    for metric in ("latency", "bw"):
        spec = chart(found["ImbRing", metric, "PingPong, intelmpi"])
        (band,) = layers_of(spec, "limits", "rect")
        (row,) = spec["datasets"]["limits"]
        low, high = band["encoding"]["y"]["scale"]["domain"]
        assert row["from"] < row["x"] < row["to"]
        assert low < row["y"] < high
        edges[metric] = band["encoding"]["y2"]["datum"] == (
            high if metric == "latency" else low
        )
    assert edges == {"latency": True, "bw": True}


def number(**more: Any) -> Number:
    given: dict[str, Any] = {
        "name": "n",
        "paper": "sur2007",
        "place": "figure 1",
        "metric": "latency",
        "what": "MPI",
        "kind": "absolute",
        "systems": ("old",),
        "value": 5.0,
        "unit": "us",
    }
    return Number(**{**given, **more})


@pytest.mark.parametrize(
    ("given", "x"),
    [
        ({"size": "small"}, 1),
        ({"size": "large"}, 4096),
        ({"size_bytes": 8}, 8),
        ({"size_bytes": 16}, None),
        ({"size": "eager"}, None),
        ({}, None),
        ({"size": "small", "experiment": "E18"}, 1),
        ({"size": "small", "experiment": "E01"}, None),
        ({"size": "small", "kind": "ratio", "unit": "1"}, None),
        ({"size": "small", "unit": "%"}, None),
        ({"size": "small", "metric": "bw", "unit": "MB/s"}, None),
        ({"size": "small", "conflict": "the paper says otherwise"}, None),
        ({"size": "small", "value": None, "unit": None, "kind": "shape"}, None),
    ],
)
def test_published_number_is_where_a_curve_measures_the_same(
    given: dict[str, Any], x: float | None
) -> None:
    setup: dict[str, Any] = {"paper": "sur2007", "setup": {}}
    old = PublishedSystem(
        "old", description="x", numbers={"n": number(**given)}, **setup
    )
    known = Overlay(
        Published({}, {"old": old}, (), ()), {"ImbRing": frozenset({"E18", "E19"})}
    )
    points = known.points("ImbRing", "latency", "us", [8.0, 1.0, 4096.0])
    assert [point.x for point in points] == ([] if x is None else [x])


@pytest.fixture
def repeating(tmp_path: Path) -> Run:
    """A run whose ring repeats experiments of papers."""
    ring = {"experiments": ["E18", "E19", "E23", "E24", "E29"]}
    return with_statements(sample_run(), tmp_path, ImbRing=ring)


def test_published_systems_of_the_suite_are_off_at_first(repeating: Run) -> None:
    run = repeating
    chapter = chapters(run, judged(run), HOME)[2]
    (ring,) = [
        each for each in chapter.figures if each.title.startswith("ImbRing: lat")
    ]
    assert ring.spec["params"] == [{"name": "published", "value": []}]
    rows = ring.spec["datasets"]["published"]
    assert {"connectx3-qdr", "mt25208-pcie"} <= {row["system"] for row in rows}
    assert all(row["x"] == 1 for row in rows)
    assert ring.table.columns[-1] == "published"
    assert "connectx3-qdr 1.6 us: MPI ping-pong" in ring.table.rows[0][-1]
    (halo,) = [each for each in chapter.figures if each.title.startswith("HaloExch")]
    assert halo.spec["datasets"]["published"] == []
    assert "published" not in halo.table.columns


def test_axis_reaches_published_numbers_only_while_they_are_shown(
    repeating: Run,
) -> None:
    run = repeating
    chapter = chapters(run, judged(run), HOME)[2]
    (ring,) = [
        each for each in chapter.figures if each.title.startswith("ImbRing: lat")
    ]
    (dots,) = layers_of(ring.spec, "published", "point")
    low, _ = dots["encoding"]["y"]["scale"]["domain"]
    assert re.fullmatch(r"length\(published\) \? 1\.33\d* : [45]\.\d*", low["expr"])


def test_there_is_no_overlay_without_published_numbers_or_recorded_experiments(
    tmp_path: Path, repeating: Run
) -> None:
    for run, home in ((repeating, tmp_path), (sample_run(), HOME)):
        figures = chapters(run, judged(run), home)[2].figures
        assert len(figures) == 4
        assert {len(each.spec["datasets"]["published"]) for each in figures} == {0}


@pytest.mark.parametrize("damage", ["{", '{"runs": 1}', '{"runs": [{"testcases": 1}]}'])
def test_report_of_reframe_that_is_damaged_states_nothing(
    damage: str, repeating: Run
) -> None:
    (file,) = repeating.path.rglob("report.json")
    file.write_text(damage)
    assert stated(repeating, {"ImbRing"}) == {}


def test_statements_are_those_of_the_run_even_compressed(repeating: Run) -> None:
    (file,) = repeating.path.rglob("report.json")
    file.with_name("report.json.gz").write_bytes(gzip.compress(file.read_bytes()))
    file.unlink()
    found = stated(repeating, {"ImbRing"})
    assert found["ImbRing"].experiments[0] == "E18"
    assert found["ImbRing"].scaled is None


def test_hostile_names_are_no_part_of_a_curve_but_data() -> None:
    hostile = f"<script>alert(1)</script>{'x' * 10_000}"
    run = sample_run(nodes=("cn01", "cn02", "cn03", hostile), slow=hostile)
    for curve in curves(run, judged(run)):
        spec = chart(curve)
        assert len(json.dumps(spec)) < 100_000
        del spec["datasets"], spec["description"]
        if not curve.convicted:
            assert "script" not in json.dumps(spec)
        else:
            domain = {"domain": [f"at {short(hostile)}", "others"]}
            assert json.dumps(domain)[1:-1] in json.dumps(spec)
