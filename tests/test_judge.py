"""The judge on constructed runs: cases, nodes, criteria, and what a verdict says."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from closed_runs import close_run
from criteria_samples import criteria, criterion
from judge_samples import (
    CASE,
    LIMIT,
    NODES,
    found,
    frozen,
    judged,
    make_run,
    repeats,
    sample,
    values_run,
)

from seatrial.criteria.criteria import Criteria
from seatrial.criteria.keys import ANY
from seatrial.judge.judge import judge
from seatrial.judge.summary import format_findings
from seatrial.runs.closed_run import load_run

SOUND = (80.0, 82.0, 81.0)
BELOW = "bw_4MiB: does not meet its reference"


def test_finding_says_everything_about_its_criterion() -> None:
    (finding,) = found(judged(values_run(*SOUND), LIMIT), "limit")
    assert (finding.check, finding.case) == ("ImbRing", "ImbRing")
    assert (finding.environment, finding.metric) == ("intelmpi", "bw_4MiB")
    assert (finding.size_bytes, finding.place, finding.n) == (4 << 20, "", 3)
    assert (finding.unit, finding.limit, finding.direction) == ("MB/s", 60.0, "higher")
    assert finding.reference_kind == "promised"
    assert finding.reference_source == "contract, 3.1"
    assert finding.criterion == "ImbRing bw_4MiB promised"
    assert finding.method == "Student's t of logarithms"
    assert finding.spread == "1.23 % else"


def test_metric_that_nobody_promises_is_not_judged() -> None:
    run = values_run(*SOUND)
    free = replace(run, cases=tuple(replace(c, declared=()) for c in run.cases))
    judgement = judged(free)
    assert found(judgement, "limit") == []
    assert judgement.verdict == "pass"
    assert judged(free, replace(LIMIT, limit=90.0)).verdict == "fail"


def test_declared_metric_without_criterion_is_undecided() -> None:
    judgement = judged(values_run(*SOUND))
    (finding,) = found(judgement, "limit")
    assert judgement.verdict == "undecided"
    assert (finding.reason, finding.value) == ("no criterion for this metric", 81.0)


def test_declared_metric_that_is_missing_is_undecided() -> None:
    run = values_run(*SOUND)
    both = ("bw_4MiB", "latency_8B")
    run = replace(run, cases=tuple(replace(c, declared=both) for c in run.cases))
    judgement = judged(run, LIMIT)
    missing = [f for f in found(judgement, "limit") if f.metric == "latency_8B"]
    assert [f.verdict for f in missing] == ["undecided"]
    assert judgement.verdict == "undecided"


@pytest.mark.parametrize(
    ("optional", "verdict", "overall"),
    [(False, "undecided", "undecided"), (True, "skipped", "pass")],
)
def test_criterion_that_nobody_measured_is_no_pass(
    optional: bool, verdict: str, overall: str
) -> None:
    lost = criterion("latency_8B", 100.0, optional=optional)
    run = frozen(values_run(*SOUND), lost)
    judgement = judged(run, LIMIT, lost)
    (finding,) = [f for f in judgement.findings if f.metric == "latency_8B"]
    assert (finding.verdict, judgement.verdict) == (verdict, overall)
    assert finding.reason == "not measured: no case reported this metric"


def test_a_promise_is_not_kept_by_skipping_its_check() -> None:
    npb = criterion("Mops_total", 10.0, check="Npb")
    run = values_run(*SOUND)
    skipped = replace(CASE, check="Npb", case="Npb", result="skip", reason="no NPB")
    run = frozen(replace(run, cases=(*run.cases, skipped)), npb)
    judgement = judged(run, LIMIT, npb)
    assert judgement.verdict == "undecided"
    (finding,) = [f for f in found(judgement, "limit") if f.check == "Npb"]
    assert finding.reason == "not measured: Npb: no NPB"
    assert judged(run, LIMIT, replace(npb, optional=True)).verdict == "pass"


def test_a_check_outside_the_campaign_leaves_its_criterion_undecided() -> None:
    npb = criterion("Mops_total", 10.0, check="Npb")
    judgement = judged(values_run(*SOUND), LIMIT, npb)
    assert judgement.verdict == "undecided"
    assert judgement.uncovered == ("Npb Mops_total promised",)
    (finding,) = [f for f in judgement.findings if f.verdict == "undecided"]
    assert (finding.criterion, finding.reason) == (
        "Npb Mops_total promised",
        "not measured: campaign smoke does not run Npb",
    )


def test_criteria_choose_their_cases() -> None:
    other = replace(LIMIT, where={"$environ": "mpich"}, limit=90.0)
    judgement = judged(values_run(*SOUND), LIMIT, replace(other, name="b"))
    assert {f.criterion: f.verdict for f in found(judgement, "limit")} == {
        LIMIT.name: "pass",
        "b": "undecided",
    }
    here = replace(other, name="b", where={"$environ": "intel.*", "$system": "lab"})
    assert judged(values_run(*SOUND, 83.0), LIMIT, here).verdict == "fail"


@pytest.mark.parametrize(
    ("changes", "verdict", "overall", "reason"),
    [
        (
            {"result": "fail", "phase": "sanity", "reason": "no rows"},
            "fail",
            "fail",
            "failed in sanity: no rows",
        ),
        ({"result": "fail"}, "fail", "fail", "failed: no reason given"),
        (
            {"result": "skip", "reason": "one node only"},
            "skipped",
            "undecided",
            "one node only",
        ),
        (
            {"result": "pass"},
            "pass",
            "pass",
            "ran and verified; it has no number to judge",
        ),
    ],
)
def test_case_without_numbers(
    changes: dict[str, Any], verdict: str, overall: str, reason: str
) -> None:
    judgement = judged(make_run([replace(CASE, declared=(), **changes)], []))
    (finding,) = found(judgement, "case")
    assert (finding.verdict, finding.reason) == (verdict, reason)
    assert judgement.verdict == overall


def test_case_that_failed_once_fails() -> None:
    *sound, last = repeats(4)
    lost = replace(last, result="fail", phase="run", reason="lost a node")
    rows = [sample(case, v) for case, v in zip(sound, SOUND, strict=True)]
    run = make_run([*sound, lost], rows)
    judgement = judged(run, LIMIT)
    (finding,) = found(judgement, "case")
    assert finding.reason == "failed in run in 1 of 4 repeats: lost a node"
    assert judgement.verdict == "fail"


@pytest.mark.parametrize(
    ("values", "reason", "verdict", "failed"),
    [
        ((50.0, 51.0, 52.0), "below reference", "fail", 0),
        ((58.0, 66.0, 63.0), "below reference", "undecided", 0),
        # ReFrame's quick verdict on one number is not the one that counts.
        (SOUND, BELOW, "pass", 0),
        (SOUND, f"{BELOW}; {BELOW}", "pass", 0),
        (SOUND, "bw_4MiB: unit differs", "fail", 1),
        (SOUND, f"{BELOW}; bw_4MiB: unit differs", "fail", 1),
    ],
)
def test_performance_failures_are_for_the_numbers_to_explain(
    values: tuple[float, ...], reason: str, verdict: str, failed: int
) -> None:
    run = values_run(*values)
    first, *others = run.cases
    first = replace(first, result="fail", phase="performance", reason=reason)
    judgement = judged(replace(run, cases=(first, *others)), LIMIT)
    assert judgement.verdict == verdict
    assert len(found(judgement, "case")) == failed


def test_case_that_passed_at_a_later_try_says_so() -> None:
    run = values_run(*SOUND)
    first = replace(run.cases[0], result="fail", phase="run", reason="node lost")
    again = replace(run.cases[0], attempt=2)
    judgement = judged(replace(run, cases=(first, again, *run.cases[1:])), LIMIT)
    (finding,) = found(judgement, "case")
    assert (finding.verdict, judgement.verdict) == ("pass", "undecided")
    assert finding.reason == (
        "passed at try 2 in session pairs-1; the first failed in run: node lost"
    )
    # A repeat of the run makes the spoiled try good: it is left out.
    (finding,) = found(
        judged(replace(run, cases=(again, *run.cases[1:])), LIMIT), "case"
    )
    assert finding.reason == "passed at try 2 in session pairs-1"


def test_absent_node_fails_the_inventory() -> None:
    rows = [sample(case, v) for case, v in zip(repeats(3), SOUND, strict=True)]
    judgement = judged(make_run(repeats(3), rows, absent="cn02"), LIMIT)
    (finding,) = found(judgement, "inventory")
    assert (finding.place, finding.verdict) == ("cn02", "fail")
    assert finding.reason == "delivered but absent: down"
    assert judgement.verdict == "fail"
    assert judgement.convicted == ()
    node = judgement.nodes[1]
    assert (node.name, node.state, node.verdict) == ("cn02", "absent", "fail")


def test_without_delivered_nodes_the_inventory_is_undecided() -> None:
    """An imported run does not say what was delivered."""
    rows = [sample(case, v) for case, v in zip(repeats(3), SOUND, strict=True)]
    judgement = judged(make_run(repeats(3), rows, nodes=[]), LIMIT)
    (finding,) = found(judgement, "inventory")
    assert finding.verdict == judgement.verdict == "undecided"
    assert finding.reason == "the run does not say which nodes were delivered"


def test_nothing_judged_is_undecided() -> None:
    assert judged(make_run([], [])).verdict == "undecided"
    assert judged(make_run([], []), LIMIT).verdict == "undecided"


def test_order_does_not_depend_on_the_order_of_the_run() -> None:
    cases = repeats(3)
    others = [replace(case, environment="mpich") for case in cases]
    rows = [
        sample(case, value, pair=pair)
        for case, value in zip([*cases, *others], SOUND * 2, strict=True)
        for pair in ("cn10 cn2", "cn2 cn3")
    ]
    nodes = ("cn2", "cn3", "cn10")
    one = judged(make_run([*cases, *others], rows, nodes=nodes), LIMIT)
    two = judged(make_run([*others, *cases], rows, nodes=nodes), LIMIT)
    assert one == two
    assert one.digest == two.digest
    places = [f.place for f in found(one, "limit") if f.environment == "mpich"]
    assert places == ["cn2 - cn3", "cn10 - cn2"]


def test_the_digest_is_of_run_criteria_and_verdict() -> None:
    run = values_run(*SOUND)
    digest = judged(run, LIMIT).digest
    assert digest == judged(run, LIMIT).digest
    assert len(digest) == 64
    others = {
        judged(values_run(80, 82, 81.001), LIMIT).digest,
        judged(run, replace(LIMIT, limit=61.0)).digest,
        judge(run, criteria(LIMIT, sha256="1")).digest,
        judged(replace(run, manifest={**run.manifest, "run": "s"}), LIMIT).digest,
    }
    assert digest not in others
    assert len(others) == 4


FILE = """
schema: 1
risks: {seller: 0.05, buyer: 0.05}
defaults: {kind: promised, document: contract, clause: "3.1", model: lognormal}
criteria:
  - {check: ImbRing, limits: {bw_4MiB: 60 MB/s}}
"""


def recorded(folder: Path, text: str | None) -> tuple[Any, Path]:
    """Close a run that keeps these criteria."""
    kept = {} if text is None else {"system/criteria.yaml": text}
    source = values_run(*SOUND)
    rows = [sample(c, v) for c, v in zip(source.cases, SOUND, strict=True)]
    cases = list(source.cases)
    path = close_run(folder / "results", rows=rows, cases=cases, kept=kept)
    file = folder / "criteria.yaml"
    file.write_text(FILE)
    return load_run(path), file


def test_criteria_that_held_are_not_flagged(tmp_path: Path) -> None:
    run, file = recorded(tmp_path, FILE)
    judgement = judge(run, Criteria.load(file, known=ANY))
    assert judgement.changed == ()
    assert [f.flags for f in found(judgement, "limit")] == [()]
    assert len(judgement.criteria_sha256) == 64


def test_criteria_that_changed_later_are_flagged(tmp_path: Path) -> None:
    run, file = recorded(tmp_path, FILE)
    file.write_text(FILE.replace("60 MB/s", "50 MB/s"))
    judgement = judge(run, Criteria.load(file, known=ANY))
    assert judgement.verdict == "pass"
    assert judgement.changed == ("ImbRing bw_4MiB: limit 60 MB/s, now 50 MB/s",)
    (finding,) = found(judgement, "limit")
    assert finding.flags == (
        "changed after the data were taken: limit 60 MB/s, now 50 MB/s",
    )


def test_softer_risks_are_flagged_too(tmp_path: Path) -> None:
    run, file = recorded(tmp_path, FILE)
    file.write_text(FILE.replace("seller: 0.05", "seller: 0.5"))
    judgement = judge(run, Criteria.load(file, known=ANY))
    assert any("seller 0.05, now 0.5" in change for change in judgement.changed)


def test_run_without_criteria_says_so(tmp_path: Path) -> None:
    run, file = recorded(tmp_path, None)
    assert judge(run, Criteria.load(file, known=ANY)).changed == (
        "the run does not say which criteria held when its data were taken",
    )


def test_measured_reference_expires_with_the_configuration() -> None:
    nodes = [
        {"name": name, "facts": {"kernel": "6.1"}, "state": "present", "reason": ""}
        for name in NODES
    ]
    run = values_run(*SOUND)
    run = replace(run, manifest={**run.manifest, "nodes": nodes})
    held = criterion(kind="measured", fingerprint={"kernel": "6.1"})
    assert judged(run, held).verdict == "pass"
    old = replace(held, fingerprint={"kernel": "5.14"})
    judgement = judged(run, old)
    (finding,) = found(judgement, "limit")
    assert judgement.verdict == "undecided"
    assert finding.reason.startswith("the measured reference has expired: kernel")
    assert "5.14" in finding.reason and "6.1" in finding.reason


def test_judgement_is_written_for_programs(tmp_path: Path) -> None:
    run, file = recorded(tmp_path, FILE)
    file.write_text(FILE.replace("60 MB/s", "50 MB/s"))
    judgement = judge(run, Criteria.load(file, known=ANY))
    content = json.loads(format_findings(judgement, "json"))
    assert content["digest"] == judgement.digest
    assert content["criteria_sha256"] == judgement.criteria_sha256
    rows = list(csv.DictReader(io.StringIO(format_findings(judgement, "csv"))))
    flags = [row["flags"] for row in rows if row["criterion"]]
    assert flags == ["changed after the data were taken: limit 60 MB/s, now 50 MB/s"]


def test_a_node_that_nobody_measured_is_no_pass() -> None:
    """It was in the allocations, and no number is of it."""
    rows = [
        sample(case, value, node=node)
        for case, value in zip(repeats(3), SOUND, strict=True)
        for node in NODES[:3]
    ]
    judgement = judged(make_run(repeats(3), rows), LIMIT)
    assert judgement.verdict == "fail"
    (finding,) = [f for f in found(judgement, "limit") if f.verdict == "fail"]
    assert finding.place == "cn04"
    assert finding.reason.endswith(
        "; 3 of 3 numbers are missing, and count as the worst value"
    )
