"""The protocol of an acceptance: what is in it, who signs it, who can verify it."""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from closed_runs import close_run
from judge_samples import CASE, sample
from protocols import (
    HOME,
    LIMITS,
    PEOPLE,
    ROLES,
    WAIVED,
    by_hand,
    content_of,
    copy_of,
    make_run,
    make_site,
    seatrial,
    sign,
    state,
    waive,
    work_at,
    write_protocol,
)
from shown_commands import shell_lines

from seatrial.criteria.criteria import Criteria
from seatrial.criteria.keys import Known
from seatrial.errors import SeatrialError
from seatrial.model.cases import NodeEvent
from seatrial.plain_files import sha256_plain
from seatrial.protocol.content import Line, without_repeats
from seatrial.runs.ledger import begin
from seatrial.runs.pack import unpack

PAGE = HOME / "docs" / "protocol.md"
SLOW_LINK = """
schema: 1
risks: {seller: 0.05, buyer: 0.05}
defaults: {kind: promised, document: contract 4711, clause: '5.1', model: lognormal}
criteria:
  - check: Halo
    limits: {exchange_time_16B: 10000000 us, exchange_time_8KiB: 10000000 us}
  - check: PairSweep
    limits: {bw_1MiB: 40 MB/s, latency_8B: 5000 us}
  - check: PairSweep
    model: every
    limits: {pairs_answered: 100 %}
  - check: PairSweep
    kind: sameness
    tolerance: 0.9
    metrics: [bw_1MiB]
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home, three keys, a run that misses a limit with a waiver, and its protocol."""
    folder: Path = tmp_path_factory.mktemp("protocol")
    with pytest.MonkeyPatch.context() as patch:
        home = work_at(make_site(folder), patch)
        run = make_run(home)
        waive(run, folder / "keys" / "joe")
        before = content_of(run)
        printed = write_protocol(folder)
        assert content_of(run) == before, "a protocol changes no run"
        assert printed == [
            "verdict: pass with waivers",
            "to be signed by: 1 vendor, 1 customer, 1 witness",
            f"protocol: {folder / 'protocol'}",
        ]
    return folder


@pytest.fixture
def protocol(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An unsigned protocol of its own."""
    work_at(site / "home", monkeypatch)
    return copy_of(site / "protocol", tmp_path)


# What is in it


def test_a_protocol_has_all_that_is_signed(site: Path, protocol: Path) -> None:
    (pack,) = (protocol / "runs").iterdir()
    names = ["criteria.yaml", "protocol.json", "protocol.md", "protocol.pdf"]
    forms = ("criteria.csv", "findings.csv", "junit.xml", "report.html", "report.pdf")
    names += [f"report/{name}" for name in (*forms, "summary.md")]
    names.append(f"runs/{pack.name}")
    lines = (protocol / "SHA256SUMS").read_text().splitlines()
    assert lines == [f"{sha256_plain(protocol / name)}  {name}" for name in names]
    record = json.loads((protocol / "protocol.json").read_text())
    assert record["verdict"] == "pass with waivers"
    assert record["signatures"] == {"vendor": 1, "customer": 1, "witness": 1}
    (run,) = (site / "home" / "results" / "lab").iterdir()
    (packed,) = record["runs"]
    assert packed["manifest"] == sha256_plain(run / "manifest.json")
    assert state(protocol) == ("INCOMPLETE", 3)


def test_the_packed_run_gives_the_judgement_of_the_protocol(protocol: Path) -> None:
    """A person judges it again, elsewhere, before signing."""
    (pack,) = (protocol / "runs").iterdir()
    criteria = ("--criteria", protocol / "criteria.yaml")
    judged = seatrial("judge", pack, *criteria, "--format", "json")
    assert judged.exit_code == 0, judged.output
    digest = json.loads((protocol / "protocol.json").read_text())["judgement"]
    assert json.loads(judged.stdout)["digest"] == digest


def test_the_text_goes_clause_by_clause(protocol: Path) -> None:
    text = (protocol / "protocol.md").read_text()
    headings = re.findall(r"^##+ (.*)", text, re.MULTILINE)
    assert headings == [
        "d, c",
        "Without a clause",
        "Deviations",
        "Waivers",
        "Absent and lost nodes",
        "Repeats and other runs",
        "Not shown",
        "Measured by",
        "Signed together",
        "Signatures",
        "Vendor",
        "Customer",
        "Witness",
    ]
    assert "**PASS WITH WAIVERS.**" in text
    assert "**PASS.**" not in text
    (line,) = [row for row in text.splitlines() if row.startswith("| fail, waived |")]
    cells = [cell.strip() for cell in line.split("|")[1:-1]]
    assert cells[1] == f"{WAIVED} (intelmpi)"
    assert cells[2] == "at least 60 MB/s"
    assert "50.00 MB/s at cn02 - cn03" in cells[3]
    assert "- fail, waived: " in text
    assert "cable is on order (clause 4.2, granted by J. Doe, procurement" in text
    assert "| Seatrial | 0.1.0 |" in text
    for line in (protocol / "SHA256SUMS").read_text().splitlines():
        digest, _, name = line.partition("  ")
        if name not in ("protocol.md", "protocol.pdf"):
            assert f"| `{digest}` | {name}" in text


def test_a_reason_that_successive_criteria_share_is_printed_once() -> None:
    lines = [
        Line(name, "", "at least 1 1/s", "", "", "", "skipped", reason, "")
        for name, reason in (("a", "no IOR"), ("b", "no IOR"), ("c", ""), ("d", "no"))
    ]
    shown = [*without_repeats(lines), *without_repeats(lines)]
    assert [line.reason for line in shown] == ["no IOR", "as above", "", "no"] * 2
    assert [line.required for line in shown] == ["at least 1 1/s"] * 8


def test_a_protocol_is_written_once(site: Path, protocol: Path) -> None:
    before = content_of(protocol)
    again = seatrial("protocol", "lab/latest", "--out", protocol)
    assert again.exit_code == 2
    assert "exists already; a protocol is written once" in again.stderr
    assert content_of(protocol) == before


@pytest.mark.parametrize("broken", ["pack", "protocol_pdf", "verify_protocol"])
def test_a_protocol_is_whole_or_not_there(
    protocol: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise SeatrialError("no space left")

    monkeypatch.setattr(f"seatrial.protocol.write.{broken}", fail)
    place = tmp_path / "new"
    result = seatrial("protocol", "lab/latest", "--out", place / "protocol")
    assert result.exit_code == 2
    assert "no space left" in result.stderr
    assert [*place.iterdir()] == []


def test_runs_that_are_judged_together_are_signed_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repeat of the run, a run of --with, and the ledger beside them."""
    home = work_at(make_site(tmp_path, ""), monkeypatch)
    names = ["20260101T000000Z-smoke", "20260102T000000Z-smoke"]
    names.append("20260103T000000Z-smoke")
    results = home / "results"
    for name in names:
        begin(results / "lab", name, campaign="smoke", criteria="", partial=False)
    down = NodeEvent("cn02", "down", "bad DIMM", "root", 1767225600.0)
    for number, name in enumerate(names):
        waited = (down,) if number == 0 else ()
        case = replace(CASE, raw="raw/pairs-1", waited_for=waited)
        again = names[0] if number == 1 else ""
        rows = [sample(CASE, 90.0 + number, pair="cn01 cn02")]
        close_run(results, name, rows=rows, cases=[case], repeat_of=again)
    criteria = home / "reference-data" / "lab" / "criteria.yaml"
    out = tmp_path / "protocol"
    made = seatrial("protocol", names[0], "--with", names[2], "--out", out)
    assert made.exit_code == 0, made.output
    record = json.loads((out / "protocol.json").read_text())
    assert sorted(one["run"] for one in record["runs"]) == names
    assert {file.name for file in (out / "runs").iterdir()} == {
        f"{name}.seatrial.tar.xz" for name in names
    }
    assert (out / "ledger.jsonl").read_bytes() == (
        results / "lab" / "ledger.jsonl"
    ).read_bytes()
    assert (out / "criteria.yaml").read_bytes() == criteria.read_bytes()
    assert record["signatures"] == {"vendor": 1, "customer": 1, "witness": 0}
    text = (out / "protocol.md").read_text()
    for name in names:
        assert f"| run | {name} |" in text
    for heading in ("### Vendor", "### Customer", "### Witness, if present"):
        assert heading in text
    repeats = text.partition("## Repeats and other runs\n")[2].partition("\n## ")[0]
    assert f"judged together with run {names[2]}" in repeats
    assert names[1] in repeats
    assert state(out) == ("INCOMPLETE", 3)


def test_a_packed_run_gives_a_protocol_with_the_ledger_that_it_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make_site(tmp_path)
    monkeypatch.setenv("SEATRIAL_HOME", str(home))
    run = make_run(home, kept={"ledger.jsonl": ""})
    pack = tmp_path / "offer.seatrial.tar.xz"
    assert seatrial("pack", run, pack).exit_code == 0
    shutil.rmtree(run)
    out = tmp_path / "protocol"
    assert seatrial("protocol", pack, "--out", out).exit_code == 0
    assert (out / "ledger.jsonl").read_bytes() == b""
    (packed,) = (out / "runs").iterdir()
    assert packed.read_bytes() == pack.read_bytes()


# Signatures


def test_three_parties_sign_and_anybody_verifies(site: Path, protocol: Path) -> None:
    for number, role in enumerate(PEOPLE, 1):
        before = content_of(protocol)
        signed = sign(site, protocol, role)
        assert signed.exit_code == 0, signed.output
        first = signed.stdout.splitlines()[0]
        assert first == f"signed as {role} by {PEOPLE[role]}@{role}.example"
        after = content_of(protocol)
        assert {name: after[name] for name in before} == before, "adds, never changes"
        assert len(after) == len(before) + 1
        expected = ("COMPLETE", 0) if number == 3 else ("INCOMPLETE", 3)
        assert state(protocol) == expected
    lines = seatrial("verify", protocol).stdout.splitlines()
    assert lines[1:5] == [
        "verdict: pass with waivers",
        "vendor: 1 of 1: jane@vendor.example",
        "customer: 1 of 1: joe@customer.example",
        "witness: 1 of 1: ann@witness.example",
    ]
    rows = [
        *csv.DictReader(
            io.StringIO(seatrial("verify", protocol, "--format", "csv").stdout)
        )
    ]
    assert [(row["state"], row["role"], row["signed"]) for row in rows] == [
        ("complete", role, "1") for role in PEOPLE
    ]
    found = json.loads(seatrial("verify", protocol, "--format", "json").stdout)
    assert found["sha256"] == sha256_plain(protocol / "SHA256SUMS")
    assert [one["role"] for one in found["signatures"]] == sorted(PEOPLE)


def test_a_person_signs_once_and_in_one_role(site: Path, protocol: Path) -> None:
    assert sign(site, protocol, "vendor").exit_code == 0
    again = sign(site, protocol, "vendor")
    assert again.exit_code == 2
    assert "jane@vendor.example signed it already, as vendor" in again.stderr
    signers = protocol.parent / "signers"
    public = (site / "keys" / "jane.pub").read_text()
    signers.write_text(f'jane@vendor.example namespaces="seatrial-protocol-*" {public}')
    other = sign(site, protocol, "customer", "jane", signers=signers)
    assert other.exit_code == 2
    assert "signed it already, as vendor; expected another person" in other.stderr
    assert len([*(protocol / "signatures").iterdir()]) == 1


def test_two_keys_of_a_person_count_once(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roles = {"vendor": 2}
    two = replace_record(site, tmp_path, roles, monkeypatch)
    keys = (site / "keys" / "jane.pub", site / "keys" / "joe.pub")
    signers = tmp_path / "signers"
    granted = 'namespaces="seatrial-protocol-vendor"'
    lines = [f"jane@vendor.example {granted} {key.read_text()}" for key in keys]
    signers.write_text("".join(lines))
    assert sign(site, two, "vendor", "jane", signers=signers).exit_code == 0
    refused = sign(site, two, "vendor", "joe", signers=signers)
    assert "signed it already" in refused.stderr
    by_hand(site, two, "vendor", "joe")
    assert state(two, "--signers", signers) == ("INCOMPLETE", 3)
    assert (
        "vendor: 1 of 2: jane" in seatrial("verify", two, "--signers", signers).stdout
    )
    lines[1] = lines[1].replace("jane@", "john@")
    signers.write_text("".join(lines))
    assert state(two, "--signers", signers) == ("COMPLETE", 0)


def replace_record(
    site: Path,
    folder: Path,
    roles: Mapping[str, int],
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """Write the protocol again, by criteria with other roles."""
    monkeypatch.setenv("SEATRIAL_HOME", str(site / "home"))
    criteria = folder / "criteria.yaml"
    words = ", ".join(f"{role}: {count}" for role, count in roles.items())
    criteria.write_text(f"{LIMITS}signatures: {{{words}}}\n")
    out = folder / "again"
    made = seatrial("protocol", "lab/latest", "--criteria", criteria, "--out", out)
    assert made.exit_code == 0, made.output
    return out


@pytest.mark.parametrize(
    ("role", "name", "told"),
    [
        ("customer", "jane", "names no such key for the role customer"),
        ("owner", "jane", "--role owner: no role of this protocol; expected one of"),
        ("vendor", "nobody", "nobody: cannot sign with this key"),
    ],
)
def test_a_key_that_must_not_sign_leaves_nothing(
    site: Path, protocol: Path, role: str, name: str, told: str
) -> None:
    refused = sign(site, protocol, role, name)
    assert refused.exit_code == 2
    assert told in refused.stderr
    assert [*(protocol / "signatures").iterdir()] == []


def test_a_key_without_namespaces_signs_no_protocol(site: Path, protocol: Path) -> None:
    signers = protocol.parent / "signers"
    signers.write_text(f"jane@vendor.example {(site / 'keys/jane.pub').read_text()}")
    refused = sign(site, protocol, "vendor", signers=signers)
    assert refused.exit_code == 2
    assert "without namespaces; expected namespaces=" in refused.stderr
    line = '`jane@example.org namespaces="seatrial-protocol-vendor" ssh-ed25519 AAAA'
    assert line in refused.stderr
    by_hand(site, protocol, "vendor", "jane")
    shown = seatrial("verify", protocol, "--signers", signers)
    assert shown.exit_code == 3
    assert "vendor: 0 of 1: none" in shown.stdout
    assert "does not count: signatures/vendor-jane.sig (ED25519" in shown.stdout


def test_a_signature_without_seatrial_counts(site: Path, protocol: Path) -> None:
    for role, name in PEOPLE.items():
        by_hand(site, protocol, role, name)
    assert state(protocol) == ("COMPLETE", 0)


def test_a_key_that_expired_counts_on_its_day(site: Path, protocol: Path) -> None:
    for role in PEOPLE:
        assert sign(site, protocol, role).exit_code == 0
    known = site / "home" / "reference-data" / "lab" / "allowed_signers"
    signers = protocol.parent / "signers"
    text = known.read_text()
    limited = text.replace("example namesp", 'example valid-before="20260101",namesp')
    signers.write_text(limited)
    assert state(protocol, "--signers", signers) == ("INCOMPLETE", 3)
    then = ("--signers", signers, "--at", "2025-12-31")
    assert state(protocol, *then) == ("COMPLETE", 0)
    shutil.copy(site / "keys" / "ann.pub", signers.with_name("revoked_keys"))
    assert state(protocol, *then) == ("BROKEN", 1)


def test_without_signers_nobody_is_known(
    site: Path, protocol: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sign(site, protocol, "vendor").exit_code == 0
    monkeypatch.setattr("seatrial.commands._protocols.signers_of", lambda _: None)
    shown = seatrial("verify", protocol)
    assert shown.exit_code == 3
    assert "no known signers; expected allowed_signers, or --signers" in shown.stdout
    monkeypatch.setattr("seatrial.commands.sign.signers_of", lambda _: None)
    refused = sign(site, protocol, "customer")
    assert refused.exit_code == 2
    assert "no known signers" in refused.stderr


# Roles


@pytest.mark.parametrize(
    ("roles", "told"),
    [
        ("signatures: {}", "criteria.yaml:9: signatures: expected roles and numbers"),
        ("signatures: {vendor: 0}", "expected a role that must sign"),
        ("signatures: {vendor: many}", "a number of persons, 0 to 99"),
        ("signatures: {'../x': 1}", "expected a role such as vendor or witness"),
        ("signatures: {vendor: -1}", "a number of persons, 0 to 99"),
    ],
)
def test_bad_roles_are_an_error_with_their_line(
    tmp_path: Path, roles: str, told: str
) -> None:
    file = tmp_path / "criteria.yaml"
    file.write_text(f"{LIMITS}{roles}\n")
    with pytest.raises(SeatrialError, match=re.escape(told)):
        Criteria.load(file, Known())


def test_roles_have_a_usual_number() -> None:
    criteria = Criteria.parse(LIMITS.encode(), Path("criteria.yaml"), Known())
    assert criteria.signatures == {"vendor": 1, "customer": 1, "witness": 0}


# Without Seatrial


def test_the_commands_of_the_page_work_as_they_stand(
    site: Path, tmp_path: Path
) -> None:
    """All of docs/protocol.md, in its order, by a shell; as root without network."""
    lines = [line for _, line in shell_lines(PAGE) if is_command(line)]
    programs = [line.split()[0] for line in lines]
    assert programs.count("ssh-keygen") == 4
    assert {"seatrial", "sha256sum", "cd"} < set(programs)
    (tmp_path / ".ssh").mkdir()
    for name in PEOPLE.values():
        shutil.copy(site / "keys" / name, tmp_path / ".ssh" / name)
    home = site / "home"
    shutil.copy(home / "reference-data/lab/allowed_signers", tmp_path)
    script = "\n".join(["set -e", *lines]).replace("SYSTEM/", "lab/")
    offline = ["unshare", "-n"] if os.geteuid() == 0 else []
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [*offline, "bash", "-c", script],
        cwd=tmp_path,
        env={"PATH": path, "HOME": str(tmp_path), "SEATRIAL_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "COMPLETE  lab, protocol of run" in done.stdout
    for name, role in zip(PEOPLE.values(), PEOPLE, strict=True):
        assert f'Good "seatrial-protocol-{role}" signature for {name}@' in done.stdout


def is_command(line: str) -> bool:
    return line.split()[0] in ("seatrial", "sha256sum", "ssh-keygen", "cd")


@pytest.mark.parametrize("file", ["criteria.yaml", "report/findings.csv", "runs"])
def test_a_changed_byte_breaks_the_check_without_seatrial_too(
    site: Path, protocol: Path, file: str
) -> None:
    for role in PEOPLE:
        assert sign(site, protocol, role).exit_code == 0
    changed = protocol / file
    if changed.is_dir():
        (changed,) = changed.iterdir()
    content = bytearray(changed.read_bytes())
    content[len(content) // 2] ^= 1
    changed.write_bytes(content)
    check = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
    done = subprocess.run(check, cwd=protocol, capture_output=True, check=False)
    assert done.returncode == 1
    assert state(protocol) == ("BROKEN", 1)
    refused = sign(site, protocol, "vendor")
    assert refused.exit_code == 1
    assert "only a whole protocol is signed" in refused.stderr


@pytest.mark.slow
def test_a_recorded_run_of_the_lab_is_waived_signed_and_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real output of the lab, with a slow link that two waivers accept."""
    work_at(make_site(tmp_path), monkeypatch)
    run = unpack(HOME / "reports" / "demo" / "slow-link.seatrial.tar.xz", tmp_path)
    failed = ("PairSweep bw_1MiB", "PairSweep bw_1MiB sameness")
    waive(run, tmp_path / "keys" / "joe", *failed)
    criteria = tmp_path / "criteria.yaml"
    criteria.write_text(SLOW_LINK + ROLES)
    out = tmp_path / "protocol"
    made = seatrial("protocol", run, "--criteria", criteria, "--out", out)
    assert made.exit_code == 0, made.output
    assert "verdict: pass with waivers" in made.stdout
    for role in PEOPLE:
        assert sign(tmp_path, out, role).exit_code == 0
    assert state(out) == ("COMPLETE", 0)
    text = (out / "protocol.md").read_text()
    assert text.count("| fail, waived |") == len(failed)
    assert "at cn03" in text
