"""Criteria: every fault has its line; which cases they hold; what changed."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from reframe_runs import CHECKS, HOME, OURS

from seatrial.checks.sources import known_checks
from seatrial.criteria.criteria import (
    Criteria,
    Criterion,
    Risks,
    changes,
    recorded_criteria,
)
from seatrial.criteria.formula import evaluate
from seatrial.criteria.keys import Known
from seatrial.criteria.reframe_references import render_reference_files
from seatrial.errors import SeatrialError

NOON = "2026-11-21T12:00:00+00:00"
GOOD = """\
schema: 1
risks: {seller: 0.05, buyer: 0.1, discovery: 0.2}
defaults:
  document: Contract 4711
  clause: '3.2'
  who: A. Engineer
  date: 2026-11-21
  method: read from the contract
  kind: promised
  model: lognormal
  zone: 0.1
  cap: 10
  where: {$partition: 'sample:.*'}
criteria:
  - check: Fake
    limits: {latency_8B: 2.5 us, bw_4MiB: 10000 MB/s}
  - check: Fake
    kind: theoretical
    formula: 4 * 25 / 8 * 0.9 * 1e3
    where: {between: nodes}
    metrics: [bw_4MiB]
  - check: Fake
    kind: sameness
    tolerance: 0.1
    risks: {seller: 0.01}
    metrics: [mem_bw, dgemm]
  - check: Fake
    kind: measured
    run: 20261121T000000Z-calibrate
    fingerprint: {kernel: 6.1.0-25}
    coverage: 0.95
    confidence: 0.95
    n: 60
    statistic: p99
    limits: {latency_8B: 3 us}
  - check: Fake
    model: every
    name: all answer
    where: {num_nodes: 4}
    limits: {pairs_answered: 100 %}
"""


def load(folder: Path, text: str) -> Criteria:
    file = folder / "criteria.yaml"
    file.write_text(text, encoding="utf-8")
    return Criteria.load(file, Known({"Fake"}))


def test_everything_that_is_written_is_read(tmp_path: Path) -> None:
    criteria = load(tmp_path, GOOD)
    assert criteria.risks == Risks(0.05, 0.1, 0.2)
    names = [criterion.name for criterion in criteria.criteria]
    assert names == [
        "Fake latency_8B",
        "Fake bw_4MiB",
        "Fake bw_4MiB theoretical (between=nodes)",
        "Fake mem_bw sameness",
        "Fake dgemm sameness",
        "Fake latency_8B p99 measured",
        "all answer",
    ]
    latency, bw, link, same, _, measured, answer = criteria.criteria
    assert latency == Criterion(
        name="Fake latency_8B",
        check="Fake",
        where={"$partition": "sample:.*"},
        metric="latency_8B",
        unit="us",
        direction="lower",
        statistic=None,
        kind="promised",
        limit=2.5,
        tolerance=None,
        model="lognormal",
        zone=0.1,
        risks=Risks(0.05, 0.1, 0.2),
        cap=10,
        bears="seller",
        source="Contract 4711, 3.2",
    )
    assert latency.provenance["date"] == "2026-11-21"
    assert (bw.limit, bw.direction) == (10000, "higher")
    assert link.limit == pytest.approx(11250)
    assert link.source == "4 * 25 / 8 * 0.9 * 1e3"
    assert (same.limit, same.tolerance, same.risks.seller) == (None, 0.1, 0.01)
    assert same.risks.buyer == 0.1
    assert measured.source == "20261121T000000Z-calibrate"
    assert measured.fingerprint == {"kernel": "6.1.0-25"}
    assert (measured.statistic, measured.provenance["n"]) == ("p99", "60")
    assert (answer.model, answer.where) == ("every", {"num_nodes": 4})


def test_without_more_words_nothing_is_assumed(tmp_path: Path) -> None:
    text = """\
schema: 1
risks: {seller: 0.05, buyer: 0.05}
defaults: {kind: promised, document: d, clause: c}
criteria: [{check: Fake, limits: {bw_8B: 1 MB/s}}]
"""
    (criterion,) = load(tmp_path, text).criteria
    assert (criterion.model, criterion.bears) == ("lognormal", "seller")
    assert criterion.bad_share is None
    assert (criterion.where, criterion.risks.discovery) == ({}, 0.1)


LATENCY = "latency_8B: 2.5 us"
FORMULA = "formula: 4 * 25 / 8 * 0.9 * 1e3"
TOLERANCE = "    tolerance: 0.1\n"
SAMENESS = "[mem_bw, dgemm]"
EVERY = "pairs_answered: 100 %"
ENTRY = """\
  - check: Fake
    limits: {bw_4MiB: 9000 MB/s}
"""


def given(old: str, new: str, line: int, reason: str) -> tuple[str, int, str]:
    assert old in GOOD
    return GOOD.replace(old, new, 1), line, reason


KEYS = "schema, risks, criteria, defaults, absent_nodes, signatures, maintenance"
BROKEN = [
    (
        "",
        1,
        f"expected a mapping of {KEYS}, got nothing.",
    ),
    given("criteria:", "criteria: [", 15, "not valid YAML"),
    given("schema: 1\n", "", 1, "schema: expected 1, got nothing."),
    given("schema: 1", "schema: 2", 1, "schema: expected 1, got 2."),
    given("schema: 1", "schema: true", 1, "schema: expected 1, got True."),
    given(
        "defaults",
        "default",
        3,
        f"default: expected one of the keys {KEYS}, got 'de",
    ),
    (
        GOOD[: GOOD.index("criteria:")],
        1,
        "criteria: expected a list of criteria, got nothing.",
    ),
    (
        GOOD[: GOOD.index("  - check")],
        14,
        "criteria: expected a list of criteria, got None.",
    ),
    given(
        "risks: {seller: 0.05, buyer: 0.1, discovery: 0.2}\n",
        "",
        1,
        "risks: expected a mapping of seller, buyer, discovery, got nothing.",
    ),
    given(
        "seller: 0.05, ",
        "",
        2,
        "risks.seller: expected a number above 0, at most 0.5, got nothing.",
    ),
    given(
        "seller: 0.05",
        "seller: 0",
        2,
        "risks.seller: expected a number above 0, at most 0.5, got 0.",
    ),
    given(
        "buyer: 0.1",
        "buyer: 0.6",
        2,
        "risks.buyer: expected a number above 0, at most 0.5, got 0.6.",
    ),
    given(
        "buyer: 0.1",
        "buyer: .nan",
        2,
        "risks.buyer: expected a number below 2^64, got .nan.",
    ),
    given(
        "buyer: 0.1",
        "buyer: true",
        2,
        "risks.buyer: expected a number above 0, at most 0.5, got True.",
    ),
    given(
        "discovery",
        "found",
        2,
        "risks.found: expected one of the keys seller, buyer, discovery, got 'found'.",
    ),
    given(
        "seller: 0.01",
        "discovery: 0.01",
        25,
        "criteria[2].risks.discovery: expected one of the keys seller, buyer, got 'di",
    ),
    given(
        "seller: 0.01",
        "seller: 0.06",
        25,
        "criteria[2].risks.seller: expected at most the machine's 0.05, got 0.06.",
    ),
    given(
        "  zone",
        "  check: Fake\n  zone",
        11,
        "defaults.check: expected one of the keys kind, document, clause, who, date, ",
    ),
    given(
        "  zone",
        "  limits: {}\n  zone",
        11,
        "defaults.limits: expected one of the keys kind, document, clause, who, date,",
    ),
    given(
        "zone: 0.1",
        "zone: 1",
        11,
        "defaults.zone: expected a share, from 0 to below 1, got 1.",
    ),
    given(
        "zone: 0.1",
        "zone: -0.1",
        11,
        "defaults.zone: expected a share, from 0 to below 1, got -0.1.",
    ),
    given(
        "zone: 0.1",
        "zones: 0.1",
        11,
        "defaults.zones: expected one of the keys kind, document, clause, who, date, ",
    ),
    given("cap: 10", "cap: 2", 12, "cap is 2, but model lognormal decides nothing"),
    given(
        "cap: 10", "cap: 0", 12, "defaults.cap: expected a whole number >= 1, got 0."
    ),
    given(
        "cap: 10",
        "cap: 4.5",
        12,
        "defaults.cap: expected a whole number >= 1, got 4.5.",
    ),
    given(
        "cap: 10",
        "looks: 0",
        12,
        "defaults.looks: expected a whole number >= 1, got 0.",
    ),
    given(
        "model: lognormal\n  zone: 0.1\n  cap: 10",
        "model: any\n  zone: 0.1\n  cap: 3",
        12,
        "model any decides nothing with fewer than 4 repeats",
    ),
    given(
        "model: lognormal",
        "model: weibull",
        10,
        "defaults.model: expected one of any, normal, lognormal, every, got 'weibull'",
    ),
    given(
        "kind: promised",
        "kind: published",
        9,
        "defaults.kind: expected one of promised, theoretical, measured, sameness, dec",
    ),
    given(
        "kind: promised\n",
        "bears: vendor\n",
        9,
        "defaults.bears: expected one of seller, buyer, got 'vendor'.",
    ),
    given(
        "  kind: promised\n",
        "",
        14,
        "criteria[0].kind: expected a kind, here or in defaults, got nothing.",
    ),
    given("  clause: '3.2'\n", "", 8, "kind promised needs clause; it is not given"),
    given("  document: Contract 4711\n", "", 8, "kind promised needs document"),
    given("Contract 4711", "4711", 4, "defaults.document: expected a text, got 4711."),
    given(
        "clause: '3.2'", "clause: 3.2", 5, "defaults.clause: expected a text, got 3.2."
    ),
    given(
        "clause: '3.2'", "clause: ''", 5, "defaults.clause: expected a text, got ''."
    ),
    given(
        "2026-11-21",
        "today",
        7,
        "defaults.date: expected a date as 2026-11-21, got 'today'.",
    ),
    given(
        "'sample:.*'",
        "'*:.*'",
        13,
        "defaults.where.$partition: expected a regular expression (nothing to repeat ",
    ),
    given(
        "$partition: 'sample:.*'",
        "$part: a",
        13,
        "defaults.where.$part: expected $system, $partition, $environ, num_nodes or a",
    ),
    given(
        "$partition: 'sample:.*'",
        "$partition: 4",
        13,
        "defaults.where.$partition: expected a text, got 4.",
    ),
    given(
        "{between: nodes}",
        "{between: [a]}",
        20,
        "criteria[1].where.between: expected a text, a number, true or false, got ['a",
    ),
    given(
        "num_nodes: 4",
        "num_nodes: '4'",
        39,
        "criteria[4].where.num_nodes: expected a number of nodes such as 4, not '4', ",
    ),
    given(
        "check: Fake",
        "chek: Fake",
        15,
        "criteria[0].chek: expected one of the keys kind, document, clause, who, date",
    ),
    given(
        "check: Fake\n    ", "", 15, "criteria[0].check: expected a text, got nothing."
    ),
    given(
        "check: Fake",
        "check: Fakes",
        15,
        "criteria[0].check: expected one of the checks Fake, got 'Fakes'. Did you mea",
    ),
    given(LATENCY, "speed_8B: 2 us", 16, "unknown metric 'speed_8B'"),
    given(LATENCY, "latency_8KB: 2 us", 16, "not a message size: '8KB'"),
    given(
        LATENCY,
        "latency_8B: 2.5",
        16,
        "criteria[0].limits.latency_8B: expected a number >= 0 and its unit, such as ",
    ),
    given(LATENCY, "latency_8B: 2.5", 16, "such as '5000 us'"),
    given(
        LATENCY,
        "latency_8B: 2.5 ms",
        16,
        "criteria[0].limits.latency_8B: expected a number in 'us', got '2.5 ms'.",
    ),
    given(
        LATENCY,
        "latency_8B: two us",
        16,
        "criteria[0].limits.latency_8B: expected a number >= 0 and its unit, such as ",
    ),
    given(
        LATENCY,
        "latency_8B: nan us",
        16,
        "criteria[0].limits.latency_8B: expected a number >= 0 and its unit, such as ",
    ),
    given(
        LATENCY,
        "latency_8B: inf us",
        16,
        "criteria[0].limits.latency_8B: expected a number >= 0 and its unit, such as ",
    ),
    given(
        LATENCY,
        "latency_8B: -1 us",
        16,
        "criteria[0].limits.latency_8B: expected a number >= 0 and its unit, such as ",
    ),
    given(LATENCY, "latency_8B: 0 us", 16, "model lognormal needs a limit above 0"),
    given(
        f"{{{LATENCY}, bw_4MiB: 10000 MB/s}}",
        "{}",
        16,
        "criteria[0].limits: expected some for kind promised, got none",
    ),
    given(
        "    limits", "    direction: lower\n    limits", 16, "bw_4MiB is better hig"
    ),
    given(
        "    limits", "    metrics: [bw_8B]\n    limits", 16, "kind promised has limi"
    ),
    given(
        "    limits",
        "    formula: 1 + 1\n    limits",
        16,
        "criteria[0].formula: belongs to kind theoretical, not promised",
    ),
    given(
        "    limits",
        "    tolerance: 0.1\n    limits",
        16,
        "criteria[0].tolerance: belongs to kind sameness, not promised",
    ),
    given(
        "    limits",
        "    run: r1\n    limits",
        16,
        "criteria[0].run: belongs to kind measured, not promised",
    ),
    given(
        f"    {FORMULA}\n", "", 18, "kind theoretical needs formula; it is not given"
    ),
    given(
        FORMULA,
        "formula: sqrt(2)",
        19,
        "criteria[1].formula: 'sqrt(2)': expected numbers with + - * / ** and bracket",
    ),
    given(
        FORMULA,
        "formula: 1 / 0",
        19,
        "criteria[1].formula: '1 / 0': no number comes out: float division by zero",
    ),
    given(
        FORMULA,
        "formula: 1 - 2",
        19,
        "criteria[1].formula: '1 - 2' is -1; expected >= 0",
    ),
    given(
        FORMULA,
        "formula: [1]",
        19,
        "criteria[1].formula: expected a formula as 4 * 25 / 8, got [1].",
    ),
    given(
        "metrics: [bw_4MiB]",
        "limits: {bw_4MiB: 11250.1 MB/s}",
        21,
        "contradictory: the limit is 11250.1, the formula 4 * 25 / 8 * 0.9 * 1e3 gives",
    ),
    given(
        "metrics: [bw_4MiB]",
        "limits: {bw_4MiB: 11250 MB/s}\n    metrics: [bw_4MiB]",
        22,
        "bw_4MiB is in limits already",
    ),
    given("[bw_4MiB]", "bw_4MiB", 21, "expected a list of metrics"),
    given("[bw_4MiB]", "[bw_4MB]", 21, "not a message size: '4MB'"),
    given("[bw_4MiB]", "[bw_8B, bw_8B]", 21, "bw_8B is listed twice"),
    given(TOLERANCE, "", 23, "kind sameness needs tolerance; it is not given"),
    given(
        "tolerance: 0.1",
        "tolerance: 1",
        24,
        "criteria[2].tolerance: expected a number between 0 and 1, got 1.",
    ),
    given(
        "tolerance: 0.1",
        "tolerance: 0",
        24,
        "criteria[2].tolerance: expected a number between 0 and 1, got 0.",
    ),
    given(
        TOLERANCE, f"{TOLERANCE}    model: every\n", 25, "model every holds values to"
    ),
    given(
        f"metrics: {SAMENESS}",
        "limits: {mem_bw: 1 GB/s}",
        26,
        "kind sameness has no limits; expected metrics",
    ),
    given("    run: 20261121T000000Z-calibrate\n", "", 28, "kind measured needs run"),
    given(
        "    fingerprint: {kernel: 6.1.0-25}\n", "", 28, "measured needs fingerprint"
    ),
    given(
        "{kernel: 6.1.0-25}",
        "{kernel: 6.1}",
        30,
        "criteria[3].fingerprint.kernel: expected a text, got 6.1.",
    ),
    given(
        "{kernel: 6.1.0-25}",
        "{}",
        30,
        "criteria[3].fingerprint: expected facts and their texts, such as kernel: 6.1",
    ),
    given(
        "coverage: 0.95",
        "coverage: 95",
        31,
        "criteria[3].coverage: expected a number between 0 and 1, got 95.",
    ),
    given(
        "statistic: p99",
        "statistic: 99",
        34,
        "criteria[3].statistic: expected a text, got 99.",
    ),
    given(
        "all answer", "Fake bw_4MiB", 40, "the criterion of line 16 is called 'Fake b"
    ),
    (
        GOOD + ENTRY,
        42,
        "contradictory: line 16 says what is promised of Fake bw_4MiB on",
    ),
    given(
        "cap: 10",
        "cap: 10\n  cap: 11",
        13,
        "defaults.cap: key of line 12 again. Remove one.",
    ),
]


@pytest.mark.parametrize(("text", "line", "reason"), BROKEN)
def test_fault_names_line_and_expectation(
    tmp_path: Path, text: str, line: int, reason: str
) -> None:
    with pytest.raises(SeatrialError) as caught:
        load(tmp_path, text)
    expected = re.escape(f"{tmp_path / 'criteria.yaml'}:{line}: ")
    assert re.match(expected + ".*" + re.escape(reason), str(caught.value)), (
        caught.value
    )


def test_looks_of_older_files_have_no_effect(tmp_path: Path) -> None:
    text = GOOD.replace("cap: 10", "cap: 10\n  looks: 4")
    assert load(tmp_path, text).criteria == load(tmp_path, GOOD).criteria


@pytest.mark.parametrize(
    ("metric", "limit", "model"),
    [
        ("bw_4MiB", "9000 MB/s", "lognormal"),
        ("latency_8B", "2.5 us", "lognormal"),
        ("pairs_answered", "90 %", "any"),
        ("latency_8B", "0 us", "any"),
    ],
)
def test_the_model_follows_from_the_unit(
    tmp_path: Path, metric: str, limit: str, model: str
) -> None:
    text = f"""\
schema: 1
risks: {{seller: 0.05, buyer: 0.05}}
defaults: {{kind: promised, document: d, clause: c}}
criteria: [{{check: Fake, limits: {{{metric}: {limit}}}}}]
"""
    (criterion,) = load(tmp_path, text).criteria
    assert criterion.model == model


def test_system_without_criteria_is_told_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SeatrialError, match=r"criteria\.yaml: not there; .*--no-judge"):
        Criteria.load(tmp_path / "criteria.yaml")


def test_two_statistics_or_kinds_of_one_metric_do_not_contradict(
    tmp_path: Path,
) -> None:
    text = GOOD + ENTRY.replace("    limits", "    statistic: p50\n    limits")
    assert load(tmp_path, text).criteria[-1].name == "Fake bw_4MiB p50"


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("4 * 10 * 8 / 10 / 8 * 0.9", 3.6),
        ("-(2 + 3) ** 2 + 30", 5),
        ("2 ** -1", 0.5),
        ("1e3", 1000),
    ],
)
def test_formula_is_arithmetic(formula: str, value: float) -> None:
    assert evaluate(formula) == pytest.approx(value)


@pytest.mark.parametrize(
    "formula",
    [
        *("", "1 +", "x", "__import__('os')", "1 if 1 else 2", "'1' * 3", "True"),
        *("9 ** 9 ** 9", "1e999", "(-8) ** 0.5", "1j", "[1]", "1 // 2", "7 % 2"),
        "1 + " * 60 + "1",
    ],
)
def test_formula_is_nothing_else(formula: str) -> None:
    with pytest.raises(ValueError, match=r"expected|no number|comes out"):
        evaluate(formula)


CASES = [
    ({}, True),
    ({"$partition": "sample:batch"}, True),
    ({"$partition": "sample:.*"}, True),
    ({"$partition": "sample"}, False),
    ({"$system": "sample"}, True),
    ({"$environ": "open"}, False),
    ({"$environ": "intel|openmpi"}, True),
    ({"num_nodes": 4}, True),
    ({"num_nodes": 5}, False),
    ({"window": 64}, True),
    ({"window": "64"}, False),
    ({"window": ".*"}, False),
    ({"between": "nodes", "window": 512}, False),
    ({"other": ".*"}, False),
    ({"compiler": "g++"}, True),
]


@pytest.mark.parametrize(("where", "applies"), CASES)
def test_criterion_chooses_its_cases(
    tmp_path: Path, where: dict[str, object], applies: bool
) -> None:
    criterion = replace(load(tmp_path, GOOD).criteria[0], where=where)
    parameters = {"window": 64, "between": "nodes", "compiler": "g++"}
    case = ("sample:batch", "openmpi", parameters, 4)
    assert criterion.applies("Fake", *case) is applies
    assert not criterion.applies("Other", *case)


CHANGED = [
    ("schema", "# nothing\nschema", {}),
    ("who: A. Engineer", "who: B. Engineer", {}),
    (LATENCY, "latency_8B: 3 us", {"Fake latency_8B": "limit 2.5 us, now 3 us"}),
    (
        "num_nodes: 4",
        "num_nodes: 5",
        {"all answer": "where num_nodes=4, now num_nodes=5"},
    ),
    (
        "seller: 0.01",
        "seller: 0.02",
        dict.fromkeys(
            ("Fake mem_bw sameness", "Fake dgemm sameness"), "seller 0.01, now 0.02"
        ),
    ),
    (SAMENESS, "[mem_bw]", {"Fake dgemm sameness": "gone"}),
    (SAMENESS, "[mem_bw, dgemm, hpl]", {"Fake hpl sameness": "new"}),
    (
        "6.1.0-25",
        "6.1.0-28",
        {
            "Fake latency_8B p99 measured": "fingerprint kernel=6.1.0-25, now "
            "kernel=6.1.0-28"
        },
    ),
    (
        "tolerance: 0.1",
        "tolerance: 0.2\n    bears: buyer",
        dict.fromkeys(
            ("Fake mem_bw sameness", "Fake dgemm sameness"),
            "tolerance 0.1, now 0.2; bears seller, now buyer",
        ),
    ),
]


@pytest.mark.parametrize(("old", "new", "told"), CHANGED)
def test_changes_are_told_by_name(
    tmp_path: Path, old: str, new: str, told: dict[str, str]
) -> None:
    first, second = load(tmp_path, GOOD), load(tmp_path, GOOD.replace(old, new, 1))
    assert changes(first, second) == told
    assert first.sha256 != second.sha256


def test_changed_risks_of_the_machine_have_no_name(tmp_path: Path) -> None:
    changed = load(tmp_path, GOOD.replace("discovery: 0.2", "discovery: 0.3"))
    found = changes(load(tmp_path, GOOD), changed)
    assert found == {"": "discovery 0.2, now 0.3"}


def test_criteria_of_a_run_may_be_of_checks_that_are_gone(tmp_path: Path) -> None:
    assert recorded_criteria(tmp_path) is None
    (tmp_path / "system").mkdir()
    own = {"name": "speed", "unit": "steps/s", "direction": "higher", "meaning": "m"}
    names = {"run": tmp_path.name, "system": "a", "campaign": "b"}
    manifest: dict[str, Any] = {**names, "nodes": []}
    manifest |= {"schema": 2, "started": NOON, "ended": NOON, "checksums": {}}
    file = tmp_path / "manifest.json"
    file.write_text(json.dumps(manifest | {"own_metrics": [own]}))
    old = GOOD.replace("check: Fake", "check: Forgotten")
    old += "  - check: Forgotten\n    kind: promised\n    document: d\n    clause: c\n"
    old += "    limits: {speed: 3 steps/s}\n"
    (tmp_path / "system" / "criteria.yaml").write_text(old)
    recorded = recorded_criteria(tmp_path)
    assert recorded is not None
    assert {each.check for each in recorded.criteria} == {"Forgotten"}
    (speed,) = (each for each in recorded.criteria if each.metric == "speed")
    assert (speed.unit, speed.direction, speed.limit) == ("steps/s", "higher", 3.0)
    file.write_text(json.dumps(manifest))
    with pytest.raises(SeatrialError, match="unknown metric 'speed'"):
        recorded_criteria(tmp_path)


def test_criteria_of_the_lab_are_valid_and_hold_every_check() -> None:
    criteria = Criteria.load(HOME / "reference-data" / "lab" / "criteria.yaml")
    assert {each.check for each in criteria.criteria} == OURS


def test_example_of_the_documentation_is_complete(tmp_path: Path) -> None:
    page = (HOME / "docs" / "criteria.md").read_text()
    block = re.search(r"^    schema: 1\n(    .*\n)+", page, re.MULTILINE)
    assert block is not None
    file = tmp_path / "criteria.yaml"
    file.write_text(re.sub("^    ", "", block[0], flags=re.MULTILINE))
    criteria = Criteria.load(file, Known(known_checks(CHECKS)))
    assert {each.kind for each in criteria.criteria} == {
        *("promised", "theoretical", "sameness"),
    }
    assert render_reference_files(HOME, criteria, "SYSTEM")
