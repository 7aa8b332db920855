"""The agent on the controller does what one user may ask, and nothing else."""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from fake_scontrol import FakeSlurm

ROOT = Path(__file__).parents[1]
AGENT = ROOT / "playbooks/roles/nightly_agent/files/seatrial-nightly-agent"
TOKEN, OTHER = "0123456789abcdef", "fedcba9876543210"


class Site:
    """A spool folder, a configuration and Slurm."""

    def __init__(self, folder: Path, **config: Any) -> None:
        self.folder = folder
        self.slurm = FakeSlurm(folder, ["cn01", "cn02", "cn03", "cn04"])
        self.spool = folder / "requests"
        self.spool.mkdir()
        (folder / "state").mkdir()
        self.config = {
            "user": "root",
            "nodes": ["cn01", "cn02", "cn03"],
            "mode": "reservation",
            "night": 1,
            "at_once": 1,
            "scontrol": str(self.slurm.folder / "scontrol"),
            "sinfo": str(self.slurm.folder / "sinfo"),
            "off": str(folder / "off"),
            "spool": str(self.spool),
            "results": str(folder / "last.json"),
            "state": str(folder / "state"),
            **config,
        }

    def ask(self, verb: str = "quarantine", token: str = TOKEN, **more: Any) -> Path:
        request: dict[str, Any] = {
            "verb": verb,
            "node": "cn01",
            "token": token,
            "alarm": "a-cn01",
        }
        request |= {"mode": self.config["mode"], "time": int(time.time()), **more}
        file = self.spool / f"{verb}-{token}.json"
        file.write_text(json.dumps(request))
        return file

    def run(self, **options: Any) -> str:
        config = self.folder / "config.json"
        config.write_text(json.dumps(self.config))
        command = [sys.executable, "-I", str(AGENT), str(config)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=60, **options
        )
        said: str = done.stderr
        return said


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_reserves_renews_and_releases(site: Site) -> None:
    site.ask()
    assert "done" in site.run()
    assert list(site.spool.iterdir()) == []
    assert "seatrial-cn01" in site.slurm.load()["reservations"]
    site.ask()
    site.run()
    assert site.slurm.calls[-1][-1] == "EndTime=now+7days"
    site.ask("release", OTHER)
    assert "not taken out by this token" in site.run()
    site.ask("release")
    site.run()
    assert site.slurm.load()["reservations"] == {}
    results = json.loads((site.folder / "last.json").read_text())["results"]
    assert [one["result"] for one in results] == ["done"]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"node": "cn04"}, "not allowed"),
        ({"node": "cn01;reboot"}, "a wrong node"),
        ({"node": "cn[01-03]"}, "a wrong node"),
        ({"node": ["cn01"]}, "a wrong node"),
        ({"alarm": "a b"}, "a wrong alarm"),
        ({"time": 1}, "older than an hour"),
        ({"time": int(time.time()) + 10_000}, "future"),
        ({"time": True}, "no whole number"),
        ({"mode": "drain"}, "expected the mode"),
        ({"more": 1}, "expected the keys"),
        ({"alarm": "a" * 5000}, "larger than"),
    ],
)
def test_refuses_contents(site: Site, more: dict[str, Any], why: str) -> None:
    site.ask(**more)
    assert why in site.run()
    assert site.slurm.calls == []
    assert list(site.spool.iterdir()) == []


@pytest.mark.parametrize(
    "forge", ["symlink", "hard link", "fifo", "owner", "json", "deep", "verb", "old"]
)
def test_refuses_files(site: Site, forge: str) -> None:
    file = site.ask()
    kept = site.folder / "kept"
    if forge == "symlink":
        file.rename(kept)
        file.symlink_to(kept)
    elif forge == "hard link":
        kept.hardlink_to(file)
    elif forge == "fifo":
        file.unlink()
        os.mkfifo(file)
    elif forge == "owner":
        os.chown(file, 12345, 12345)
    elif forge == "json":
        file.write_bytes(b"\xff{")
    elif forge == "deep":
        file.write_text("[" * 4000)
    elif forge == "verb":
        file.rename(file.with_name(f"reboot-{TOKEN}.json"))
    else:
        os.utime(file, (1, 1))
    assert "refused" in site.run()
    assert site.slurm.calls == []
    assert list(site.spool.iterdir()) == []


def test_caps_count_the_night_and_what_others_did(site: Site) -> None:
    site.slurm.change("nodes", "cn03", ["drained", "admin", "disk"])
    site.ask()
    assert "1 are out" in site.run()
    site.config["at_once"] = 3
    site.ask()
    site.ask(token=OTHER, node="cn02")
    assert "1 were taken out tonight" in site.run()
    assert len(site.slurm.calls) == 1


def test_off_switch_silence_and_full_disk(site: Site) -> None:
    (site.folder / "off").touch()
    site.ask()
    assert "off-switch" in site.run()
    (site.folder / "off").unlink()
    site.slurm.save({**site.slurm.load(), "silent": 1})
    site.ask()
    assert "refused" in site.run()
    site.slurm.save({**site.slurm.load(), "silent": 0})
    site.ask()

    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))

    done = subprocess.run(
        [sys.executable, "-I", AGENT, site.folder / "config.json"],
        preexec_fn=full,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "ledger cannot be written" in done.stderr
    assert (site.folder / "state/ledger.jsonl").read_text() == ""
    assert site.slurm.calls == []


def test_changed_reason_is_not_resumed(tmp_path: Path) -> None:
    site = Site(tmp_path, mode="drain")
    site.ask()
    site.run()
    assert site.slurm.load()["nodes"]["cn01"][0] == "drained"
    site.slurm.change("nodes", "cn01", ["drained", "admin", "memory"])
    site.ask("release")
    assert "not as this agent left it" in site.run()
    assert len(site.slurm.calls) == 1


def test_intent_without_an_act_frees_the_node(site: Site) -> None:
    entry: dict[str, Any] = {
        "event": "quarantine",
        "node": "cn01",
        "token": OTHER,
        "alarm": "a",
    }
    entry |= {"mode": "reservation", "start": "x", "time": 1}
    (site.folder / "state/ledger.jsonl").write_text(json.dumps(entry) + "\n" + '{"ev')
    site.ask()
    assert "done" in site.run()
    lines = (site.folder / "state/ledger.jsonl").read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == [
        "quarantine",
        "gone",
        "quarantine",
    ]
