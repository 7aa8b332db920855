"""`seatrial lab` and `seatrial accept` where they cannot work: told in plain words."""

import os
import platform
from pathlib import Path

import pytest
from click.testing import CliRunner

from seatrial.cli import main
from seatrial.commands._options import Rate
from seatrial.errors import SeatrialError
from seatrial.system.lab import fabric, state
from seatrial.system.lab.distribution import lab_system

COMMANDS = [
    ["accept"],
    ["lab", "up"],
    ["lab", "down"],
    ["lab", "status"],
    ["lab", "slow-link", "cn03"],
]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("user", "system", "found"),
    [
        (1000, "debian", "an ordinary user on Debian"),
        (0, "rocky", "root on Rocky Linux 9"),
    ],
)
def test_needs_root_on_debian(
    command: list[str],
    user: int,
    system: str,
    found: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = {"debian": "Debian GNU/Linux 12", "rocky": "Rocky Linux 9"}[system]
    release = {"ID": system, "PRETTY_NAME": name}
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: release)
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 2
    assert f"the lab needs root on Debian 12, found {found}" in done.stderr
    assert "README" in done.stderr


@pytest.mark.parametrize("command", COMMANDS[3:])
def test_says_that_the_lab_is_down(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seatrial.commands.lab.require_root_on_debian", lambda: None)
    monkeypatch.setattr(state, "RECORD", tmp_path / "lab.json")
    monkeypatch.setattr(state, "LOCK", tmp_path / "lock")
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 2
    assert "the lab is down; start it with `seatrial lab up`" in done.stderr


def test_a_lab_of_another_boot_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "RUN", tmp_path)
    monkeypatch.setattr(state, "RECORD", tmp_path / "lab.json")
    lab = state.LabState(home="/somewhere", boot=state.boot_id(), owns_fabric=True)
    lab.save()
    assert state.load() == lab
    lab.boot = "another"
    lab.save()
    assert state.load() is None


def test_what_another_boot_left_of_the_network_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where /run outlives a boot, the mount point of the namespace stays as a file."""
    monkeypatch.setattr(fabric, "NAMESPACES", tmp_path)
    monkeypatch.setattr(state, "RUN", tmp_path / "run")
    monkeypatch.setattr(state, "RECORD", tmp_path / "run" / "lab.json")
    commands: list[tuple[str, ...]] = []
    monkeypatch.setattr(fabric, "run", lambda *command: commands.append(command))
    monkeypatch.setattr(fabric, "succeeds", lambda *command: False)
    left = tmp_path / fabric.FABRIC
    left.touch()
    lab = state.LabState(home="/x", boot=state.boot_id(), nodes={"head": "10.0.0.1"})
    fabric.refuse_foreign(lab)
    assert fabric.ensure_fabric(lab)
    assert commands[0] == ("ip", "netns", "add", fabric.FABRIC)
    assert not left.exists()
    lab.owns_fabric = False
    monkeypatch.setattr(os.path, "ismount", lambda path: path == left)
    with pytest.raises(SeatrialError, match="was not made by the lab"):
        fabric.refuse_foreign(lab)


@pytest.mark.parametrize("rate", ["fast", "0mbit", "200", "mbit", "200 mbit", "-1mbit"])
@pytest.mark.parametrize("command", [["lab", "slow-link", "cn03"], ["accept"]])
def test_rate_is_checked_before_tc_sees_it(command: list[str], rate: str) -> None:
    result = CliRunner().invoke(main, [*command, "--rate", rate])
    assert result.exit_code == 2
    text = " ".join(result.stderr.split())
    assert f"{rate!r}: expected a number above 0 and a unit: 200mbit" in text


@pytest.mark.parametrize("rate", ["200mbit", "1.5Gbit", "300kbps", "10mibit"])
def test_rates_of_tc_are_taken(rate: str) -> None:
    assert Rate().convert(rate, None, None) == rate


def test_an_unknown_distribution_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.commands.lab.require_root_on_debian", lambda: None)
    monkeypatch.setenv("LAB_DISTRIBUTION", "sid")
    done = CliRunner().invoke(main, ["lab", "up"])
    assert done.exit_code == 2
    assert "LAB_DISTRIBUTION=sid: expected bookworm or trixie" in done.stderr


@pytest.mark.parametrize(
    ("name", "system"), [("", "lab"), ("bookworm", "lab"), ("trixie", "lab-trixie")]
)
def test_a_distribution_selects_a_system(
    name: str, system: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_DISTRIBUTION", name)
    assert lab_system() == system


@pytest.mark.parametrize(
    ("running", "options", "words"),
    [
        (
            64,
            ["--scale", "100"],
            "64 model nodes, asked for 100 model nodes",
        ),
        (64, [], "64 model nodes, asked for no model nodes"),
        (0, ["--scale", "100"], "nodes head, cn01, asked for 100 model nodes"),
    ],
)
def test_a_lab_of_another_kind_is_refused_before_anything_runs(
    running: int,
    options: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("seatrial.commands.lab.require_root_on_debian", lambda: None)
    monkeypatch.setattr(state, "RUN", tmp_path)
    monkeypatch.setattr(state, "RECORD", tmp_path / "lab.json")
    nodes = {"head": "10.99.0.1", "cn01": "10.99.0.11"}
    state.LabState(home="/x", boot=state.boot_id(), nodes=nodes, scale=running).save()
    done = CliRunner().invoke(main, ["lab", "up", *options])
    assert done.exit_code == 2
    assert done.stderr == (
        f"seatrial: the lab runs with {words}; stop it first with `seatrial lab down`\n"
    )


@pytest.mark.parametrize("scale", ["7", "5000", "x"])
def test_absurd_scales_are_refused(scale: str) -> None:
    done = CliRunner().invoke(main, ["lab", "up", "--scale", scale])
    assert done.exit_code == 2
    assert "Invalid value for '--scale'" in done.stderr


def test_nodes_and_scale_exclude_each_other() -> None:
    done = CliRunner().invoke(main, ["lab", "up", "--nodes", "4", "--scale", "64"])
    assert done.exit_code == 2
    assert "--nodes and --scale: expected one of them, got both" in done.stderr
