"""Protocols for tests: a judged run with a waiver, keys of the parties, a home."""

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from closed_runs import CRITERIA, close_run, ssh_key
from fake_home import write
from judge_samples import CASE, sample

from seatrial.cli import main
from seatrial.runs.closed_run import load_run

HOME = Path(__file__).resolve().parents[1]
PEOPLE = {"vendor": "jane", "customer": "joe", "witness": "ann"}
LIMITS = CRITERIA.replace("lognormal", "every")
"""Criteria that decide on one allocation."""

ROLES = "signatures: {vendor: 1, customer: 1, witness: 1}\n"
WAIVED = "ImbRing bw_4MiB"


def seatrial(*arguments: object) -> Result:
    """Run a command; it never ends with a traceback."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def make_site(folder: Path, roles: str = ROLES) -> Path:
    """Make a home with criteria, and keys of three persons, each granted its role."""
    home = folder / "home"
    write(home / "reference-data" / "lab" / "criteria.yaml", LIMITS + roles)
    (home / "reframe-checks").mkdir()
    (home / "reports").mkdir()
    for file in (HOME / "reports").iterdir():
        if file.is_file():
            (home / "reports" / file.name).symlink_to(file)
    lines = []
    for role, name in PEOPLE.items():
        public = ssh_key(folder / "keys", name).with_suffix(".pub").read_text()
        granted = f"seatrial-protocol-{role}"
        if role == "customer":
            granted += ",seatrial-reasons"
        lines.append(f'{name}@{role}.example namespaces="{granted}" {public}')
    write(home / "reference-data" / "lab" / "allowed_signers", "".join(lines))
    return home


def work_at(home: Path, patch: pytest.MonkeyPatch) -> Path:
    """Let commands use a home, and the results below it; return it."""
    patch.setenv("SEATRIAL_HOME", str(home))
    patch.delenv("SEATRIAL_RESULTS", raising=False)
    return home


def write_protocol(folder: Path) -> list[str]:
    """Write the protocol of the newest run; return what the command prints."""
    made = seatrial("protocol", "lab/latest", "--out", folder / "protocol")
    assert made.exit_code == 0, made.output
    return made.stdout.splitlines()


def make_run(
    home: Path, *, slow: bool = True, kept: Mapping[str, str] | None = None
) -> Path:
    """Close a run; a slow pair misses its limit."""
    pairs = {"cn01 cn02": 100.0, "cn02 cn03": 50.0 if slow else 100.0}
    rows = [sample(CASE, value, pair=pair) for pair, value in pairs.items()]
    run: Path = close_run(home / "results", rows=rows, kept=kept)
    return run


def waive(run: Path, key: Path, *criteria: str) -> None:
    """Sign waivers of criteria for a run, by default of the one that it misses."""
    waiver = {
        "who": "J. Doe, procurement",
        "clause": "4.2",
        "reason": "cable is on order",
        "until": "2027-01-31",
    }
    names = {"run": run.name, "manifest": load_run(run).digest}
    waivers = [{"criterion": name, **waiver} for name in criteria or [WAIVED]]
    write(run / "reasons.yaml", json.dumps({"schema": 1, **names, "waivers": waivers}))
    command = ["ssh-keygen", "-Y", "sign", "-n", "seatrial-reasons", "-f", str(key)]
    subprocess.run(
        [*command, str(run / "reasons.yaml")], check=True, capture_output=True
    )


def copy_of(protocol: Path, folder: Path) -> Path:
    """Copy a protocol, which tests then change."""
    copy: Path = shutil.copytree(protocol, folder / "protocol")
    return copy


def content_of(folder: Path) -> dict[str, bytes]:
    """Return the bytes of all files below a folder."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def sign(
    site: Path, protocol: Path, role: str, name: str = "", **more: object
) -> Result:
    """Sign in a role, by default as the person of that role."""
    key = site / "keys" / (name or PEOPLE[role])
    options = [word for pair in more.items() for word in (f"--{pair[0]}", pair[1])]
    return seatrial("sign", protocol, "--role", role, "--key", key, *options)


def state(protocol: Path, *options: object) -> tuple[str, int]:
    """Verify a protocol; return the state in words, and the exit status."""
    result = seatrial("verify", protocol, *options)
    return result.stdout.split(" ", 1)[0], result.exit_code


def by_hand(
    site: Path, protocol: Path, role: str, name: str, of: Path | None = None
) -> None:
    """Sign with ssh-keygen alone, as a party without Seatrial does."""
    content = (of or protocol / "SHA256SUMS").read_bytes()
    namespace = f"seatrial-protocol-{role}"
    command = ["ssh-keygen", "-Y", "sign", "-n", namespace, "-f"]
    done = subprocess.run(
        [*command, str(site / "keys" / name)],
        input=content,
        capture_output=True,
        check=True,
    )
    (protocol / "signatures" / f"{role}-{name}.sig").write_bytes(done.stdout)
