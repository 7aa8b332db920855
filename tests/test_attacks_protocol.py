"""Attacks on a signed protocol: files, list, signatures, keys, and the moment of it."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from closed_runs import close_run
from protocols import (
    LIMITS,
    PEOPLE,
    by_hand,
    content_of,
    copy_of,
    make_run,
    make_site,
    seatrial,
    sign,
    state,
    work_at,
    write_protocol,
)

from seatrial.plain_files import sha256_plain
from seatrial.protocol.signing import sign_protocol
from seatrial.runs.ssh_signature import sign as real_sign

Attack = Callable[[Path], object]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home, three keys, and a protocol that all three signed: it is complete."""
    folder: Path = tmp_path_factory.mktemp("attacked")
    with pytest.MonkeyPatch.context() as patch:
        home = work_at(make_site(folder), patch)
        make_run(home, slow=False)
        write_protocol(folder)
        for role in PEOPLE:
            assert sign(folder, folder / "protocol", role).exit_code == 0
        assert state(folder / "protocol") == ("COMPLETE", 0)
    return folder


@pytest.fixture
def protocol(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work_at(site / "home", monkeypatch)
    return copy_of(site / "protocol", tmp_path)


def listed_anew(protocol: Path) -> None:
    """Write the list for the files of today, as an attacker does."""
    file = protocol / "SHA256SUMS"
    names = [line.split("  ")[1] for line in file.read_text().splitlines()]
    lines = [f"{sha256_plain(protocol / name)}  {name}\n" for name in names]
    file.write_text("".join(lines))


def a_signature(protocol: Path, role: str = "vendor") -> Path:
    (file,) = (protocol / "signatures").glob(f"{role}-*.sig")
    return file


def swapped_files(protocol: Path) -> None:
    first, second = protocol / "report/criteria.csv", protocol / "report/findings.csv"
    kept = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(kept)


def file_is_a_link(protocol: Path) -> None:
    file = protocol / "criteria.yaml"
    file.rename(protocol.parent / "criteria.yaml")
    file.symlink_to(protocol.parent / "criteria.yaml")


def folder_is_a_link(protocol: Path) -> None:
    (protocol / "report").rename(protocol.parent / "report")
    (protocol / "report").symlink_to(protocol.parent / "report")


def signatures_are_a_link(protocol: Path) -> None:
    (protocol / "signatures").rename(protocol.parent / "signatures")
    (protocol / "signatures").symlink_to(protocol.parent / "signatures")


def signature_is_a_pipe(protocol: Path) -> None:
    a_signature(protocol).unlink()
    os.mkfifo(protocol / "signatures" / "vendor-1.sig")


def added_file(protocol: Path) -> None:
    (protocol / "report" / "new.txt").write_text("")


def added_name_of_two_lines(protocol: Path) -> None:
    (protocol / "a\nverdict: pass\x1b[2J").write_text("")


def added_signers(protocol: Path) -> None:
    (protocol / "allowed_signers").write_text("* ssh-ed25519 AAAA")


def removed_file(protocol: Path) -> None:
    (protocol / "report" / "junit.xml").unlink()


def other_list(protocol: Path) -> None:
    (protocol / "report" / "summary.md").write_text("# PASS")
    listed_anew(protocol)


def easier_criteria(protocol: Path) -> None:
    (protocol / "criteria.yaml").write_text(LIMITS.replace("60 MB/s", "1 MB/s"))
    listed_anew(protocol)


def fewer_roles(protocol: Path) -> None:
    file = protocol / "protocol.json"
    record = json.loads(file.read_text())
    file.write_text(json.dumps({**record, "signatures": {"vendor": 1}}))
    for role in ("customer", "witness"):
        a_signature(protocol, role).unlink()
    listed_anew(protocol)


def other_run(protocol: Path) -> None:
    (pack,) = (protocol / "runs").iterdir()
    run = close_run(protocol.parent / "others", description="of somebody else")
    pack.unlink()
    assert seatrial("pack", run, pack).exit_code == 0
    listed_anew(protocol)


def signature_of_another_role(protocol: Path) -> None:
    a_signature(protocol, "customer").unlink()
    shutil.copy(a_signature(protocol), protocol / "signatures" / "customer-1.sig")


def role_that_is_none(protocol: Path) -> None:
    shutil.copy(a_signature(protocol), protocol / "signatures" / "owner-1.sig")


def text_for_a_signature(protocol: Path) -> None:
    a_signature(protocol).write_text("signed, jane")


def huge_signature(protocol: Path) -> None:
    os.truncate(a_signature(protocol), 1 << 20)


def name_that_is_no_signature(protocol: Path) -> None:
    a_signature(protocol).rename(protocol / "signatures" / "vendor.sig")


@pytest.mark.parametrize(
    ("attack", "told"),
    [
        (swapped_files, "report/criteria.csv: changed: SHA-256 is "),
        (file_is_a_link, "criteria.yaml: not a plain file"),
        (folder_is_a_link, "report/criteria.csv: missing"),
        (signatures_are_a_link, "signatures: not in SHA256SUMS: it was added later"),
        (signature_is_a_pipe, "signatures/vendor-1.sig: not a plain file"),
        (added_file, "report/new.txt: not in SHA256SUMS: it was added later"),
        (added_name_of_two_lines, "a␊verdict: pass␛[2J: not in SHA256SUMS"),
        (added_signers, "allowed_signers: not in SHA256SUMS: it was added later"),
        (removed_file, "report/junit.xml: missing"),
        (other_list, "not what was signed: signatures/customer-"),
        (easier_criteria, "criteria.yaml: not the criteria that protocol.json names"),
        (fewer_roles, "not what was signed: signatures/vendor-"),
        (other_run, "not the run 20260101T000000Z-smoke that protocol.json names"),
        (signature_of_another_role, "not what was signed: signatures/customer-1.sig"),
        (role_that_is_none, "owner is no role; expected vendor, customer, witness"),
        (text_for_a_signature, "not what was signed: signatures/vendor-"),
        (huge_signature, "size of the file: more than 65,536 bytes"),
        (name_that_is_no_signature, "signatures/vendor.sig: not in SHA256SUMS"),
    ],
)
def test_what_was_changed_breaks_the_protocol(
    site: Path, protocol: Path, attack: Attack, told: str
) -> None:
    attack(protocol)
    shown = seatrial("verify", protocol)
    assert shown.exit_code == 1, shown.output
    state_line, _, first, *_ = shown.stdout.splitlines()
    assert state_line.startswith("BROKEN  lab, protocol of run ")
    assert first.startswith("first: ")
    assert told in first
    found = json.loads(seatrial("verify", protocol, "--format", "json").stdout)
    assert found["state"] == "broken"
    before = content_of(protocol)
    refused = sign(site, protocol, "vendor")
    assert refused.exit_code == 1, "nobody signs it"
    assert "only a whole protocol is signed" in refused.stderr
    assert content_of(protocol) == before


def line(name: str, digest: str = "0" * 64) -> Callable[[str], str]:
    return lambda text: f"{text}{digest}  {name}\n"


@pytest.mark.parametrize(
    "change",
    [
        line("../../etc/passwd"),
        line("/etc/passwd"),
        line("report/../../x"),
        line("./x"),
        line("x y"),
        line("-x"),
        line("\\x"),
        line("x", "0" * 63),
        line("x", "A" * 64),
        line("*x"),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.rstrip("\n"),
        lambda text: text + text,
        lambda text: "".join(reversed(text.splitlines(keepends=True))),
        lambda text: f"\n{text}",
        lambda text: text.replace("  ", " *"),
        lambda text: re.sub(".* protocol.json\n", "", text),
        lambda text: re.sub(".* protocol.pdf\n", "", text),
        lambda text: "",
        lambda text: "\0\xff" + text,
    ],
)
def test_a_list_of_another_form_is_one_clear_error(
    protocol: Path, change: Callable[[str], str]
) -> None:
    file = protocol / "SHA256SUMS"
    file.write_bytes(change(file.read_text()).encode("latin-1"))
    refused = seatrial("verify", protocol)
    assert refused.exit_code == 1, refused.output
    assert len(refused.stderr.splitlines()) == 1
    assert "SHA256SUMS" in refused.stderr
    assert "the list is not as Seatrial wrote it" in refused.stderr


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("SHA256SUMS", "size of the file: more than 1,048,576 bytes"),
        ("criteria.yaml", "size of a file of a protocol: more than 17,179,869,184"),
        ("protocol.json", "size of the file: more than 1,048,576 bytes"),
    ],
)
def test_endless_files_are_not_read(protocol: Path, name: str, told: str) -> None:
    os.truncate(protocol / name, 1 << 40)
    refused = seatrial("verify", protocol)
    assert refused.exit_code == 2
    assert told in refused.stderr


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_a_list_that_is_no_plain_file_is_not_read(protocol: Path, kind: str) -> None:
    file = protocol / "SHA256SUMS"
    file.rename(protocol.parent / "kept")
    if kind == "link":
        file.symlink_to(protocol.parent / "kept")
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        file.mkdir()
    refused = seatrial("verify", protocol)
    assert refused.exit_code == 2
    assert "SHA256SUMS: " in refused.stderr


def test_a_protocol_without_its_list_is_broken(site: Path, protocol: Path) -> None:
    (protocol / "SHA256SUMS").unlink()
    for refused in (seatrial("verify", protocol), sign(site, protocol, "vendor")):
        assert refused.exit_code == 1
        assert "SHA256SUMS: missing, and it states what was signed" in refused.stderr
        assert len(refused.stderr.splitlines()) == 1


def test_a_folder_that_cannot_be_read_is_not_passed_over(
    protocol: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may read everything; an attacker hides files from other users."""
    real = os.scandir

    def refused(folder: str | Path) -> object:
        if Path(folder).name == "report":
            raise PermissionError(13, "Permission denied", str(folder))
        return real(folder)

    monkeypatch.setattr("os.scandir", refused)
    shown = seatrial("verify", protocol)
    assert shown.exit_code == 2
    assert "report: cannot be read: Permission denied" in shown.stderr


def test_one_person_in_two_roles_breaks_it(site: Path, protocol: Path) -> None:
    a_signature(protocol, "customer").unlink()
    by_hand(site, protocol, "customer", "jane")
    signers = protocol.parent / "signers"
    text = (site / "home/reference-data/lab/allowed_signers").read_text()
    signers.write_text(text.replace('"seatrial-protocol-vendor"', '"seatrial-*"'))
    shown = seatrial("verify", protocol, "--signers", signers)
    assert shown.exit_code == 1
    assert "jane@vendor.example signed as" in shown.stdout
    assert "expected one role of each person and key" in shown.stdout


def test_one_key_under_two_names_counts_once(site: Path, protocol: Path) -> None:
    a_signature(protocol, "customer").unlink()
    by_hand(site, protocol, "customer", "jane")
    signers = protocol.parent / "signers"
    text = (site / "home/reference-data/lab/allowed_signers").read_text()
    public = (site / "keys" / "jane.pub").read_text()
    signers.write_text(
        f'{text}joan@customer.example namespaces="seatrial-protocol-customer" {public}'
    )
    shown = seatrial("verify", protocol, "--signers", signers)
    assert shown.exit_code != 0
    assert "customer: 0 of 1: none" in shown.stdout


def test_replaced_signers_make_nobody_known(site: Path, protocol: Path) -> None:
    """An attacker's file of signers does not make ours right, nor his own complete."""
    signers = protocol.parent / "signers"
    text = (site / "home/reference-data/lab/allowed_signers").read_text()
    key = (site / "keys" / "ann.pub").read_text().strip()
    signers.write_text(re.sub(r"ssh-ed25519 \S+", key, text))
    assert state(protocol, "--signers", signers) == ("INCOMPLETE", 3)
    signers.write_text("rubbish\n")
    refused = seatrial("verify", protocol, "--signers", signers)
    assert refused.exit_code == 2
    assert "not a file of signers" in refused.stderr


def test_a_signature_of_another_protocol_is_refused(
    site: Path, protocol: Path, tmp_path: Path
) -> None:
    other = copy_of(site / "protocol", tmp_path / "other")
    file = a_signature(protocol)
    by_hand(site, other, "vendor", "jane", other / "criteria.yaml")
    shutil.copy(other / "signatures" / "vendor-jane.sig", file)
    assert state(protocol) == ("BROKEN", 1)


def test_a_seal_is_no_signature_of_a_role(site: Path, protocol: Path) -> None:
    command = ["ssh-keygen", "-Y", "sign", "-n", "seatrial-run", "-f"]
    done = subprocess.run(
        [*command, str(site / "keys" / "jane")],
        input=(protocol / "SHA256SUMS").read_bytes(),
        capture_output=True,
        check=True,
    )
    a_signature(protocol).write_bytes(done.stdout)
    assert state(protocol) == ("BROKEN", 1)


@pytest.fixture
def unsigned(protocol: Path) -> Path:
    for file in (protocol / "signatures").iterdir():
        file.unlink()
    return protocol


def test_a_change_while_it_is_signed_leaves_no_signature(
    site: Path, unsigned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(content: bytes, key: Path, namespace: str) -> bytes:
        (unsigned / "report" / "summary.md").write_text("# PASS")
        return real_sign(content, key, namespace)

    monkeypatch.setattr("seatrial.protocol.signing.sign", slow)
    result = sign(site, unsigned, "vendor")
    assert result.exit_code == 1
    assert "changed while it was signed, and the signature is removed" in result.stderr
    assert [*(unsigned / "signatures").iterdir()] == []


def test_another_list_while_it_is_signed_leaves_no_signature(
    site: Path, unsigned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(content: bytes, key: Path, namespace: str) -> bytes:
        (unsigned / "report" / "summary.md").write_text("# PASS")
        listed_anew(unsigned)
        return real_sign(content, key, namespace)

    monkeypatch.setattr("seatrial.protocol.signing.sign", slow)
    assert sign(site, unsigned, "vendor").exit_code == 1
    assert [*(unsigned / "signatures").iterdir()] == []


class KilledError(BaseException):
    """An end of the process at this moment."""


def test_a_kill_leaves_a_signature_or_none(
    site: Path, unsigned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left of an unfinished signature is none, and does not disturb."""
    before = content_of(unsigned)

    def killed(_: Path, target: Path) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", killed)
        patch.setattr(Path, "unlink", lambda *_, **__: None)
        key, known = site / "keys" / "jane", "home/reference-data/lab/allowed_signers"
        with pytest.raises(KilledError):
            sign_protocol(unsigned, "vendor", key, site / known)
    (left,) = content_of(unsigned).keys() - before.keys()
    assert left.startswith("signatures/.vendor-")
    assert state(unsigned) == ("INCOMPLETE", 3)
    assert sign(site, unsigned, "vendor").exit_code == 0
    assert len([*(unsigned / "signatures").iterdir()]) == 1


def test_a_folder_that_is_no_protocol(site: Path, protocol: Path) -> None:
    refused = sign(site, protocol / "report", "vendor")
    assert refused.exit_code == 2
    assert "no protocol: it has no SHA256SUMS" in refused.stderr


@pytest.mark.parametrize(
    ("record", "told"),
    [
        ({"schema": 2}, "made by a newer Seatrial: schema 2, this one knows 1"),
        ({"signatures": ["vendor"]}, "protocol.json: damaged: "),
        ({"runs": [{"run": "r"}]}, "protocol.json: damaged: "),
        ({"system": 1}, "protocol.json: damaged: "),
    ],
)
def test_a_record_of_another_form_is_one_clear_error(
    protocol: Path, record: dict[str, object], told: str
) -> None:
    file = protocol / "protocol.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **record}))
    listed_anew(protocol)
    refused = seatrial("verify", protocol)
    assert refused.exit_code == 2
    assert told in refused.stderr


@pytest.mark.parametrize("file", ["../../x.tar.xz", "/etc/passwd", "criteria.yaml"])
def test_a_run_elsewhere_is_not_read(protocol: Path, file: str) -> None:
    path = protocol / "protocol.json"
    record = json.loads(path.read_text())
    record["runs"][0]["file"] = file
    path.write_text(json.dumps(record))
    listed_anew(protocol)
    assert seatrial("verify", protocol).exit_code in (1, 2)
