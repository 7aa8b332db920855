"""Waivers: who may accept what a run does not meet, and what that changes."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
import pytest
from closed_runs import close_run, ssh_key
from criteria_samples import criteria, criterion
from judge_samples import CASE, sample

from seatrial.errors import Exit
from seatrial.judge.findings import Finding
from seatrial.judge.judge import Judgement, judge
from seatrial.judge.summary import exit_of, format_findings
from seatrial.report.chapters import contents
from seatrial.report.html_page import html
from seatrial.report.junit import junit_xml
from seatrial.report.markdown import summary
from seatrial.report.pdf import pdf_bytes
from seatrial.runs.closed_run import Run, load_run
from seatrial.runs.pack import pack, unpack
from seatrial.runs.ssh_signature import Sealed, sign

HOME = Path(__file__).parents[1]
LIMIT = criterion("bw_4MiB", 60.0, model="every")
NAME = "ImbRing bw_4MiB promised"
WAIVER: dict[str, Any] = {
    "criterion": NAME,
    "who": "head of procurement",
    "clause": "4.2",
    "reason": "cable is on order",
    "until": "2027-01-31",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed run with a slow pair, a key, and its owner among the signers."""
    folder = tmp_path_factory.mktemp("waivers")
    pairs = {"cn01 cn02": 100.0, "cn02 cn03": 50.0, "cn03 cn01": 100.0}
    rows = [sample(CASE, value, pair=pair) for pair, value in pairs.items()]
    close_run(folder / "results", rows=rows, cases=[CASE])
    key = ssh_key(folder / "keys", "buyer")
    public = key.with_suffix(".pub").read_text()
    (folder / "allowed_signers").write_text(
        f'buyer@example.org namespaces="seatrial-reasons" {public}'
    )
    return folder


def run_of(
    folder: Path,
    *waivers: dict[str, Any],
    signed: bool = True,
    reasons: Sequence[dict[str, Any]] = (),
) -> Run:
    (path,) = (folder / "results" / "lab").iterdir()
    file = path / "reasons.yaml"
    for old in (file, path / "reasons.yaml.sig"):
        old.unlink(missing_ok=True)
    if waivers:
        run = load_run(path)
        names = {"run": run.manifest["run"], "manifest": run.digest}
        content = {"schema": 1, **names, "waivers": waivers, "reasons": reasons}
        file.write_text(json.dumps(content))
        if signed:
            key = folder / "keys" / "buyer"
            command = ["ssh-keygen", "-Y", "sign", "-n", "seatrial-reasons", "-f"]
            subprocess.run(
                [*command, str(key), str(file)], check=True, capture_output=True
            )
    return load_run(path)


def judged(folder: Path, *waivers: dict[str, Any], signed: bool = True) -> Judgement:
    run = run_of(folder, *waivers, signed=signed)
    return judge(run, criteria(LIMIT), signers=folder / "allowed_signers")


def test_a_waiver_makes_a_pass_with_waivers_and_nothing_else(folder: Path) -> None:
    without, judgement = judged(folder), judged(folder, WAIVER)
    assert (without.verdict, exit_of(without)) == ("fail", Exit.FAILED)
    assert (judgement.verdict, exit_of(judgement)) == ("pass with waivers", Exit.PASS)
    (told,) = judgement.waivers
    assert told == (
        f"{NAME}: cable is on order (clause 4.2, granted by head of procurement until "
        "2027-01-31, signed by buyer@example.org)"
    )
    assert judgement.nodes == without.nodes
    assert judgement.convicted == without.convicted
    pairs = zip(judgement.findings, without.findings, strict=True)
    for one, other in pairs:
        assert (one.verdict, one.reason) == (other.verdict, other.reason)
        assert (one.flags == ("waived",)) == (one.verdict in ("fail", "undecided"))
    assert judgement.digest != without.digest
    assert "waivers" not in json.loads(format_findings(without, "json"))


def test_digests_without_waivers_are_those_of_older_versions() -> None:
    finding = Finding("limit", "A", metric="bw_4MiB", place="cn01", value=1.5)
    finding = replace(finding, verdict="pass", reason="r")
    judgement = Judgement("r", "lab", "smoke", "pass", (finding,), (), ())
    digest = "57c329c06158d53b5ee76e62a3aa204a6d6296d1a348769c930534a8d695edea"
    assert judgement.digest == digest


def test_the_report_says_so_on_page_one(folder: Path) -> None:
    judgement = judged(folder, WAIVER)
    run = run_of(folder, WAIVER)
    text = summary(contents(run, judgement, HOME))
    assert text.startswith("# PASS WITH WAIVERS: lab")
    assert "# PASS:" not in text
    assert "Waivers: 1. ImbRing bw_4MiB promised: cable is on order" in text
    content = contents(run, judgement, HOME)
    page = html(run, judgement, content, HOME)
    assert 'class="verdict pass-with-waivers"' in page
    assert "PASS WITH WAIVERS" in page
    assert "waived" in page
    assert pdf_bytes(run, judgement, content, HOME).startswith(b"%PDF")
    root = ET.fromstring(junit_xml(run, judgement))
    assert (root.get("failures"), root.get("errors")) == ("0", "0")
    skipped = [str(one.get("message")) for one in root.iter("skipped")]
    assert any(message.startswith("waived; fail: ") for message in skipped)


def test_a_waiver_of_one_place_leaves_the_others(folder: Path) -> None:
    failing = [one.place for one in judged(folder).findings if one.verdict == "fail"]
    assert failing
    one = judged(folder, WAIVER | {"place": failing[0]})
    flagged = [finding.place for finding in one.findings if finding.flags]
    assert (one.verdict, flagged) == ("fail", failing), "others are undecided"
    other = judged(folder, WAIVER | {"place": "cn99"})
    assert other.verdict == "fail"
    assert other.waivers == ()
    assert any(note.startswith("waiver of nothing that") for note in other.notes)


@pytest.mark.parametrize(
    ("clause", "of_waiver", "differs"),
    [
        ("3.1", "3.1", False),
        ("3.1", "4.2", True),
        ("Annex B, 3.1", "Annex B,  3.1", False),
        ("Annex B, 3.1", "3.1", True),
        ("Annex B, 3.1", "Annex C, 3.1", True),
        (None, "3.1", False),
    ],
)
def test_a_waiver_of_another_clause_counts_with_a_note(
    folder: Path, clause: str | None, of_waiver: str, differs: bool
) -> None:
    given = {"document": "contract, of 2026", "clause": clause}
    provenance = {name: text for name, text in given.items() if text}
    source = ", ".join(provenance.values())
    limit = replace(LIMIT, provenance=provenance, source=source)
    run = run_of(folder, WAIVER | {"clause": of_waiver})
    judgement = judge(run, criteria(limit), signers=folder / "allowed_signers")
    assert judgement.verdict == "pass with waivers"
    (told,) = judgement.waivers
    note = f"waiver of a criterion of clause {clause}: {told}"
    assert [one for one in judgement.notes if "waiver" in one] == [note] * differs


@pytest.mark.parametrize(
    ("waiver", "signed", "told"),
    [
        (WAIVER, False, "not signed"),
        (WAIVER | {"until": "2020-01-01"}, True, "waiver ended before the run began"),
        (WAIVER | {"until": "soon"}, True, "expected a date"),
        (WAIVER | {"criterion": "bw"}, True, "waiver of nothing that fails"),
        (
            {name: text for name, text in WAIVER.items() if name != "who"},
            True,
            "reasons.yaml",
        ),
        (WAIVER | {"why": "x"}, True, "why"),
    ],
)
def test_a_waiver_that_does_not_count_does_nothing(
    folder: Path, waiver: dict[str, Any], signed: bool, told: str
) -> None:
    without, judgement = judged(folder), judged(folder, waiver, signed=signed)
    assert judgement.verdict == "fail"
    assert judgement.findings == without.findings
    assert judgement.waivers == ()
    assert any(told in note for note in judgement.notes), judgement.notes


@pytest.mark.parametrize(
    ("options", "counts"),
    [
        ("", False),
        ('valid-after="20200101"', False),
        ('valid-after="20200101",namespaces="git,seatrial-reasons"', True),
        ('namespaces="seatrial-*"', True),
        ('namespaces="seatrial-run"', False),
    ],
)
def test_a_waiver_needs_a_key_that_may_grant_it(
    folder: Path, tmp_path: Path, options: str, counts: bool
) -> None:
    """A key that seals runs, and any other without namespaces, accepts nothing."""
    public = (folder / "keys" / "buyer.pub").read_text()
    signers = tmp_path / "allowed_signers"
    signers.write_text(f"# buyers\nbuyer@example.org {options} {public}")
    reason = {"case": "ImbRing", "reason": "r"}
    run = run_of(folder, WAIVER, reasons=[reason])
    judgement = judge(run, criteria(LIMIT), signers=signers)
    assert (judgement.verdict == "pass with waivers") == counts
    assert bool(judgement.waivers) == counts
    assert bool(judgement.reasons) == ("seatrial-run" not in options)
    if not counts:
        (note,) = [note for note in judgement.notes if "do not count" in note]
        if "seatrial-run" not in options:
            assert 'expected namespaces="seatrial-reasons" in the line' in note
        assert str(tmp_path) not in note
        assert str(folder) not in note


def test_words_of_another_option_grant_nothing(folder: Path, tmp_path: Path) -> None:
    public = (folder / "keys" / "buyer.pub").read_text().strip()
    signers = tmp_path / "allowed_signers"
    text = f'buyer@example.org {public} namespaces="seatrial-reasons"\n'
    signers.write_text(text)
    judgement = judge(run_of(folder, WAIVER), criteria(LIMIT), signers=signers)
    assert judgement.verdict == "fail"


@pytest.mark.parametrize(
    ("signers", "told"),
    [
        ("seller@example.org {granted} {seller}", "does not name its key"),
        ('buyer@example.org {granted},valid-before="20200101" {buyer}', "has expired"),
        (None, "no known signers"),
    ],
)
def test_a_stranger_and_a_key_that_has_ended_grant_nothing(
    folder: Path, tmp_path: Path, signers: str | None, told: str
) -> None:
    run, file, granted = run_of(folder, WAIVER), None, 'namespaces="seatrial-reasons"'
    if signers is not None:
        keys = {"buyer": folder / "keys" / "buyer", "seller": ssh_key(tmp_path, "s")}
        public = {
            name: key.with_suffix(".pub").read_text() for name, key in keys.items()
        }
        file = tmp_path / "allowed_signers"
        file.write_text(signers.format(granted=granted, **public))
    judgement = judge(run, criteria(LIMIT), signers=file)
    assert (judgement.verdict, judgement.waivers) == ("fail", ())
    assert any(told in note for note in judgement.notes), judgement.notes


def test_a_key_for_waivers_only_cannot_seal(folder: Path, tmp_path: Path) -> None:
    key = folder / "keys" / "buyer"
    public = key.with_suffix(".pub").read_text()
    allowed = {}
    for name in ("seatrial-reasons", "seatrial-run"):
        file = tmp_path / name
        file.write_text(f'buyer@example.org namespaces="{name}" {public}')
        content = b"{}"
        sealed = Sealed(tmp_path / "manifest.json", content, sign(content, key))
        allowed[name] = sealed.check(file).signer
    assert allowed == {"seatrial-reasons": None, "seatrial-run": "buyer@example.org"}


def test_a_replay_cannot_be_waived(folder: Path) -> None:
    run = run_of(folder, WAIVER, WAIVER | {"criterion": "replay"})
    run.manifest["replay"] = "recordings"
    cases = tuple(replace(case, replay=True) for case in run.cases)
    rows = run.measurements.with_columns(replay=pl.lit(value=True))
    run = replace(run, cases=cases, measurements=rows)
    judgement = judge(run, criteria(LIMIT), signers=folder / "allowed_signers")
    assert judgement.replay
    assert judgement.verdict != "pass with waivers"


def test_a_pack_has_the_waivers(folder: Path, tmp_path: Path) -> None:
    run = run_of(folder, WAIVER)
    pack(run.path, tmp_path / "run.tar.xz")
    again = load_run(unpack(tmp_path / "run.tar.xz", tmp_path))
    signers = folder / "allowed_signers"
    first, second = (judge(r, criteria(LIMIT), signers=signers) for r in (run, again))
    assert first.digest == second.digest
    assert second.verdict == "pass with waivers"
