"""A stability phase with a real ReFrame and a stand-in for Slurm, faults planted."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from closed_runs import ssh_key
from fake_home import CRITERIA
from stability_runs import (
    ALLOWED,
    CRASHES,
    DIES,
    LIMIT,
    NO_ROUTE,
    VANISHES,
    write_phase,
)

from seatrial.campaign.node_journal import JOURNAL
from seatrial.campaign.runner import resume_run
from seatrial.campaign.spoiled_cases import spoiled_cases
from seatrial.cli import main
from seatrial.console import Terminal
from seatrial.report.stability_page import stability_page
from seatrial.runs.closed_run import Run, load_run
from seatrial.runs.ledger import LEDGER
from seatrial.runs.lock import driver_of
from seatrial.runs.open_run import RunFolder
from seatrial.stability.phase import phase_of_run
from seatrial.system.description import load_system

HOME = Path(__file__).parents[1]


def until(
    condition: Callable[[], object], process: "subprocess.Popen[bytes] | None" = None
) -> None:
    """Wait until a condition holds; a process must not end before that."""
    deadline = time.monotonic() + 900
    while not condition():
        assert time.monotonic() < deadline
        assert process is None or process.poll() is None
        time.sleep(0.1)


def killed_and_resumed(home: Path, at: Path) -> tuple[str, str, Any, Path]:
    """Kill the driver in the second round, resume.

    Return page, status, its record and run.
    """
    folder = RunFolder(home / "results", "lab", "r1")
    program = str(Path(sys.executable).parent / "seatrial")
    command = [program, "run", "lab", "--campaign", "phase", "--run-id", "r1"]
    process = subprocess.Popen(command, env={**os.environ}, stdout=subprocess.DEVNULL)
    until((folder.path / "sessions" / "mix-1.json").is_file, process)
    (at / "cn02.lost").unlink()
    for fault in at.glob("fault.*"):
        fault.unlink()
    until((folder.path / "raw" / "mix-2" / JOURNAL).is_file, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    until(lambda: driver_of(folder.path) is None)
    page = stability_page(folder.path, HOME, 60)
    status = CliRunner().invoke(main, ["status", "lab"]).output
    printed = CliRunner().invoke(main, ["status", "lab", "--format", "json"]).stdout
    path = resume_run(home, load_system(home, "lab"), folder, Terminal())
    (record,) = json.loads(printed)
    return page or "", status, record, path


def causes(run: Run) -> dict[str, tuple[int, str]]:
    """Return jobs and evidence of each cause."""
    phase = phase_of_run(run)
    assert phase is not None
    return {
        one.cause: (len(one.jobs), "; ".join(one.evidence)) for one in phase.events(1)
    }


def test_three_causes_are_counted_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job dies with its node, one has no route, one crashes."""
    home, at = write_phase(tmp_path, monkeypatch)
    faults = {"1x1-2": DIES, "1x1-3": NO_ROUTE, "1x1-4": CRASHES}
    for name, fault in faults.items():
        (at / f"fault.{name}").write_text(fault)
    page, status, record, path = killed_and_resumed(home, at)
    run = load_run(path)
    assert len(run.manifest["starts"]) == 2
    found = causes(run)
    assert {cause: jobs for cause, (jobs, _) in found.items()} == {
        "node": 1,
        "network": 1,
        "application": 1,
    }
    assert "Slurm: cn02 down: Not responding" in found["node"][1]
    assert "cn02 was back after" in found["node"][1]
    assert "it printed: connect() to 10.0.0.2: No route to host" in found["network"][1]
    assert "Segmentation fault" in found["application"][1]
    # While it went on: the first round was closed, the second was not.
    assert "observed " in status
    assert "spoiled" not in status, "what failed is an event"
    assert "1 node, 1 network, 1 application" in status or "1 network" in status
    phase, lines = record["phase"], " ".join(status.split())
    assert phase["observed_s"] < phase["declared_s"]
    events = {event["cause"]: event for event in phase["events"]}
    for event in events.values():
        assert f"{event['name']} {event['cause']}: {event['words']}" in lines
    assert events["network"]["jobs"]
    for rule in phase["criteria"]:
        assert f"{rule['name']}: {rule['verdict']}; {rule['reason']}" in lines
    assert [rule["name"] for rule in phase["criteria"]]
    assert "No route to host" in page
    assert '<meta http-equiv="refresh" content="60">' in page
    assert "operating characteristic" in page
    content = json.loads(
        CliRunner().invoke(main, ["judge", "lab/r1", "--format", "json"]).stdout
    )
    stability = {
        one["metric"]: (one["verdict"], one["n"])
        for one in content["findings"]
        if one["kind"] == "stability"
    }
    assert stability["availability"] == ("pass", 2)
    assert stability["mtbf"] == ("fail", 2), "a crash of the application counts not"
    failed = [one for one in content["findings"] if one["kind"] == "case"]
    assert {one["verdict"] for one in failed} == {"pass"}
    assert sum("counted as an event" in one["reason"] for one in failed) == 3
    (lost,) = [one for one in content["findings"] if one["kind"] == "inventory"]
    assert (lost["place"], lost["verdict"]) == ("cn02", "pass")
    assert {node["verdict"] for node in content["nodes"]} == {"pass"}
    _allow(tmp_path)
    _correct(home, run, tmp_path)


def _allow(folder: Path) -> None:
    """Judge by criteria that allow the failures."""

    def judged(criteria: str) -> tuple[int, dict[str, set[tuple[str, int]]]]:
        file = folder / "allowed.yaml"
        file.write_text(criteria)
        command = ["judge", "lab/r1", "--criteria", str(file), "--format", "json"]
        done = CliRunner().invoke(main, command)
        found: dict[str, set[tuple[str, int]]] = {}
        for one in json.loads(done.stdout)["findings"]:
            found.setdefault(one["kind"], set()).add((one["verdict"], one["n"]))
        return done.exit_code, found

    status, found = judged(ALLOWED)
    assert (status, {verdict for verdict, _ in found["case"]}) == (0, {"pass"})
    _, found = judged(ALLOWED + LIMIT)
    assert found["limit"] == {("pass", 2), ("undecided", 1)}, "too few, none missing"


@pytest.mark.slow
def test_a_node_that_slurm_no_longer_lists_is_not_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, at = write_phase(tmp_path, monkeypatch)
    (at / "fault.1x1-2").write_text(VANISHES)
    command = ["run", "lab", "--campaign", "phase", "--run-id", "r1"]
    CliRunner().invoke(main, command)
    done = CliRunner().invoke(main, ["judge", "lab/r1", "--format", "json"])
    content = json.loads(done.stdout)
    (lost,) = [one for one in content["findings"] if one["kind"] == "inventory"]
    assert (lost["place"], lost["verdict"]) == ("cn02", "fail")
    verdicts = {node["name"]: node["verdict"] for node in content["nodes"]}
    assert verdicts == {"cn01": "pass", "cn02": "fail"}
    assert content["absence"] == "1 of 2, allowed 0"
    phase = phase_of_run(load_run(home / "results" / "lab" / "r1"))
    assert phase is not None
    (away,) = phase.journal.away
    assert (away.node, away.reason, away.back) == ("cn02", "Not responding", False)


def test_a_phase_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The jobs that lost nodes spoiled are events of the phase."""
    home, at = write_phase(tmp_path, monkeypatch)
    (at / "fault.1x1-2").write_text(DIES)
    command = ["run", "lab", "--campaign", "phase", "--run-id", "r1", "--no-judge"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    assert "seatrial repeat" not in done.output
    assert spoiled_cases(load_run(home / "results" / "lab" / "r1").cases)
    again = CliRunner().invoke(main, ["repeat", "lab/r1"])
    assert again.exit_code == 2
    assert "r1: a stability phase; the jobs that lost nodes spoiled" in again.stderr
    assert {path.name for path in (home / "results" / "lab").iterdir()} == {
        "r1",
        LEDGER,
    }
    criteria = tmp_path / "criteria.yaml"
    criteria.write_text(CRITERIA)
    judged = CliRunner().invoke(main, ["judge", "lab/r1", "--criteria", str(criteria)])
    assert judged.exit_code == 1, "without a criterion of stability, it fails the run"
    assert "seatrial repeat" not in judged.output


def _correct(home: Path, run: Run, folder: Path) -> None:
    """Sign the cause of the network's event as ours; both causes are shown."""
    phase = phase_of_run(run)
    assert phase is not None
    name = next(one.name for one in phase.events(1) if one.cause == "network")
    key = ssh_key(folder / "keys", "operator")
    public = key.with_suffix(".pub").read_text()
    signers = home / "reference-data" / "lab" / "allowed_signers"
    granted = 'namespaces="seatrial-reasons"'
    signers.write_text(f"operator@example.org {granted} {public}")
    change = {"event": name, "cause": "ours", "who": "operator", "reason": "a test"}
    content = {
        "schema": 1,
        "run": run.manifest["run"],
        "manifest": run.digest,
        "causes": [change],
    }
    file = run.path / "reasons.yaml"
    file.write_text(json.dumps(content))

    def counted() -> tuple[int, list[str]]:
        done = CliRunner().invoke(main, ["judge", "lab/r1", "--format", "json"])
        content = json.loads(done.stdout)
        (one,) = [f for f in content["findings"] if f["metric"] == "mtbf"]
        return one["n"], content["notes"]

    assert counted()[0] == 2, "without a signature it does nothing"
    sign = ["ssh-keygen", "-Y", "sign", "-n", "seatrial-reasons", "-f", str(key)]
    subprocess.run([*sign, str(file)], check=True, capture_output=True)
    count, notes = counted()
    assert count == 1
    assert any(note.startswith(f"cause corrected: {name}: ours") for note in notes)
    (home / "reports").symlink_to(HOME / "reports")
    out = folder / "report"
    done = CliRunner().invoke(
        main, ["report", "lab/r1", "--form", "md", "--form", "html", "--out", str(out)]
    )
    assert done.exit_code == 0, done.output
    text = (out / "report.html").read_text()
    assert "ours (found: network)" in text
    assert "Failures by cause" in text
    assert "operating characteristic" in text
    (folder / "allowed.yaml").write_text(ALLOWED)
    command = ["report", "lab/r1", "--form", "html", "--out", str(out)]
    CliRunner().invoke(main, [*command, "--criteria", str(folder / "allowed.yaml")])
    text = (out / "report.html").read_text()
    assert "Failures by cause" in text
    assert "operating characteristic" not in text, "these criteria have no test"
    out = folder / "protocol"
    done = CliRunner().invoke(main, ["protocol", "lab/r1", "--out", str(out)])
    assert done.exit_code == 0, done.output
    _, _, events = (
        (out / "protocol.md")
        .read_text()
        .partition("## Events of the stability phase\n")
    )
    lines = [line for line in events.partition("\n## ")[0].splitlines() if line]
    assert len(lines) >= 3, "a node, the network and the application"
    assert sum(f"corrected: {name}: ours, a test" in line for line in lines) == 1
