"""Sensors beside the loads of a whole run: real ReFrame, stand-ins of Slurm and nodes.

srun starts the sensors on two hand-made trees of /sys, as Slurm would on two nodes.
"""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fake_energy import counter, energy_node
from fake_home import fake_program, write_home
from fake_jobs import slurm_jobs
from fake_node import CPUS
from reframe_runs import HOME

from seatrial.cli import main
from seatrial.runs.closed_run import Run, load_run

CRITERIA = """
schema: 1
risks: {seller: 0.05, buyer: 0.05}
defaults: {kind: promised, document: d, clause: c, model: every}
criteria:
  - check: OceanModel
    limits: {oceanmodel_rate: 1000 steps/s, throttle_events: 0 count}
  - check: OceanModel
    statistic: max
    limits: {rapl_power: 1000000 W}
"""
SRUN = """
case "$*" in
  *loadsensors*) ;;
  *oceanmodel*) exec oceanmodel;;
  *) exit 1;; # the audit: these nodes show no settings
esac
while [ "${{1#-}}" != "$1" ]; do echo "$1" >>{at}/options; shift; done
trap 'kill -USR1 $first $second' USR1
SLURMD_NODENAME=cn01 "$@" --root {at}/cn01 & first=$!
SLURMD_NODENAME=cn02 "$@" --root {at}/cn02 & second=$!
wait; wait
"""
"""The sensors on two nodes; srun passes signals on to them."""

OCEAN = """
echo 391000000 >{at}/cn01/{package}
echo 41000000 >{at}/cn02/{package}
echo {events} >{at}/cn02/{throttled}
echo rate: 1234.5 steps/s
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a check of an application, which heats two nodes with sensors."""
    home = write_home(tmp_path / "home", CRITERIA)
    monkeypatch.setenv("SEATRIAL_HOME", str(home))
    monkeypatch.setenv("SEATRIAL_RESULTS", str(tmp_path / "results"))
    (home / "reports").symlink_to(HOME / "reports")
    slurm_jobs(home, tmp_path, monkeypatch)
    settings(home, launcher="srun")
    for node in ("cn01", "cn02"):
        energy_node(tmp_path / node)
    fake_program(tmp_path / "bin", "srun", SRUN.format(at=tmp_path))
    fake_program(tmp_path / "bin", "scontrol", "echo cn01; echo cn02")
    program(tmp_path)
    assert command("new", "check", "OceanModel").exit_code == 0
    return home


def program(folder: Path, events: int = 0) -> None:
    files = {"package": counter("0"), "at": folder, "events": events}
    files["throttled"] = f"{CPUS}/cpu1/thermal_throttle/core_throttle_count"
    fake_program(folder / "bin", "oceanmodel", OCEAN.format(**files))


def settings(home: Path, launcher: str = "", **extras: Any) -> None:
    file = home / "etc" / "lab" / "settings.yaml"
    content = json.loads(file.read_text())
    partition = content["systems"][0]["partitions"][0]
    partition["launcher"] = launcher or partition["launcher"]
    partition["extras"] |= extras
    file.write_text(json.dumps(content))


def command(*arguments: str) -> Any:
    return CliRunner().invoke(main, [*arguments])


def run(folder: Path, name: str, *options: str) -> Run:
    campaign = ("--campaign", "oceanmodel", "--run-id", name, "--repeats", "1")
    done = command("run", "lab", *campaign, *options)
    path = folder / "results" / "lab" / name
    assert path.is_dir(), done.output
    return load_run(path)


def numbers(run: Run) -> dict[tuple[str, str, str | None], float]:
    columns = ("metric", "statistic", "node", "value")
    rows = run.measurements.select(columns).collect().rows()
    return {(metric, statistic, node): value for metric, statistic, node, value in rows}


def test_a_load_has_its_energy_and_a_criterion_holds_its_throttling(
    home: Path, tmp_path: Path
) -> None:
    settings(home, power_command="echo 250 W")
    sound = run(tmp_path, "sound")
    assert [case.result for case in sound.cases] == ["pass"]
    read = numbers(sound)
    assert read["rapl_energy", "mean", None] == 430.0
    assert read["rapl_power", "max", "cn01"] > read["rapl_power", "max", "cn02"] > 0
    assert read["board_power", "mean", "cn02"] == pytest.approx(250.0)
    assert read["temperature_max", "max", "cn01"] == 45.0
    assert read["throttle_events", "mean", "cn02"] == 0.0
    options = (tmp_path / "options").read_text()
    assert "--overlap\n--nodes=2\n--ntasks=2\n" in options
    findings = judged("sound")
    within = "undecided"  # so far: a pass takes two jobs
    assert findings["throttle_events", "cn02"] == within
    assert findings["rapl_power", "cn01"] == within

    for node in ("cn01", "cn02"):
        energy_node(tmp_path / node)
    program(tmp_path, events=12)
    assert numbers(run(tmp_path, "hot"))["throttle_events", "mean", "cn02"] == 12.0
    assert judged("hot")["throttle_events", "cn02"] == "fail"
    page = report("hot", tmp_path)
    assert "Throttled.|Heat slowed cn02 in OceanModel." in page
    assert "|cn02|OceanModel|openmpi|heat|12|1|" in page
    assert "board: whole nodes, by the power command of the site" in page
    assert "Not read: Slurm: AcctGatherEnergyType is unknown." in page

    replayed = run(tmp_path, "again", "--replay", str(tmp_path / "results/lab/hot"))
    assert numbers(replayed)["throttle_events", "mean", "cn02"] == 12.0


def judged(name: str) -> dict[tuple[str, str], str]:
    found = json.loads(command("judge", f"lab/{name}", "--format", "json").stdout)
    rows = found["findings"]
    return {(row["metric"], row["place"]): row["verdict"] for row in rows}


def report(name: str, folder: Path) -> str:
    """Return the text of the page, with a bar between its parts."""
    out = folder / f"report-{name}"
    done = command("report", f"lab/{name}", "--out", str(out))
    assert done.exit_code == 0, done.output
    text = unescape(re.sub(r"<[^>]*>", "|", (out / "report.html").read_text()))
    return re.sub(r"[|\s]*\|[|\s]*", "|", text)


def test_nodes_that_share_a_machine_have_no_power_and_the_report_says_it_once(
    home: Path, tmp_path: Path
) -> None:
    settings(home, demonstration=True)
    shared = run(tmp_path, "shared")
    assert {metric for metric, *_ in numbers(shared)} == {"oceanmodel_rate"}
    assert not (tmp_path / "options").exists()
    page = report("shared", tmp_path)
    reason = "all nodes share one machine: its sensors are not those of a node"
    assert page.count(reason) == 1


def test_sensors_that_do_not_start_cost_a_reason_and_no_result(
    home: Path, tmp_path: Path
) -> None:
    refuses = "*) echo srun: unrecognized option >&2; exit 1;; esac"
    program = f'case "$*" in *oceanmodel*) exec oceanmodel;; {refuses}'
    fake_program(tmp_path / "bin", "srun", program)
    old = run(tmp_path, "old")
    assert [case.result for case in old.cases] == ["pass"]
    assert {metric for metric, *_ in numbers(old)} == {"oceanmodel_rate"}
    (session,) = old.manifest["sessions"]
    late = "the sensors did not begin, or did not end in time"
    assert session["absent_sensors"][late] == ""
