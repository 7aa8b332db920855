"""Not shown: the agreed allocations are used up, and no place is convicted."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import typst
from click.testing import CliRunner, Result
from closed_runs import CRITERIA, close_run
from criteria_samples import criteria
from html_page import Page
from judge_samples import LIMIT, found, judged, places_run, repeats, sample, values_run

from seatrial.cli import main
from seatrial.compare.disqualification import bars
from seatrial.compare.records import Side
from seatrial.criteria.criterion import Bears
from seatrial.judge.judge import judge
from seatrial.judge.summary import exit_of
from seatrial.report import pdf
from seatrial.report.chapters import contents
from seatrial.report.node_table import node_tables
from seatrial.report.render.paper import template
from seatrial.report.render.svg import colours

HOME = Path(__file__).resolve().parents[1]
VALUES = (58.0, 66.0, 63.0, 60.0)
PASSES = replace(LIMIT, name="passes", limit=30.0)
FAILS = replace(LIMIT, name="fails", limit=200.0)
OPEN = replace(LIMIT, name="open")
OF_SELLER = replace(LIMIT, name="seller", cap=4, bears="seller")
OF_BUYER = replace(LIMIT, name="buyer", cap=4, bears="buyer")
LEVELS = {"cn01": 80.0, "cn02": 59.5, "cn03": 20.0, "cn04": 80.0}
SCATTER = (0.97, 1.03, 0.98, 1.02, 0.97, 1.03)
FORMS = ("html", "md", "csv", "junit")


@pytest.mark.parametrize(
    ("limits", "verdict", "status", "bears"),
    [
        ([PASSES], "pass", 0, ""),
        ([OPEN], "undecided", 3, ""),
        ([PASSES, OPEN], "undecided", 3, ""),
        ([OF_SELLER], "not shown", 1, "seller"),
        ([OF_BUYER], "not shown", 3, "buyer"),
        ([PASSES, OF_SELLER], "not shown", 1, "seller"),
        ([PASSES, OF_BUYER], "not shown", 3, "buyer"),
        ([OF_BUYER, OPEN], "not shown", 3, "buyer"),
        ([OF_SELLER, OPEN], "not shown", 1, "seller"),
        ([OF_SELLER, OF_BUYER], "not shown", 1, "seller"),
        ([FAILS], "fail", 1, ""),
        ([FAILS, OPEN], "fail", 1, ""),
        ([FAILS, OF_BUYER, PASSES], "fail", 1, "buyer"),
        ([FAILS, OF_SELLER, OPEN], "fail", 1, "seller"),
    ],
    ids=lambda value: "+".join(c.name for c in value) if type(value) is list else None,
)
def test_verdict_and_exit_status(
    limits: list[Any], verdict: str, status: int, bears: str
) -> None:
    judgement = judged(values_run(*VALUES), *limits)
    assert (judgement.verdict, exit_of(judgement), judgement.bears) == (
        verdict,
        status,
        bears,
    )


@pytest.mark.parametrize("spoiled", ["a failed case", "an absent node"])
def test_what_fails_without_numbers_outranks_not_shown(spoiled: str) -> None:
    run = values_run(*VALUES)
    if spoiled == "a failed case":
        failed = replace(run.cases[0], result="fail", phase="sanity", reason="no rows")
        run = replace(run, cases=(*run.cases, replace(failed, case="Other")))
    else:
        run.manifest["nodes"][0] |= {"state": "absent", "reason": "down"}
    judgement = judged(run, OF_BUYER)
    assert (judgement.verdict, exit_of(judgement)) == ("fail", 1)
    assert (judgement.convicted, judgement.bears) == ((), "buyer")


@pytest.mark.parametrize("bears", ["seller", "buyer"])
def test_convicted_nodes_and_those_not_shown_have_lists_of_their_own(
    bears: Bears,
) -> None:
    capped = replace(LIMIT, cap=len(SCATTER), bears=bears)
    judgement = judged(places_run(LEVELS, SCATTER), capped)
    assert {node.name: node.verdict for node in judgement.nodes} == {
        **{"cn01": "pass", "cn02": "not shown"},
        **{"cn03": "fail", "cn04": "pass"},
    }
    assert (judgement.convicted, judgement.not_shown) == (("cn03",), ("cn02",))


def test_a_place_that_passes_stays_a_pass_at_the_cap_and_above() -> None:
    """More data than were agreed on, at one look or at the second of two."""
    values = [80.0 + number % 3 for number in range(8)]
    for cap in (4, 8):
        assert judged(values_run(*values), replace(LIMIT, cap=cap)).verdict == "pass"
    first, second = values_run(*values[:4]), values_run(*values[4:])
    second.manifest["run"] = "later"
    twice = criteria(replace(LIMIT, cap=8))
    assert judge(first, twice).verdict == "pass"
    assert judge(first, twice, [second]).verdict == "pass"


def test_too_few_allocations_for_the_method_are_not_shown_either() -> None:
    (finding,) = found(judged(values_run(80, 82), replace(LIMIT, cap=2)), "limit")
    assert finding.verdict == "not shown"


@pytest.fixture
def seatrial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Close a run at the cap; return a function that runs commands on it."""
    rows = [
        sample(case, level * factor, node=node)
        for case, factor in zip(repeats(len(SCATTER)), SCATTER, strict=True)
        for node, level in {**LEVELS, "cn03": 82.0}.items()
    ]
    cases = repeats(len(SCATTER))
    path = close_run(tmp_path / "results", rows=rows, cases=cases)
    monkeypatch.setenv("SEATRIAL_HOME", str(HOME))

    def run(command: str, bears: str, *arguments: str) -> Result:
        text = CRITERIA.replace("clause: c", f"clause: c, cap: 6, bears: {bears}")
        file = tmp_path / "criteria.yaml"
        file.write_text(text)
        given = (command, str(path), "--criteria", str(file), *arguments)
        return CliRunner().invoke(main, given)

    return run


@pytest.mark.parametrize(("bears", "status"), [("seller", 1), ("buyer", 3)])
def test_judge_exits_by_who_bears_and_lists_the_places(
    seatrial: Any, bears: str, status: int
) -> None:
    result = seatrial("judge", bears)
    assert result.exit_code == status, result.output
    text = " ".join(result.stdout.split())
    assert "NOT SHOWN lab, campaign smoke: 1 not shown, 4 pass" in text
    assert f"not shown: cn02; the {bears} bears that" in text
    assert "failing nodes" not in text
    assert "look at" not in text
    whole = json.loads(seatrial("judge", bears, "--format", "json").stdout)
    assert (whole["verdict"], whole["bears"]) == ("not shown", bears)
    assert (whole["convicted"], whole["not_shown"]) == ([], ["cn02"])
    table = seatrial("judge", bears, "--format", "csv").stdout
    (row,) = [
        row
        for row in csv.DictReader(io.StringIO(table))
        if row["verdict"] == "not shown"
    ]
    assert (row["place"], row["bears"]) == ("cn02", bears)


@pytest.mark.parametrize(
    ("bears", "outcome", "meaning"),
    [
        ("seller", "failure", "The seller bears that: the system is not accepted."),
        ("buyer", "error", "The buyer bears that: this is not a pass, but no reason"),
    ],
)
def test_report_forms_say_what_is_not_shown(
    seatrial: Any, tmp_path: Path, bears: str, outcome: str, meaning: str
) -> None:
    out = tmp_path / "out"
    forms = [argument for form in FORMS for argument in ("--form", form)]
    result = seatrial("report", bears, "--out", str(out), *forms)
    assert result.exit_code == 0, result.output
    assert "verdict: not shown" in result.stdout
    page = Page((out / "report.html").read_text())
    assert meaning in page.text
    assert "! NOT SHOWN" in page.text
    assert "Not shown cn02 ImbRing, intelmpi: bw_4MiB is " in page.text
    assert "Act on" not in page.text
    classes = {attributes.get("class") for _, attributes in page.elements}
    assert {"verdict not-shown", "badge not-shown"} <= classes
    assert [row[1][0] for row in page.rows if row[0] == "not shown"] == ["!not shown"]
    markdown = (out / "summary.md").read_text()
    assert "**NOT SHOWN.** No criterion is proven to be missed" in markdown
    assert "## Not shown\n\n- **cn02**: ImbRing, intelmpi" in markdown
    assert "| not shown | ImbRing bw_4MiB, intelmpi |" in markdown
    for name in ("findings.csv", "criteria.csv"):
        rows = list(csv.DictReader(io.StringIO((out / name).read_text())))
        assert [row["verdict"] for row in rows].count("not shown") == 1
    suite = ET.parse(out / "junit.xml").getroot()
    assert suite.attrib["failures" if bears == "seller" else "errors"] == "1"
    (element,) = suite.iter(outcome)
    assert element.attrib["type"] == "not shown"
    properties = {p.attrib["name"]: p.attrib["value"] for p in suite.iter("property")}
    assert (properties["convicted"], properties["not_shown"]) == ("", "cn02")
    assert (properties["verdict"], properties["bears"]) == ("not shown", bears)


def test_node_table_marks_what_is_not_shown() -> None:
    capped = replace(LIMIT, cap=len(SCATTER))
    run = places_run(LEVELS, SCATTER)
    judgement = judged(run, capped)
    ((_, table),) = node_tables(run, judgement)
    verdicts = {row[0]: (row[2], row[3][-2:]) for row in table.rows}
    assert verdicts["cn02"] == ("not shown", " !")
    assert [row[0] for row in table.rows] == ["cn03", "cn02", "cn01", "cn04"]


def test_pdf_has_a_list_and_a_symbol_of_its_own() -> None:
    run = values_run(*VALUES)
    judgement = judged(run, OF_BUYER)
    content = contents(run, judgement, HOME)
    data = pdf.document(judgement, content, colours(HOME))
    source = template(HOME, "report.typ")
    headings = typst.eval(
        source,
        "query(heading).map(it => repr(it.body))",
        sys_inputs={"data": json.dumps(data)},
        ignore_system_fonts=True,
    )
    assert "! NOT SHOWN" in headings
    assert "[Not shown]" in headings
    (entry,) = content.front.not_shown
    assert entry.place == "ImbRing, intelmpi"
    assert entry.reasons[0].endswith("agreed on; the buyer bears that")
    ((finding,),) = [data["findings"]["rows"]]
    assert finding["verdict"] == "not shown"


@pytest.mark.parametrize(
    ("verdict", "bears", "barred"),
    [("not shown", "seller", True), ("not shown", "buyer", False), ("pass", "", False)],
)
def test_a_side_that_is_not_shown_wins_only_if_the_buyer_bears_it(
    verdict: str, bears: str, barred: bool
) -> None:
    side = Side("a", "r", "lab", "smoke", "", verdict=verdict, bears=bears)
    assert bars(side, ()) == (
        "it is not shown to meet the criteria; the seller bears that" if barred else ""
    )
