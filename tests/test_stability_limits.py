"""Both limits of a demonstration test, in every form of a judgement."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from criteria_samples import criteria
from samples import sample_run

from seatrial.console import Terminal
from seatrial.judge.findings import Finding, Judgement
from seatrial.judge.summary import print_findings, print_summary
from seatrial.protocol.content import protocol_of
from seatrial.protocol.markdown import markdown
from seatrial.report.chapters import contents
from seatrial.report.junit import junit_xml
from seatrial.report.markdown import summary

HOME = Path(__file__).resolve().parents[1]
BOTH = "at least 60 h is accepted, at most 12 h is rejected"

FAIL = Finding(
    "stability",
    "Stability",
    metric="mtbf",
    n=9,
    value=8.0,
    lower=5.0,
    upper=14.0,
    limit=12.0,
    accepted=60.0,
    direction="higher",
    unit="h",
    criterion="time between failures",
    reference_kind="stability",
    reference_source="contract, 9",
    verdict="fail",
    reason="9 failures in 72 h",
)
NO_FAILURE = replace(
    FAIL,
    n=0,
    value=None,
    lower=31.3,
    upper=None,
    verdict="undecided",
    reason="0 failures in 72 h",
)
PASS = replace(NO_FAILURE, verdict="pass")


def judgement(finding: Finding) -> Judgement:
    verdict: Any = finding.verdict
    return Judgement("r1", "lab", "stability", verdict, (finding,), (), ())


@pytest.mark.parametrize(
    ("finding", "words"),
    [
        (FAIL, "mtbf: 8 h (limit ≥ 60 h, rejected ≤ 12 h): 9 failures"),
        (NO_FAILURE, "mtbf: limit ≥ 60 h, rejected ≤ 12 h: 0 failures"),
    ],
)
def test_the_terminal_shows_both(finding: Finding, words: str) -> None:
    terminal = Terminal()
    terminal.record = True
    print_summary(judgement(finding), "r1", terminal)
    assert words in terminal.export_text()
    print_findings([finding], terminal)
    assert "≥ 60 h, rejected ≤ 12 h" in terminal.export_text()


@pytest.mark.parametrize(
    ("finding", "value", "words"),
    [
        (FAIL, "8.000 h", f"mtbf is 8.000 h (5.000 to 14.00), {BOTH}: 9 failures"),
        (NO_FAILURE, "≥ 31.30 h", f"| {BOTH} | ≥ 31.30 h | 0 failures"),
        (PASS, "≥ 31.30 h", BOTH),
    ],
)
def test_page_one_and_protocol_show_both(
    finding: Finding, value: str, words: str
) -> None:
    judged = judgement(finding)
    content = contents(sample_run(), judged, HOME)
    (line,) = [line for area in content.front.areas for line in area.headlines]
    assert (line.value, line.limit) == (value, BOTH)
    assert words in summary(content)
    protocol = protocol_of([sample_run()], judged, criteria(), content, {}, "today")
    (row,) = [line for clause in protocol.clauses for line in clause.lines]
    assert (row.required, row.measured) == (BOTH, value)
    deviations = next(part.notes for part in protocol.parts if part.title[0] == "D")
    assert all(BOTH in note for note in deviations)
    assert "is required" not in markdown(protocol)


@pytest.mark.parametrize(
    ("finding", "output"),
    [
        (FAIL, "8 h, accepted 60, rejected 12, higher is better, n=9"),
        (PASS, "accepted 60, rejected 12, higher is better, n=0"),
    ],
)
def test_junit_has_both(finding: Finding, output: str) -> None:
    root = ET.fromstring(junit_xml(sample_run(), judgement(finding)))
    assert [one.text for one in root.iter("system-out")] == [output]


def test_the_digest_of_a_judgement_has_what_is_accepted() -> None:
    other = replace(FAIL, accepted=90.0)
    assert judgement(FAIL).digest != judgement(other).digest
