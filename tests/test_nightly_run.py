"""Nights in compressed time: the real commands on a modelled machine, no clock set."""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from closed_runs import rewrite_manifest
from fake_home import SETTINGS as SETTINGS_OF_REFRAME
from fake_home import SYSTEM, fake_program, write
from night_runs import CRITERIA, Machine, close_night

from seatrial.campaign.cost import Cost
from seatrial.campaign.runner import Order
from seatrial.campaign.schedule import Agenda
from seatrial.campaign.session_command import comment_of
from seatrial.cli import main
from seatrial.errors import Exit, SeatrialError
from seatrial.nightly import cron_jobs
from seatrial.nightly import night as nights
from seatrial.runs import ledger
from seatrial.runs.ledger import read_ledger
from seatrial.runs.ledger_entries import Entry, parse_ledger
from seatrial.runs.open_run import RunFolder
from seatrial.system import slurm

NODES = tuple(f"cn{number:02}" for number in range(1, 13))
FIRST = datetime(2026, 3, 1, 1, 0)
SETTINGS = """
schema: 1
window: {start: '01:00', end: '05:00'}
every: 2
node_hours: 100
alarms: 1
notify:
  metrics: HOME/seatrial.prom
  mail: {to: [ops@example.org], sendmail: HOME/bin/sendmail}
"""


class Nights:
    """A home with nights, a modelled machine, and a time that tests choose."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self.moment = folder, FIRST
        self.machine = Machine(NODES)
        self.busy: set[str] = set()
        self.ran: list[Order] = []
        self.failing: SeatrialError | None = None
        self.failed: dict[str, str] = {}
        self._describe()
        programs = folder / "bin"
        fake_program(programs, "sinfo", f"cat {folder}/states")
        fake_program(
            programs, "sendmail", f"cat >> {folder}/mail; echo >> {folder}/mail"
        )
        fake_program(programs, "squeue", "exit 0")
        fake_program(programs, "scontrol", "echo No reservations in the system")
        monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
        monkeypatch.setenv("SEATRIAL_HOME", str(folder))
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        monkeypatch.delenv("SEATRIAL_RESULTS", raising=False)
        monkeypatch.setattr(nights, "now", lambda: self.moment)
        monkeypatch.setattr(nights, "run_campaign", self._measure)
        monkeypatch.setattr(nights, "write_reference_files", lambda *_: None)
        cost = Cost(1, 1, 600.0, 0.0, 6.0, (), {})
        monkeypatch.setattr(nights, "campaign_cost", lambda *_: cost)
        monkeypatch.setattr(ledger, "utc_now", self._utc)

    def _describe(self) -> None:
        settings = json.loads(json.dumps(SETTINGS_OF_REFRAME))
        (partition,) = settings["systems"][0]["partitions"]
        partition.update(scheduler="slurm", extras={"nodes": [*NODES]})
        system = {**SYSTEM, "nodes": [{"name": name, "facts": {}} for name in NODES]}
        write(self.home / "etc/lab/settings.yaml", json.dumps(settings))
        write(self.home / "etc/lab/system.json", json.dumps(system))
        declared = SETTINGS.replace("HOME", str(self.home))
        write(self.home / "reference-data/lab/nightly.yaml", declared)
        write(self.home / "reference-data/lab/criteria.yaml", CRITERIA)
        campaign = "blocks: [{name: nodes, checks: [ImbRing]}]\n"
        write(self.home / "reframe-checks/campaigns/nightly.yaml", campaign)

    def _utc(self) -> str:
        return self.moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S+00:00")

    def _measure(self, order: Order, console: Any) -> Path:
        self.ran.append(order)
        if self.failing is not None:
            raise self.failing
        (of_class,) = order.system.classes.values()
        moment = self.moment
        self.moment += timedelta(minutes=20)
        nodes, failed = of_class.nodes, self.failed
        return close_night(order.results, self.machine, nodes, moment, failed=failed)

    def command(self, *arguments: str) -> Result:
        """Run a command of the nights."""
        states = "".join(
            f"{name}|{'allocated' if name in self.busy else 'idle'}|none\n"
            for name in NODES
        )
        (self.home / "states").write_text(states)
        return CliRunner().invoke(main, ["nightly", *arguments])

    def night(self, day: int, *, minutes: int = 0) -> Result:
        """Run the night of a day, from 0."""
        self.moment = FIRST + timedelta(days=day, minutes=minutes)
        return self.command("run", "lab")

    def measured(self) -> list[tuple[str, ...]]:
        """Return the nodes of each run."""
        return [
            nodes.nodes for order in self.ran for nodes in order.system.classes.values()
        ]

    def events(self, event: str) -> list[Entry]:
        """Return the entries of an event."""
        book = parse_ledger(read_ledger(self.home / "results" / "lab") or b"")
        assert not book.problem
        return [entry for entry in book.entries if entry.event == event]

    @property
    def mail(self) -> str:
        """All mail that was sent."""
        file = self.home / "mail"
        return file.read_text() if file.is_file() else ""


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nights:
    return Nights(tmp_path, monkeypatch)


@pytest.mark.slow
def test_sixty_nights(lab: Nights) -> None:
    """40 healthy nights; then a node loses 10 %; on night 50 new firmware costs 8 %."""
    said: dict[int, str] = {}
    for day in range(60):
        if day == 40:
            lab.machine.slow["cn07"] = 0.10
        if day == 50:
            lab.machine.firmware[""] = "20.41"
            lab.machine.whole = 0.08
        before = lab.mail
        result = lab.night(day)
        assert result.exit_code in (Exit.PASS, Exit.FAILED), result.output
        if lab.mail != before:
            said[day] = lab.mail.removeprefix(before)
            print(day, said[day])
    assert min(said) > 40
    first = said[min(said)]
    assert min(said) <= 50
    assert "cn07" in first
    later = [text for day, text in said.items() if day > 50]
    assert len(later) == 1
    assert "20.41" in later[0]
    names = lab.command("status", "lab").output.splitlines()
    assert any("cn07" in line and line.startswith("open") for line in names)


def test_each_node_is_measured_within_the_declared_nights(lab: Nights) -> None:
    for day in range(4):
        assert lab.night(day).exit_code == Exit.PASS
    assert {len(nodes) for nodes in lab.measured()} == {6}
    assert {*lab.measured()[0], *lab.measured()[1]} == {*NODES}
    assert lab.measured()[0] == lab.measured()[2]


def test_the_budget_is_that_of_the_plan(lab: Nights) -> None:
    """A node takes half an hour: 2 node-hours pay for 4 of the 6 due nodes."""
    file = lab.home / "reference-data/lab/nightly.yaml"
    file.write_text(file.read_text().replace("node_hours: 100", "node_hours: 2"))
    result = lab.night(0)
    assert [len(nodes) for nodes in lab.measured()] == [4]
    assert "2 of 6 due nodes are left for later nights" in result.output


def test_jobs_yield_to_users(lab: Nights) -> None:
    lab.night(0)
    (of_class,) = lab.ran[0].system.classes.values()
    assert of_class.access is not None
    assert "--nice=1000" in of_class.access
    assert "--deadline=2026-03-01T04:55:00" in of_class.access
    assert any(option.startswith("--exclude=cn") for option in of_class.access)


@pytest.mark.parametrize(
    ("minutes", "words"),
    [(-1, "00:59 is outside the window"), (4 * 60, "05:00 is outside the window")],
)
def test_a_late_start_is_skipped(lab: Nights, minutes: int, words: str) -> None:
    result = lab.night(0, minutes=minutes)
    assert result.exit_code == Exit.UNDECIDED
    assert words in result.output
    assert words in lab.events("skipped")[0].reason
    assert not lab.ran
    assert lab.night(1).exit_code == Exit.PASS


def test_a_night_is_measured_once(lab: Nights) -> None:
    lab.night(0)
    again = lab.night(0, minutes=60)
    assert "is measured already" in again.output
    assert len(lab.ran) == 1


def test_busy_nodes_are_left_alone_and_reported_when_unseen(lab: Nights) -> None:
    lab.busy = {"cn01", "cn02"}
    for day in range(5):
        lab.night(day)
    assert not any({"cn01", "cn02"} & {*nodes} for nodes in lab.measured())
    assert "cn[01-02]" in lab.command("status", "lab").output


def test_a_full_machine_is_no_fault(lab: Nights) -> None:
    lab.busy = {*NODES}
    result = lab.night(0)
    assert result.exit_code == Exit.UNDECIDED
    assert "0 of 12 nodes are idle" in result.output
    lab.busy = set()
    assert lab.night(1).exit_code == Exit.PASS


def test_a_night_that_fails_is_skipped_and_the_next_goes_on(lab: Nights) -> None:
    lab.night(0)
    lab.failing = SeatrialError("Slurm does not answer: no answer within 60 s")
    result = lab.night(1)
    assert result.exit_code == Exit.UNDECIDED
    assert "Slurm does not answer" in lab.events("skipped")[0].reason
    lab.failing = None
    assert lab.night(2).exit_code == Exit.PASS


def test_a_silent_slurm_is_no_empty_machine(lab: Nights) -> None:
    fake_program(lab.home / "bin", "sinfo", "exit 1")
    result = lab.night(0)
    assert result.exit_code == Exit.UNDECIDED
    assert "Slurm does not answer" in result.output


def test_a_broken_ledger_stops_all(lab: Nights) -> None:
    lab.night(0)
    file = lab.home / "results" / "lab" / "ledger.jsonl"
    file.write_bytes(file.read_bytes().replace(b"nightly", b"nightlx", 1))
    result = lab.night(1)
    assert result.exit_code == Exit.USAGE
    assert "nothing is decided" in result.output
    assert len(lab.ran) == 1


def test_an_alarm_is_acknowledged_until_a_date(lab: Nights) -> None:
    lab.machine.slow["cn07"] = 0.5
    day = 0
    while lab.night(day).exit_code != Exit.FAILED:
        day += 1
        assert day < 8
    name = f"{(FIRST + timedelta(days=day)).date()}-cn07"
    until = str((FIRST + timedelta(days=day + 3)).date())
    assert name in lab.command("explain", "lab", name).output
    for wrong, words in (
        (["ack", "lab", "x", "--until", until, "--reason", "r"], "no alarm 'x'"),
        (
            ["ack", "lab", name, "--until", "2026-01-01", "--reason", "r"],
            "expected a day",
        ),
    ):
        result = lab.command(*wrong)
        assert (result.exit_code, words in result.output) == (Exit.USAGE, True)
    assert not lab.command(
        "ack", "lab", name, "--until", until, "--reason", "RMA"
    ).exit_code
    assert lab.command("status", "lab").exit_code == Exit.PASS
    assert lab.night(day + 3).exit_code == Exit.PASS
    assert lab.night(day + 4).exit_code == Exit.FAILED


def test_a_retest_by_day_does_not_replace_the_coming_night(lab: Nights) -> None:
    lab.night(0)
    lab.moment = FIRST + timedelta(hours=9)
    lab.command("retest", "lab", "cn05")
    lab.night(1)
    assert [len(nodes) for nodes in lab.measured()] == [6, 2, 6]


@pytest.mark.parametrize("file", ["manifest.json", "cases.json"])
def test_a_run_that_cannot_be_read_stops_nothing(lab: Nights, file: str) -> None:
    lab.night(0)
    (run,) = (lab.home / "results" / "lab").glob("*-nightly")
    lab.night(1)
    (run / file).write_text("{")
    shutil.rmtree(lab.home / "cache")
    result = lab.night(2)
    assert result.exit_code == Exit.PASS, result.output
    assert f"left out: {run.name}" in result.output
    assert len(lab.ran) == 3
    assert "left out, as it cannot be read" in lab.mail


def test_nodes_of_an_alarm_are_measured_every_night(lab: Nights) -> None:
    lab.machine.slow["cn07"] = 0.5
    while lab.night(len(lab.ran)).exit_code != Exit.FAILED:
        assert len(lab.ran) < 4
    begun = len(lab.ran)
    for day in range(begun, begun + 3):
        lab.night(day)
    assert all("cn07" in nodes for nodes in lab.measured()[begun:])


def test_a_quarantined_node_is_tested_first_in_its_reservation(lab: Nights) -> None:
    fields = {"node": "cn03", "alarm": "a", "token": "t", "reason": "reservation"}
    ledger.note_night(lab.home / "results" / "lab", "quarantined", **fields)
    lab.busy = {"cn01"}
    lab.night(0)
    first, _ = lab.ran
    (of_class,) = first.system.classes.values()
    assert of_class.nodes == ("cn03", "cn02")
    assert "--reservation=seatrial-cn03" in (of_class.access or ())
    assert "cn03" not in lab.measured()[1]


def test_jobs_of_a_dead_driver_are_cancelled(
    lab: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    for campaign in ("nightly", "smoke"):
        agenda = Agenda(
            run=f"r-{campaign}",
            system="lab",
            created="2026-03-01T00:00:00+00:00",
            campaign={"name": campaign},
            sessions=(),
        )
        folder = RunFolder(lab.home / "results", "lab", agenda.run)
        folder.create(agenda.write())
    cancelled: list[str] = []

    def cancel_all(comment: str) -> list[str]:
        cancelled.append(comment)
        return []

    monkeypatch.setattr(slurm, "cancel_all", cancel_all)
    lab.night(0)
    assert cancelled == [comment_of("r-nightly")]


def test_a_night_without_numbers_is_no_success(
    lab: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The age of the last success tells that nights measure nothing."""
    lab.night(0)
    file = lab.home / "seatrial.prom"
    name = "seatrial_nightly_last_success_timestamp_seconds"
    before = [line for line in file.read_text().splitlines() if line.startswith(name)]
    every = {f"nodes-{n}": "the job ended as PREEMPTED; x" for n in (1, 2, 3)}
    monkeypatch.setattr(lab, "failed", every)
    lab.night(1)
    after = [line for line in file.read_text().splitlines() if line.startswith(name)]
    assert before == after != []


def test_the_next_job_is_submitted_again_after_the_night(
    lab: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(["squeue does not answer", ""])

    def submit(*_: Any) -> str:
        problem = next(answers)
        if problem:
            raise SeatrialError(problem)
        return "77"

    monkeypatch.setattr(cron_jobs, "submit_next", submit)
    lab.moment = FIRST
    result = lab.command("run", "lab", "--resubmit")
    assert len(lab.ran) == 1
    assert "is not submitted: squeue does not answer" in result.output
    assert "next night: job 77" in result.output


def test_a_disk_that_is_full_stops_one_night(
    lab: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(nights, "part_of", full)
        result = lab.night(0)
    assert "No space left" in result.output
    assert result.exit_code == Exit.UNDECIDED
    assert lab.night(1).exit_code == Exit.PASS


def test_a_retest_takes_the_node_and_a_partner(lab: Nights) -> None:
    result = lab.command("retest", "lab", "cn05")
    assert result.exit_code == Exit.PASS, result.output
    assert lab.measured() == [("cn05", "cn01")]
    lab.busy = {"cn05"}
    assert "cn05 is not idle" in lab.command("retest", "lab", "cn05").output
    assert "cn99: no node of lab" in lab.command("retest", "lab", "cn99").output


def test_other_runs_of_the_system_do_not_count(lab: Nights) -> None:
    lab.night(0)
    path = close_night(
        lab.home / "results", lab.machine, NODES, FIRST + timedelta(hours=9)
    )
    rewrite_manifest(path, campaign="smoke")
    assert "1 night," in lab.command("status", "lab").output
