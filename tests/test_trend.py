"""Trend: numbers over nights, their limits then and now, changes, gaps."""

import csv
import io
import json
import re
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import altair as alt
import pytest
from click.testing import CliRunner, Result
from closed_runs import CRITERIA, close_run
from fake_home import write
from history_runs import present
from judge_samples import CASE, sample
from trend_runs import STRICTER, night, nights, run_id

from seatrial.cli import main
from seatrial.criteria.criteria import Criteria
from seatrial.criteria.keys import ANY
from seatrial.errors import SeatrialError
from seatrial.model.manifest import read_manifest
from seatrial.report.trend.changes import night_changes
from seatrial.report.trend.page import MAX_CHARTS, drawn_series, trend_html
from seatrial.report.trend.series import Choice, Series, Trend
from seatrial.report.trend.trend import trend
from seatrial.runs.closed_run import closed_runs
from seatrial.runs.pack import pack

HOME = Path(__file__).resolve().parents[1]
TODAY = STRICTER.replace("70 MB/s", "75 MB/s")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    nights(folder)
    return folder


@pytest.fixture
def home(tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with today's criteria, and the eight nights."""
    folder = tmp_path / "home"
    write(folder / "reference-data" / "lab" / "criteria.yaml", TODAY)
    (folder / "reframe-checks").mkdir()
    (folder / "reports").symlink_to(HOME / "reports")
    monkeypatch.setenv("SEATRIAL_HOME", str(folder))
    monkeypatch.setenv("SEATRIAL_RESULTS", str(results))
    return folder


def criteria(folder: Path, text: str = TODAY) -> Criteria:
    write(folder / "today.yaml", text)
    return Criteria.load(folder / "today.yaml", known=ANY)


def measured(results: Path) -> list[Path]:
    """Return the runs that are no replay, oldest first."""
    runs = sorted((results / "lab").iterdir())
    return [run for run in runs if not read_manifest(run)["replay"]]


def found(runs: Sequence[Path], today: Criteria | None = None, **choice: Any) -> Trend:
    return trend("lab", runs, today, Choice(**choice))


def one(trend: Trend) -> Series:
    (series,) = trend.series
    return series


def seatrial(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["trend", *arguments])


def test_points_are_medians_over_places_and_then_over_allocations(
    results: Path,
) -> None:
    runs = measured(results)
    series = one(found(runs))
    rows = csv.DictReader(io.StringIO(_csv_of(runs[0])))
    jobs: dict[str, list[float]] = {}
    places: dict[str, list[float]] = {}
    for row in rows:
        jobs.setdefault(row["job_id"], []).append(float(row["value"]))
        places.setdefault(row["node"], []).append(float(row["value"]))
    medians = [statistics.median(values) for values in jobs.values()]
    point = series.points[0]
    assert point.value == pytest.approx(statistics.median(medians))
    assert (point.low, point.high) == pytest.approx((min(medians), max(medians)))
    assert point.allocations == 2
    worst = {name: statistics.median(values) for name, values in places.items()}
    assert point.worst_place == min(worst, key=lambda name: worst[name])
    assert point.worst == pytest.approx(min(worst.values()))
    assert series.points[-1].worst_place == "cn03"


def _csv_of(run: Path) -> str:
    result = CliRunner().invoke(main, ["export", str(run)])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_limits_are_those_that_held_and_today_apart(
    results: Path, tmp_path: Path
) -> None:
    series = one(found(measured(results), criteria(tmp_path)))
    held = [[limit.value for limit in point.limits] for point in series.points]
    assert held == [[60.0]] * 4 + [[70.0]] * 3
    assert [(each.kind, each.value) for each in series.today] == [("promised", 75.0)]
    beyond = [series.beyond(number) for number in range(7)]
    assert beyond == [False] * 5 + [True] * 2  # cn03 alone, then all
    six, last = series.points[5:]
    assert not series.misses(six.value, six.limits)
    assert series.misses(six.worst, six.limits)
    assert series.misses(last.value, last.limits)


def test_changes_are_told_once_and_where_they_happened(
    results: Path, tmp_path: Path
) -> None:
    trend = found(measured(results), criteria(tmp_path))
    told = {night.run: night.changes for night in trend.nights if night.changes}
    assert list(told) == [run_id(5)]
    assert [(each.kind, each.words) for each in told[run_id(5)]] == [
        ("configuration", "kernel was 6.1.0-25, is 6.1.0-28"),
        ("criteria", "ImbRing bw_4MiB: limit 60 MB/s, now 70 MB/s"),
    ]
    assert [each.words for each in trend.since] == [
        "ImbRing bw_4MiB: limit 70 MB/s, now 75 MB/s"
    ]


def manifest(absent: str = "", **software: Any) -> dict[str, Any]:
    nodes = present(("cn01", "cn02"))
    for node in nodes:
        if node["name"] == absent:
            node |= {"state": "absent", "reason": "down"}
    return {"nodes": nodes, "software": {"seatrial": "0.1.0", **software}}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (manifest(), manifest(), []),
        (manifest(), manifest("cn02"), ["cn02 absent: down"]),
        (manifest("cn02"), manifest(), ["cn02 back"]),
        (manifest("cn02"), manifest("cn02"), []),
        (
            manifest(git_commit="a" * 40),
            manifest(git_commit="b" * 40),
            ["commit of the suite was aaaaaaaaaaaa, is bbbbbbbbbbbb"],
        ),
        (
            manifest(dirty=False),
            manifest(dirty=True, seatrial="0.2.0"),
            [
                "Seatrial was 0.1.0, is 0.2.0",
                "suite with changes of its own was no, is yes",
            ],
        ),
        (manifest(), manifest(slurm="23.11"), ["slurm was not known, is 23.11"]),
        (manifest(slurm="22.05"), manifest(), ["slurm was 22.05, is not known"]),
    ],
)
def test_changes_between_manifests(old: Any, new: Any, words: list[str]) -> None:
    assert [change.words for change in night_changes(old, new)] == words


def test_gaps_say_why(tmp_path: Path) -> None:
    night(tmp_path, 1, (80.0,))
    night(tmp_path, 2, (80.0,), result="fail")
    night(tmp_path, 3, (80.0,), result="skip")
    other = replace(CASE, check="Other", case="Other")
    close_run(tmp_path, run_id(4), rows=[sample(other, 1.0)], cases=[other])
    close_run(tmp_path, run_id(6), rows=[sample(other, 1.0)], cases=[CASE])
    close_run(tmp_path, run_id(7), rows=[sample(CASE, float("nan"), node="cn01")])
    close_run(
        tmp_path, run_id(8), rows=[sample(other, 1.0)], cases=[other], partial=True
    )
    (series,) = found(measured(tmp_path), checks=("ImbRing",)).series
    assert [point.gap for point in series.points] == [
        "",
        "failed in sanity: no rows for 4 MiB",
        "skipped: no rows for 4 MiB",
        "not in this run of campaign nightly",
        "ran, and reported no such number",
        "no finite number",
        "not in this run of campaign nightly (this run is a part of it)",
    ]


@pytest.mark.parametrize(
    ("node", "gaps"),
    [
        ("cn01", {None: ["", ""]}),
        (None, {2: ["ran on 4 nodes, not 2", ""], 4: ["", "ran on 2 nodes, not 4"]}),
    ],
)
def test_numbers_of_all_nodes_depend_on_how_many_there_are(
    node: str | None, gaps: dict[int | None, list[str]], tmp_path: Path
) -> None:
    for day, names in ((1, CASE.nodes), (2, CASE.nodes[:2])):
        case = replace(CASE, nodes=names)
        rows = [sample(case, 80.0 + day, node=node)]
        close_run(tmp_path, run_id(day), rows=rows, cases=[case])
    series = found(measured(tmp_path), checks=("ImbRing",)).series
    seen = {each.key.num_nodes: [p.gap for p in each.points] for each in series}
    assert seen == gaps


def test_metric_without_any_finite_number_has_no_series(tmp_path: Path) -> None:
    rows = [sample(CASE, float("inf")), sample(CASE, 3.0, size=8)]
    close_run(tmp_path, run_id(1), rows=rows)
    assert one(found(measured(tmp_path), checks=("ImbRing",))).key.metric == "bw_8B"


def test_line_is_broken_at_a_gap(results: Path, tmp_path: Path) -> None:
    text = trend_html(found(measured(results), criteria(tmp_path)), HOME)
    (spec,) = specs(text)
    parts = [row["part"] for row in spec["datasets"]["points"] if "part" in row]
    assert parts == [0, 0, 0, 1, 1, 1]
    (gap,) = [row for row in spec["datasets"]["points"] if row["kind"] == "no number"]
    assert gap["said"] == "failed in sanity: no rows for 4 MiB"
    alt.Chart.from_dict(spec)  # raises where the schema of Vega-Lite is not met


def specs(page: str) -> list[dict[str, Any]]:
    found = re.findall(r'data-chart="[^"]*">(.*?)</script>', page, re.DOTALL)
    return [json.loads(each) for each in found]


def test_default_is_what_has_a_criterion_and_else_what_is_declared(
    tmp_path: Path,
) -> None:
    rows = [
        sample(CASE, 80.0, pair="cn01 cn02"),
        sample(CASE, 5.0, pair="cn01 cn02", size=8),
        sample(CASE, 3.0, metric="latency", size=8, pair="cn01 cn02"),
    ]
    close_run(tmp_path, run_id(1), rows=rows)
    runs = measured(tmp_path)
    declared = [each.key.metric for each in found(runs).series]
    assert declared == ["bw_4MiB"]
    limited = criteria(tmp_path, CRITERIA.replace("bw_4MiB: 60 MB/s", "bw_8B: 1 MB/s"))
    assert [each.key.metric for each in found(runs, limited).series] == ["bw_8B"]
    every = found(runs, limited, checks=("ImbRing",))
    assert {each.key.metric for each in every.series} == {
        *("bw_8B", "bw_4MiB", "latency_8B")
    }
    chosen = found(runs, limited, metrics=("latency_8B",))
    assert [each.key.metric for each in chosen.series] == ["latency_8B"]


def test_criterion_that_came_later_chooses_the_nights_before(tmp_path: Path) -> None:
    others = CRITERIA.replace("bw_4MiB", "bw_8B")
    for day, held in ((1, others), (2, CRITERIA)):
        night(tmp_path, day, (80.0,), criteria=held)
    series = one(found(measured(tmp_path), criteria(tmp_path)))
    assert [point.gap for point in series.points] == ["", ""]
    assert [len(point.limits) for point in series.points] == [0, 1]


def test_statistic_of_a_criterion_is_a_series_of_its_own(tmp_path: Path) -> None:
    rows = [
        sample(CASE, value, pair="cn01 cn02", statistic=statistic)
        for statistic, value in (("p50", 80.0), ("p99", 50.0))
    ]
    close_run(tmp_path, run_id(1), rows=rows)
    asked = CRITERIA + "    statistic: p99\n"
    both = found(measured(tmp_path), criteria(tmp_path, asked)).series
    assert [(each.key.statistic, len(each.today)) for each in both] == [
        ("p50", 0),
        ("p99", 1),
    ]
    assert [each.beyond(0) for each in both] == [False, True]


def test_page_draws_at_most_so_many_and_says_what_is_left_out(
    results: Path, tmp_path: Path
) -> None:
    trend = found(measured(results), criteria(tmp_path))
    series = one(trend)
    calm = replace(
        series, points=tuple(replace(point, limits=()) for point in series.points)
    )
    many = [
        replace(calm, key=series.key._replace(case=f"ImbRing %x={number}"))
        for number in range(40)
    ]
    many[33] = replace(series, key=series.key._replace(case="ImbRing %x=33"))
    drawn = drawn_series(many)
    assert len(drawn) == MAX_CHARTS
    assert many[33] in drawn  # beyond a limit, so before others
    text = trend_html(replace(trend, series=tuple(many)), HOME)
    assert len(specs(text)) == MAX_CHARTS
    assert "24 of 40 series have a chart" in text
    assert "has the other 16" in text


def test_limits_far_off_are_said_and_not_drawn(results: Path, tmp_path: Path) -> None:
    far = criteria(tmp_path, CRITERIA.replace("60 MB/s", "1 MB/s"))
    short = found(measured(results)[:3], far)
    text = trend_html(short, HOME)
    assert "Model machine." not in text
    nights = (replace(short.nights[0], model=True), *short.nights[1:])
    assert "Model machine." in trend_html(replace(short, nights=nights), HOME)
    assert "Too far off to draw: promised, at least 1 MB/s." in text
    (spec,) = specs(text)
    assert {row["y"] for row in spec["datasets"]["limits"]} == {60.0}
    assert spec["datasets"]["today"] == []
    low, high = spec["layer"][-1]["encoding"]["y"]["scale"]["domain"]
    assert 50 < low < 60 < high < 90


def test_hostile_names_are_text(tmp_path: Path) -> None:
    bad = "</script><script>alert(1)</script>\"'"
    case = replace(CASE, nodes=(bad, "cn02"), environment=bad)
    for day in (1, 2):
        rows = [sample(case, 80.0 + day, node=name) for name in case.nodes]
        nodes = present(case.nodes, kernel=f"{bad}{day}")
        close_run(tmp_path, run_id(day), rows=rows, cases=[case], nodes=nodes)
    text = trend_html(found(measured(tmp_path)), HOME)
    assert "<script>alert" not in text
    assert bad in json.dumps(specs(text)[0], ensure_ascii=False).replace('\\"', '"')
    assert "kernel was" in text


def test_whole_csv(home: Path) -> None:
    result = seatrial("lab", "--last", "2", "--format", "csv")
    assert result.exit_code == 0
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [row["run"] for row in rows] == [run_id(7), run_id(8)]
    numbers = ("value", "low", "high", "worst")
    assert all(0 < float(row.pop(name)) < 100 for row in rows for name in numbers)
    assert rows[1] == {
        "run": "20260108T000000Z-nightly",
        "campaign": "nightly",
        "started": "2026-01-08T00:00:00+00:00",
        "check": "ImbRing",
        "case": "ImbRing",
        "environment": "intelmpi",
        "partition": "lab:batch",
        "num_nodes": "",
        "metric": "bw_4MiB",
        "statistic": "mean",
        "unit": "MB/s",
        "direction": "higher",
        "allocations": "2",
        "worst_place": "cn03",
        "limits": "promised 70.0",
        "beyond": "yes",
        "gap": "",
        "changes": "",
    }
    assert not (home / "reports" / "out" / "lab" / "trend").exists()


def test_json_has_all(home: Path) -> None:
    content = json.loads(seatrial("lab", "--format", "json").stdout)
    assert [run["run"] for run in content["runs"]] == [
        run_id(day) for day in (1, 2, 3, 4, 5, 7, 8)
    ]
    (series,) = content["series"]
    assert series["limits_today"] == [
        {
            "criterion": "ImbRing bw_4MiB",
            "kind": "promised",
            "value": 75.0,
            "source": "d, c",
        }
    ]
    assert [point["beyond"] for point in series["points"]] == [False] * 5 + [True] * 2
    assert content["changes_since"][0]["kind"] == "criteria"


def test_table_and_files(home: Path, tmp_path: Path) -> None:
    result = seatrial("lab", "--out", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    heads = "case environment nodes metric runs first last least largest unit"
    numbers = "ImbRing intelmpi bw_4MiB 6 of 7 81.06 60.97 60.97 81.2 MB/s"
    assert lines == [
        "lab: 7 runs, 2026-01-01T00:00:00+00:00 to 2026-01-08T00:00:00+00:00, 1 series",
        f"{heads} limit today beyond",
        f"{numbers} promised ≥ 75 2 runs, the last",
        f"{run_id(5)}: configuration: kernel was 6.1.0-25, is 6.1.0-28",
        f"{run_id(5)}: criteria: ImbRing bw_4MiB: limit 60 MB/s, now 70 MB/s",
        "since then: criteria: ImbRing bw_4MiB: limit 70 MB/s, now 75 MB/s",
        str(tmp_path / "out" / "trend.html"),
        str(tmp_path / "out" / "trend.csv"),
    ]
    written = (tmp_path / "out" / "trend.csv").read_text()
    assert written == seatrial("lab", "--format", "csv").stdout


@pytest.mark.parametrize(
    ("arguments", "days"),
    [
        ("--since 2026-01-07", [7, 8]),
        ("--until 2026-01-03", [1, 2]),
        ("--campaign nightly --last 1", [8]),
        ("--environment intelmpi --last 3", [5, 7, 8]),
    ],
)
def test_choice_of_runs(home: Path, arguments: str, days: list[int]) -> None:
    result = seatrial("lab", *arguments.split(), "--format", "json")
    assert result.exit_code == 0, result.output
    runs = [run["run"] for run in json.loads(result.stdout)["runs"]]
    assert runs == [run_id(day) for day in days]
    assert ("one run only: a trend needs more" in result.stderr) == (len(days) == 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("lba", "no closed run of system 'lba' below"),
        ("lba", "expected one of: lab"),
        ("lab --metric bw_4MB", "--metric bw_4MB: in none of these runs"),
        ("lab --metric bw_4MB", "for example bw_4MiB"),
        ("lab --check ImbRign", "for example ImbRing"),
        ("lab --environment openmpi", "for example intelmpi"),
        ("lab --campaign smoke", "none of the 7 runs of lab fits"),
        ("lab --since 2027-01-01", "of nightly, started from 2026-01-01 00:00 to"),
        ("lab --check Other --metric bw_4MiB --until 2026-01-04", "--check Other"),
        ("lab --since yesterday", "'yesterday': expected for example 2026-11-21"),
    ],
)
def test_bad_input_is_told(home: Path, arguments: str, message: str) -> None:
    result = seatrial(*arguments.split())
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.output


def test_replays_alone_are_no_trend(
    home: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("SEATRIAL_RESULTS", str(tmp_path / "replays"))
    night(tmp_path / "replays", 1, (80.0,), replay="results/lab/old")
    result = seatrial("lab")
    assert result.exit_code == 2
    assert "lab has replays of recorded output only" in result.stderr


def test_runs_are_verified_once(home: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """The same question is answered from kept numbers; another one reads the runs."""
    monkeypatch.setenv("SEATRIAL_RESULTS", str(tmp_path / "results"))
    runs = [night(tmp_path / "results", day, (80.0,)) for day in (1, 2)]
    first = seatrial("lab", "--format", "json")
    kept = tmp_path / "cache" / "seatrial" / "runs"
    assert len([*kept.iterdir()]) == 2
    cases = runs[0] / "cases.json"
    cases.chmod(0o644)
    cases.write_text(cases.read_text() + " ")
    assert seatrial("lab", "--format", "json").stdout == first.stdout
    other = seatrial("lab", "--check", "ImbRing")
    assert (other.exit_code, "changed: SHA-256 is" in other.stderr) == (2, True)


def test_changed_run_is_refused(home: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("SEATRIAL_RESULTS", str(tmp_path / "results"))
    run = night(tmp_path / "results", 1, (80.0,))
    cases = run / "cases.json"
    cases.chmod(0o644)
    cases.write_text(cases.read_text() + " ")
    result = seatrial("lab")
    assert result.exit_code == 2
    assert "changed: SHA-256 is" in result.stderr


def test_names_that_do_not_occur_together(tmp_path: Path) -> None:
    other = replace(CASE, check="Other", case="Other")
    rows = [sample(CASE, 80.0), sample(other, 1.0, size=8)]
    close_run(tmp_path, run_id(1), rows=rows, cases=[CASE, other])
    runs = measured(tmp_path)
    with pytest.raises(SeatrialError, match="in 1 run fits: expected --check"):
        found(runs, checks=("Other",), metrics=("bw_4MiB",))


def test_packed_runs_make_a_trend_too(
    home: Path, results: Path, tmp_path: Path
) -> None:
    """Those that are named, in the order of their start."""
    runs = closed_runs(results, "lab")[:2]
    files = [tmp_path / f"{run.name}.tar.xz" for run in runs]
    for run, file in zip(runs, files, strict=True):
        pack(run, file)
    named = seatrial("lab", *map(str, reversed(files)), "--format", "json")
    assert named.exit_code == 0, named.stderr
    told = [each["run"] for each in json.loads(named.stdout)["runs"]]
    assert told == [run.name for run in runs]
    other = seatrial("other", str(files[0]))
    assert other.exit_code == 2
    assert "runs of lab; expected runs of other alone" in other.stderr
