"""Stand-ins below MPI: formats of the real programs, and what a fault does to them."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from model_runs import model_truth, node_names, start, step_variables

from seatrial.checks.verbs_program import VerbsProgram
from seatrial.parsers.mp_rdma import parse_mp_rdma_bw, parse_mp_rdma_lat
from seatrial.parsers.mqp_lat import parse_mqp_lat
from seatrial.parsers.mr_cost import parse_mr_cost
from seatrial.parsers.pairsweep import parse_pairsweep
from seatrial.parsers.perftest import parse_perftest_bw, parse_perftest_sampled
from seatrial.parsers.winbw import parse_winbw
from seatrial.standins.install import install
from seatrial.standins.truth import Faults, SlowLeaf, SlowLink, SlowNode

RECORDED = Path(__file__).parent / "data" / "verbs"
COMMON = "--iterations 200 --warmup 20 --time 100 --validate --json"
MIB = 1 << 20


def output(machine: Path, command: str, nodes: list[str], **variables: str) -> str:
    """Return what a program prints on rank 0; it must succeed."""
    ended = start(machine, command, nodes, **variables)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


@pytest.mark.parametrize(
    ("command", "ranks", "parse", "recorded", "rows"),
    [
        ("mp_rdma_lat --pairs 1:3", 6, parse_mp_rdma_lat, "mp_rdma_lat.txt", 2 * 3 * 9),
        ("mp_rdma_bw --pairs 1:0", 8, parse_mp_rdma_bw, "mp_rdma_bw.txt", 2 * 3 * 9),
        ("mqp_lat --connections 1:256", 2, parse_mqp_lat, "mqp_lat.txt", 4 * 9 * 9),
        ("mqp_lat --connections 3", 2, parse_mqp_lat, "mqp_lat.txt", 4 * 2 * 9),
        ("winbw --device model0:1", 2, parse_winbw, "winbw-1.txt", 2 * 9),
        ("winbw --device model0:1,model1:1", 4, parse_winbw, "winbw-2.txt", 6 * 9),
        ("mr_cost", 1, parse_mr_cost, "mr_cost.txt", 3 * 9),
    ],
)
def test_rows_are_those_of_the_real_program(
    command: str,
    ranks: int,
    parse: Callable[[str], list[Any]],
    recorded: str,
    rows: int,
    tmp_path: Path,
) -> None:
    install(tmp_path / "m", model_truth(2))
    count = str(ranks)
    command = f"{command} --sizes 4096:{MIB} {COMMON}"
    nodes = node_names(1 if ranks == 1 else 2)
    text = output(tmp_path / "m", command, nodes, SLURM_STEP_NUM_TASKS=count)
    assert len(parse(text)) == rows
    first, *_ = (RECORDED / recorded).read_text().splitlines()
    own = json.loads(text.splitlines()[0])
    assert [*own] == [*json.loads(first)]
    assert own["np"] == ranks
    assert own["device"] == "model0:1"


@pytest.mark.parametrize(
    ("options", "addressing"),
    [
        ("", ("lid", None)),
        ("--gid-index 3", ("roce_v2_ipv4", 3)),
        ("--rdma-cm", ("rdma_cm", None)),
    ],
)
def test_addresses_are_those_of_the_options(
    options: str, addressing: tuple[str, int | None], tmp_path: Path
) -> None:
    install(tmp_path / "m", model_truth(2))
    command = f"winbw {options} --sizes 8:8 {COMMON}"
    row, *_ = parse_winbw(output(tmp_path / "m", command, node_names(2)))
    assert (row.addressing, row.gid_index) == addressing


@pytest.mark.parametrize(("factor", "largest"), [(2, 65536), (4, 65536), (3, 100)])
def test_sizes_are_those_that_the_check_expects(
    factor: int, largest: int, tmp_path: Path
) -> None:
    install(tmp_path / "m", model_truth(2))
    span = f"--sizes 8:{largest} --factor {factor}"
    command = f"mp_rdma_lat --operation write --pairs 1:1 {span} {COMMON}"
    rows = parse_mp_rdma_lat(output(tmp_path / "m", command, node_names(2)))

    class Wanted:
        min_size, max_size, size_factor = 8, largest, factor

    expected = VerbsProgram.__dict__["sizes"].fget(Wanted)
    assert [row.size_bytes for row in rows] == expected


@pytest.mark.parametrize(
    ("command", "nodes", "reason"),
    [
        ("winbw --qps 2", 2, "unknown option --qps"),
        ("mp_rdma_lat --pairs 1:4", 2, "--pairs 1:4, there is room for 1"),
        ("mp_rdma_lat --sizes 0:8", 2, "--sizes 0:8, expected [MIN:]MAX, from 1 on"),
        ("mqp_lat --connections 0:8", 2, "--connections 0:8, expected [MIN:]MAX, from"),
        ("winbw --factor 1", 2, "--factor 1, expected 2 at least"),
        ("winbw", 1, "found 1 ranks on 1 node: pairs take two nodes"),
        ("mr_cost", 2, "found 2 ranks: mr_cost measures one process"),
        ("ib_write_bw -a -p 7 n", 2, "unknown option -a"),
        ("ib_atomic_lat -A ADD -p 7 n", 2, "-A ADD, expected FETCH_AND_ADD or CMP"),
        ("pairsweep_verbs --rail-variable X", 2, "unknown option --rail-variable"),
        ("pairsweep --gid-index 1", 2, "unknown option --gid-index"),
    ],
)
def test_what_the_model_does_not_know_is_refused(
    command: str, nodes: int, reason: str, tmp_path: Path
) -> None:
    install(tmp_path / "m", model_truth(2))
    ended = start(tmp_path / "m", command, node_names(nodes))
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"{command.split()[0]}: model: {reason}")


def number(value: float | None) -> float:
    assert value is not None
    return value


def slowness(machine: Path, nodes: list[str]) -> dict[str, float]:
    """Return one number of each program, as a time: larger is slower."""
    single = f"--sizes 65536:65536 {COMMON}"
    lat = output(machine, f"mp_rdma_lat --pairs 1:1 --sizes 8:8 {COMMON}", nodes)
    bw = output(machine, f"mp_rdma_bw --pairs 1:1 {single}", nodes)
    window = output(machine, f"winbw {single}", nodes)
    queues = output(machine, f"mqp_lat --connections 1:1 --sizes 8:8 {COMMON}", nodes)
    cost = output(machine, f"mr_cost --sizes 4096:4096 {COMMON}", nodes[:1])
    send = output(machine, "ib_send_lat -s 8 -n 1001 -U -d model0 -p 7 n", nodes)
    pipe = output(machine, f"ib_write_bw -s {MIB} -n 100 -q 2 -d model0 -p 7 n", nodes)
    sampled = parse_perftest_sampled(send, "Send Latency", 8, 1001)
    (row,) = parse_perftest_bw(pipe, "RDMA_Write BW", [MIB], 200)
    return {
        "mp_rdma_lat": number(parse_mp_rdma_lat(lat)[0].p50_us),
        "mp_rdma_bw": 1 / parse_mp_rdma_bw(bw)[0].mb_per_s,
        "winbw": 1 / parse_winbw(window)[0].mb_per_s,
        "mqp_lat": number(parse_mqp_lat(queues)[0].p50_us),
        "mr_cost": parse_mr_cost(cost)[0].p50_us,
        "ib_send_lat": sorted(sampled)[500],
        "ib_write_bw": 1 / row.bandwidth_mb_per_s,
    }


LATENCY = {"mp_rdma_lat", "mqp_lat", "ib_send_lat"}
BANDWIDTH = {"mp_rdma_bw", "winbw", "ib_write_bw"}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """The slowness of each program on a machine without faults."""
    return slowness_with(Faults(), tmp_path_factory.mktemp("sound"))


def slowness_with(faults: Faults, machine: Path) -> dict[str, float]:
    """The slowness of each program between two leaves of a machine with faults."""
    install(machine, model_truth(4, leaf_nodes=2, noise_percent=0, faults=faults))
    return slowness(machine, ["mn0001", "mn0004"])


@pytest.mark.parametrize(
    ("faults", "slow"),
    [
        (Faults(slow_nodes=(SlowNode("mn0004", 1.5, "latency"),)), LATENCY),
        (Faults(slow_nodes=(SlowNode("mn0001", 1.5, "bandwidth"),)), BANDWIDTH),
        (Faults(slow_nodes=(SlowNode("mn0001", 1.5, "memory"),)), {"mr_cost"}),
        (
            Faults(slow_links=(SlowLink(("mn0001", "mn0004"), 1.5),)),
            LATENCY | BANDWIDTH,
        ),
        (Faults(slow_leaves=(SlowLeaf(1, 1.5, "bandwidth"),)), BANDWIDTH),
    ],
)
def test_a_fault_slows_the_programs_of_its_area(
    faults: Faults, slow: set[str], sound: dict[str, float], tmp_path: Path
) -> None:
    other = slowness_with(faults, tmp_path)
    ratios = {program: other[program] / sound[program] for program in sound}
    assert {program for program, ratio in ratios.items() if ratio > 1.2} == slow
    for program, ratio in ratios.items():
        assert ratio == pytest.approx(1.5 if program in slow else 1, abs=0.08), program


def test_the_sweep_over_verbs_is_faster_than_that_over_mpi(tmp_path: Path) -> None:
    machine = tmp_path / "m"
    install(machine, model_truth(4, noise_percent=0))
    results = []
    for program in ("pairsweep", "pairsweep_verbs"):
        command = f"{program} --rails model0:1 --validate --json --resume {program}"
        output(machine, command, node_names(4))
        result = parse_pairsweep((machine / program).read_text())
        result.verify_complete(node_names(4))
        results.append(result)
    over_mpi, over_verbs = results
    assert over_verbs.runs[0].rail_variable is None
    for slow, fast in zip(over_mpi.pairs, over_verbs.pairs, strict=True):
        assert fast.latency_p50_us / slow.latency_p50_us == pytest.approx(0.85)
        assert fast.hca == "model0:1"


def test_both_sides_of_perftest_meet_as_the_checks_start_them(tmp_path: Path) -> None:
    """Rank 1 has the server, rank 0 the client, each by perftest_pair."""
    machine, work = tmp_path / "m", tmp_path / "work"
    install(machine, model_truth(2))
    work.mkdir()
    pair = [sys.executable, "-I", "-m", "seatrial.checks.perftest_pair"]
    pair += ["--meet", "perftest.port", "--limit", "30", "--"]
    program = f"ib_write_bw -b -t 64 -Q 1 -q 2 -n 3200 -s {MIB} -F -d model0 -i 1"
    sides = []
    for rank, node in enumerate(node_names(2)):
        there = {"SLURM_PROCID": str(rank), "SLURMD_NODENAME": node}
        variables = step_variables(node_names(2), **there)
        variables["PATH"] = f"{machine / 'bin'}:{variables['PATH']}"
        sides.append(
            subprocess.Popen(
                [*pair, *program.split()],
                cwd=work,
                env=variables,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    (text, errors), (nothing, more) = (side.communicate(timeout=60) for side in sides)
    assert [side.returncode for side in sides] == [0, 0], errors + more
    assert nothing == ""
    (row,) = parse_perftest_bw(text, "RDMA_Write Bidirectional BW", [MIB], 6400)
    assert row.bandwidth_mb_per_s == pytest.approx(1.9 * 12_000, rel=0.05)
    assert [*work.iterdir()] == []


def test_the_server_of_perftest_waits_for_its_client(tmp_path: Path) -> None:
    machine = tmp_path / "m"
    install(machine, model_truth(2))
    with socket.create_server(("", 0)) as free:
        tcp_port = str(free.getsockname()[1])
    (machine / f".perftest-{tcp_port}").touch()  # of an earlier one
    there = {"SLURM_PROCID": "1", "SLURMD_NODENAME": "mn0002"}
    server = subprocess.Popen(
        [machine / "bin" / "ib_send_lat", "-s", "8", "-n", "10", "-p", tcp_port],
        cwd=machine,
        env=step_variables(node_names(2), **there),
    )
    try:
        time.sleep(0.5)
        assert server.poll() is None
        client = f"ib_send_lat -s 8 -n 10 -p {tcp_port} mn0002"
        output(machine, client, node_names(2))
        assert server.wait(timeout=20) == 0
    finally:
        server.kill()
        server.wait()
