"""Page one: headline numbers by area, the small map, what to look at and to skip."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from criteria_samples import criteria, criterion
from judge_samples import frozen
from samples import sample_criteria, sample_run
from sweep_samples import SWEEP, names, sample_sweep

from seatrial.judge.findings import Finding, Judgement, Verdict
from seatrial.judge.judge import judge
from seatrial.judge.place_findings import MAX_PASSING
from seatrial.judge.summary import format_findings
from seatrial.report.areas import margin_words
from seatrial.report.chapters import contents
from seatrial.report.content import ActOn, Content, Front
from seatrial.report.folding import fold_findings
from seatrial.report.html_page import finding_table
from seatrial.report.markdown import summary
from seatrial.runs.closed_run import Run

HOME = Path(__file__).resolve().parents[1]
OSU = "no MPI stack has the OSU Micro-Benchmarks: install them, or have them built"


def told(run: Run, judgement: Judgement | None = None) -> Content:
    return contents(run, judgement or judge(run, sample_criteria()), HOME)


def headlines(front: Front) -> dict[str, list[tuple[str, ...]]]:
    return {
        area.area: [
            (each.metric, each.place, each.value, each.limit, each.margin)
            for each in area.headlines
        ]
        for area in front.areas
    }


def test_areas_have_counts_and_the_numbers_with_the_least_margin() -> None:
    front = told(sample_run(slow="cn03")).front
    assert [(each.area, each.counts) for each in front.areas] == [
        ("nodes", {"pass": 1}),
        ("links", {"fail": 1, "pass": 1}),
        ("machine", {"fail": 1, "pass": 5}),
        ("programs", {"pass": 1}),
    ]
    found = headlines(front)
    assert found["nodes"] == []
    # What fails comes first, then what has the least margin.
    assert found["links"] == [
        ("bw_4MiB", "cn03", "23.50 MB/s", "at least 60 MB/s", "\N{MINUS SIGN}60.8 %"),
        ("latency_8B", "cn03 - cn04", "6.840 us", "at most 2,000 us", "+99.7 %"),
    ]
    assert [each[0] for each in found["machine"]][:2] == [
        "MinPingPongBandwidth_GBytes",
        "exchange_time_8KiB",
    ]
    assert found["programs"] == [
        ("loop_time", "", "11.83 s", "at most 120 s", "+90.1 %")
    ]


def test_places_that_share_a_finding_have_the_bound_of_the_worst() -> None:
    """They are nodes, which stand for their pairs."""
    run = sample_sweep(names(MAX_PASSING + 1), repeats=5)
    front = told(run, judge(run, SWEEP)).front
    found = {each[0]: each[1:] for each in headlines(front)["links"]}
    place, value, limit, margin = found["latency_8B"]
    assert (place, limit) == ("worst node", "at most 2.5 us")
    number = float(re.fullmatch(r"≤ ([\d.]+) us", value)[1])  # type: ignore[index]
    assert 1.9 < number < 2.5
    assert found["pairs_answered"][0] == f"worst of {MAX_PASSING + 1}"
    assert margin == f"+{100 * (1 - number / 2.5):.1f} %"


def test_a_criterion_without_numbers_is_in_the_area_of_its_check() -> None:
    front = told(sample_run(failed=True)).front
    (programs,) = [each for each in front.areas if each.area == "programs"]
    assert programs.counts == {"fail": 1, "undecided": 1}
    assert programs.headlines == ()


@pytest.mark.parametrize(
    ("margin", "words"),
    [
        (None, ""),
        (0.0, "0 %"),
        (0.00004, "+0.00400 %"),
        (-0.401, "\N{MINUS SIGN}40.1 %"),
        (0.9998, "+99.98 %"),
        (9.4, "+940 %"),
        (23.64, "24.6 x limit"),
        (-1233.0, "1,230 x limit"),
    ],
)
def test_margins(margin: float | None, words: str) -> None:
    assert margin_words(margin) == words


def test_an_undecided_node_is_on_page_one_by_name() -> None:
    """Planted: two repeats cannot convict the slow node, but it misses the limit."""
    front = told(sample_run(slow="cn03", repeats=2)).front
    assert front.verdict == "undecided"
    assert [each.place for each in front.look_at] == ["cn03", "cn01, cn02, cn04"]
    (reason, *_) = front.look_at[0].reasons
    assert reason.startswith(
        "ImbRing, intelmpi: bw_4MiB is 23.50 MB/s, at least 60 MB/s is required: "
    )
    (reason,) = front.look_at[1].reasons
    assert reason == "undecided; the values are within their limits so far"


def test_a_place_that_fails_is_not_among_those_to_look_at() -> None:
    run = sample_run(slow="cn03")
    judgement = judge(run, sample_criteria())
    node = next(each for each in judgement.findings if each.place == "cn03")
    odd = replace(node, metric="latency_8B", verdict="undecided")
    front = told(run, replace(judgement, findings=(*judgement.findings, odd))).front
    assert "cn03" not in [each.place for each in front.look_at]


def skipping(run: Run, *checks: str) -> Run:
    """Add skipped cases of checks, all for the same reason."""
    case = replace(run.cases[0], result="skip", reason=OSU, nodes=())
    more = tuple(replace(case, check=name, case=name) for name in checks)
    return replace(run, cases=(*run.cases, *more))


@cache
def skipped() -> Content:
    """The report of a run without OSU, with and without criteria for it."""
    run = skipping(sample_run(), "OsuLatency", "OsuClock")
    asked = [
        criterion("latency_8B", 5.0, check="OsuLatency", optional=True),
        criterion("msg_rate_8B", 5.0, check="OsuClock", optional=True),
    ]
    run = frozen(run, *asked)
    judgement = judge(run, criteria(*sample_criteria().criteria, *asked))
    findings = (replace(finding, flags=()) for finding in judgement.findings)
    return told(run, replace(judgement, findings=tuple(findings)))


def test_skipped_criteria_share_a_row_and_come_last() -> None:
    content = skipped()
    assert len(content.criteria) == len(content.folded) + 3  # a row each in the CSV
    last = content.folded[-1]
    assert (last.verdict, last.alike, last.reason) == ("skipped", 4, OSU)
    assert "OsuClock msg_rate_8B promised" in last.name
    assert [row.verdict for row in content.folded].count("skipped") == 1
    assert summary(content).count(OSU) == 1


def test_the_chapter_on_exclusions_gives_a_reason_once() -> None:
    (chapter,) = [each for each in skipped().chapters if each.name == "exclusions"]
    rows = {title: table.rows for title, table in chapter.tables}
    assert rows["Skipped cases"] == (("OsuLatency, OsuClock", "openmpi", OSU, "1"),)
    assert rows["Optional criteria that were not measured"] == (
        ("OsuClock msg_rate_8B promised, OsuLatency latency_8B promised", OSU),
    )


def test_what_was_not_tested_is_one_line() -> None:
    front = skipped().front
    assert front.not_tested == (
        "4 criteria: no MPI stack has the OSU Micro-Benchmarks (4)"
    )
    assert front.optional == (
        "OsuClock msg_rate_8B promised",
        "OsuLatency latency_8B promised",
    )
    assert told(sample_run()).front.not_tested == ""


def test_undecided_findings_with_the_same_reason_share_a_row() -> None:
    run = sample_run(repeats=1)
    judgement = judge(run, sample_criteria())
    content = told(run, judgement)
    (row,) = [row for row in content.folded if row.verdict == "undecided"]
    assert row.alike == content.front.counts["undecided"] == 9
    table = finding_table(judgement.findings, {})
    folded = [row for row in table.rows if "4 findings" in row.cells[0]]
    assert {row.cells[3][0] for row in folded} >= {"cn01, cn02, cn03, cn04"}
    assert table.total < len(judgement.findings)
    assert len(summary(content).splitlines()) < 60


def test_findings_of_different_metrics_or_with_flags_are_not_folded() -> None:
    judgement = judge(sample_run(repeats=1), sample_criteria())
    odd = [each for each in judgement.findings if each.verdict == "undecided"]
    kept: list[Finding] = [odd[0], replace(odd[0], metric="other")]
    assert len(fold_findings([*kept, kept[0]], {})) == 2
    assert len(fold_findings([odd[0], replace(odd[0], flags=("changed",))], {})) == 2
    assert len(fold_findings([replace(odd[0], verdict="fail")] * 2, {})) == 2


def test_small_map_names_the_nodes_that_do_not_pass() -> None:
    front = told(sample_run(slow="cn03", absent="cn04")).front
    assert front.node_map is not None
    assert front.node_map.words == "4 nodes: 2 pass, 1 fail, 1 absent"
    assert front.node_map.groups == (("fail", 1, "cn03"), ("absent", 1, "cn04"))
    assert re.findall(r">([^<>]+)</text>", front.node_map.svg) == [
        *("cn01", "cn02", "✕ cn03", "\N{EN DASH} cn04")
    ]


def test_small_map_of_a_large_machine_is_small() -> None:
    nodes = [f"n{number:05}" for number in range(10_000)]
    judgement = judge(sample_run(), sample_criteria())
    plain = judgement.nodes[0]
    odd: dict[int, Verdict] = {17: "fail", 9000: "undecided"}
    verdicts = tuple(
        replace(plain, name=name, verdict=odd.get(number, "pass"))
        for number, name in enumerate(nodes)
    )
    front = told(sample_run(), replace(judgement, nodes=verdicts)).front
    assert front.node_map is not None
    assert len(front.node_map.svg) < 400_000
    assert front.node_map.groups == (
        *(("fail", 1, "n00017"), ("undecided", 1, "n09000")),
    )


def test_nothing_judged_leaves_a_page_one() -> None:
    run = sample_run()
    judgement = replace(judge(run, criteria()), findings=(), nodes=())
    front = told(run, judgement).front
    assert (front.areas, front.node_map, front.not_tested) == ((), None, "")


def test_numbers_are_never_raw(tmp_path: Path) -> None:
    run = sample_sweep(names(4), slow=["cn3"], repeats=6)
    asked = criterion("bw_1MiB", check="PairSweep", tolerance=0.9)
    judgement = judge(run, criteria(*SWEEP.criteria, asked))
    assert {each.limit for each in judgement.findings if each.kind == "sameness"} <= {
        0.1
    }
    written = format_findings(judgement, "csv") + summary(told(run, judgement))
    hex_digits = r"[0-9a-f]{64}"
    assert not re.search(r"\d\.\d{10,}|\d{17,}", re.sub(hex_digits, "", written))


def test_act_on_tells_a_metric_of_several_stacks_once() -> None:
    run = sample_sweep(
        names(6), slow=["cn3"], environments=("openmpi", "mpich"), repeats=8
    )
    (node,) = told(run, judge(run, SWEEP)).front.act_on
    assert isinstance(node, ActOn) and node.place == "cn3"
    stacks = [re.match(r"PairSweep, (\w+) \((\w+) too\): ", r) for r in node.reasons]
    assert len(stacks) == 2
    assert all(each and {*each.groups()} == {"openmpi", "mpich"} for each in stacks)
