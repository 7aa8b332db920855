"""Programs of verbs where they need no adapter; test_benchmarks.py has the rest."""

import re
from pathlib import Path

import pytest
from benchmark_builds import SOURCES, Build, Completed, run

pytestmark = [
    pytest.mark.any_mpi,
    pytest.mark.skipif(
        not Path("/usr/include/rdma/rdma_cma.h").exists(),
        reason="librdmacm-dev is not installed",
    ),
]
PAIRED = ["mp_rdma_bw", "mp_rdma_lat", "mqp_lat", "winbw"]
SHORT = ["--pretend-ppn=1", "--sizes=8:8", "--iterations=4"]


def assert_one_line(done: Completed, program: str, status: int, error: str) -> None:
    """The status is right, and one rank says why; launchers may add lines."""
    assert (done.returncode, done.stdout) == (status, "")
    lines = [line for line in done.stderr.splitlines() if f"{program}: " in line]
    assert len(lines) == 1, done.stderr
    assert re.match(rf"{program}: rank \d on \S+: {error}", lines[0]), lines[0]


@pytest.mark.skipif(
    any(Path("/sys/class/infiniband").glob("*")), reason="this machine has an adapter"
)
@pytest.mark.parametrize("program", PAIRED)
def test_a_machine_without_adapter_is_named_by_one_rank(
    build: Build, program: str
) -> None:
    error = r"ibv_get_device_list: no RDMA device: .* \(errno \d+\): load its driver"
    assert_one_line(build.run(program, 2, *SHORT), program, 2, error)


@pytest.mark.skipif(
    any(Path("/sys/class/infiniband").glob("*")), reason="this machine has an adapter"
)
def test_registration_needs_an_adapter(build: Build) -> None:
    error = r"ibv_get_device_list: no RDMA device: .* \(errno \d+\): load its driver"
    assert_one_line(build.run("mr_cost", 1), "mr_cost", 2, error)


@pytest.mark.skipif(
    any(Path("/sys/class/infiniband").glob("*")), reason="this machine has an adapter"
)
def test_a_pair_that_cannot_connect_is_named_with_the_cause(build: Build) -> None:
    """The conductor reads the second line, and goes on with the other pairs."""
    done = build.run("pairsweep_verbs", 2, "--pretend-ppn=1", "--max-size=8", "--json")
    assert done.returncode == 1
    cause = r"ibv_get_device_list: no RDMA device: .* \(errno \d+\): load its driver"
    assert re.search(rf"pairsweep_verbs: rank \d on \S+: {cause}", done.stderr)
    pair = r"pairsweep: hung pair \S+/0 \S+/1 rail 0 round 1 phase connect"
    assert re.search(f"{pair}: {cause}", done.stderr)


@pytest.mark.parametrize("program", PAIRED)
def test_two_ranks_on_one_node_are_refused(build: Build, program: str) -> None:
    error = "found 2 ranks on 1 node: pairs take two nodes with as many ranks on each"
    assert_one_line(build.run(program, 2), program, 2, error)


@pytest.mark.parametrize(
    ("program", "np", "error"),
    [
        ("mqp_lat", 4, "found 4 ranks: mqp_lat takes two, one on each of two nodes"),
        ("mr_cost", 2, "found 2 ranks: mr_cost measures one process"),
    ],
)
def test_too_many_ranks_are_refused(
    build: Build, program: str, np: int, error: str
) -> None:
    options = ["--pretend-ppn=2"] if program == "mqp_lat" else []
    assert_one_line(build.run(program, np, *options), program, 2, error)


@pytest.mark.parametrize(
    ("program", "options", "error"),
    [
        ("mp_rdma_lat", "--mtu=1500", "--mtu: 1500 is none of: 256, 512, 1024, 2048"),
        ("mqp_lat", "-R --gid-index 1", "--rdma-cm chooses GID and MTU itself: leave"),
        ("pairsweep_verbs", "--min-size 0", "--min-size 0: a message is awaited by"),
        ("pairsweep_verbs", "-R --gid-index 1", "--rdma-cm chooses the GID: leave"),
        ("mp_rdma_lat", "-d a,b", r"--device: 'a,b' is not NAME\[:PORT\], as mlx5_0:1"),
        ("mp_rdma_bw", "-d a:0", r"--device: 'a:0' is not NAME\[:PORT\]"),
        ("mp_rdma_bw", "--peer-device :1", r"--peer-device: ':1' is not NAME\[:PORT\]"),
        ("mp_rdma_bw", "--pairs 0:4", "--pairs: from 0 to 4 is not a span of pairs"),
        ("mp_rdma_lat", "--sizes 0:8", "--sizes: 0: a message is awaited by its last"),
        ("winbw", "-d a,b,c", r"--device: 'a,b,c' is not NAME\[:PORT\]\[,NAME"),
        ("winbw", "-d a,b --peer-device c", "--device has 2 ports, --peer-device 1"),
        ("winbw", "--policy bound", "--policy bound takes two ports in --device"),
        ("mqp_lat", "-q 4:2", "--connections: from 4 to 2 is not a span"),
        ("mr_cost", "--sizes 0:8", "--sizes: 0: a region has at least 1 byte"),
    ],
)
def test_contradictions_are_refused(
    build: Build, program: str, options: str, error: str
) -> None:
    assert_one_line(build.run(program, 1, *options.split()), program, 2, error)


def test_a_partner_that_never_comes_ends_the_wait(build: Build) -> None:
    program = build.bin / "mp_rdma_lat"
    done = run(
        f"mpiexec.{build.mpi}", "-n", "1", program, "--timeout=1",
        ":", "-n", "1", "sleep", "20",
    )  # fmt: skip
    assert done.returncode != 0
    lines = [line for line in done.stderr.splitlines() if "mp_rdma_lat: rank" in line]
    assert len(lines) == 1, done.stderr
    error = r"rank 0 on \S+: MPI: no answer from the other ranks within 1 s: look for"
    assert re.search(error, lines[0]), lines[0]


@pytest.mark.parametrize(
    ("verbs", "status", "text"),
    [
        (
            "AUTO",
            0,
            "-- Programs of verbs are not built: infiniband/verbs.h and rdma/rdma_cma",
        ),
        ("OFF", 0, "-- Programs of verbs are not built: SEATRIAL_VERBS is OFF"),
        ("ON", 1, "infiniband/verbs.h and rdma/rdma_cma.h not found; install"),
    ],
)
def test_missing_headers_are_named(
    build: Build, tmp_path: Path, verbs: str, status: int, text: str
) -> None:
    done = run(
        "cmake", "-S", SOURCES, "-B", tmp_path, f"-DSEATRIAL_VERBS={verbs}",
        f"-DMPI_C_COMPILER=mpicc.{build.mpi}", "-DBUILD_TESTING=OFF",
        "-DIBVERBS_INCLUDE_DIR=IBVERBS_INCLUDE_DIR-NOTFOUND",
        "-DCMAKE_IGNORE_PATH=/usr/include",
    )  # fmt: skip
    output = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == status, output
    assert text in output
