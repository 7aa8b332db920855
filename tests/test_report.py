"""The report as files: what it says, what it holds, and what it never does."""

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from criteria_samples import criterion
from html_page import Page
from samples import NODES, sample_criteria, sample_run
from sweep_samples import SWEEP, names, sample_sweep

from seatrial.errors import SeatrialError
from seatrial.judge.judge import Judgement, judge
from seatrial.report import write_report
from seatrial.report.node_table import node_tables
from seatrial.report.render import text
from seatrial.runs.closed_run import Run

HOME = Path(__file__).resolve().parents[1]
Write = Callable[..., tuple[Page, ET.Element]]
HOSTILE = "<script>alert(1)</script>"


def judged(run: Run) -> Judgement:
    return judge(run, sample_criteria())


def written(
    out: Path, run: Run, judgement: Judgement | None = None
) -> tuple[Page, ET.Element]:
    """Judge a run, write its report, and give page and XML."""
    judgement = judgement or judged(run)
    paths = write_report(run, judgement, out, HOME, ("html", "junit"))
    page = Page(paths["report.html"].read_text())
    return page, ET.parse(paths["junit.xml"]).getroot()


@pytest.fixture
def write(tmp_path: Path) -> Write:
    return partial(written, tmp_path / "out")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The page of a run without faults."""
    return written(tmp_path_factory.mktemp("plain"), sample_run())[0]


@pytest.mark.parametrize(
    ("options", "title", "said"),
    [
        (
            {"slow": "cn03", "skipped": True},
            "FAIL: lab",
            [
                "At least one criterion is not met.",
                "Not tested: 1 criterion: mpich has no LAMMPS (1).",
                "cn03 ImbRing, intelmpi: bw_4MiB is 23.50 MB/s, at least 60 MB/s is ",
            ],
        ),
        ({"absent": "cn04"}, "FAIL: lab", ["cn04 down: Not responding", "3 of 4"]),
        (
            {"failed": True},
            "FAIL: lab",
            [
                "No single node is the cause.",
                "energy at step 100 is -25101.2",
                "raw/lammps-1/LammpsRhodo_openmpi",
            ],
        ),
        ({"repeats": 2}, "UNDECIDED: lab", ["This is not a pass"]),
    ],
)
def test_verdict_of_what_fails_stands_at_the_top_with_its_reason(
    write: Write, options: dict[str, Any], title: str, said: list[str]
) -> None:
    page, _ = write(sample_run(**options))
    assert page.text.startswith(title)
    for words in said:
        assert words in page.text


def test_a_pass_stands_at_the_top(plain: Page) -> None:
    assert plain.text.startswith("PASS: lab")
    assert "Every judged criterion is met." in plain.text


def test_demonstration_is_said_only_of_a_demonstration_system(
    write: Write, plain: Page
) -> None:
    words = "Functional demonstration. This run shows that the suite works"
    assert words in plain.text
    assert words not in write(sample_run(demonstration=False))[0].text


def test_a_model_machine_is_said(write: Write, plain: Page) -> None:
    words = "Model machine. The numbers are made by a model of known truth"
    page, xml = write(sample_run(demonstration=False, model=True))
    assert words in page.text
    properties = {p.attrib["name"]: p.attrib["value"] for p in xml.iter("property")}
    assert properties["model"] == "true"
    assert "Functional demonstration" not in page.text
    assert words not in plain.text


def test_other_runs_at_the_same_time_are_said(write: Write) -> None:
    run = sample_run()
    run.manifest["sessions"][0]["beside"] = ["r7"]
    page, _ = write(run)
    words = "Not alone. Other runs of this system were active during this run: r7."
    assert f"{words} They may have slowed it down." in page.text


def test_partial_run_and_uncommitted_changes_are_said(
    write: Write, plain: Page
) -> None:
    assert "4 nodes in containers on one machine" in plain.text
    assert "Partial run" not in plain.text
    run = sample_run()
    run.manifest["partial"] = True
    run.manifest["software"]["dirty"] = True
    page, _ = write(run)
    assert "Partial run. The run left out some checks of the campaign." in page.text
    assert "b14c586d0f, with changes that are in no commit" in page.text


def test_findings_are_rows_with_the_failing_ones_first(write: Write) -> None:
    run = sample_run(slow="cn03", absent="cn01", skipped=True)
    judgement = judged(run)
    page, _ = write(run, judgement)
    verdicts = [verdict for verdict, _ in page.rows]
    assert Counter(verdicts) == Counter(f.verdict for f in judgement.findings)
    order = ["fail", "not shown", "undecided", "pass", "skipped"]
    assert verdicts == sorted(verdicts, key=order.index)
    (ring,) = [
        cells
        for _, cells in page.rows
        if cells[1].startswith("ImbRing")
        and cells[4].startswith("cn03")
        and "bw" in cells[3]
    ]
    (node,) = [
        finding
        for finding in judgement.findings
        if (finding.place, finding.metric) == ("cn03", "bw_4MiB")
    ]
    assert node.lower is not None and node.upper is not None
    assert node.lower < 23.5 < node.upper
    assert ring[:8] == [
        "✕fail",
        "ImbRingbenchmark=PingPong",
        "intelmpi",
        "bw_4MiBhigher is better",
        "cn03by its pairs",
        f"23.50 MB/s{node.lower:.2f} to {node.upper:.2f}4 allocations",
        "at least 60 MB/spromised; 39.2 % of it",
        node.reason,
    ]
    assert node.reason.startswith("between ")
    assert " MB/s; 4 of 4 values miss the limit, p = " in node.reason
    assert node.reason.endswith("; 2 of its 2 pairs do not pass")
    # The node speaks for its pairs that are slow.
    pairs = [verdict for verdict, cells in page.rows if " - " in cells[4]]
    assert {*pairs} == {"pass"}


def test_more_repeats_are_asked_for_where_they_would_decide(write: Write) -> None:
    page, _ = write(sample_run(repeats=2))
    (loop,) = [cells for _, cells in page.rows if cells[3].startswith("loop_time")]
    assert loop[5] == "11.83 s2 allocations"
    # The first look at the data may spend 0.83 of each risk, 5 % here.
    assert re.fullmatch(
        r"2 allocations; Student's t of logarithms takes at least 3 at a risk of "
        r"4(\.\d+)? %",
        loop[7],
    )


def test_a_limit_is_on_the_side_of_its_direction_though_it_is_met(write: Write) -> None:
    """A place within its limit may not be shown to meet it."""
    run = sample_run()
    judgement = judged(run)
    found = [
        replace(each, verdict="not shown") if each.metric == "bw_4MiB" else each
        for each in judgement.findings
    ]
    page, _ = write(run, replace(judgement, findings=tuple(found)))
    bounds = {cells[6][:17] for _, cells in page.rows if cells[3].startswith("bw_4MiB")}
    assert bounds == {"at least 60 MB/sp"}


def test_sameness_is_a_ratio_to_the_typical_place(write: Write) -> None:
    run = sample_sweep(names(4), slow=["cn3"])
    alike = criterion("latency_8B", check="PairSweep", tolerance=0.5)
    page, _ = write(run, judge(run, replace(SWEEP, criteria=(alike,))))
    (node,) = [cells for verdict, cells in page.rows if verdict == "fail"]
    assert node[4] == "cn3"
    assert re.match(r"4\.\d+times the typical[34]\.\d+ to 4\.\d+4 alloc", node[5])
    assert node[6].startswith("at most 2sameness; ")


def test_values_of_a_node_keep_their_unit_beside_sameness() -> None:
    run = sample_run()
    judgement = judged(run)
    (node,) = [
        each
        for each in judgement.findings
        if (each.place, each.metric) == ("cn02", "bw_4MiB")
    ]
    alike = replace(node, kind="sameness", unit="1", verdict="fail")
    found = (*judgement.findings, alike)
    (_, shown), *_ = node_tables(run, replace(judgement, findings=found))
    column = shown.columns.index("bw_4MiB (MB/s)")
    marks = [row[column].endswith(" ✕") for row in shown.rows]
    assert marks == [False, True, False, False]


def test_page_says_what_the_judge_did_not_judge(write: Write) -> None:
    run = sample_run()
    judgement = judge(run, sample_criteria(queues=True))
    changed = "ImbRing bw_4MiB promised"
    flag = "changed after the data were taken: limit 50 MB/s, now 60 MB/s"
    judgement = replace(
        judgement,
        suspects=("cn02", "cn03 - cn04"),
        changed=(f"{changed}: limit 50 MB/s, now 60 MB/s",),
        findings=tuple(
            replace(each, flags=(flag,)) if each.criterion == changed else each
            for each in judgement.findings
        ),
        further=("20261122T063015Z-acceptance",),
    )
    page, _ = write(run, judgement)
    for words in (
        "Worth a look cn02, cn03 - cn04. Some may be sound",
        f"the time of the run: {changed}: limit 50 MB/s, now 60",
        "UNDECIDED: lab",
        "campaign acceptance does not run MatchQueue: MatchQueue match_time promised",
        f"on any machine: {judgement.digest}",
        f"SHA-256 of the criteria: {judgement.criteria_sha256}",
        "Judged together with 20261122T063015Z-acceptance",
    ):
        assert words in page.text
    rows = [cells for _, cells in page.rows if cells[3].startswith("bw_4MiB")]
    assert rows and all(cells[7].endswith(f"criterion {flag}") for cells in rows)


def test_what_a_failing_node_speaks_for_is_not_worth_a_second_look(
    write: Write,
) -> None:
    run = sample_run(slow="cn03")
    judgement = judged(run)
    assert judgement.suspects == ("cn03",)
    assert "Worth a look" not in write(run, judgement)[0].text
    suspects = ("cn01 (socket 1)", "cn03", "cn03 (socket 0)")
    page, _ = write(run, replace(judgement, suspects=suspects))
    assert "Worth a look cn01 (socket 1). Some" in page.text


def test_a_pair_that_fails_is_more_than_worth_a_look(write: Write) -> None:
    run = sample_sweep(names(6), slow_pairs=[("cn2", "cn5")])
    judgement = judge(run, SWEEP)
    assert {*judgement.suspects} == {"cn2 - cn5", "cn5 - cn2"}
    page, _ = write(run, judgement)
    assert "No single node is the cause." in page.text
    assert "Worth a look" not in page.text


def test_page_can_request_nothing(write: Write) -> None:
    page, _ = write(sample_run(slow="cn03"))
    for tag, attributes in page.elements:
        for name in ("src", "href", "action", "srcset", "data"):
            value = attributes.get(name) or "#"
            assert value.startswith("#") or value == "data:,", (tag, name, value)
        assert not [name for name in attributes if name.startswith("on")]
    styles = (HOME / "reports" / "report.css").read_text()
    assert "url(" not in styles and "@import" not in styles
    (policy,) = [
        attributes["content"] or ""
        for tag, attributes in page.elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy and "'unsafe-inline'" not in policy.split(";")[1]
    for kind, script in page.scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert kind == "application/json" or f"'sha256-{digest}'" in policy


def test_hostile_names_stay_text(write: Write) -> None:
    node = f"{HOSTILE}\x00\x1b[31m\u202e"
    run = sample_run(nodes=("cn01", "cn02", node), slow=node, system=HOSTILE)
    judgement = judged(run)
    reason = "it said \"no\" & 'never' </script><!-- ]]>\x08"
    findings = [
        replace(finding, reason=reason) if finding.verdict == "fail" else finding
        for finding in judgement.findings
    ]
    page, xml = write(run, replace(judgement, findings=tuple(findings)))
    usual, _ = write(sample_run(nodes=NODES[:3], slow="cn03"))
    assert Counter(tag for tag, _ in page.elements) == Counter(
        tag for tag, _ in usual.elements
    )
    shown = f"{HOSTILE}[31m"
    assert f"{shown} ImbRing" in page.text
    assert reason.rstrip("\x08") in page.text
    (pairs, _) = [
        spec for spec in page.specs() if "ImbRing" in str(spec["description"])
    ]
    assert f"{shown} - cn01" in text.clean(json.dumps(pairs, ensure_ascii=False))
    names = [case.get("name") or "" for case in xml.iter("testcase")]
    assert f"ImbRing %benchmark=PingPong / intelmpi / bw_4MiB / {shown}" in names
    assert {e.get("message") for e in xml.iter("failure")} == {reason.rstrip("\x08")}


def test_junit_counts_undecided_as_error_and_skipped_as_skipped(write: Write) -> None:
    run = sample_run(slow="cn03", failed=True, skipped=True)
    judgement = judged(run)
    odd = replace(judgement.findings[-1], verdict="undecided", reason="1 of 2 within")
    judgement = replace(judgement, findings=(*judgement.findings, odd))
    _, xml = write(run, judgement)
    (suite,) = xml
    cases = suite.findall("testcase")
    outcomes = Counter(case[0].tag if len(case) else "" for case in cases)
    wanted = Counter(finding.verdict for finding in judgement.findings)
    assert len(cases) == len(judgement.findings) == int(suite.get("tests") or 0)
    assert outcomes["failure"] == wanted["fail"] == int(suite.get("failures") or 0)
    # One is of the case that failed: nobody measured its number.
    assert (
        outcomes["error"] == wanted["undecided"] == int(suite.get("errors") or 0) == 2
    )
    assert outcomes["skipped"] == wanted["skipped"] == int(suite.get("skipped") or 0)
    assert suite.get("name") == "lab.acceptance"
    assert suite.get("time") == "277.000"
    (ring,) = [
        case
        for case in cases
        if case.get("name") == "ImbRing %benchmark=PingPong / intelmpi / bw_4MiB / cn03"
    ]
    assert ring.get("classname") == "ImbRing"
    (node,) = [
        each
        for each in judgement.findings
        if (each.place, each.metric) == ("cn03", "bw_4MiB")
    ]
    said = f"{node.value:.9g} MB/s, limit 60, higher is better, n=4"
    assert node.value == pytest.approx(23.5, rel=1e-3)
    assert [(e.tag, e.get("message"), e.text) for e in ring] == [
        ("failure", node.reason, None),
        ("system-out", None, said),
    ]


def test_a_run_without_findings_is_no_success(write: Write) -> None:
    run = sample_run()
    run = replace(run, cases=(), measurements=run.measurements.clear())
    nothing = replace(judged(run), findings=(), nodes=(), verdict="undecided")
    page, xml = write(run, nothing)
    assert page.rows == []
    assert "This run has no judged criterion." in page.text
    assert [e.get("message") for e in xml.iter("error")] == ["nothing was judged"]


def test_a_large_machine_fits_into_two_megabytes(write: Write, tmp_path: Path) -> None:
    nodes = [f"node{number:04d}" for number in range(450)]
    file = tmp_path / "out" / "report.html"
    page, _ = write(sample_run(nodes=nodes, slow="node0199"))
    assert file.stat().st_size <= 2_000_000
    assert "node0199 ImbRing, intelmpi: bw_4MiB is 23.50 MB/s" in page.text
    # What passes at so many places shares a finding; what is undecided, with the same
    # reason, shares a row.
    page, xml = write(sample_run(nodes=nodes, repeats=1))
    assert file.stat().st_size <= 2_000_000
    assert len(list(xml.iter("testcase"))) > 900
    assert len(page.rows) < 50
    assert "450 findings" in page.text


def test_nodes_that_differ_from_the_others_are_marked(write: Write) -> None:
    run = sample_run()
    run.manifest["nodes"][2]["facts"] = {
        **run.manifest["nodes"][2]["facts"],
        "kernel": "6.1.0",
    }
    page, _ = write(run)
    assert "≠ 6.1.0" in page.text
    assert page.text.count("≠ ") == 1


def test_missing_template_is_a_clear_error(tmp_path: Path) -> None:
    run = sample_run()
    with pytest.raises(SeatrialError, match="a template of the report is missing"):
        write_report(run, judged(run), tmp_path / "out", tmp_path)
    assert not (tmp_path / "out").exists()


def test_unwritable_folder_is_a_clear_error(tmp_path: Path) -> None:
    run = sample_run()
    (tmp_path / "file").write_text("")
    with pytest.raises(SeatrialError, match="cannot be written"):
        write_report(run, judged(run), tmp_path / "file", HOME, ("md",))
