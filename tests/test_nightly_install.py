"""`seatrial nightly plan`, `install` and `remove` with a stand-in for Slurm."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from closed_runs import close_run
from fake_cron import NIGHTLY, nightly_home, stand_in
from fake_home import fake_program, write
from judge_samples import CASE

from seatrial.calibration import plan as campaign_plan
from seatrial.campaign.cost import Cost
from seatrial.cli import main
from seatrial.runs.pack import unpack
from seatrial.system import login_node
from seatrial.system.login_node import Remote

SUITE = Path(__file__).resolve().parents[1]

MINE = "# mine\r\n0 3 * * * backup"
"""A scrontab without a final newline."""

CAMPAIGN_COST = campaign_plan.campaign_cost
COST = Cost(
    sessions=2,
    jobs=4,
    wall_s=600,
    between_s=60,
    node_hours=0.5,
    checks=(),
    nothing={"Gpu": "needs a GPU"},
)


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with nights, stand-ins for Slurm, and a campaign of known cost."""
    monkeypatch.setenv("SEATRIAL_HOME", str(nightly_home(tmp_path / "home")))
    monkeypatch.setenv("SEATRIAL_RESULTS", str(tmp_path / "results"))
    monkeypatch.setattr(campaign_plan, "campaign_cost", lambda *_: COST)
    return stand_in(tmp_path, monkeypatch)


def declare(at: Path, text: str) -> None:
    write(at.parent / "home" / "reference-data" / "lab" / "nightly.yaml", text)


def call(*words: str, status: int = 0) -> str:
    done = CliRunner().invoke(main, ["nightly", *words])
    assert done.exit_code == status, done.output
    return done.output


def is_untouched(at: Path) -> bool:
    """Return True if nothing was written, submitted or made."""
    calls = [at / "writes", *(at / "jobs").iterdir(), at.parent / "results"]
    return not any(path.exists() for path in calls)


def test_install_and_remove(at: Path) -> None:
    """The difference is shown, and all other bytes come back."""
    (at / "crontab").write_bytes(MINE.encode())
    shown = call("install", "lab", "--yes")
    content = (at / "crontab").read_bytes().decode()
    section = content.removesuffix(MINE)
    assert section.startswith("# BEGIN seatrial nightly lab")
    assert section.splitlines()[-2].endswith("nightly run lab")
    assert [line for line in section.splitlines() if f"+{line}" not in shown] == []
    assert "note: no job of Gpu: needs a GPU" in shown
    assert "lab: installed in the scrontab\nthe next night opens at 20" in shown
    assert (at.parent / "results" / "lab").is_dir()
    assert "has these nights already" in call("install", "lab", "--yes")
    shown = call("remove", "lab")
    assert [line for line in section.splitlines() if f"-{line}" not in shown] == []
    assert (at / "crontab").read_bytes() == MINE.encode()
    assert call("remove", "lab") == "lab: no nights are installed\n"


def test_install_asks_on_a_terminal(at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = call("install", "lab", status=2)
    assert "no terminal to ask on; nothing was installed; add --yes" in shown
    assert "+# BEGIN seatrial nightly lab" in shown
    monkeypatch.setattr("seatrial.commands.nightly._is_terminal", lambda: True)
    done = CliRunner().invoke(main, ["nightly", "install", "lab"], input="n\n")
    assert (done.exit_code, is_untouched(at)) == (2, True)
    assert "no consent; nothing was installed" in done.output
    done = CliRunner().invoke(main, ["nightly", "install", "lab"], input="y\n")
    assert done.exit_code == 0, done.output
    assert (at / "crontab").exists()


def test_a_changed_setting_changes_the_section(at: Path) -> None:
    call("install", "lab", "--yes")
    declare(at, NIGHTLY.replace("05:00", "06:00"))
    shown = call("install", "lab", "--yes")
    changed = [line for line in shown.splitlines() if line[:1] in ("+", "-")][2:]
    assert changed == ["-#SCRON --time=270", "+#SCRON --time=330"]


def test_a_disabled_entry_is_installed_again(at: Path) -> None:
    call("install", "lab", "--yes")
    content = (at / "crontab").read_text()
    disabled = content.replace("#SCRON", "#DISABLED: #SCRON")
    (at / "crontab").write_text(disabled.replace("0 1 *", "#DISABLED: 0 1 *"))
    assert "note: Slurm disabled the entry" in call("install", "lab", "--yes")
    assert (at / "crontab").read_text() == content


@pytest.mark.parametrize("missing", [False, True])
def test_without_a_scrontab(at: Path, missing: bool) -> None:
    """A job takes its place; each installation leaves one."""
    if missing:
        (at.parent / "bin" / "scrontab").unlink()
    else:
        (at / "off").touch()
    shown = call("install", "lab", "--yes")
    reason = "not installed here" if missing else "slurm.conf disables it"
    assert f"{reason}" in shown
    assert "a job that submits the next one takes its place" in shown
    assert (
        "+sbatch --parsable --job-name=seatrial-nightly-lab-again --begin=20" in shown
    )
    assert "lab: job 1 waits for the next night" in shown
    again = call("install", "lab", "--yes")
    assert "cancelled job 1, which waited" in again
    assert "job 2 waits for the next night" in again
    assert "cancelled job 2" in call("remove", "lab")
    assert "no nights are installed" in call("remove", "lab")


def test_the_scrontab_replaces_the_job(at: Path) -> None:
    (at / "off").touch()
    call("install", "lab", "--yes")
    (at / "off").unlink()
    assert "cancelled job 1: the scrontab takes its place" in (
        call("install", "lab", "--yes")
    )
    assert not list(at.glob("names.*"))


def lines(*texts: str) -> str:
    return NIGHTLY + "".join(f"{text}\n" for text in texts)


STATED = "by the times that its checks state, since no night was recorded"
NO_NIGHTS = [
    (NIGHTLY.replace("05:00", "01:00"), "window: expected an end after the start"),
    (
        NIGHTLY.replace("05:00", "5 o'clock".replace("'", "''")),
        "window.end: expected a",
    ),
    (
        lines("qos: fast"),
        "qos: Slurm knows no qos 'fast'; expected one of: night, norm",
    ),
    (
        lines("account: me"),
        "account: Slurm knows no account 'me'; expected one of: ops",
    ),
    (
        lines("partition: x"),
        "knows no partition 'x'; expected one of: batch, short, closed",
    ),
    (
        lines("partition: closed"),
        "partition closed takes jobs of ops,hpc; got guests, the default of this user",
    ),
    (lines("reservation: x"), "knows no reservation 'x'; expected one of: nights"),
    (
        lines("partition: short"),
        "its driver works for up to 270 minutes, partition short allows 60; expected a",
    ),
    (
        NIGHTLY.replace("node_hours: 2", "node_hours: 0.1"),
        f"for all nodes within 5 nights: 2 nodes a night take 0.5 ({STATED}); expected",
    ),
    (
        NIGHTLY.replace("05:00", "01:05"),
        f"01:00 to 01:05 has 5 minutes, a night takes 10 ({STATED}); expected a window",
    ),
]


@pytest.mark.parametrize(("text", "message"), NO_NIGHTS)
def test_nights_that_cannot_work_are_not_installed(
    text: str, message: str, at: Path
) -> None:
    """One sentence, before anything is changed."""
    declare(at, text)
    shown = call("install", "lab", "--yes", status=2)
    assert message in shown
    assert len(shown.splitlines()) == 1
    assert is_untouched(at)


def no_slurm(at: Path) -> None:
    (at.parent / "bin" / "scontrol").write_text("#!/bin/sh\nexit 1\n")


def no_default(at: Path) -> None:
    file = at / "partitions"
    file.write_text(file.read_text().replace("Default=YES", "Default=NO"))


def no_section(at: Path) -> None:
    (at / "crontab").write_text("# END seatrial nightly lab\n")


def one_node(at: Path) -> None:
    file = at.parent / "home" / "etc" / "lab" / "settings.yaml"
    file.write_text(file.read_text().replace('["cn01", "cn02"]', '["cn01"]'))


def not_of_slurm(at: Path) -> None:
    file = at.parent / "home" / "etc" / "lab" / "settings.yaml"
    file.write_text(file.read_text().replace('"slurm"', '"local"'))


def undeclared(at: Path) -> None:
    (at.parent / "home" / "reference-data" / "lab" / "nightly.yaml").unlink()


BROKEN = [
    (no_slurm, "Slurm does not answer: `scontrol show partition` failed"),
    (
        no_default,
        "partition: expected the partition of the driver: Slurm has no default",
    ),
    (no_section, "the section of lab is damaged"),
    (one_node, "lab: no class can be measured; expected one with 2 nodes"),
    (not_of_slurm, "lab: some nodes are not Slurm's; expected a system with Slurm"),
    (undeclared, "nightly.yaml: missing; it declares the nights of lab"),
]


def test_a_partition_that_takes_the_account(at: Path) -> None:
    declare(at, lines("partition: closed", "account: ops"))
    call("install", "lab", "--yes")


@pytest.mark.parametrize(("spoil", "message"), BROKEN)
def test_a_system_without_nights(
    spoil: Callable[[Path], None], message: str, at: Path
) -> None:
    spoil(at)
    assert message in call("install", "lab", "--yes", status=2)
    assert is_untouched(at)


def test_results_of_another_user(at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = at.parent / "results" / "lab"
    folder.mkdir(parents=True)
    me = os.geteuid()
    monkeypatch.setattr("os.geteuid", lambda: me + 4_000_000)
    shown = call("install", "lab", "--yes", status=2)
    assert f"{folder}: belongs to " in shown
    assert f"expected a folder of user {me + 4_000_000}" in shown
    assert len(shown.splitlines()) == 1
    assert not (at / "writes").exists()


def test_accounting_that_does_not_answer_is_noted(at: Path) -> None:
    (at.parent / "bin" / "sacctmgr").write_text("#!/bin/sh\nexit 1\n")
    declare(at, lines("qos: fast", "account: me"))
    shown = call("install", "lab", "--yes")
    for name in ("qos fast", "account me"):
        assert f"note: {name}: not checked: sacctmgr does not answer here" in shown


def test_a_driver_that_can_be_preempted_is_noted(at: Path) -> None:
    declare(at, lines("partition: short").replace("05:00", "01:20"))
    shown = call("install", "lab", "--yes")
    assert "note: partition short has PreemptMode=CANCEL" in shown
    assert "note: partition short has nodes of the system" in shown


PLAN = """\
nights of lab, 01:00 to 05:00, the next at NEXT
class  nodes  a night
batch      2        2
every node within 5 nights
a night: 10.0 of 240 minutes, 0.5 of 2 node-hours, by the times that its checks state, \
since no night was recorded
false alarms: 1 a year are expected, at most; half by history, half by the limits of \
each night, at a seller's risk of 0.0014 a night
history: losses of more than 1 % are found after 14 nights, when all baselines are \
learnt
note: no job of Gpu: needs a GPU
"""


def test_plan(at: Path) -> None:
    shown = call("plan", "lab").splitlines()
    head, _, opening = shown[0].rpartition(" at ")
    assert opening.endswith("01:00")
    table = [f"{head} at NEXT", *(line.rstrip() for line in shown[1:])]
    assert table == PLAN.splitlines()
    assert is_untouched(at)


def test_plan_from_recorded_nights(at: Path) -> None:
    """Medians over the nights; runs of other campaigns do not count."""
    results = at.parent / "results"
    for day, elapsed in ((1, 900.0), (2, 1800.0), (3, 2700.0)):
        case = replace(CASE, nodes=("cn01", "cn02"), elapsed_s=elapsed)
        close_run(results, f"2026010{day}T000000Z-nightly", cases=[case])
    slow = replace(CASE, nodes=("cn01", "cn02"), elapsed_s=99_999.0)
    close_run(results, "20260104T000000Z-smoke", cases=[slow])
    damaged = close_run(results, "20260105T000000Z-nightly", cases=[slow])
    (damaged / "cases.json").write_text("[")
    found = json.loads(call("plan", "lab", "--format", "json"))
    assert (found["nights"], found["node_hours"]) == (3, 1.0)
    assert (found["risk_a_night"], found["nights_to_learn"]) == (1 / 730, 14)
    assert found["problems"] == []
    declare(at, NIGHTLY.replace("node_hours: 2", "node_hours: 0.75"))
    shown = call("plan", "lab", status=2)
    assert (
        "2 nodes a night take 1.0 (by the last 3 nights); expected node_hours" in shown
    )


def test_plan_of_a_campaign_that_cannot_run(
    at: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = replace(COST, jobs=0, nothing={"Echo": "needs mpi"})
    monkeypatch.setattr(campaign_plan, "campaign_cost", lambda *_: nothing)
    shown = call("install", "lab", "--yes", status=2)
    assert "campaign 'nightly': no check can run on lab: Echo: needs mpi; install" in (
        shown
    )
    assert is_untouched(at)


def test_cost_before_the_first_night(at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks state their times: two cases with each of two stacks, of 5 s."""
    monkeypatch.setattr(campaign_plan, "campaign_cost", CAMPAIGN_COST)
    found = json.loads(call("plan", "lab", "--format", "json"))
    assert (found["nights"], found["nothing"], found["problems"]) == (0, {}, [])
    assert found["node_hours"] == pytest.approx(4 * 2 * 5 / 3600)


@pytest.mark.slow
def test_cost_of_the_real_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the first night, the checks state their times."""
    home = tmp_path / "home"
    (home / "etc").mkdir(parents=True)
    for name in ("reference-data", "reframe-checks"):
        (home / name).symlink_to(SUITE / name)
    demo = SUITE / "reports" / "demo" / "night-1.seatrial.tar.xz"
    run = unpack(demo, tmp_path / "run")
    (home / "etc" / "lab").symlink_to(run / "system")
    monkeypatch.setenv("SEATRIAL_HOME", str(home))
    monkeypatch.setenv("SEATRIAL_RESULTS", str(tmp_path / "results"))
    found = json.loads(call("plan", "lab", "--format", "json"))
    assert (found["nights"], found["nothing"], found["problems"]) == (0, {}, [])
    assert found["classes"] == [{"name": "batch", "nodes": 4, "a_night": 2}]
    assert 0 < found["node_hours"] <= found["budget_node_hours"]


def test_nights_of_a_system_elsewhere(
    at: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They work on the login node, with the settings of this machine."""
    prefix, here = tmp_path / "home", tmp_path / "here"
    nightly_home(here, NIGHTLY.replace("05:00", "01:00"))
    shutil.rmtree(here / "etc")
    there = Remote("head", str(prefix))
    monkeypatch.setattr(login_node, "load_remote", lambda *_: there)
    seatrial = Path(sys.executable).with_name("seatrial")
    wrapper = f'SEATRIAL_HOME={prefix} exec {seatrial} "$@"'
    fake_program(prefix / "bin", "seatrial", wrapper)
    last = 'for command in "$@"; do :; done'
    fake_program(tmp_path / "bin", "ssh", f'{last}\nexec sh -c "$command"')
    monkeypatch.setenv("SEATRIAL_HOME", str(here))
    (at / "crontab").write_bytes(MINE.encode())
    for words in (["plan", "lab"], ["install", "lab", "--yes"]):
        assert "on head did not finish" in call(*words, status=2)
    copied = prefix / "reference-data" / "lab" / "nightly.yaml"
    assert "end: '01:00'" in copied.read_text()
    call("remove", "lab")
    assert (at / "crontab").read_bytes() == MINE.encode()


LARGE = [
    # classes, node-hours, every, the fewest nights that the budget pays for
    ((1000,), 10.0, 5, 25),
    ((1000, 10), 10.0, 5, 27),
    ((1000,), 0.1, 5, None),
    ((1, 4), 0.5, 1, 2),
]


@pytest.mark.parametrize(("sizes", "budget", "every", "needed"), LARGE)
def test_what_would_pay(
    sizes: tuple[int, ...], budget: float, every: int, needed: int | None, at: Path
) -> None:
    """Each node costs 0.25 node-hours a night; the named number works."""
    from datetime import datetime

    from seatrial.nightly.forecast import forecast
    from seatrial.nightly.settings import load_settings

    def problems(nights: int, hours: float) -> list[str]:
        text = f"{NIGHTLY}every: {nights}\n"
        declare(at, text.replace("node_hours: 2", f"node_hours: {hours}"))
        settings = load_settings(at.parent / "home", "lab")
        classes = {f"c{n}": ["x"] * size for n, size in enumerate(sizes)}
        cost = replace(COST, node_hours=0.25 * sum(sizes))
        now = datetime(2026, 11, 25)
        return forecast(at, "lab", settings, classes, cost, now).problems

    (problem,) = problems(every, budget)
    assert problem.endswith(f", or every: {needed} or more") == (needed is not None)
    if needed is not None:
        assert problems(needed, budget) == []
        assert problems(needed - 1, budget) != []
    enough = float(problem.partition("expected node_hours: ")[2].split()[0])
    assert problems(every, enough) == []
