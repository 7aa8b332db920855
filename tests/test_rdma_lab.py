"""The lab with RDMA: verbs in jobs of Slurm, and faults of its rails."""

import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from subprocess import PIPE

import pytest
from conftest import HOME, LAB_HOME, Lab

from seatrial.audit.audit import audit
from seatrial.audit.collect import Collected
from seatrial.audit.hardware_file import HardwareFile
from seatrial.calibration.selftest_faults import known_faults
from seatrial.commands.lab import require_root_on_debian
from seatrial.parsers.mp_rdma import parse_mp_rdma_lat
from seatrial.system.lab import cluster, container, fabric

pytestmark = [pytest.mark.lab, pytest.mark.slow]

NODES = ("rn01", "rn02")

Own = Callable[[str], subprocess.CompletedProcess[str]]
"""Runs one of our programs between both nodes."""

# Both sides have time limits. The client starts when the server listens: a server
# whose client never comes would wait for ever.
PERFTEST = """
PATH=$PATH:/usr/sbin
port=$((18000 + SLURM_JOB_ID % 1000)) ready=$HOME/ready.$SLURM_JOB_ID
test="timeout 30 $1 --ib-dev=rxe$2 --gid-index=1 --iters=20 --port=$port"
if [ "$SLURM_PROCID" = 0 ]; then
    $test & server=$!
    listens=$(printf ':%04X ' $port)
    until grep -q "$listens" /proc/net/tcp*; do
        kill -0 $server 2>/dev/null || exit 1
        sleep 0.1
    done
    touch "$ready"
    wait $server && status=0 || status=$?
    rm "$ready"
    exit $status
fi
timeout 30 sh -c "until [ -e '$ready' ]; do sleep 0.1; done" || exit 1
exec $test 10.98.$(($2 + 1)).11
"""

DECLARED = """
hca_models:
  QEM0000000001: {pcie: {speed: 8, width: 8}}
hca_slots:
  all:
    - {name: rail0, bdf: "0000:01:00.0", psid: QEM0000000001}
    - {name: rail1, bdf: "0000:02:00.0", psid: QEM0000000001}
"""

BUILD = """
set -e
rm -rf own && mkdir own && tar -C own -x
options="-DMPI_C_COMPILER=mpicc.openmpi -DBUILD_TESTING=OFF -DSEATRIAL_COMMIT=test"
cmake -S own/benchmarks -B own/build $options >/dev/null
cmake --build own/build --target mp_rdma_lat mqp_lat >/dev/null
"""


@pytest.fixture(scope="module")
def rdma(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The lab with RDMA and Slurm; no lab afterwards."""
    require_root_on_debian()
    cluster.down(LAB_HOME)
    lab = Lab(tmp_path_factory.mktemp("rdma"), "rdma-lab")
    try:
        lab.play("lab")
        lab.play("cluster", "--limit", "controller")
        yield lab
    finally:
        cluster.down(LAB_HOME)


def perftest(lab: Lab, program: str, rail: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a program of perftest between both nodes, in one job."""
    command = ["bash", "-c", PERFTEST, "perftest", program, str(rail)]
    step = ["srun", "--nodes=2", "--kill-on-bad-exit=1", "--time=2", *command]
    return lab.ssh("rhead", shlex.join(step))


def counter(lab: Lab, node: str, rail: int, name: str) -> int:
    file = f"/sys/class/infiniband/rxe{rail}/ports/1/hw_counters/{name}"
    return int(lab.ssh(node, f"cat {file}").stdout)


@contextmanager
def planted(name: str) -> Iterator[None]:
    fault = known_faults(HOME, "rdma-lab")[name]
    fault.plant()
    try:
        yield
    finally:
        fault.lift()
        fault.lift()  # may be called twice


def test_nodes_are_idle_and_up_again_changes_nothing(rdma: Lab) -> None:
    states = {node.node: node.slurm for node in cluster.status() if node.running}
    assert states.keys() == {"rhead", *NODES}
    assert {states[node] for node in NODES} == {"idle"}
    assert rdma.play("lab") == 0


def test_jobs_see_two_rails_and_may_lock_memory(rdma: Lab) -> None:
    done = rdma.ssh("rhead", "srun --nodes=2 sh -c 'ibv_devices; ulimit -l'")
    assert done.returncode == 0, done.stderr
    words = done.stdout.split()
    assert words.count("rxe0") == words.count("rxe1") == 2
    assert words.count("unlimited") == 2


@pytest.mark.parametrize(
    ("program", "title"),
    [
        ("ib_write_lat", "RDMA_Write Latency Test"),
        ("ib_write_bw", "RDMA_Write BW Test"),
    ],
)
def test_perftest_runs_between_nodes_over_the_rail_that_it_names(
    program: str, title: str, rdma: Lab
) -> None:
    before = [counter(rdma, "rn02", rail, "sent_pkts") for rail in (0, 1)]
    done = perftest(rdma, program, rail=1)
    assert done.returncode == 0, done.stdout + done.stderr
    assert title in done.stdout
    after = [counter(rdma, "rn02", rail, "sent_pkts") for rail in (0, 1)]
    assert after[0] == before[0]
    assert after[1] > before[1]


@pytest.fixture(scope="module")
def own(rdma: Lab) -> Own:
    """Our programs, built there: run one between both nodes."""
    with subprocess.Popen(["tar", "-cC", HOME, "benchmarks"], stdout=PIPE) as sources:
        config = str(cluster.ssh_config(LAB_HOME))
        command = ["ssh", "-F", config, "rhead", BUILD]
        built = subprocess.run(command, stdin=sources.stdout, check=False, timeout=300)
    assert built.returncode == 0
    environment = (
        "OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=host0"
    )
    step = f"env {environment} srun --mpi=pmix --nodes=2 --ntasks=2 --time=2"
    return lambda command: rdma.ssh("rhead", f"{step} {command}")


LATENCY = "own/build/bin/mp_rdma_lat --spread-limit 0 --iterations 20 --warmup 2"


@pytest.mark.parametrize(
    ("rail", "addressing"),
    [
        ("--device rxe0 --gid-index 1", "roce_v2_ipv4"),
        ("--device rxe1 --rdma-cm", "rdma_cm"),
    ],
)
def test_own_program_runs_between_nodes(own: Own, rail: str, addressing: str) -> None:
    """Addresses go over TCP or by rdma_cm, data by verbs; every byte is verified."""
    done = own(f"{LATENCY} {rail} --sizes 8:64 --validate --json")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = parse_mp_rdma_lat(done.stdout)
    assert {row.operation for row in rows} == {"write", "read"}
    assert {row.size_bytes for row in rows} == {8, 16, 32, 64}
    assert {row.validation for row in rows} == {"pass"}
    assert {row.addressing for row in rows} == {addressing}


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (f"{LATENCY} --device rxe9", "--device rxe9: .*: rxe0, rxe1"),
        (f"{LATENCY} --device rxe0:2", r"rxe0:2: .*: choose a port from 1 to 1"),
        (f"{LATENCY} --device rxe0 --gid-index 99", "no GID with index 99: .* from 0 "),
        (
            f"sh -c 'ulimit -l 64; exec {LATENCY} --device rxe0 --sizes 8:1048576'",
            "the limit of locked memory is 64 KiB: raise it to unlimited",
        ),
        (
            "own/build/bin/mqp_lat --device rxe0 --connections 1:65536 --sizes 8:8",
            r"\d+ completions \(max_cqe\) wanted, the device has \d+",
        ),
    ],
)
def test_bad_input_is_one_line_of_one_rank(own: Own, command: str, error: str) -> None:
    done = own(command)
    assert done.returncode in (1, 2)
    lines = [line for line in done.stderr.splitlines() if re.match(r"m\w+: rank", line)]
    assert len(lines) == 1, done.stderr
    assert re.search(rf"rank \d on rn0\d: .*{error}", lines[0]), lines[0]


def test_mtu_above_that_of_the_port_is_refused(rdma: Lab, own: Own) -> None:
    assert rdma.ssh("rn02", "sudo ip link set rail0 mtu 1500").returncode == 0
    try:
        done = own(f"{LATENCY} --device rxe0 --mtu 4096")
    finally:
        assert rdma.ssh("rn02", "sudo ip link set rail0 mtu 4500").returncode == 0
    assert done.returncode == 2
    error = r"rank 1 on rn02: .*--mtu 4096: .*: the active MTU is 1024: choose that"
    assert re.search(error, done.stderr), done.stderr


def test_slots_of_the_rails_differ(rdma: Lab) -> None:
    links = rdma.ssh("rn01", "sudo lspci -vv").stdout.split("Root port")[1:]
    assert ["Speed 8GT/s, Width x8" in links[0], "Width x4" in links[1]] == [True] * 2


def test_audit_finds_a_slot_that_is_narrower_than_declared(
    rdma: Lab, tmp_path: Path
) -> None:
    """The slot of rxe0 has 8 lanes as declared, that of rxe1 has 4."""
    file = tmp_path / "hardware.yml"
    file.write_text(DECLARED)
    declaration = HardwareFile(file, ["batch"], tmp_path / "no database")
    script = files("seatrial.audit").joinpath("node.sh").read_text()
    config = str(cluster.ssh_config(LAB_HOME))
    command = ["ssh", "-F", config, "rn01", "sudo sh -s /"]
    raw = subprocess.run(command, input=script, stdout=PIPE, text=True, check=True)
    collected = Collected(classes={"batch": ["rn01"]}, raw={"rn01": raw.stdout})
    found = {(row.subject, row.key): row for row in audit(collected, declaration)}
    for rail, width, verdict in (("rail0", "8", "ok"), ("rail1", "4", "drift")):
        row = found[rail, "pcie.width"]
        assert (row.declared, row.actual, row.verdict) == ("8", width, verdict)
        assert found[rail, "pcie.speed"].verdict == "ok"
        assert found[rail, "device"].actual == rail.replace("rail", "rxe")
        assert found[rail, "state"].actual == "ACTIVE"


def test_a_port_that_is_down_is_named(rdma: Lab) -> None:
    with planted("port-down"):
        done = perftest(rdma, "ib_write_lat")
        assert done.returncode != 0
        assert "state is Down" in done.stdout + done.stderr
    done = perftest(rdma, "ib_write_lat")
    assert done.returncode == 0, done.stdout + done.stderr


def test_lost_packets_are_sent_again(rdma: Lab) -> None:
    with planted("packet-loss"):
        shown = rdma.ssh("rn02", "/sbin/tc qdisc show dev rail0").stdout
        assert "loss 5%" in shown
        dropped = 0
        for _ in range(5):
            assert perftest(rdma, "ib_write_bw").returncode == 0
            statistics = rdma.ssh("rn02", "/sbin/tc -s qdisc show dev rail0").stdout
            dropped = int(statistics.partition("dropped ")[2].partition(",")[0])
            if dropped:
                break
        assert dropped > 0
    assert "netem" not in rdma.ssh("rn02", "/sbin/tc qdisc show dev rail0").stdout


def test_a_slow_rail_leaves_the_other_alone(rdma: Lab) -> None:
    def limits() -> list[bool]:
        rails = (rail.device for rail in fabric.RAILS)
        show = "/sbin/tc qdisc show dev"
        return ["rate 40Mbit" in rdma.ssh("rn02", f"{show} {r}").stdout for r in rails]

    with planted("slow-rail"):
        assert limits() == [False, True]
        assert perftest(rdma, "ib_write_bw", rail=1).returncode == 0
    assert limits() == [False, False]


def test_a_machine_that_dies_is_started_again(rdma: Lab) -> None:
    container.end_processes("rn02")
    assert [n.node for n in cluster.status() if not n.running] == ["rn02"]
    assert rdma.play("lab") == 1
    deadline = time.monotonic() + 60
    while {node.slurm for node in cluster.status()[1:]} != {"idle"}:
        assert time.monotonic() < deadline
        time.sleep(1)
