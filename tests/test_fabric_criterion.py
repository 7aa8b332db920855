"""Criteria of kind `fabric`: how cables of a kept fabric decide."""

from dataclasses import replace
from pathlib import Path

import pytest
from cabled_fabric import Cabled, planned
from criteria_samples import RISKS, criterion
from fabric_runs import break_cables, fabric_run, with_racks
from judge_samples import found

from seatrial.criteria.criteria import Criteria, changes
from seatrial.criteria.declared import DeclaredCriterion
from seatrial.criteria.keys import ANY
from seatrial.errors import SeatrialError
from seatrial.fabric.plan import plan_csv
from seatrial.judge.judge import Judgement, judge
from seatrial.judge.summary import format_findings
from seatrial.report.junit import junit_xml
from seatrial.runs.closed_run import KEPT_CRITERIA, KEPT_FABRIC, Run

ALL = DeclaredCriterion("cables", {}, "contract, 6", kind="fabric")


def judged(run: Run, *rules: DeclaredCriterion) -> Judgement:
    return judge(run, Criteria(RISKS, (criterion(),), declared=rules or (ALL,)))


def broken() -> Cabled:
    cabled = with_racks(Cabled(planned()))
    break_cables(cabled)
    return cabled


def test_cables_as_planned_pass() -> None:
    (finding,) = found(judged(fabric_run(Cabled(planned()))), "fabric")
    assert (finding.verdict, finding.criterion) == ("pass", "cables")
    assert finding.reference_source == "contract, 6"
    assert finding.reason == "the plan has 128 cables, no finding fails"


def test_each_fault_fails_as_a_technician_needs_it() -> None:
    judgement = judged(fabric_run(broken()))
    findings = {one.metric: one for one in found(judgement, "fabric")}
    assert {one.verdict for one in findings.values()} == {"fail"}
    assert {name: one.place for name, one in findings.items()} == {
        "device": "cable c00033: R1 cn33 - R2 leaf05 port 1",
        "missing": "cable c00068: R2 leaf01 port 12 - R4 spine04 port 1",
        "rate": "cable c00127: R1 leaf08 port 15 - R3 spine03 port 16",
        "swapped": "cable c00001: R1 cn01 port mlx5_0:1 (rail0) - R2 leaf01 port 1; "
        "cable c00064: R4 cn64 port mlx5_0:1 (rail0) - R1 leaf08 port 8",
    }
    assert findings["rate"].reason == "drift: planned 4x HDR, found 2x HDR"
    assert "exchange the plugs at leaf01 port 1" in findings["swapped"].reason
    assert judgement.verdict == "fail"
    assert judgement.convicted == (), "a cable is not its node"


def test_all_forms_have_the_findings() -> None:
    run = fabric_run(broken())
    judgement = judged(run)
    assert '"kind": "fabric"' in format_findings(judgement, "json")
    assert "fabric,Fabric,,,missing,,cable c00068" in format_findings(judgement, "csv")
    xml = junit_xml(run, judgement).decode()
    assert 'classname="Fabric" name="missing / cable c00068: R2 leaf01' in xml
    assert xml.count('type="fabric"') == 4


@pytest.mark.parametrize(
    ("where", "fails", "expected"),
    [
        ({"finding": "rate|state"}, (), {"rate"}),
        ({"device": "spine.*"}, (), {"missing", "rate"}),
        ({"device": "spine01"}, (), set()),
        ({}, ("absent",), {"missing", "device"}),
        ({"finding": "uplinks"}, ("odd",), {"uplinks"}),
    ],
)
def test_where_and_fails_select(
    where: dict[str, str], fails: tuple[str, ...], expected: set[str]
) -> None:
    text = f"  - {{kind: fabric, name: c, where: {where}, fails: {[*fails]}}}\n"
    (rule,) = parsed(text if fails else text.replace(", fails: []", "")).declared
    assert isinstance(rule, DeclaredCriterion)
    findings = found(judged(fabric_run(broken()), rule), "fabric")
    failing = {one.metric for one in findings if one.verdict == "fail"}
    assert failing == expected
    if not expected:
        assert [one.verdict for one in findings] == ["pass"]


def test_odd_is_shown_and_passes() -> None:
    rule = replace(ALL, where={"finding": "uplinks"})
    (finding,) = found(judged(fabric_run(broken()), rule), "fabric")
    assert finding.verdict == "pass"
    assert finding.reason.endswith("no finding fails; shown only: 1 uplinks (odd)")


def test_what_did_not_answer_is_undecided() -> None:
    cabled = Cabled(planned())
    cabled.silent.add(cabled.plan.cables[5].a)
    (finding,) = found(judged(fabric_run(cabled)), "fabric")
    assert finding.verdict == "undecided"
    assert "the other end did not answer" in finding.reason
    incomplete = fabric_run(Cabled(planned()), problems=("ibwarn: no answer",))
    rate = replace(ALL, where={"finding": "rate"})
    (finding,) = found(judged(incomplete, rate), "fabric")
    assert finding.verdict == "undecided", "an incomplete discovery shows no pass"


@pytest.mark.parametrize("optional", [False, True])
def test_without_a_fabric_nothing_is_shown(optional: bool) -> None:
    run = fabric_run(Cabled(planned()))
    kept = {name: text for name, text in run.kept.items() if name != KEPT_FABRIC}
    criteria = f"""schema: 1
risks: {{seller: 0.05, buyer: 0.05}}
criteria: [{{kind: fabric, name: cables, optional: {optional}}}]"""
    kept[KEPT_CRITERIA] = criteria.encode()
    bare = replace(run, kept=kept)
    (finding,) = found(judged(bare, replace(ALL, optional=True)), "fabric")
    assert finding.verdict == ("skipped" if optional else "undecided")
    assert finding.reason == "not measured: the run kept no fabric"


def test_without_plan_or_device_nothing_is_shown() -> None:
    (finding,) = found(judged(fabric_run(Cabled(planned()), plan="")), "fabric")
    assert (finding.verdict, finding.reason) == (
        "undecided",
        "not measured: the run kept no cable plan",
    )
    rule = replace(ALL, where={"device": "leaf99"})
    (finding,) = found(judged(fabric_run(Cabled(planned())), rule), "fabric")
    assert finding.reason == "not measured: the fabric has no device 'leaf99'"


def test_damaged_files_are_undecided_with_file_and_line() -> None:
    cabled = Cabled(planned())
    text = plan_csv(cabled.plan.cables)
    bad = text.replace("leaf01,1,4x", "leaf01,1,5x", 1)
    (finding,) = found(judged(fabric_run(cabled, plan=bad)), "fabric")
    assert finding.verdict == "undecided"
    assert "r/system/fabric_plan.csv:2: width: expected" in finding.reason
    unknown = text.replace("cn01,", "cnO1,", 1)
    (finding,) = found(judged(fabric_run(cabled, plan=unknown)), "fabric")
    assert "fabric_plan.csv:2: a: unknown device 'cnO1'" in finding.reason
    wrong = fabric_run(cabled, declared="fabric_routing: often\n")
    (finding,) = found(judged(wrong), "fabric")
    assert "r/system/fabric.yml:1: fabric_routing: " in finding.reason
    run = fabric_run(cabled)
    cut = replace(run, kept={**run.kept, KEPT_FABRIC: b'{"devices": ['})
    (finding,) = found(judged(cut), "fabric")
    assert "r/system/fabric.json: " in finding.reason


def test_a_run_without_a_fabric_is_judged_as_before() -> None:
    run = fabric_run(broken())
    without = replace(run, kept={})
    rules = Criteria(RISKS, (criterion(),))
    assert judge(run, rules).digest == judge(without, rules).digest
    assert "located" not in format_findings(judge(without, rules), "json")


HEAD = """schema: 1
risks: {seller: 0.05, buyer: 0.05}
defaults: {kind: promised, document: contract, clause: "3"}
criteria:
  - {check: ImbRing, limits: {bw_4MiB: 60 MB/s}}
"""


def parsed(text: str) -> Criteria:
    return Criteria.parse((HEAD + text).encode(), Path("criteria.yaml"), ANY)


def test_criteria_of_cables_are_read() -> None:
    criteria = parsed("  - {kind: fabric, where: {finding: rate}, clause: '6'}\n")
    (rule,) = criteria.declared
    assert isinstance(rule, DeclaredCriterion)
    assert rule.name == "cables as planned (finding=rate)"
    assert (rule.source, rule.fails) == ("contract, 6", ("absent", "drift"))
    one = parsed("  - {kind: fabric, name: c}\n")
    other = parsed("  - {kind: fabric, name: c, fails: [absent]}\n")
    assert changes(one, other) == {"c": "fails absent, drift, now absent"}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("{kind: fabric, check: X}", "kind fabric has no check"),
        ("{kind: fabric, fails: [pending]}", "fails"),
        ("{kind: fabric, fails: []}", "fails"),
        ("{kind: fabric, where: {subject: a}}", "where.subject: "),
        ("{kind: fabric, where: {finding: swaped}}", "a pattern of "),
        ("{kind: declared, fails: [drift]}", "kind declared has no fails"),
        ("{check: X, limits: {bw_8B: 1 MB/s}, fails: [drift]}", "belongs to kind"),
    ],
)
def test_mistakes_have_a_line(entry: str, expected: str) -> None:
    with pytest.raises(SeatrialError, match=r"criteria\.yaml:6: ") as caught:
        parsed(f"  - {entry}\n")
    assert expected in str(caught.value)
