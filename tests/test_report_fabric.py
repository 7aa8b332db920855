"""The fabric in a report: its drawing, bad links, and page one."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from cabled_fabric import Cabled, planned
from criteria_samples import RISKS, criterion
from fabric_runs import break_cables, fabric_run, with_racks

from seatrial.criteria.criteria import Criteria
from seatrial.criteria.declared import DeclaredCriterion
from seatrial.fabric.compare import compare
from seatrial.fabric.declaration import Declaration
from seatrial.fabric.findings import Finding
from seatrial.fabric.records import Duplicate, End
from seatrial.judge.judge import Judgement, judge
from seatrial.judge.located_part import LocatedPart, Member
from seatrial.report.chapters import contents
from seatrial.report.content import Content
from seatrial.report.fabric_drawing import drawing
from seatrial.report.fabric_layout import layout_of
from seatrial.report.fabric_links import COUNTED, LOCATED, bad_links, links_table
from seatrial.report.html_page import html
from seatrial.report.markdown import summary
from seatrial.report.pdf import document
from seatrial.report.render.svg import colours
from seatrial.runs.closed_run import Run
from seatrial.runs.port_totals import PortTotal

HOME = Path(__file__).parents[1]
SVG = "{http://www.w3.org/2000/svg}"
SHAPES = (
    {"hosts": 64, "radix": 16},
    {"hosts": 1000, "radix": 64},
    {"kind": "fat-tree-3", "hosts": 1024, "radix": 16},
    {"kind": "dragonfly", "hosts": 342, "radix": 11},
    {"kind": "torus", "hosts": 128, "radix": 16, "dims": (4, 4, 4)},
    {"hosts": 64, "radix": 16, "rails": 2},
)
RULE = DeclaredCriterion("cables as planned", {}, "contract", kind="fabric")


def broken(**shape: Any) -> tuple[Cabled, list[str]]:
    cabled = with_racks(Cabled(planned(**shape)))
    return cabled, [*break_cables(cabled)]


def located(cabled: Cabled) -> LocatedPart:
    """Return a sound cable as the one that explains slow pairs."""
    one = cabled.plan.cables[-3]
    ends = tuple((end.device, end.port) for end in (one.a, one.b))
    member = Member(f"cable {one.cable}", "cable", "", ends)
    return LocatedPart(member.name, (member,), 0.6, 68, 3840, 1e-9)


def drawn(cabled: Cabled, *parts: LocatedPart) -> str:
    fabric = cabled.fabric()
    findings = compare(fabric, cabled.plan, Declaration())
    links = bad_links(fabric, cabled.plan.cables, findings, parts)
    return drawing(layout_of(fabric, cabled.plan), links, "Fabric: some")


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_bad_cables_are_drawn_with_their_numbers(shape: dict[str, Any]) -> None:
    """Also on 1,000 nodes the drawing is small."""
    cabled, numbers = broken(**shape)
    svg = drawn(cabled, located(cabled))
    assert len(svg) < (100_000 if shape.get("kind") == "fat-tree-3" else 50_000)
    root = ET.fromstring(svg)
    assert root.get("role") == "img"
    named = (root.get("aria-labelledby") or "").split()
    assert [root.findall(f".//*[@id='{name}']")[0].tag for name in named] == [
        f"{SVG}title",
        f"{SVG}desc",
    ]
    texts = ["".join(one.itertext()) for one in root.iter(f"{SVG}text")]
    one, other, missing, slow = numbers
    for label in (f"≠ {one}", f"≠ {other}", f"\N{MULTIPLICATION SIGN} {missing}"):
        assert texts.count(label) == 1
    assert texts.count(f"≠ {slow}") == 1
    assert texts.count(f"* {cabled.plan.cables[-3].cable}") == 1
    assert "* explains slow pairs" in texts, "the legend"
    assert "? unknown: no answer" not in texts, "only styles that are there"
    dashed = [one for one in root.iter(f"{SVG}path") if one.get("stroke-dasharray")]
    assert len(dashed) == 3, "the missing cable, the absent node, the legend"


def test_labels_do_not_overlap_and_stay_inside() -> None:
    cabled, _ = broken(hosts=1000, radix=64)
    for cable in cabled.plan.cables[1100:1140]:
        cabled.rates[cable.a] = (2, "HDR")
    root = ET.fromstring(drawn(cabled))
    boxes = [
        [float(one.get(name, "")) for name in ("x", "y", "width", "height")]
        for one in root.iter(f"{SVG}rect")
    ]
    assert len(boxes) > 30
    width, height = map(float, root.get("viewBox", "").split()[2:])
    for index, (x, y, w, h) in enumerate(boxes):
        assert x >= 0
        assert y >= 0
        assert x + w <= width + 0.1
        assert y + h <= height
        for left, top, wide, tall in boxes[:index]:
            apart = x >= left + wide or left >= x + w or y >= top + tall or top >= y + h
            assert apart


def test_the_size_is_bounded_if_all_cables_are_bad() -> None:
    cabled = Cabled(planned(hosts=1000, radix=64))
    cabled.rates = {cable.a: (1, "SDR") for cable in cabled.plan.cables}
    assert len(drawn(cabled)) < 200_000


def test_each_level_is_a_row() -> None:
    cabled = Cabled(planned(kind="fat-tree-3", hosts=1024, radix=16))
    layout = layout_of(cabled.fabric(), cabled.plan)
    assert [len(row) for row in layout.rows] == [64, 128, 128]
    heights = [layout.switches[row[0]][1] for row in layout.rows]
    assert heights == sorted(heights)
    assert layout.rows[2][0] == "leaf001"
    assert len(layout.marks) == 1024
    assert min(y for _, y in layout.marks.values()) > heights[-1]


def test_hostile_names_stay_text() -> None:
    cabled = Cabled(planned())
    cabled.names["leaf01"] = '<script>"&x'
    svg = drawn(cabled)
    assert "<script" not in svg
    ET.fromstring(svg)


def test_links_are_a_table_to_which_columns_are_added() -> None:
    cabled, numbers = broken()
    fabric = cabled.fabric()
    findings = compare(fabric, cabled.plan, Declaration())
    links = bad_links(fabric, cabled.plan.cables, findings, [located(cabled)])
    table = links_table(links, {})
    assert table.columns == (
        *("Verdict", "Cable", "One end", "Other end", "Plan", "State", "Finding"),
    )
    rows = {row[1]: row for row in table.rows}
    assert table.rows[0][0] == LOCATED
    assert rows[numbers[3]] == (
        *("drift", "c00127", "R1 leaf08 port 15", "R3 spine03 port 16"),
        *("4x HDR", "2x HDR", "rate"),
    )
    assert rows[numbers[0]][5] == (
        "cn01 port mlx5_0:1 - leaf08 port 8; leaf01 port 1 - cn64 port mlx5_0:1"
    )


def test_errors_of_ports_stand_beside_their_links() -> None:
    cabled, numbers = broken()
    fabric, cables = cabled.fabric(), cabled.plan.cables
    slow = next(one for one in cables if one.cable == numbers[3])
    other = next(one for one in cables if one.cable not in numbers)
    ports = {
        slow.a: counted(slow.a, symbol_error=7),
        slow.b: counted(slow.b, symbol_error=0),
        other.b: counted(other.b, link_downed=2, symbol_error=0),
    }
    findings = compare(fabric, cabled.plan, Declaration())
    links = bad_links(fabric, cables, findings, ports=ports)
    table = links_table(links, ports)
    rows = {row[1]: row for row in table.rows}
    assert table.columns[-2:] == ("Errors in the run", "Bit error rate below")
    assert rows[numbers[3]][-2:] == (f"{slow.a}: symbol_error 7", "1.3e-12")
    assert rows[numbers[2]][-2:] == ("", "")
    assert rows[other.cable][0] == COUNTED
    assert rows[other.cable][-2:] == (f"{other.b}: link_downed 2", "3e-13")
    ports[slow.b].missing.append("no answer")
    rows = {row[1]: row for row in links_table(links, ports).rows}
    assert rows[numbers[3]][-1] == "", "one end bounds nothing"
    assert len(table.rows) == len(bad_links(fabric, cables, findings)) + 1


def counted(end: End, **counts: int) -> PortTotal:
    port = PortTotal(end.device, end.port)
    bits = counts.get("symbol_error", 0)
    port.counts = {name: {"s": count} for name, count in counts.items()}
    port.counts["bit_errors"] = {"s": bits}
    port.passed = {"s": (10**13, 60.0)}
    return port


def judged(run: Run, *rules: DeclaredCriterion) -> Judgement:
    return judge(run, Criteria(RISKS, (criterion(),), declared=rules))


def content_of(run: Run, judgement: Judgement) -> Content:
    return contents(run, judgement, HOME)


def test_page_one_has_a_line_for_each_bad_cable() -> None:
    run = fabric_run(broken()[0])
    front = content_of(run, judged(run, RULE)).front
    places = [one.place for one in front.act_on]
    assert "cable c00068: R2 leaf01 port 12 - R4 spine04 port 1" in places
    assert "cable c00127: R1 leaf08 port 15 - R3 spine03 port 16" in places
    assert front.parts == (), "they stand in one list only"
    free = content_of(run, judged(run)).front
    assert free.act_on == ()
    assert {one.place for one in free.parts} == {*places}
    assert all("no criterion judges it" in one.reasons[0] for one in free.parts)


@pytest.mark.parametrize("rules", [(RULE,), ()], ids=["criterion", "none"])
def test_judge_and_report_compare_the_fabric_once(
    rules: tuple[DeclaredCriterion, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    comparisons = []

    def counting(*compared: Any) -> list[Finding]:
        comparisons.append(compared)
        return compare(*compared)

    monkeypatch.setattr("seatrial.runs.kept_fabric.compare", counting)
    run = fabric_run(broken()[0])
    content = content_of(run, judged(run, *rules))
    assert "fabric" in {one.name for one in content.chapters}
    assert len(comparisons) == 1


def test_located_parts_stand_on_page_one_and_in_the_chapter() -> None:
    cabled = Cabled(planned())
    run = fabric_run(cabled)
    judgement = replace(judged(run, RULE), located=(located(cabled),))
    content = content_of(run, judgement)
    (part,) = content.front.parts
    assert part.place == "cable c00126"
    assert "68 of 3,840 measured paths" in part.reasons[0]
    text = summary(content)
    assert "## Parts of the fabric, decide nothing" in text
    assert "| slow pairs | c00126 |" in text


def test_parts_that_are_not_told_apart_are_all_drawn() -> None:
    cabled = Cabled(planned())
    run = fabric_run(cabled)
    one = located(cabled)
    two = cabled.plan.cables[-4]
    ends = tuple((end.device, end.port) for end in (two.a, two.b))
    other = Member(f"cable {two.cable}", "cable", "", ends, 0.2)
    first = replace(one.members[0], likely=0.8)
    names = f"one of 2 cables: {first.name}; {other.name}"
    part = replace(one, name=names, members=(first, other), way_out="ask counters")
    judgement = replace(judged(run, RULE), located=(part,))
    content = content_of(run, judgement)
    (shown,) = content.front.parts
    assert shown.place == names
    assert shown.reasons[0].endswith("; ask counters")
    text = summary(content)
    assert f"| one of slow pairs | {two.cable} |" in text
    assert "80 % likely; explains slow pairs" in text
    picture = drawn(cabled, part)
    assert f"*? {two.cable}</text>" in picture
    assert "one of these explains slow pairs" in picture


def test_all_forms_have_the_chapter() -> None:
    cabled, numbers = broken()
    run = fabric_run(cabled, duplicates=(Duplicate("0x1", ()),))
    judgement = judged(run, RULE)
    content = content_of(run, judgement)
    page = html(run, judgement, content, HOME)
    assert '<section id="fabric"' in page
    assert f"≠ {numbers[3]}</text>" in page
    assert 'data-chart="chart-fabric"' not in page, "it needs no script"
    data = document(judgement, content, colours(HOME))
    (chapter,) = [one for one in data["chapters"] if one["title"] == "Fabric"]
    (figure,) = chapter["figures"][0]["row"]
    assert "var(--" not in figure["svg"]
    assert figure["alt"].startswith("Drawing of the fabric: 64 nodes, 12 switches")
    (act_on,) = [one for one in data["fronts"][0]["lists"] if one["title"] == "Act on"]
    swapped = "cable c00064: R4 cn64 port mlx5_0:1 (rail0) - R1 leaf08 port 8"
    assert any(swapped in item["place"] for item in act_on["items"])
    text = summary(content)
    assert "## Fabric\n" in text
    assert "| drift | c00127 | R1 leaf08 port 15 |" in text
    assert "other links have no finding" in text
    assert "| drift | guid |" in text


def test_a_run_without_a_fabric_has_no_chapter() -> None:
    run = replace(fabric_run(Cabled(planned())), kept={})
    content = content_of(run, judged(run))
    assert "fabric" not in {one.name for one in content.chapters}
    assert content.front.parts == ()
    assert "abric" not in summary(content)


def test_damaged_files_are_said_in_the_chapter() -> None:
    run = fabric_run(Cabled(planned()), plan="a,b\n")
    content = content_of(run, judged(run))
    (chapter,) = [one for one in content.chapters if one.name == "fabric"]
    assert "r/system/fabric_plan.csv:1: expected the columns" in chapter.empty


def test_without_a_plan_the_fabric_is_drawn() -> None:
    cabled = Cabled(planned())
    cabled.states[cabled.plan.cables[-1].a] = "Init"
    run = fabric_run(cabled, plan="")
    (chapter,) = [
        one for one in content_of(run, judged(run)).chapters if one.name == "fabric"
    ]
    assert chapter.intro.startswith("Links as discovered before the run. There is no")
    ((_, table),) = chapter.tables
    assert table.rows[0][5] == "4x HDR Init/LinkUp"
