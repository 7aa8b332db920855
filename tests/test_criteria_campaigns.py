"""Criteria of some campaigns: which runs they hold, and what a verdict says of them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from criteria_samples import criteria, criterion
from judge_samples import CASE, LIMIT, found, judged, make_run, sample, values_run
from protocols import make_run as close_a_run
from protocols import make_site, work_at, write_protocol
from reframe_runs import HOME

from seatrial.console import Terminal
from seatrial.criteria.criteria import Criteria
from seatrial.criteria.keys import Known
from seatrial.criteria.reframe_references import render_reference_files
from seatrial.errors import SeatrialError
from seatrial.judge.judge import judge
from seatrial.judge.summary import print_summary
from seatrial.report.chapters import contents
from seatrial.runs.closed_run import KEPT_CRITERIA

GOOD = """\
schema: 1
risks: {seller: 0.05, buyer: 0.05}
defaults: {kind: promised, document: d, clause: c, campaigns: [smoke, verbs]}
criteria:
  - check: Fake
    limits: {latency_8B: 2 us}
  - check: Fake
    campaigns: [fullsize]
    limits: {latency_8B: 3 us}
"""
KNOWN = Known({"Fake"}, campaigns=["fullsize", "smoke", "verbs"])
CAMPAIGNS = "expected one of the campaigns fullsize, smoke, verbs"
SOUND = (80.0, 80.4, 79.7, 80.1, 80.2)


def load(folder: Path, text: str) -> Criteria:
    file = folder / "criteria.yaml"
    file.write_text(text)
    return Criteria.load(file, KNOWN)


def test_one_metric_has_a_limit_in_each_campaign(tmp_path: Path) -> None:
    whole = load(tmp_path, GOOD)
    assert [(rule.name, rule.campaigns) for rule in whole.criteria] == [
        ("Fake latency_8B", ("smoke", "verbs")),
        ("Fake latency_8B (fullsize)", ("fullsize",)),
    ]
    for campaign, limits in {"smoke": [2], "fullsize": [3], "nightly": []}.items():
        held = whole.of_campaign(campaign)
        assert [rule.limit for rule in held.criteria] == limits
        assert held.sha256 == whole.sha256, "they are of the same file"


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        (
            "[fullsize]",
            "[fulsize]",
            8,
            f"criteria[1].campaigns[0]: {CAMPAIGNS}, got 'fulsize'. Did you mean 'fu",
        ),
        (
            "[smoke, verbs]",
            "[smoke, verb]",
            3,
            f"defaults.campaigns[1]: {CAMPAIGNS}, got 'verb'. Did you mean 'verbs'?",
        ),
        (
            "[fullsize]",
            "[]",
            8,
            "criteria[1].campaigns: expected a list of campaigns, got [].",
        ),
        (
            "[fullsize]",
            "fullsize",
            8,
            "criteria[1].campaigns: expected a list of campaigns, got 'fullsize'.",
        ),
        (
            "    campaigns: [fullsize]\n",
            "",
            8,
            "contradictory: line 6 says what is pro",
        ),
    ],
)
def test_a_campaign_that_is_not_there_is_refused(
    old: str, new: str, line: int, message: str, tmp_path: Path
) -> None:
    with pytest.raises(SeatrialError) as refused:
        load(tmp_path, GOOD.replace(old, new))
    place, _, reason = str(refused.value).partition(": ")
    assert place == f"{tmp_path / 'criteria.yaml'}:{line}"
    assert message in reason


def test_a_run_is_not_judged_by_criteria_of_other_campaigns() -> None:
    elsewhere = criterion("Mops_total", check="Npb", campaigns=("fullsize",))
    judgement = judged(values_run(*SOUND), LIMIT, elsewhere)
    (finding,) = [one for one in judgement.findings if one.check == "Npb"]
    assert (finding.verdict, finding.reason) == (
        "skipped",
        "only for campaign fullsize",
    )
    assert (judgement.verdict, judgement.uncovered) == ("pass", ())
    everywhere = replace(elsewhere, campaigns=("fullsize", "smoke"))
    judgement = judged(values_run(*SOUND), LIMIT, everywhere)
    assert (judgement.verdict, judgement.uncovered) == (
        "undecided",
        ("Npb Mops_total promised",),
    )


def test_only_the_limit_of_its_campaign_holds_a_run() -> None:
    harder = criterion("bw_4MiB", 90.0, name="harder", campaigns=("fullsize",))
    assert judged(values_run(*SOUND), LIMIT, harder).verdict == "pass"
    here = replace(harder, campaigns=("smoke",))
    assert judged(values_run(*SOUND), LIMIT, here).verdict == "fail"


def test_a_campaign_without_criteria_never_passes() -> None:
    judgement = judged(values_run(*SOUND), replace(LIMIT, campaigns=("fullsize",)))
    assert judgement.verdict == "undecided"
    reasons = {(one.verdict, one.reason) for one in found(judgement, "limit")}
    assert reasons == {("skipped", "only for campaign fullsize")}


def test_names_that_changed_after_the_data_were_taken_are_told() -> None:
    kept = {
        "schema": 1,
        "risks": {"seller": 0.05, "buyer": 0.05},
        "defaults": {"kind": "promised", "document": "contract", "clause": "3.1"},
        "criteria": [
            {"check": "ImbRing", "name": "a", "limits": {"bw_4MiB": "60 MB/s"}},
            {"check": "Npb", "name": "b", "limits": {"Mops_total": "9 Mop/s"}},
        ],
    }
    run = values_run(*SOUND)
    run = replace(run, kept={KEPT_CRITERIA: json.dumps(kept).encode()})
    narrowed = criterion("Mops_total", 9.0, check="Npb", campaigns=("fullsize",))
    rules = (replace(LIMIT, name="a"), replace(narrowed, name="b"))
    judgement = judge(run, criteria(*rules, sha256="of today"))
    assert judgement.changed == ("b: campaigns all, now fullsize",)
    (finding,) = [one for one in judgement.findings if one.check == "Npb"]
    assert finding.flags == (
        "changed after the data were taken: campaigns all, now fullsize",
    )


def test_verdict_and_report_count_what_they_did_not_judge(
    capsys: pytest.CaptureFixture[str],
) -> None:
    others = [
        criterion("Mops_total", check="Npb", campaigns=("fullsize",)),
        criterion("latency_8B", check="Halo", campaigns=("fullsize",)),
        criterion("mem_bw", check="NodeSweep", campaigns=("scaling", "verbs")),
    ]
    run = make_run([CASE] * 2, [sample(CASE, 80.0), sample(CASE, 81.0)])
    judgement = judged(run, replace(LIMIT, model="every"), *others)
    words = (
        "2 criteria hold only for campaign fullsize, "
        "1 criterion holds only for campaigns scaling, verbs"
    )
    print_summary(judgement, "r", Terminal())
    assert capsys.readouterr().out.splitlines()[1] == f"not judged: {words}"
    content = contents(run, judgement, HOME)
    assert f"Not judged. {words}." in content.front.notices
    assert content.front.optional == ()
    (chapter,) = [one for one in content.chapters if one.name == "exclusions"]
    listed = dict(chapter.tables)["Criteria of other campaigns"]
    assert ("NodeSweep mem_bw promised", "only for campaigns scaling, verbs") in (
        listed.rows
    )


def test_a_protocol_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = work_at(make_site(tmp_path), monkeypatch)
    file = home / "reference-data" / "lab" / "criteria.yaml"
    text = file.read_text()
    entry = "  - {check: Npb, campaigns: [fullsize], limits: {Mops_total: 9 Mop/s}}\n"
    file.write_text(text.replace("criteria:\n", f"criteria:\n{entry}"))
    close_a_run(home, slow=False)
    write_protocol(tmp_path)
    protocol = (tmp_path / "protocol" / "protocol.md").read_text()
    assert "Not judged. 1 criterion holds only for campaign fullsize." in protocol
    (line,) = [one for one in protocol.splitlines() if "Npb Mops_total (ful" in one]
    assert "skipped" in line


@pytest.mark.parametrize(
    ("more", "limit"), [("", 1), ("    campaigns: [verbs]\n", 1), (None, 2)]
)
def test_reframe_takes_the_limit_of_the_easiest_campaign(
    more: str | None, limit: float, tmp_path: Path
) -> None:
    easy = "" if more is None else "  - check: OsuBandwidth\n" + more
    easy += "" if more is None else "    limits: {bw_4MiB: 1 MB/s}\n"
    hard = (
        "  - {check: OsuBandwidth, campaigns: [fullsize], limits: {bw_4MiB: 2 MB/s}}\n"
    )
    text = GOOD[: GOOD.index("criteria:\n")].replace(", campaigns: [smoke, verbs]", "")
    file = tmp_path / "criteria.yaml"
    file.write_text(f"{text}criteria:\n{easy}{hard}")
    (reference,) = render_reference_files(
        HOME, Criteria.load(file, Known()), "x"
    ).values()
    assert f"bw_4MiB: [{limit}, 0, null, MB/s]" in reference
