"""Cases that share jobs of Slurm, with a real ReFrame and a stand-in for Slurm."""

import math
import os
import re
from pathlib import Path

import pytest
from fake_home import fake_program, write, write_home
from fake_jobs import SBATCH, slurm_jobs
from rich.console import Console

from seatrial.campaign.campaign_file import load_campaign
from seatrial.campaign.runner import Order, run_campaign
from seatrial.checks import partition_limits
from seatrial.checks.partition_limits import longest_job_s
from seatrial.runs.closed_run import Run, load_run
from seatrial.system.description import load_system

CHECKS = """
@rfm.simple_test
class Many(Base):
    y = parameter(range(6))
    time_limit = "1m"

    @run_before("run")
    def odd_ones_take_more_ranks(self):
        self.num_tasks = 1 + self.y % 2


@rfm.simple_test
class Wrong(Base):
    y = parameter(range(3))
    time_limit = "1s"

    @run_before("run")
    def one_fails_one_does_not_end(self):
        self.prerun_cmds = ["", "exit 3", "sleep 60"][self.y : self.y + 1]


@rfm.simple_test
class Long(Base):
    time_limit = "2h"
"""
CASE = re.compile(r"^run_case (\S+) ", re.MULTILINE)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with more checks, and a stand-in for Slurm that runs jobs at once."""
    home = write_home(tmp_path / "home")
    checks = home / "reframe-checks" / "checks" / "fake" / "fake.py"
    checks.write_text(checks.read_text() + CHECKS)
    slurm_jobs(home, tmp_path, monkeypatch)
    return home


def run(home: Path, campaign: str) -> Run:
    write(home / "reframe-checks" / "campaigns" / "packed.yaml", campaign)
    order = Order(
        home=home,
        results=home.parent / "results",
        system=load_system(home, "lab"),
        campaign=load_campaign(home, "packed"),
        run_id="r1",
    )
    console = Console(record=True, force_terminal=False, width=200)
    return load_run(run_campaign(order, console))


def jobs(home: Path) -> list[int]:
    """Return the number of cases of each job, in order of submission."""
    scripts = sorted(
        (home.parent / "slurm").glob("*/script"), key=lambda s: int(s.parent.name)
    )
    return [len(CASE.findall(script.read_text())) for script in scripts]


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [
        pytest.param(0, [0] * 6, marks=pytest.mark.slow),
        (60, [3, 3]),  # the same request: number of tasks
        (6, [2, 1, 2, 1]),  # 1 minute of each case, and 1.5 of margin
    ],
)
def test_cases_with_the_same_request_share_jobs(
    home: Path, minutes: int, expected: list[int]
) -> None:
    """Those on the same nodes cost no `scontrol` each."""
    asked = home.parent / "asked"
    fake_program(home.parent / "bin", "scontrol", f"echo $* >>{asked}; echo cn01")
    packed = f"pack_minutes: {minutes}\n" if minutes else ""
    closed = run(home, f"{packed}blocks: [{{name: many, checks: [Many]}}]\n")
    assert [case.result for case in closed.cases] == ["pass"] * 6
    assert sorted(jobs(home)) == sorted(expected)
    limits = [
        int(match[1])
        for script in (home.parent / "slurm").glob("*/script")
        if (match := re.search(r"--time=(\d+)$", script.read_text(), re.MULTILINE))
    ]
    assert all(limit <= max(minutes, 1) for limit in limits)
    if minutes:
        assert asked.read_text().count("show hostname ") == 1


def test_no_shared_job_is_longer_than_its_partition_allows(home: Path) -> None:
    limits = "case $2 in *%l) printf 'batch* 6:00\\ndebug 3:00\\n';; *) exec cat;; esac"
    states = "printf 'cn01|idle|\\ncn02|idle|\\n' |"
    fake_program(home.parent / "bin", "sinfo", f"{states} {limits}")
    closed = run(home, "pack_minutes: 60\nblocks: [{name: many, checks: [Many]}]\n")
    assert [case.result for case in closed.cases] == ["pass"] * 6
    assert sorted(jobs(home)) == [1, 1, 2, 2]


@pytest.mark.parametrize(
    ("options", "seconds"),
    [
        ((), 86400),
        (("#SBATCH --ntasks-per-node=1",), 86400),
        (("#SBATCH --partition=debug",), 1800),
        (("#SBATCH --nodes=2", "-p debug"), 1800),
        (("--partition=batch,debug",), 1800),
        (("--partition=long",), math.inf),
        (("--partition=unknown",), math.inf),
    ],
)
def test_the_strictest_partition_of_a_request_counts(
    options: tuple[str, ...], seconds: float, fake_sinfo: None
) -> None:
    assert longest_job_s(options) == seconds


@pytest.fixture
def fake_sinfo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = "batch* 1-00:00:00\\ndebug 30:00\\nlong infinite\\n"
    fake_program(tmp_path, "sinfo", f"printf '{limits}'")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    partition_limits._limits_s.cache_clear()


def test_without_slurm_no_limit_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    partition_limits._limits_s.cache_clear()
    assert longest_job_s(()) == math.inf


def test_a_case_of_a_shared_job_ends_by_itself(home: Path) -> None:
    """Its status, its time limit and its times are its own; one too long is alone."""
    checks = "checks: [Long, Wrong]"
    closed = run(
        home, f"pack_minutes: 60\nretries: 1\nblocks: [{{name: w, {checks}}}]\n"
    )
    ends = [(case.case, case.attempt, case.result) for case in closed.cases]
    assert sorted(ends) == [
        ("Long", 1, "pass"),
        ("Wrong %y=0", 1, "pass"),
        ("Wrong %y=1", 1, "fail"),
        ("Wrong %y=1", 2, "fail"),
        ("Wrong %y=2", 1, "fail"),
        ("Wrong %y=2", 2, "fail"),
    ]
    assert sorted(jobs(home)[:2]) == [1, 3]
    assert jobs(home)[2:] == [2]
    starts = [case.start_time for case in closed.cases if case.case != "Long"]
    assert len(set(starts)) == 5
    times = {case.case: case.elapsed_s or 0.0 for case in closed.cases}
    assert times["Wrong %y=2"] >= 1 > times["Wrong %y=1"]


def test_cases_that_had_not_begun_run_again_after_a_lost_node(home: Path) -> None:
    """Only the case that ran on the lost node fails; it is tried again as allowed."""
    at = home.parent / "slurm"
    sbatch = SBATCH.format(at=at).replace(
        "  bash $1", f"  case $n in 1) . {at}/lost $1;; esac\n  [ $n = 1 ] || bash $1"
    )
    fake_program(home.parent / "bin", "sbatch", sbatch)
    lost = f"""
grep -v '^run_case ' $1 > first.sh
grep -m 1 '^run_case ' $1 >> first.sh
bash first.sh
grep '^run_case ' $1 | sed -n '2s/run_case \\([^ ]*\\) .*/\\1/p' |
    while read folder; do echo begin=1.5 >> $folder/seatrial.pack; done
echo NODE_FAIL > {at}/1/state
"""
    (at / "lost").write_text(lost)
    checks = "[{Many: {y: [0, 2, 4]}}]"
    campaign = f"pack_minutes: 30\nblocks: [{{name: a, checks: {checks}}}]\n"
    closed = run(home, campaign)
    results = [case.result for case in closed.cases]
    assert results == ["pass", "fail", "pass"]
    assert jobs(home) == [3, 1]


def test_cases_are_divided_among_the_jobs_that_may_be_in_the_queue(home: Path) -> None:
    campaign = "blocks: [{name: many, checks: [Many]}]\n"
    closed = run(home, f"pack_minutes: 60\nmax_jobs: 2\n{campaign}")
    assert [case.result for case in closed.cases] == ["pass"] * 6
    assert len(jobs(home)) > 1
    assert max(jobs(home)) <= 3


ALONE = "pack_minutes: 1\nmax_jobs: {}\nblocks: [{{name: many, checks: [Many]}}]\n"


@pytest.mark.parametrize(
    ("most", "first"),
    [pytest.param(1, ["1"], marks=pytest.mark.slow), (3, ["1", "2", "3"])],
)
def test_only_so_many_shared_jobs_run_at_a_time(
    home: Path, most: int, first: list[str]
) -> None:
    """One more is in the queue: it waits until any of them ends."""
    checks = home / "reframe-checks" / "checks" / "fake" / "fake.py"
    text = checks.read_text()
    checks.write_text(text.replace("range(6))\n", "range(6))\n    pause = '0.3'\n"))
    closed = run(home, ALONE.format(most))
    assert [case.result for case in closed.cases] == ["pass"] * 6
    assert jobs(home) == [1] * 6
    script = (home.parent / "slurm" / str(most + 1) / "script").read_text()
    after = re.findall(r"^#SBATCH --dependency=(\S+)$", script, re.MULTILINE)
    assert after == ["?".join(f"afterany:{job}" for job in first)]
    spans = [(case.start_time or 0, case.elapsed_s or 0) for case in closed.cases]
    running = [
        sum(start <= moment < start + seconds for start, seconds in spans)
        for moment, _ in spans
    ]
    assert max(running) <= most


def test_a_queue_that_takes_no_waiting_job_costs_nothing_else(home: Path) -> None:
    at = home.parent / "slurm"
    refused = "if grep -q dependency= $1; then echo no more jobs >&2; exit 1; fi\n"
    fake_program(home.parent / "bin", "sbatch", refused + SBATCH.format(at=at))
    closed = run(home, ALONE.format(1))
    assert [case.result for case in closed.cases] == ["pass"] * 6
    assert jobs(home) == [1] * 6
