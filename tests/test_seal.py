"""Verify and seal: what changed in a closed run, and who vouches for it."""

import csv
import io
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from closed_runs import CRITERIA, close_run, rewrite_manifest, ssh_key
from fake_home import fake_program, write
from judge_samples import CASE, sample

from seatrial.cli import main
from seatrial.errors import SeatrialError
from seatrial.plain_files import sha256_plain
from seatrial.runs.closed_run import load_run
from seatrial.runs.seal import require_signer
from seatrial.runs.ssh_signature import Signature


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The keys of alice and mallory; `signers` names alice alone."""
    folder = tmp_path_factory.mktemp("keys")
    public = ssh_key(folder, "alice").with_suffix(".pub").read_text()
    ssh_key(folder, "mallory")
    (folder / "signers").write_text(f"# who may seal\nacceptance@example.org {public}")
    return folder


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    write(home / "reference-data" / "lab" / "criteria.yaml", CRITERIA)
    (home / "reframe-checks").mkdir()
    monkeypatch.setenv("SEATRIAL_HOME", str(home))
    monkeypatch.delenv("SEATRIAL_RESULTS", raising=False)
    cases = [
        replace(CASE, session=f"pairs-{repeat}", repeat=repeat, raw="raw/pairs-1")
        for repeat in (1, 2, 3)
    ]
    rows = [
        sample(case, 80.0 + case.repeat, pair=pair)
        for case in cases
        for pair in ("cn01 cn02", "cn02 cn03", "cn03 cn04")
    ]
    return close_run(home / "results", cases=cases, rows=rows)


def seatrial(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def require_sealed(run: Path, signers: Path) -> Signature:
    return require_signer(run, load_run(run).sealed, signers)


def sealed(run: Path, keys: Path, who: str = "alice") -> Path:
    result = seatrial("seal", run, "--key", keys / who)
    assert result.exit_code == 0, result.output
    return run


def test_whole_run(run: Path) -> None:
    result = seatrial("verify", "lab/latest")
    assert result.exit_code == 0, result.output
    size = sum(
        file.stat().st_size
        for file in run.rglob("*")
        if file.is_file() and file.name != "manifest.json"
    )
    assert result.stdout.splitlines() == [
        f"WHOLE  lab, run {run.name}: 3 files, {size / 1e6:.1f} MB",
        f"manifest SHA-256: {sha256_plain(run / 'manifest.json')}",
        "seal: none",
        f"run: {run}",
    ]


def spoil_case(run: Path) -> None:
    (run / "cases.json").write_text("[]")


def remove_raw(run: Path) -> None:
    (run / "raw" / "pairs-1" / "report.json").unlink()


def add_file(run: Path) -> None:
    (run / "raw" / "new.txt").write_text("")


def add_link(run: Path) -> None:
    (run / "raw" / "link").symlink_to("/tmp")


def replace_by_link(run: Path) -> None:
    file = run / "cases.json"
    file.rename(run.parent / "cases.json")
    file.symlink_to(run.parent / "cases.json")


def replace_by_pipe(run: Path) -> None:
    (run / "cases.json").unlink()
    os.mkfifo(run / "cases.json")


@pytest.mark.parametrize(
    ("damage", "file", "problem"),
    [
        (spoil_case, "cases.json", "changed: SHA-256 is "),
        (remove_raw, "raw/pairs-1/report.json", "missing"),
        (add_file, "raw/new.txt", "not in the manifest: it was added later"),
        (add_link, "raw/link", "not in the manifest: it was added later"),
        (replace_by_link, "cases.json", "not a plain file"),
        (replace_by_pipe, "cases.json", "not a plain file"),
    ],
)
def test_what_differs_is_named(
    run: Path, keys: Path, damage: object, file: str, problem: str
) -> None:
    assert callable(damage)
    damage(run)
    result = seatrial("verify", run)
    assert result.exit_code == 1
    first, second = result.stdout.splitlines()[:2]
    assert first.startswith("CHANGED  lab, run ")
    assert second.startswith(f"first: {file}: {problem}")
    refused = seatrial("seal", run, "--key", keys / "alice")
    assert refused.exit_code == 1
    assert "only a whole run is sealed" in refused.stderr
    assert not (run / "manifest.json.sig").exists()


def test_all_that_differs_is_in_json_and_the_first_in_csv(run: Path) -> None:
    spoil_case(run)
    add_file(run)
    found = json.loads(seatrial("verify", run, "--format", "json").stdout)
    assert [(each["file"], each["problem"][:7]) for each in found["differences"]] == [
        ("cases.json", "changed"),
        ("raw/new.txt", "not in "),
    ]
    assert found["differences"][0]["found"] == sha256_plain(run / "cases.json")
    assert (found["whole"], found["seal"], found["files"]) == (False, "none", 3)
    text = seatrial("verify", run, "--format", "csv").stdout
    (row,) = csv.DictReader(io.StringIO(text))
    assert (row["whole"], row["file"]) == ("False", "cases.json")
    assert "and 1 more" in seatrial("verify", run).stdout


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "raw/../../x"])
def test_manifest_that_leads_elsewhere_is_refused(run: Path, name: str) -> None:
    rewrite_manifest(run, checksums={name: "0" * 64})
    result = seatrial("verify", run)
    assert result.exit_code == 2
    assert f"manifest.json: '{name}' is not in the run" in result.stderr


def test_file_that_cannot_be_read(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def refused(file: str | Path, *more: Any, **options: Any) -> int:
        if Path(file).name == "cases.json":  # root may read everything
            raise PermissionError(13, "Permission denied", str(file))
        return real(file, *more, **options)

    monkeypatch.setattr("os.open", refused)
    result = seatrial("verify", run)
    assert result.exit_code == 2
    assert "cases.json: cannot be read: Permission denied" in result.stderr


def test_sealed_run_names_its_signer(run: Path, keys: Path) -> None:
    sealed(run, keys)
    result = seatrial("verify", run, "--signers", keys / "signers")
    assert result.exit_code == 0, result.output
    line = result.stdout.splitlines()[2]
    assert line.startswith("seal: acceptance@example.org (ED25519 SHA256:")
    assert line.endswith(f"by {keys / 'signers'}")
    assert require_sealed(run, keys / "signers").signer == "acceptance@example.org"
    assert load_run(run).manifest["run"] == run.name


@pytest.mark.parametrize("folder", ["", "lab"])
def test_signers_beside_the_references_are_the_default(
    run: Path, keys: Path, folder: str
) -> None:
    home = run.parents[2]
    shutil.copy(keys / "signers", home / "reference-data" / folder / "allowed_signers")
    sealed(run, keys)
    assert seatrial("verify", run).exit_code == 0
    assert seatrial("judge", run).exit_code == 0


@pytest.mark.parametrize("who", ["alice", "mallory"])
def test_unknown_signer_is_neither_right_nor_wrong(
    run: Path, keys: Path, tmp_path: Path, who: str
) -> None:
    sealed(run, keys, who)
    signers = keys / "signers" if who == "mallory" else tmp_path / "none"
    signers.touch()
    for options in ((), ("--signers", signers)):
        result = seatrial("verify", run, *options, "--format", "json")
        assert result.exit_code == 3, result.output
        found = json.loads(result.stdout)
        assert (found["whole"], found["seal"], found["signer"]) == (
            *(True, "unknown"),
            None,
        )
        assert found["fingerprint"].startswith("SHA256:")
    shown = seatrial("verify", run, "--signers", signers).stdout
    assert "unknown signer: ED25519 SHA256:" in shown
    assert "expected a line in allowed_signers that lets this key sign runs" in shown
    with pytest.raises(SeatrialError, match=r"sealed with a key that .* does not name"):
        require_sealed(run, signers)


def edit_manifest(run: Path) -> None:
    rewrite_manifest(run, campaign="another")


def cover_up(run: Path) -> None:
    spoil_case(run)
    rewrite_manifest(run)


def spoil_signature(run: Path) -> None:
    (run / "manifest.json.sig").write_text("nothing")


def sign_for_git(run: Path) -> None:
    other = ssh_key(run.parents[2], "other")
    command = ["ssh-keygen", "-Y", "sign", "-f", str(other), "-n", "git"]
    with (run / "manifest.json").open("rb") as content:
        done = subprocess.run(command, stdin=content, capture_output=True, check=True)
    (run / "manifest.json.sig").write_bytes(done.stdout)


@pytest.mark.parametrize(
    "damage", [edit_manifest, cover_up, spoil_signature, sign_for_git]
)
def test_broken_seal(run: Path, keys: Path, damage: object) -> None:
    sealed(run, keys)
    assert callable(damage)
    damage(run)
    result = seatrial("verify", run, "--signers", keys / "signers")
    assert result.exit_code == 1
    first, second, *_ = result.stdout.splitlines()
    assert first.startswith("CHANGED")
    assert second.startswith("first: manifest.json: not what was signed: ")
    assert "seal: broken" in result.stdout
    with pytest.raises(SeatrialError, match=r"manifest\.json: not what was signed"):
        require_sealed(run, keys / "signers")
    judged = seatrial("judge", run)
    assert judged.exit_code == 1
    assert "manifest.json: not what was signed" in judged.stderr


def test_run_without_a_seal_where_one_is_asked_for(run: Path, keys: Path) -> None:
    result = seatrial("verify", run, "--sealed")
    assert result.exit_code == 1
    assert "not sealed; expected manifest.json.sig" in result.stderr
    with pytest.raises(SeatrialError, match="not sealed"):
        require_sealed(run, keys / "signers")
    sealed(run, keys)
    options = ("--sealed", "--signers", keys / "signers")
    assert seatrial("verify", run, *options).exit_code == 0


def test_a_run_is_sealed_once(run: Path, keys: Path) -> None:
    before = (sealed(run, keys) / "manifest.json.sig").read_bytes()
    result = seatrial("seal", run, "--key", keys / "mallory")
    assert result.exit_code == 2
    assert "sealed already" in result.stderr
    assert (run / "manifest.json.sig").read_bytes() == before
    assert {path.name for path in run.iterdir()} == {
        *("manifest.json", "manifest.json.sig", "cases.json", "measurements.parquet"),
        "raw",
    }


@pytest.mark.parametrize("command", ["verify", "seal"])
def test_open_run_is_refused(run: Path, keys: Path, command: str) -> None:
    opened = run.rename(run.with_name(f"{run.name}.open"))
    options = ("--key", keys / "alice") if command == "seal" else ()
    result = seatrial(command, opened, *options)
    assert result.exit_code == 2
    assert "this run is not closed" in result.stderr


@pytest.mark.parametrize(
    ("key", "expected"),
    [("nobody", "nobody: cannot sign"), ("signers", "signers: cannot sign")],
)
def test_key_that_cannot_sign(run: Path, keys: Path, key: str, expected: str) -> None:
    result = seatrial("seal", run, "--key", keys / key)
    assert result.exit_code == 2
    assert expected in result.stderr
    assert not (run / "manifest.json.sig").exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, "no such file"), ("acceptance@example.org\n", "not a file of signers: ")],
)
def test_bad_signers(
    run: Path, keys: Path, tmp_path: Path, text: str | None, expected: str
) -> None:
    sealed(run, keys)
    signers = tmp_path / "signers"
    if text is not None:
        signers.write_text(text)
    result = seatrial("verify", run, "--signers", signers)
    assert result.exit_code == 2
    assert expected in result.stderr


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (None, "ssh-keygen is not installed; signatures need"),
        ("echo 'unknown option -- Y' >&2; exit 1", "ssh-keygen on PATH knows no sig"),
    ],
)
def test_ssh_keygen_is_missing_or_too_old(
    run: Path,
    keys: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str | None,
    expected: str,
) -> None:
    sealed(run, keys)
    if script:
        fake_program(tmp_path / "bin", "ssh-keygen", script)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for command in (("verify", run), ("judge", run)):
        result = seatrial(*command)
        assert result.exit_code == 2
        assert expected in result.stderr


def test_agent_signs(
    run: Path, keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(keys / "alice.pub", tmp_path / "alice.pub")
    with subprocess.Popen(
        ["ssh-agent", "-D", "-a", str(tmp_path / "agent")], stdout=subprocess.DEVNULL
    ) as agent:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
        try:
            for _ in range(50):
                done = subprocess.run(
                    ["ssh-add", "-q", str(keys / "alice")],
                    capture_output=True,
                    check=False,
                )
                if done.returncode == 0:
                    break
                time.sleep(0.1)
            result = seatrial("seal", run, "--key", tmp_path / "alice.pub")
        finally:
            agent.terminate()
    assert result.exit_code == 0, result.output
    assert seatrial("verify", run, "--signers", keys / "signers").exit_code == 0


def test_sealed_run_on_another_machine(run: Path, keys: Path, tmp_path: Path) -> None:
    """The folder alone, elsewhere, without inventory and, as root, without network."""
    sealed(run, keys)
    elsewhere = tmp_path / "elsewhere" / run.name
    shutil.copytree(run, elsewhere)
    shutil.rmtree(run)
    offline = ["unshare", "-n"] if os.geteuid() == 0 else []
    seatrial = [*offline, str(Path(sys.executable).parent / "seatrial")]
    kept = {key: value for key, value in os.environ.items() if "SEATRIAL" not in key}
    verified = subprocess.run(
        [*seatrial, "verify", run.name, "--signers", str(keys / "signers")],
        cwd=elsewhere.parent,
        env=kept,
        capture_output=True,
        text=True,
        check=False,
    )
    assert verified.returncode == 0, verified.stderr
    assert "seal: acceptance@example.org" in verified.stdout
    judged = subprocess.run(
        [*seatrial, "judge", run.name],
        cwd=elsewhere.parent,
        env={**kept, "SEATRIAL_HOME": os.environ["SEATRIAL_HOME"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert judged.returncode == 0, judged.stdout + judged.stderr
    assert "PASS  lab, campaign smoke" in judged.stdout


def limited(run: Path, keys: Path, tmp_path: Path, validity: str) -> Path:
    """Seal the run by alice, whose key is limited in time; give the signers."""
    sealed(run, keys)
    key = (keys / "alice.pub").read_text()
    signers = tmp_path / "limited" / "allowed_signers"
    write(signers, f"alice@example.org {validity} {key}")
    return signers


@pytest.mark.parametrize(
    ("validity", "at", "status", "told"),
    [
        ('valid-before="20200101"', None, 3, "key has expired: "),
        ('valid-before="20200101"', "2020-01-02", 3, "key has expired: "),
        ('valid-before="20200103"', "2020-01-02", 0, "alice@example.org (ED25519"),
        ('valid-after="20990101"', None, 3, "key is not yet valid: "),
    ],
)
def test_key_that_is_limited_in_time(
    run: Path,
    keys: Path,
    tmp_path: Path,
    validity: str,
    at: str | None,
    status: int,
    told: str,
) -> None:
    signers = limited(run, keys, tmp_path, validity)
    moment = ["--at", at] if at else []
    result = seatrial("verify", run, "--signers", signers, *moment)
    assert result.exit_code == status, result.output
    assert told in result.stdout
    assert "WHOLE" in result.stdout
    if at is None:
        with pytest.raises(SeatrialError, match=r"does not count: .*: key ") as raised:
            require_sealed(run, signers)
        assert raised.value.exit_code == 3


def test_revoked_key(run: Path, keys: Path, tmp_path: Path) -> None:
    """The attack: a stolen key seals a run, and its owner has revoked it."""
    signers = limited(run, keys, tmp_path, "")
    assert seatrial("verify", run, "--signers", signers).exit_code == 0
    revoked = signers.with_name("revoked_keys")
    revoked.write_text((keys / "mallory.pub").read_text())
    assert seatrial("verify", run, "--signers", signers).exit_code == 0
    for listed in ((keys / "alice.pub").read_text(), "no list of keys\n"):
        revoked.write_text(listed)
        result = seatrial("verify", run, "--signers", signers)
        assert result.exit_code == 1
        assert f"signed with a key of alice@example.org that {revoked} revokes" in (
            result.stdout.replace("\n", " ")
        )
    with pytest.raises(SeatrialError, match="revokes; the signature proves nothing"):
        require_sealed(run, signers)
