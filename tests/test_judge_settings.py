"""Criteria of kind `declared`: how settings decide, and what they change."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from criteria_samples import RISKS, criterion
from fake_hardware import Hca
from judge_samples import found
from settings_runs import alike, settings_run

from seatrial.criteria.criteria import Criteria, changes
from seatrial.criteria.declared import DeclaredCriterion
from seatrial.criteria.keys import ANY
from seatrial.errors import SeatrialError
from seatrial.judge.judge import Judgement, judge
from seatrial.runs.closed_run import KEPT_CRITERIA, Run
from seatrial.runs.fingerprint import differences, fingerprint
from seatrial.runs.settings_table import parse_settings

OLD = Hca(firmware="20.42.1000")
ALL = DeclaredCriterion("settings", {}, "contract, 4")


def judged(run: Run, *declared: DeclaredCriterion) -> Judgement:
    return judge(run, Criteria(RISKS, (criterion(),), declared=declared))


def verdicts(run: Run, *declared: DeclaredCriterion) -> list[tuple[str, str, str]]:
    findings = found(judged(run, *declared or (ALL,)), "declared")
    return [(one.verdict, one.place, one.metric) for one in findings]


def test_settings_as_declared_pass(tmp_path: Path) -> None:
    (finding,) = found(judged(settings_run(tmp_path, alike()), ALL), "declared")
    assert (finding.verdict, finding.n, finding.criterion) == ("pass", 4, "settings")
    assert finding.reference_source == "contract, 4"
    assert finding.reason.startswith("24 declared settings of 4 nodes are as declared")


def test_drift_fails_its_node(tmp_path: Path) -> None:
    run = settings_run(tmp_path, alike(cn03=OLD))
    judgement = judged(run, ALL)
    (finding,) = found(judgement, "declared")
    assert (finding.verdict, finding.place) == ("fail", "cn03")
    assert finding.metric == "rail0 firmware"
    assert finding.reason == "drift: declared 20.43.2566, found 20.42.1000"
    assert judgement.verdict == "fail"
    assert judgement.convicted == ("cn03",)
    node = judgement.nodes[2]
    assert "rail0 firmware: drift" in node.reason


def test_an_hca_that_is_gone_fails(tmp_path: Path) -> None:
    run = settings_run(tmp_path, alike(cn02=Hca(device=None)))
    assert ("fail", "cn02", "rail0 device") in verdicts(run)
    (finding,) = [
        finding
        for finding in found(judged(run, ALL), "declared")
        if finding.metric == "rail0 device"
    ]
    assert finding.reason.startswith("absent: ")


def test_a_node_that_was_not_read_is_undecided(tmp_path: Path) -> None:
    """Unless another moment told: a node may have a job at the end."""
    silent = settings_run(tmp_path, alike(cn04=None))
    assert {(one[0], one[1]) for one in verdicts(silent)} == {("undecided", "cn04")}
    (tmp_path / "told").mkdir()
    told = settings_run(tmp_path / "told", alike(), alike(cn04=None))
    assert [one[0] for one in verdicts(told)] == ["pass"]


def test_odd_is_listed_and_passes(tmp_path: Path) -> None:
    odd = replace(Hca(), numa_node=1)
    (finding,) = found(judged(settings_run(tmp_path, alike(cn01=odd)), ALL), "declared")
    assert finding.verdict == "pass"
    assert "not like their class: rail0 numa_node on 1" in finding.reason


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"key": "firmware"}, "fail"),
        ({"key": "firm"}, "undecided"),  # the whole key, or nothing
        ({"subject": "rail.*", "class": "cpu"}, "fail"),
        ({"subject": "cpu"}, "pass"),
        ({"node": "cn0[12]"}, "pass"),
        ({"node": "(?!cn03).*"}, "pass"),  # as in other criteria: Python's patterns
    ],
)
def test_where_selects_settings(
    where: dict[str, str], expected: str, tmp_path: Path
) -> None:
    run = settings_run(tmp_path, alike(cn03=OLD))
    ((verdict, *_),) = verdicts(run, DeclaredCriterion("some", where, "c"))
    assert verdict == expected


@pytest.mark.parametrize("optional", [False, True])
def test_without_settings_nothing_is_shown(optional: bool, tmp_path: Path) -> None:
    run = replace(settings_run(tmp_path, alike()), settings=None)
    kept = f"""schema: 1
risks: {{seller: 0.05, buyer: 0.05}}
criteria: [{{kind: declared, name: settings, optional: {optional}}}]"""
    run = replace(run, kept={KEPT_CRITERIA: kept.encode()})
    criteria = replace(ALL, optional=True)
    (finding,) = found(judged(run, criteria), "declared")
    assert finding.verdict == ("skipped" if optional else "undecided")
    assert finding.reason == "not measured: the run has no settings"


def test_a_change_during_the_run_is_undecided(tmp_path: Path) -> None:
    """With or without a criterion; what irqbalance rewrites is no change."""
    new = replace(Hca(), firmware="20.44.1030", irq_cpus="4-7")
    run = settings_run(tmp_path, alike(), alike(cn02=new))
    (finding,) = found(judged(run), "declared")
    assert (finding.verdict, finding.place) == ("undecided", "cn02")
    assert finding.metric == "rail0 firmware"
    assert "from 20.43.2566 to 20.44.1030" in finding.reason
    assert judged(run).verdict != "pass"


# ---- What changes between runs


def measured(run: Run) -> Criteria:
    known = fingerprint(run.manifest)
    limit = criterion(kind="measured", source="r0", fingerprint=known)
    return Criteria(RISKS, (limit,))


def test_measured_limits_expire_with_a_setting(tmp_path: Path) -> None:
    before = settings_run(tmp_path, alike())
    (tmp_path / "new").mkdir()
    after = settings_run(tmp_path / "new", alike(cn02=OLD))
    reasons = [one.reason for one in judge(after, measured(before)).findings]
    assert any(
        "has expired: firmware of rail0 was 20.43.2566, is 20.42.1000 (cn02); "
        "20.43.2566 (cn[01,03-04]); measure it again" in reason
        for reason in reasons
    ), reasons
    assert not any(
        "expired" in one.reason for one in judge(before, measured(before)).findings
    )


def test_a_setting_that_is_not_known_now_is_no_difference() -> None:
    old = {"cpu settings": "boost=on | smt=off", "rail0 settings": "firmware=1"}
    assert differences(old, {"cpu settings": "boost=on"}) == []
    assert differences(old, {"cpu settings": "boost=off | smt=off"}) == [
        "boost of cpu was on, is off"
    ]


def test_the_flash_is_one_value_of_the_fingerprint() -> None:
    def of(value: str) -> dict[str, str]:
        settings = {"rail0": {"nvconfig.A": value, "nvconfig.B": "1", "rate": "100"}}
        return fingerprint({"nodes": [], "settings": settings})

    (text,) = of("0").values()
    assert text.startswith("nvconfig=2 values, ")
    assert text.endswith(" | rate=100")
    (difference,) = differences(of("0"), of("1"))
    assert difference.startswith("nvconfig of rail0 was 2 values, ")


# ---- Damaged tables


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("verdict", "fine", "verdict 'fine'; expected absent, drift"),
        ("moment", "noon", "moment 'noon'; expected start, end"),
        ("node", None, "a row lacks a value"),
    ],
)
def test_damaged_settings_are_refused(
    column: str, value: Any, expected: str, tmp_path: Path
) -> None:
    table = settings_run(tmp_path, alike()).settings
    assert table is not None
    file = tmp_path / "t.parquet"
    table.with_columns(pl.lit(value, dtype=pl.String).alias(column)).write_parquet(file)
    with pytest.raises(SeatrialError, match=expected):
        parse_settings(file.read_bytes(), file)


# ---- The criteria file

HEAD = """\
schema: 1
risks: {seller: 0.05, buyer: 0.05}
defaults: {kind: promised, document: contract, clause: "3"}
criteria:
  - {check: ImbRing, limits: {bw_4MiB: 60 MB/s}}
"""


def parsed(text: str) -> Criteria:
    content = (HEAD + text).encode()
    return Criteria.parse(content, Path("criteria.yaml"), known=ANY)


def test_criteria_of_settings_are_read() -> None:
    text = "  - {kind: declared, where: {class: cpu, key: firmware}, clause: '4'}\n"
    criteria = parsed(text)
    assert [one.check for one in criteria.criteria] == ["ImbRing"]
    (declared,) = criteria.declared
    assert declared.name == "settings as declared (class=cpu, key=firmware)"
    assert declared.source == "contract, 4"
    assert changes(parsed(""), criteria) == {declared.name: "new"}
    other = parsed(text.replace("firmware", "rate").replace("where", "name: s, where"))
    more = parsed(text.replace("where", "name: s, where"))
    assert changes(more, other) == {
        "s": "where class=cpu, key=firmware, now class=cpu, key=rate"
    }


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("{kind: declared, check: X}", "kind declared has no check"),
        ("{kind: declared, limits: {bw_8B: 1 MB/s}}", "kind declared has no limits"),
        ("{kind: declared, where: {rail: a}}", "where.rail: "),
        ("{kind: declared, where: {key: '('}}", "a regular expression"),
        ("{kind: declared, where: {key: 1}}", "expected a text"),
        ("{limits: {bw_8B: 1 MB/s}}", "check: expected a text, got nothing"),
        ("{kind: declared}\n  - {kind: declared}", "is called 'settings as declared'"),
    ],
)
def test_mistakes_have_a_line(entry: str, expected: str) -> None:
    with pytest.raises(SeatrialError, match=r"criteria\.yaml:[67]: ") as caught:
        parsed(f"  - {entry}\n")
    assert expected in str(caught.value)
