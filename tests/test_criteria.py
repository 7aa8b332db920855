"""Criteria: every fault has its line; which cases they hold; what changed."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from reframe_runs import CHECKS, HOME

from seatrial.checks.sources import known_checks
from seatrial.criteria.criteria import (
    Criteria,
    Criterion,
    Risks,
    changes,
    recorded_criteria,
)
from seatrial.criteria.formula import evaluate
from seatrial.criteria.reframe_references import render_reference_files
from seatrial.errors import SeatrialError

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
    return Criteria.load(file, known={"Fake"})


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
        looks=1,
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
    assert (criterion.model, criterion.looks, criterion.bears) == ("any", 1, "seller")
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


BROKEN = [
    ("", 1, "expected a mapping of schema, risks, defaults, criteria"),
    given("criteria:", "criteria: [", 15, "not valid YAML"),
    given("schema: 1\n", "", 1, "no schema; expected it at the top level"),
    given("schema: 1", "schema: 2", 1, "schema is 2; expected 1"),
    given("schema: 1", "schema: true", 1, "schema is True; expected 1"),
    given("defaults", "default", 3, "unknown key 'default'; expected schema, risks"),
    (GOOD[: GOOD.index("criteria:")], 1, "no criteria; expected it at the top"),
    (GOOD[: GOOD.index("  - check")], 14, "no criteria; expected a list"),
    given("risks: {seller: 0.05, buyer: 0.1, discovery: 0.2}\n", "", 1, "no risks"),
    given("seller: 0.05, ", "", 2, "risks have no seller"),
    given("seller: 0.05", "seller: 0", 2, "risk seller is 0; expected a number above"),
    given("buyer: 0.1", "buyer: 0.6", 2, "risk buyer is 0.6; expected a number above"),
    given("buyer: 0.1", "buyer: .nan", 2, "risk buyer is nan"),
    given("buyer: 0.1", "buyer: true", 2, "risk buyer is True"),
    given("discovery", "found", 2, "unknown risk 'found'; expected seller, buyer, dis"),
    given("seller: 0.01", "discovery: 0.01", 25, "unknown risk 'discovery'"),
    given("seller: 0.01", "seller: 0.06", 25, "risk seller is 0.06, the machine's 0."),
    given("  zone", "  check: Fake\n  zone", 11, "check in defaults; expected it in"),
    given("  zone", "  limits: {}\n  zone", 11, "limits in defaults; expected it in"),
    given("zone: 0.1", "zone: 1", 11, "zone is 1; expected a share of the limit"),
    given("zone: 0.1", "zone: -0.1", 11, "zone is -0.1; expected a share"),
    given("zone: 0.1", "zones: 0.1", 11, "unknown key 'zones'; expected one of check"),
    given("cap: 10", "cap: 2", 12, "cap is 2, but model lognormal decides nothing"),
    given("cap: 10", "cap: 0", 12, "cap is 0; expected a whole number >= 1"),
    given("cap: 10", "cap: 4.5", 12, "cap is 4.5; expected a whole number"),
    given("cap: 10", "looks: 0", 12, "looks is 0; expected a whole number >= 1"),
    given("cap: 10", "cap: 3\n  looks: 4", 13, "looks are 4; expected no more than ca"),
    given(
        "model: lognormal\n  zone: 0.1\n  cap: 10",
        "model: any\n  zone: 0.1\n  cap: 3",
        12,
        "model any decides nothing with fewer than 4 repeats",
    ),
    given("model: lognormal", "model: weibull", 10, "model is 'weibull'; expected one"),
    given("kind: promised", "kind: published", 9, "kind is 'published'; expected one"),
    given("kind: promised\n", "bears: vendor\n", 9, "bears is 'vendor'; expected one"),
    given("  kind: promised\n", "", 14, "the criterion has no kind"),
    given("  clause: '3.2'\n", "", 8, "kind promised needs clause; it is not given"),
    given("  document: Contract 4711\n", "", 8, "kind promised needs document"),
    given("Contract 4711", "4711", 4, "document is 4711; expected a text"),
    given("clause: '3.2'", "clause: 3.2", 5, "clause is 3.2; expected a text"),
    given("clause: '3.2'", "clause: ''", 5, "clause is ''; expected a text"),
    given("2026-11-21", "today", 7, "date is 'today'; expected a date"),
    given("'sample:.*'", "'*:.*'", 13, "'*:.*' is no regular expression"),
    given(
        "$partition: 'sample:.*'", "$part: a", 13, "where holds '$part'; expected $s"
    ),
    given(
        "$partition: 'sample:.*'", "$partition: 4", 13, "4 is no name for $partition"
    ),
    given(
        "{between: nodes}", "{between: [a]}", 20, "between is ['a']; expected a text"
    ),
    given(
        "num_nodes: 4", "num_nodes: '4'", 39, "'4' is no number of nodes; expected 4"
    ),
    given("check: Fake", "chek: Fake", 15, "unknown key 'chek'; expected one of check"),
    given("check: Fake\n    ", "", 15, "the criterion has no check"),
    given(
        "check: Fake", "check: Fakes", 15, "unknown check 'Fakes'; expected one of F"
    ),
    given(LATENCY, "speed_8B: 2 us", 16, "unknown metric 'speed_8B'"),
    given(LATENCY, "latency_8KB: 2 us", 16, "not a message size: '8KB'"),
    given(
        LATENCY, "latency_8B: 2.5", 16, "latency_8B is 2.5; expected a number and it"
    ),
    given(LATENCY, "latency_8B: 2.5", 16, "such as '5000 us'"),
    given(LATENCY, "latency_8B: 2.5 ms", 16, "latency_8B is in 'ms'; expected 'us'"),
    given(LATENCY, "latency_8B: two us", 16, "latency_8B is 'two us'; expected a numb"),
    given(LATENCY, "latency_8B: nan us", 16, "'nan us'; expected a number >= 0"),
    given(LATENCY, "latency_8B: inf us", 16, "'inf us'; expected a number >= 0"),
    given(LATENCY, "latency_8B: -1 us", 16, "'-1 us'; expected a number >= 0"),
    given(LATENCY, "latency_8B: 0 us", 16, "model lognormal needs a limit above 0"),
    given(f"{{{LATENCY}, bw_4MiB: 10000 MB/s}}", "{}", 15, "no limits; kind promised"),
    given(
        "    limits", "    direction: lower\n    limits", 16, "bw_4MiB is better hig"
    ),
    given(
        "    limits", "    metrics: [bw_8B]\n    limits", 16, "kind promised has limi"
    ),
    given(
        "    limits", "    formula: 1 + 1\n    limits", 16, "formula belongs to kind t"
    ),
    given(
        "    limits", "    tolerance: 0.1\n    limits", 16, "tolerance belongs to kin"
    ),
    given("    limits", "    run: r1\n    limits", 16, "run belongs to kind measured"),
    given(
        f"    {FORMULA}\n", "", 18, "kind theoretical needs formula; it is not given"
    ),
    given(FORMULA, "formula: sqrt(2)", 19, "formula 'sqrt(2)': expected numbers with"),
    given(FORMULA, "formula: 1 / 0", 19, "formula '1 / 0': no number comes out"),
    given(FORMULA, "formula: 1 - 2", 19, "formula '1 - 2' is -1; expected >= 0"),
    given(FORMULA, "formula: [1]", 19, "formula is [1]; expected e.g."),
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
        "tolerance: 0.1", "tolerance: 1", 24, "tolerance is 1; expected a number bet"
    ),
    given(
        "tolerance: 0.1", "tolerance: 0", 24, "tolerance is 0; expected a number bet"
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
    given("{kernel: 6.1.0-25}", "{kernel: 6.1}", 30, "kernel is 6.1; expected a text"),
    given("{kernel: 6.1.0-25}", "{}", 30, "fingerprint is empty"),
    given(
        "coverage: 0.95", "coverage: 95", 31, "coverage is 95; expected a number bet"
    ),
    given("statistic: p99", "statistic: 99", 34, "statistic is 99; expected a text"),
    given(
        "all answer", "Fake bw_4MiB", 40, "the criterion of line 16 is called 'Fake b"
    ),
    (
        GOOD + ENTRY,
        42,
        "contradictory: line 16 says what is promised of Fake bw_4MiB on",
    ),
    given(
        "cap: 10", "cap: 10\n  cap: 11", 13, "key 'cap'; expected a text that is not"
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
    old = GOOD.replace("check: Fake", "check: Forgotten")
    (tmp_path / "system" / "criteria.yaml").write_text(old)
    recorded = recorded_criteria(tmp_path)
    assert recorded is not None
    assert {each.check for each in recorded.criteria} == {"Forgotten"}


def test_criteria_of_the_lab_are_valid_and_hold_every_check() -> None:
    criteria = Criteria.load(HOME / "reference-data" / "lab" / "criteria.yaml")
    assert {each.check for each in criteria.criteria} == known_checks(CHECKS)


def test_example_of_the_documentation_is_complete(tmp_path: Path) -> None:
    page = (HOME / "docs" / "criteria.md").read_text()
    block = re.search(r"^    schema: 1\n(    .*\n)+", page, re.MULTILINE)
    assert block is not None
    file = tmp_path / "criteria.yaml"
    file.write_text(re.sub("^    ", "", block[0], flags=re.MULTILINE))
    criteria = Criteria.load(file, known_checks(CHECKS))
    assert {each.kind for each in criteria.criteria} == {
        *("promised", "theoretical", "sameness"),
    }
    assert render_reference_files(HOME, criteria, "SYSTEM")
