"""The conductor of a sweep over nodes with faults; `data/nodesweep` stands in."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pytest
from fake_node import CPUS, fake_node, write

from seatrial.checks.nodesweep.launch import NodeStep, run_on_nodes
from seatrial.checks.nodesweep.place import Place, bound, cpus_given, place_of
from seatrial.checks.srun_steps import Ended, Step
from seatrial.checks.step_launcher import Launcher
from seatrial.errors import SeatrialError
from seatrial.parsers.nodesweep import NodeSweep, parse_nodesweep

DATA = Path(__file__).parent / "data"
FOUR = ["cn01", "cn02", "cn03", "cn04"]
TWO = FOUR[:2]


@dataclass(frozen=True)
class Swept:
    """A sweep that has ended: what it said, and what the cluster saw of it."""

    done: subprocess.CompletedProcess[str]
    folder: Path
    nodes: list[str]

    @cached_property
    def sweep(self) -> NodeSweep:
        """Its file, which accounts for every program of every node."""
        sweep = parse_nodesweep((self.folder / "out.jsonl").read_text())
        sweep.verify_complete(self.nodes)
        return sweep

    @property
    def events(self) -> list[tuple[str, str]]:
        """Events; each states if its node was left out."""
        return [(event.text, event.event) for event in self.sweep.events]

    @property
    def kept(self) -> set[str]:
        """The folders that are left of programs that failed."""
        folders = (self.folder / "nodes").glob("*/*")
        return {str(path.relative_to(self.folder / "nodes")) for path in folders}

    @property
    def steps(self) -> list[str]:
        """Started programs, with their nodes and numbers of ranks."""
        return (self.folder / "log").read_text().splitlines()

    def rate(self, node: str, socket: int | None = None) -> float:
        """The memory bandwidth of a node, or of one of its sockets."""
        (row,) = (
            row for row in self.sweep.hpcc if (row.node, row.socket) == (node, socket)
        )
        return row.stream_triad_gb_per_s


Start = Callable[..., Swept]


def run_sweep(
    folder: Path,
    *options: str,
    nodes: list[str] = FOUR,
    sockets: int = 1,
    given: str = "",
    memlat: str = "memlat --huge-pages transparent",
    fixedwork: str = "fixedwork",
    trees: Callable[[Path], object] = lambda root: None,
    **faults: Mapping[str, Any],
) -> Swept:
    """Sweep nodes (cn01 to cn04) with faults; `sockets` of two cores each."""
    named = {name.replace("_", "-"): fault for name, fault in faults.items()}
    (folder / "faults.json").write_text(json.dumps(named))
    for node in nodes:
        fake_node(folder / "trees" / node, sockets=sockets)
    trees(folder / "trees")
    done = subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "seatrial.checks.nodesweep",
                "--output",
                "out.jsonl",
            ),
            *("--n", "1000", "--block", "80", "--quiet", "0.3"),
            *("--memlat", memlat, "--memlat-sizes", "16384:134217728"),
            *("--fixedwork", fixedwork, "--fixedwork-ms", "2000"),
            *(*options, "--", "srun", "--mpi=pmix", "--", "hpcc"),
        ],
        cwd=folder,
        env=os.environ
        | {
            "PATH": f"{DATA}/nodesweep:{DATA}/sweep:{os.environ['PATH']}",
            "CLUSTER": str(folder),
            "SLURM_JOB_ID": "1",
            "SLURM_JOB_NODELIST": ",".join(nodes),
            "SLURM_JOB_CPUS_PER_NODE": given or f"{2 * sockets}(x{len(nodes)})",
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    return Swept(done, folder, nodes)


def sweeper(folder: Path) -> Start:
    """Return a function that sweeps nodes in a folder."""
    return partial(run_sweep, folder)


@pytest.fixture
def start(tmp_path: Path) -> Start:
    return sweeper(tmp_path)


@pytest.fixture(scope="module")
def one_socket(tmp_path_factory: pytest.TempPathFactory) -> Swept:
    """Sweep sound nodes of one socket."""
    return sweeper(tmp_path_factory.mktemp("one_socket"))()


@pytest.fixture(scope="module")
def two_sockets(tmp_path_factory: pytest.TempPathFactory) -> Swept:
    """Sweep sound nodes of two sockets."""
    return sweeper(tmp_path_factory.mktemp("two_sockets"))(sockets=2)


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Swept:
    """Sweep nodes of two sockets: a slow socket, a slow node, a throttled one."""
    return sweeper(tmp_path_factory.mktemp("slow"))(
        sockets=2,
        cn02={"hpcc-1": "slow"},
        cn03={"hpcc": "slow"},
        cn04={"fixedwork": "slow"},
    )


def event_of(swept: Swept, node: str) -> tuple[str, str]:
    """Return the only event of a node that failed, and whether it was left out."""
    assert swept.done.returncode == 0, swept.done.stderr
    (event,) = (event for event in swept.events if event[0].startswith(f"{node}: "))
    return event


def failed(swept: Swept) -> str:
    """The last line of a sweep that gave up."""
    assert swept.done.returncode == 1, swept.done.stdout
    return swept.done.stderr.splitlines()[-1]


def test_sound_nodes_of_one_socket(one_socket: Swept) -> None:
    assert one_socket.done.returncode == 0, one_socket.done.stderr
    sweep = one_socket.sweep
    assert sweep.events == ()
    assert sweep.passed(FOUR) == dict.fromkeys(FOUR, (4, 4))
    assert [(row.node, row.socket, row.ranks) for row in sweep.hpcc] == [
        (node, None, 2) for node in FOUR
    ]
    assert {(row.node, row.socket, row.cpu) for row in sweep.memlat} == {
        (node, 0, 1) for node in FOUR
    }
    assert {skip.reason for skip in sweep.skips} == {"it has one socket"}
    phases = {row.phase for row in sweep.sensors}
    assert phases == {"quiet", "memlat", "hpcc", "fixedwork"}
    programs = ("sensors 1", "memlat-0 1", "hpcc 2", "fixedwork 1")
    assert sorted(one_socket.steps) == sorted(
        f"{n} {p}" for n in FOUR for p in programs
    )
    assert one_socket.kept == set()


def common_steps(swept: Swept) -> list[str]:
    """Programs that were started on several nodes by one step, with these nodes."""
    return (swept.folder / "common").read_text().splitlines()


def test_programs_without_mpi_are_one_step_of_all_nodes(two_sockets: Swept) -> None:
    assert two_sockets.done.returncode == 0, two_sockets.done.stderr
    assert common_steps(two_sockets) == [
        f"{program} cn01 cn02 cn03 cn04"
        for program in ("sensors", "memlat-0", "memlat-1", "fixedwork")
    ]
    assert all(row.start_time > 1e9 for row in two_sockets.sweep.fixedwork)


LOST = [
    (
        "cn02",
        "dead",
        "exit status 1; srun: error: Task launch failed on node",
        "failed",
    ),
    ("cn03", "removed", "exit status 1; srun: error: Unable to create ", "left_out"),
    ("cn04", "lost", "no end in time", "left_out"),
    ("cn05", "hangs", "no end in time", "left_out"),
]


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> Swept:
    """Sweep nodes that are lost in a common step, and a sound one at both ends."""
    return sweeper(tmp_path_factory.mktemp("lost"))(
        *("--memlat-limit", "4", "--start-limit", "8"),
        nodes=["cn01", *(node for node, *_ in LOST), "cn06"],
        **{node: {"memlat-0": fault} for node, fault, *_ in LOST},
    )


@pytest.mark.parametrize(("node", "fault", "reason", "event"), LOST)
def test_lost_node_of_a_common_step_is_named(
    lost: Swept, node: str, fault: str, reason: str, event: str
) -> None:
    text, what = event_of(lost, node)
    assert text.startswith(f"{node}: memlat on socket 0: {reason}"), text
    assert what == event


def test_lost_nodes_of_a_common_step_leave_the_others_alone(lost: Swept) -> None:
    others = {"cn01", "cn06"}
    assert {row.node for row in lost.sweep.memlat} == others
    assert all(lost.steps.count(f"{node} memlat-0 1") == 1 for node in others)


def test_common_step_that_does_not_start_is_repeated_node_by_node(
    start: Start,
) -> None:
    swept = start(nodes=TWO, common_fails=1)
    assert swept.done.returncode == 0, swept.done.stderr
    assert swept.events == []
    assert swept.sweep.passed(TWO) == dict.fromkeys(TWO, (4, 4))
    assert [line.split()[0] for line in common_steps(swept)] == [
        "sensors",
        "memlat-0",
        "fixedwork",
    ]
    assert {*swept.steps[:2]} == {f"{node} sensors 1" for node in TWO}


class StandIn(Launcher):
    """A launcher whose common steps reach all nodes but `dead`, from the second on."""

    def __init__(self, dead: set[str]) -> None:
        super().__init__([], 1)
        self.dead = dead
        self.started: list[int] = []

    def start(self, steps: Sequence[Step]) -> None:
        for step in steps:
            step.is_late = False
            self.started.append(len(step.nodes))
            first = len(self.started) == 1
            for node in [] if first else step.nodes:
                folder = step.folder.parent / node / "memlat-0"
                if len(step.nodes) > 1 and node not in self.dead:
                    write(folder, {"began": 2.5, "status": 0, "out": "x"})

    def wait(self, steps: Sequence[Any], is_ready: Any = None) -> dict[Any, Ended]:
        return {step: Ended(1, (), ("error: dead",)) for step in steps}


def test_many_nodes_without_a_result_get_a_common_step_again(tmp_path: Path) -> None:
    nodes = [f"cn{number:03}" for number in range(100)]
    steps = [
        NodeStep(node, ["memlat"], tmp_path / node / "memlat-0", 9) for node in nodes
    ]
    launcher = StandIn({"cn007", "cn042"})
    ended = run_on_nodes(launcher, steps, 1)
    assert launcher.started == [100, 100, 1, 1]
    assert {step.node for step, end in ended.items() if end.status} == launcher.dead
    assert ended[steps[0]] == Ended(0, ("x",), ())
    assert steps[0].start_time == 2.5


def test_every_socket_is_measured_by_itself(two_sockets: Swept) -> None:
    assert two_sockets.done.returncode == 0, two_sockets.done.stderr
    sweep = two_sockets.sweep
    assert [(row.socket, row.ranks) for row in sweep.hpcc if row.node == "cn02"] == [
        *((None, 4), (0, 2), (1, 2))
    ]
    phases = {row.phase for row in sweep.sensors}
    assert phases == {"quiet", "memlat", "hpcc", "fixedwork", "hpcc_sockets"}
    cpus = {(row.socket, row.cpu) for row in sweep.memlat if row.node == "cn02"}
    assert cpus == {(0, 1), (1, 3)}
    assert sweep.passed(FOUR)["cn03"] == (7, 7)
    assert sweep.skips == ()


def test_nodes_with_different_sockets(start: Start) -> None:
    swept = start(
        nodes=FOUR[:3],
        given="2,4,2",
        trees=lambda folder: fake_node(folder / "cn02", sockets=2),
    )
    assert swept.done.returncode == 0, swept.done.stderr
    assert {n: total for n, (_, total) in swept.sweep.passed(FOUR[:3]).items()} == {
        "cn01": 4,
        "cn02": 7,
        "cn03": 4,
    }
    assert "cn02" not in {skip.node for skip in swept.sweep.skips}


def test_all_nodes_work_at_the_same_time(one_socket: Swept) -> None:
    programs = [line.split()[1] for line in one_socket.steps]
    assert programs == [
        name for name in ("sensors", "memlat-0", "hpcc", "fixedwork") for _ in FOUR
    ]


def test_slow_node_shows_in_its_numbers(slow: Swept) -> None:
    assert slow.events == []
    rate, others = slow.rate("cn03"), [slow.rate(n) for n in FOUR if n != "cn03"]
    assert others == [pytest.approx(4 * rate, rel=1e-5)] * 3


def test_throttled_node_shows_in_its_fixed_work(slow: Swept) -> None:
    rows = {row.node: row for row in slow.sweep.fixedwork}
    assert rows["cn01"].gflops == pytest.approx(4 * rows["cn04"].gflops)
    assert rows["cn01"].slowest_gflops == pytest.approx(4 * rows["cn04"].slowest_gflops)
    assert rows["cn01"].cpu_share_percent == pytest.approx(
        4 * rows["cn04"].cpu_share_percent
    )
    assert rows["cn01"].kept_percent == pytest.approx(rows["cn04"].kept_percent)


def test_fixedwork_runs_on_every_core_of_every_socket(two_sockets: Swept) -> None:
    assert {(row.node, row.cores) for row in two_sockets.sweep.fixedwork} == {
        (node, 4) for node in FOUR
    }


MEMLAT_FAULTS = [
    ("cn02", "fails", "exit status 1; memlat: cn01: validation failed"),
    ("cn03", "cut", "line 8: not a JSON row"),
    ("cn04", "silent", "no output of memlat in 0 lines"),
    ("cn05", "missing", "exit status 2; slurmstepd: error: execve(): taskset: No such"),
]
WORK_FAULTS = [
    ("cn06", "fails", "exit status 1; fixedwork: cn01: validation failed: 1 of 9"),
    ("cn07", "cut", "line 2: 2 rows, expected 4"),
    ("cn08", "silent", "no output of fixedwork in 0 lines"),
    ("cn09", "missing", "exit status 2; slurmstepd: error: execve(): fixedwork: No"),
    ("cn10", "dies", "exit status 137; srun: error: cn10: task 0: Killed"),
]


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Swept:
    """Sweep nodes where memlat or fixedwork fails, and a sound one."""
    return sweeper(tmp_path_factory.mktemp("failing"))(
        sockets=2,
        nodes=["cn01", *(node for node, *_ in MEMLAT_FAULTS + WORK_FAULTS)],
        **{node: {"memlat-1": fault} for node, fault, _ in MEMLAT_FAULTS},
        **{node: {"fixedwork": fault} for node, fault, _ in WORK_FAULTS},
    )


@pytest.mark.parametrize(("node", "fault", "reason"), WORK_FAULTS)
def test_fixedwork_that_fails_is_named(
    failing: Swept, node: str, fault: str, reason: str
) -> None:
    text, event = event_of(failing, node)
    assert text.startswith(f"{node}: fixedwork: {reason}"), text
    assert event == "failed"
    assert failing.sweep.passed(failing.nodes)[node] == (6, 7)


@pytest.mark.parametrize(("node", "fault", "reason"), MEMLAT_FAULTS)
def test_memlat_that_fails_is_named(
    failing: Swept, node: str, fault: str, reason: str
) -> None:
    text, event = event_of(failing, node)
    assert text.startswith(f"{node}: memlat on socket 1: {reason}"), text
    assert event == "failed"
    assert failing.sweep.passed(failing.nodes)[node] == (6, 7)


def test_programs_that_fail_leave_the_other_nodes_alone(failing: Swept) -> None:
    assert failing.sweep.passed(failing.nodes)["cn01"] == (7, 7)


def test_slow_socket_shows_in_its_numbers(slow: Swept) -> None:
    assert slow.rate("cn02", 0) == pytest.approx(4 * slow.rate("cn02", 1), rel=1e-5)
    assert slow.rate("cn02") == slow.rate("cn01")


HPCC_FAULTS = [
    ("cn02", "fails", r"line 4\d\d: .*FAILED", "failed"),
    ("cn03", "cut", r"line \d+: ", "failed"),
    ("cn04", "silent", "hpccoutf.txt: No such file or directory", "failed"),
    ("cn05", "dies", "exit status 137; srun: error: cn05: task 0: Killed", "failed"),
    ("cn06", "dead", "exit status 1; srun: error: Task launch failed", "failed"),
    ("cn07", "missing", r"exit status 2; slurmstepd: error: execve\(\): sh", "failed"),
    ("cn08", "removed", "exit status 1; srun: error: Unable to create", "left_out"),
    ("cn09", "lost", r"exit status -9; srun: Job step aborted: Waiting", "left_out"),
    ("cn10", "down", r"is cut off; exit status 0; srun: error: Node fail", "failed"),
]


@pytest.fixture(scope="module")
def failing_hpcc(tmp_path_factory: pytest.TempPathFactory) -> Swept:
    """Sweep nodes whose HPCC fails, and a sound one at both ends."""
    return sweeper(tmp_path_factory.mktemp("failing_hpcc"))(
        nodes=["cn01", *(node for node, *_ in HPCC_FAULTS), "cn11"],
        **{node: {"hpcc": fault} for node, fault, *_ in HPCC_FAULTS},
    )


@pytest.mark.parametrize(("node", "fault", "reason", "event"), HPCC_FAULTS)
def test_node_whose_hpcc_fails_is_named(
    failing_hpcc: Swept, node: str, fault: str, reason: str, event: str
) -> None:
    text, what = event_of(failing_hpcc, node)
    assert text.startswith(f"{node}: hpcc: ")
    assert re.search(reason, text), text
    assert what == event
    passed = 2 if event == "left_out" else 3
    assert failing_hpcc.sweep.passed(failing_hpcc.nodes)[node] == (passed, 4)
    assert f"{what.replace('_', ' ')}: {node}: hpcc: " in failing_hpcc.done.stdout


def test_nodes_whose_hpcc_fails_leave_the_others_alone(failing_hpcc: Swept) -> None:
    sweep = failing_hpcc.sweep
    assert {row.node for row in sweep.hpcc} == {"cn01", "cn11"}
    assert {row.node for row in sweep.memlat} == set(failing_hpcc.nodes)
    assert set(sweep.counters) == set(failing_hpcc.nodes)
    assert failing_hpcc.kept == {f"{node}/hpcc" for node, *_ in HPCC_FAULTS}


def test_node_that_hangs_is_ended_and_left_out(start: Start) -> None:
    began = time.monotonic()
    options = ("--hpcc-limit", "2")
    swept = start(*options, nodes=FOUR[1:], sockets=2, cn03={"hpcc": "hangs"})
    assert time.monotonic() - began < 60
    assert swept.done.returncode == 0, swept.done.stderr
    assert swept.events == [("cn03: hpcc: no end in time", "left_out")]
    sockets = {(row.node, row.socket) for row in swept.sweep.hpcc}
    assert {node for node, _ in sockets} == {"cn02", "cn04"}
    assert len(sockets) == 6
    assert "cn03" in swept.sweep.counters
    cancelled = (swept.folder / "cancelled").read_text().splitlines()
    assert len(cancelled) == 1


NO_ANSWERS = [
    ("cn02", "dead", "exit status 1; srun: error: Task launch failed on node"),
    ("cn03", "removed", "exit status 1; srun: error: Unable to create step"),
    ("cn04", "silent", "exit status 0"),
    ("cn05", "hangs", "no end in time"),
    ("cn06", "cut", "no end in time"),
]


@pytest.fixture(scope="module")
def no_answers(tmp_path_factory: pytest.TempPathFactory) -> Swept:
    """Sweep nodes that do not answer, and a sound one at both ends."""
    return sweeper(tmp_path_factory.mktemp("no_answers"))(
        *("--start-limit", "3"),
        nodes=["cn01", *(node for node, *_ in NO_ANSWERS), "cn07"],
        **{node: {"sensors": fault} for node, fault, _ in NO_ANSWERS},
    )


@pytest.mark.parametrize(("node", "fault", "reason"), NO_ANSWERS)
def test_node_that_does_not_answer_is_left_out(
    no_answers: Swept, node: str, fault: str, reason: str
) -> None:
    text, event = event_of(no_answers, node)
    assert text.startswith(f"{node}: sensors: {reason}")
    assert event == "left_out"
    assert no_answers.sweep.passed(no_answers.nodes)[node] == (0, 1)
    assert {row.node for row in no_answers.sweep.hpcc} == {"cn01", "cn07"}


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> Swept:
    """Sweep nodes whose trees tell of trouble, and a sound one.

    The trees do not change under way: the counters of before show.
    """

    def trouble(folder: Path) -> None:
        mc = "sys/devices/system/edac/mc/mc0"
        write(folder / "cn01", {f"{mc}/ue_count": 2})
        write(folder / "cn02", {f"{CPUS}/cpu1/cpufreq/scaling_cur_freq": 800000})
        fake_node(folder / "cn04" / "bare", sensors=False)
        (folder / "cn04").rename(folder / "old")
        (folder / "old" / "bare").rename(folder / "cn04")
        write(folder / "cn05", {f"{CPUS}/online": "nothing"})
        little = "MemTotal: 67108864 kB\nMemAvailable: 7000 kB"
        write(folder / "cn06", {"proc/meminfo": little})

    nodes = [*FOUR, "cn05", "cn06"]
    return sweeper(tmp_path_factory.mktemp("troubled"))(nodes=nodes, trees=trouble)


def test_sensors_that_end_too_early_are_named(troubled: Swept) -> None:
    """The tree of a node vanishes while it is read: the numbers stay."""
    text, event = event_of(troubled, "cn05")
    assert (
        "cn05: sensors: exit status 1; seatrial.checks.nodesweep.sensors: the node's"
        in text
    )
    assert event == "left_out"


def test_sensors_see_what_happens_to_a_node(troubled: Swept) -> None:
    sweep = troubled.sweep
    assert sweep.counters["cn01"].ecc_uncorrected_before == 2
    assert sweep.counters["cn01"].ecc_uncorrected == 0
    slowest = {row.node: row.clock_min_ghz for row in sweep.sensors}
    others = dict.fromkeys(("cn01", "cn03", "cn04", "cn06"), 2.6)
    assert slowest == {**others, "cn02": 0.8}
    assert sweep.counters["cn04"].ecc_corrected is None
    assert {row.node for row in sweep.absent} == {"cn04"}
    assert {row.what for row in sweep.absent} >= {"temperature", "machine_checks"}


def test_memory_decides_the_size_and_too_little_of_it_is_named(troubled: Swept) -> None:
    """HPCC itself would end with status 1, or be killed."""
    reason = "N = 1000 takes 0.0 GiB of memory, of 64.0 GiB 0.0 GiB are free"
    assert event_of(troubled, "cn06") == (f"cn06: hpcc: {reason}", "failed")


def test_trouble_of_nodes_leaves_the_others_alone(troubled: Swept) -> None:
    assert {text.partition(":")[0] for text, _ in troubled.events} == {"cn05", "cn06"}


@pytest.mark.slow
def test_faults_of_several_nodes(start: Start) -> None:
    nodes = ["cn01", "cn02", "cn04", "cn05", "cn08"]
    swept = start(
        *("--hpcc-limit", "3", "--start-limit", "5"),
        nodes=nodes,
        cn02={"sensors": "dead"},
        cn04={"hpcc": "hangs"},
        cn05={"memlat-0": "dies", "hpcc": "fails"},
        cn08={"hpcc": "slow"},
    )
    assert swept.done.returncode == 0, swept.done.stderr
    assert sorted(text.partition(": ")[0] for text, _ in swept.events) == [
        *("cn02", "cn04", "cn05", "cn05")
    ]
    passed = swept.sweep.passed(nodes)
    assert {node: count for node, count in passed.items() if count != (4, 4)} == {
        "cn02": (0, 1),
        "cn04": (2, 4),
        "cn05": (2, 4),
    }


def test_step_that_slurm_does_not_make_is_tried_again(start: Start) -> None:
    swept = start(nodes=FOUR[1:], no_steps={"cn02": 2, "cn04": 1})
    assert swept.done.returncode == 0, swept.done.stderr
    assert swept.events == []
    steps = [line.split()[0] for line in common_steps(swept)]
    assert steps == [*["sensors"] * 3, "memlat-0", "fixedwork"]


def test_without_memlat(start: Start) -> None:
    swept = start("--no-memlat", "it is not installed", nodes=TWO, memlat="")
    assert swept.done.returncode == 0, swept.done.stderr
    assert swept.sweep.run.no_memlat == "it is not installed"
    assert swept.sweep.passed(TWO) == dict.fromkeys(TWO, (3, 3))


def test_without_fixedwork(start: Start) -> None:
    swept = start("--no-fixedwork", "it is not installed", nodes=TWO, fixedwork="")
    assert swept.done.returncode == 0, swept.done.stderr
    assert swept.sweep.run.no_fixedwork == "it is not installed"
    assert swept.sweep.passed(TWO) == dict.fromkeys(TWO, (3, 3))
    assert swept.sweep.fixedwork == ()


def test_hpcc_that_fails_everywhere_is_no_fault_of_a_node(start: Start) -> None:
    swept = start(nodes=TWO, **{node: {"hpcc": "missing"} for node in TWO})
    assert "HPCC ended well on no node; cn02: hpcc: exit status 2; slurmstepd" in (
        failed(swept)
    )


def test_no_node_that_answers(start: Start) -> None:
    swept = start(nodes=TWO, **{node: {"sensors": "dead"} for node in TWO})
    assert "no node answers; cn02: sensors: exit status 1; srun: error" in (
        failed(swept)
    )


def test_job_without_all_cpus_is_not_bound(start: Start) -> None:
    """Then nobody knows which cores are whose, and no socket is told apart."""
    swept = start(nodes=TWO, sockets=2, given="2(x2)")
    assert swept.done.returncode == 0, swept.done.stderr
    assert {(row.socket, row.ranks) for row in swept.sweep.hpcc} == {(None, 2)}
    assert {row.socket for row in swept.sweep.memlat} == {None}
    assert swept.sweep.passed(TWO) == dict.fromkeys(TWO, (4, 4))
    assert {skip.reason for skip in swept.sweep.skips} == {
        "ranks cannot be bound: Slurm gives 2 CPUs, the job may use 4"
    }


@pytest.mark.parametrize(
    ("text", "nodes", "counts"),
    [
        ("72", 1, [72]),
        ("72(x3)", 3, [72, 72, 72]),
        ("72(x2),36,8(x1)", 4, [72, 72, 36, 8]),
    ],
)
def test_cpus_per_node_as_slurm_writes_them(
    text: str, nodes: int, counts: list[int]
) -> None:
    assert cpus_given(text, nodes) == counts


@pytest.mark.parametrize("text", ["", "72", "72(x3)", "x", "72(x2),"])
def test_cpus_that_are_not_those_of_all_nodes(text: str) -> None:
    with pytest.raises(SeatrialError, match="expected the CPUs of 4 nodes"):
        cpus_given(text, 4)


def told(**changes: Any) -> dict[str, Any]:
    return {
        "sockets": [[0, 1], [2, 3]],
        "cpus": 8,
        "allowed": list(range(8)),
        "cache_bytes": 1,
        "memory_bytes": 1 << 30,
        "available_bytes": 1 << 30,
        "start_time": 1.0,
        **changes,
    }


@pytest.mark.parametrize(
    ("allowed", "given", "expected"),
    [
        (range(8), 8, (((0, 1), (2, 3)), 4, True)),
        ((0, 2, 3, 4, 6, 7), 6, (((0,), (2, 3)), 3, True)),  # a core is set aside
        ((2, 3, 6, 7), 4, (((2, 3),), 2, True)),
        ((0,), 8, (((0, 1), (2, 3)), 4, False)),  # the step is bound already
        (range(8), 4, (((0, 1), (2, 3)), 2, False)),
        (range(8), 1, (((0, 1), (2, 3)), 1, False)),
    ],
)
def test_place_of_ranks(allowed: Any, given: int, expected: Any) -> None:
    place = place_of("cn01", told(allowed=list(allowed)), given)
    assert (place.sockets, place.ranks, place.unbound is None) == expected


def test_ranks_are_bound_one_by_one() -> None:
    """By the shell and taskset of this machine."""
    command = bound(["grep", "Cpus_allowed_list", "/proc/self/status"], [0, 1])
    for rank in ("0", "1"):
        done = subprocess.run(
            command,
            env=os.environ | {"SLURM_LOCALID": rank},
            capture_output=True,
            text=True,
        )
        assert done.stdout.split() == ["Cpus_allowed_list:", rank], done.stderr


@pytest.mark.parametrize(
    ("status", "errors", "reason"),
    [
        (
            None,
            (
                "srun: cluster configuration lacks support for cpu binding",
                "slurmstepd-cn02: error: *** STEP 79.8 ON cn02 CANCELLED AT 2026 ***",
                "srun: launch/slurm: _step_signal: Terminating StepId=79.10",
            ),
            "no end in time",
        ),
        (
            137,
            (
                "srun: error: cn04: tasks 0-1: Killed",
                "srun: launch/slurm: _step_signal: Terminating StepId=79.10",
            ),
            "exit status 137; srun: error: cn04: tasks 0-1: Killed",
        ),
        (
            1,
            ("Fatal glibc error", "srun: Force Terminated StepId=79.10"),
            "exit status 1; Fatal glibc error",
        ),
    ],
)
def test_reason_is_not_what_we_did_to_the_step(
    status: int | None, errors: tuple[str, ...], reason: str
) -> None:
    assert Ended(status, (), errors).reason == reason


def test_room_for_the_matrix() -> None:
    place: Place = place_of("cn01", told(), 8)
    place.require_room(10000)
    with pytest.raises(
        ValueError, match=r"N = 11500 takes 1\.0 GiB of memory, of 1\.0"
    ):
        place.require_room(11500)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--output", "new"], "expected a launcher and a program"),
        (["--output", "new", "--", "srun"], "expected a launcher and a program"),
        (["--", "srun", "--", "hpcc"], "--output"),
        (["--output", "old", "--", "srun", "--", "hpcc"], "old is there already"),
        (
            ["--output", "new", "--memory-percent", "0", "--", "srun", "--", "hpcc"],
            "expected a memory from 0 to 100 %",
        ),
        (
            ["--output", "new", "--memlat-sizes", "8:4", "--", "srun", "--", "hpcc"],
            "'8:4' is not MIN:MAX",
        ),
        (["--output", "new", "--", "srun", "--", "hpcc"], "SLURM_JOB_CPUS_PER_NODE"),
    ],
)
def test_usage(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "old").touch()
    done = subprocess.run(
        [sys.executable, "-m", "seatrial.checks.nodesweep", *arguments],
        cwd=tmp_path,
        env=os.environ
        | {
            "PATH": f"{DATA / 'sweep'}:{os.environ['PATH']}",
            "SLURM_JOB_NODELIST": "cn01",
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert said in done.stderr
