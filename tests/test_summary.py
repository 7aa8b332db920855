"""A judgement on the terminal: folded findings, places to look at, whole words."""

import csv
import io
from dataclasses import replace
from typing import Any

import pytest

from seatrial.console import Terminal
from seatrial.judge.findings import Finding, Judgement, NodeVerdict
from seatrial.judge.summary import format_findings, print_findings, print_summary
from seatrial.model.cases import CaseKey
from seatrial.model.units import rounded

KEY = CaseKey("ImbRing", "ImbRing %direction=both", "lab:batch", "openmpi")
TOO_FEW = "1 allocation; it takes at least 3 to decide by this criterion"


def finding(
    place: str, verdict: str, value: float, reason: str, **more: Any
) -> Finding:
    fields: dict[str, Any] = {
        **{"metric": "bw_4MiB", "criterion": "ring", "direction": "higher"},
        **{"unit": "MB/s", "limit": 60.0, "place": place, "verdict": verdict},
        **{"value": value, "reason": reason},
    }
    plain = Finding.of_case(KEY, "limit")
    return replace(plain, **fields | more)


def judgement(*findings: Finding, **more: Any) -> Judgement:
    fields: dict[str, Any] = {
        **{"run": "r1", "system": "lab", "campaign": "smoke", "verdict": "undecided"},
        **{"findings": findings, "nodes": (), "convicted": ()},
    }
    return Judgement(**fields | more)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setattr(Terminal, "is_terminal", True)
    terminal = Terminal()
    terminal.width = 80
    terminal.record = True
    return terminal


def summary(terminal: Terminal, judged: Judgement) -> str:
    print_summary(judged, "/results/lab/r1", terminal)
    return terminal.export_text()


def pairs(number: int) -> list[str]:
    return [f"cn{each:02} - cn{each + 1:02}" for each in range(1, number + 1)]


def test_equal_findings_fold_into_one(terminal: Terminal) -> None:
    findings = [finding(place, "undecided", 70.0, TOO_FEW) for place in pairs(30)]
    text = " ".join(summary(terminal, judgement(*findings)).split())
    assert text.count(TOO_FEW) == 1
    assert (
        "undecided ImbRing %direction=both openmpi bw_4MiB at cn01 - cn02, "
        "cn02 - cn03, cn03 - cn04, cn04 - cn05 and 26 more (30 findings): "
        "70 MB/s (limit ≥ 60 MB/s): "
    ) in text
    assert "look at" not in text  # all lack repeats, and none misses its limit


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"cn01": ("pass", 70), "cn02": ("undecided", 65)}, "cn02"),
        ({"cn01": ("undecided", 70), "cn02": ("undecided", 50)}, "cn02"),
        ({"cn01": ("undecided", 70), "cn02": ("undecided", 65)}, ""),
        ({"cn01": ("fail", 20), "cn02": ("undecided", 65)}, ""),
    ],
)
def test_undecided_places_to_look_at(
    terminal: Terminal, values: dict[str, tuple[str, float]], expected: str
) -> None:
    findings = [
        finding(place, verdict, value, "why")
        for place, (verdict, value) in values.items()
    ]
    text = summary(terminal, judgement(*findings))
    assert ([line for line in text.splitlines() if line.startswith("look at: ")]) == (
        [f"look at: {expected}"] if expected else []
    )


def test_absent_node_is_named_with_its_reason(terminal: Terminal) -> None:
    node = NodeVerdict("cn03", "absent", "fail", "down: dead PSU", {})
    text = summary(terminal, judgement(nodes=(node,)))
    assert "absent node: cn03: down: dead PSU\n" in text


def test_lines_wrap_between_words(terminal: Terminal) -> None:
    reason = "8 of 8 values miss the limit; suspected by the first 2 allocations"
    judged = judgement(finding("cn03", "fail", 23.99, reason))
    lines = summary(terminal, judged).splitlines()
    assert max(map(len, lines)) <= 80
    words = {word for line in lines for word in line.split()}
    assert {*reason.split(), "%direction=both"} <= words


@pytest.mark.parametrize("width", [60, 80, 120, 160, 200])
def test_findings_never_cut_a_word(terminal: Terminal, width: int) -> None:
    terminal.width = width
    reason = "at least 1,033 MB/s with 95 % confidence, by 3 allocations"
    print_findings([finding("cn01 - cn02", "pass", 2136.0, reason)], terminal)
    words = terminal.export_text().split()
    expected = ["ImbRing", "%direction=both", "openmpi", "bw_4MiB", "2,136", "MB/s"]
    assert {*expected, *reason.split()} <= {word.rstrip(":") for word in words}


def test_csv_has_no_noise_of_binary_fractions() -> None:
    judged = judgement(finding("cn01", "pass", 0.1 + 0.2, "", limit=1 - 0.9))
    (row,) = csv.DictReader(io.StringIO(format_findings(judged, "csv")))
    assert (row["value"], row["limit"]) == ("0.3", "0.1")


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (99.6, 2, "100"),
        (3.56e5 + 1, 3, "356,000"),
        (0.01234, 4, "0.01234"),
        (97.2149, 4, "97.21"),
        (12_050.0, 4, "12,050"),
        (0.00001234, 3, "0.0000123"),
        (1e-9, 4, "1e-09"),
        (0.0, 4, "0"),
        (-1234.5, 4, "-1,234"),
        (float("inf"), 4, "inf"),
        (float("nan"), 4, "nan"),
    ],
)
def test_numbers_for_people(value: float, digits: int, text: str) -> None:
    assert rounded(value, digits) == text
