"""Server and client of perftest as two ranks on this machine, by stand-ins."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_home import fake_program

from seatrial.parsers.errors import ParseError
from seatrial.parsers.perftest import parse_perftest_bw, parse_perftest_sampled
from seatrial.parsers.perftest_errors import remedy

STAND_IN = Path(__file__).parent / "data" / "replay" / "perftest"
LATENCY = ("ib_write_lat", "-F", "-d", "mlx5_0", "-i", "1", "-s", "8", "-n", "21", "-U")
BANDWIDTH = (
    *("ib_write_bw", "-b", "-t", "64", "-Q", "1", "-q", "2", "-n", "32"),
    *("-s", "65536"),
)
CLIENT, SERVER = "0", "1"
Rank = subprocess.Popen[str]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A shared folder with stand-in programs; no process may be left over."""
    for name in ("ib_write_lat", "ib_write_bw"):
        fake_program(
            tmp_path / "bin", name, f'exec {sys.executable} {STAND_IN} {name} "$@"\n'
        )
    yield tmp_path
    assert processes_of(tmp_path) == []
    assert not (tmp_path / "port").exists()


def processes_of(folder: Path) -> list[str]:
    """Return the command lines of processes that were started in a folder."""
    commands = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink() == folder:
                commands.append((process / "cmdline").read_text())
        except OSError:
            continue
    return commands


def start(
    folder: Path, rank: str, *program: str, fault: str = "", limit: str = "20"
) -> Rank:
    environment = {"SLURM_PROCID": rank, "SLURMD_NODENAME": "localhost"}
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    return subprocess.Popen(
        [
            *(sys.executable, "-I", "-m", "seatrial.checks.perftest_pair"),
            *("--meet", "port", "--limit", limit, "--", *program),
        ],
        cwd=folder,
        env={**os.environ, **environment, "PATH": path, "PERFTEST_FAULT": fault},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(rank: Rank) -> tuple[int, str, str]:
    """Return status, output and errors of a rank."""
    output, errors = rank.communicate(timeout=60)
    return rank.returncode, output, errors


@pytest.mark.parametrize("first", [CLIENT, SERVER])
def test_output_is_that_of_the_client(folder: Path, first: str) -> None:
    ranks = {first: start(folder, first, *LATENCY)}
    time.sleep(0.5)  # the other node is late
    other = CLIENT if first == SERVER else SERVER
    ranks[other] = start(folder, other, *LATENCY)
    assert ended(ranks[SERVER]) == (0, "", "")
    status, output, errors = ended(ranks[CLIENT])
    assert (status, errors) == (0, "")
    samples = parse_perftest_sampled(output, "RDMA_Write Latency", 8, 21)
    assert len(samples) == 20


def test_both_directions_of_two_queue_pairs(folder: Path) -> None:
    server, client = (start(folder, rank, *BANDWIDTH) for rank in (SERVER, CLIENT))
    status, output, errors = ended(client)
    assert (status, errors) == (0, "")
    title = "RDMA_Write Bidirectional BW"
    (row,) = parse_perftest_bw(output, title, (65536,), 64)
    assert row.iterations == 64
    assert ended(server) == (0, "", "")


FAULTS = {
    "server-absent": (
        (SERVER, "server does not listen on TCP port "),
        (CLIENT, "server is not there within 3 s"),
    ),
    "client-dies": (
        (CLIENT, "exit status 1; Completion with error at client; Failed status 12\n"),
        (SERVER, "no end within 3 s"),
    ),
    "server-dies": (
        (SERVER, "exit status 1; Couldn't allocate MR"),
        (CLIENT, ""),
    ),
    "hang": ((CLIENT, "no end within 3 s"), (SERVER, "no end within 3 s")),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_side_says_how_it_failed(folder: Path, fault: str) -> None:
    ranks = {
        rank: start(folder, rank, *LATENCY, fault=fault, limit="3")
        for rank in (SERVER, CLIENT)
    }
    for rank, reason in FAULTS[fault]:
        status, output, errors = ended(ranks[rank])
        side = "client" if rank == CLIENT else "server"
        place = f"perftest_pair: {side} ib_write_lat on localhost: "
        assert status == (1 if reason else 0), errors
        assert errors.startswith(f"{place}{reason}" if reason else ""), errors
        assert errors.count("\n") == (1 if reason else 0)
        if reason:
            assert output == ""


@pytest.mark.parametrize("rank", [CLIENT, SERVER])
def test_terminated_side_ends_its_program(folder: Path, rank: str) -> None:
    """As srun does with the other rank when one has failed."""
    ranks = {each: start(folder, each, *LATENCY, fault="hang") for each in "10"}
    deadline = time.monotonic() + 20
    while sum("host" in line or "-p" in line for line in processes_of(folder)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    ranks[rank].terminate()
    assert ended(ranks[rank]) == (128 + signal.SIGTERM, "", "")
    (other,) = {CLIENT, SERVER} - {rank}
    ranks[other].terminate()
    # A client without its server may have failed, or be at its end, by then.
    by_itself = (1, -signal.SIGTERM)
    assert ended(ranks[other])[0] in (128 + signal.SIGTERM, *by_itself)


def test_missing_program_is_named_with_what_to_do(folder: Path) -> None:
    status, _, errors = ended(start(folder, SERVER, "ib_no_such"))
    assert status == 1
    assert errors == (
        "perftest_pair: server ib_no_such on localhost: No such file or directory; "
        "install perftest on the nodes, or load a module that has it\n"
    )


def test_third_rank_is_refused(folder: Path) -> None:
    status, _, errors = ended(start(folder, "2", *LATENCY))
    assert status == 1
    assert "rank 2, expected 0 or 1" in errors


@pytest.mark.skipif(
    not shutil.which("ib_write_lat"), reason="perftest is not installed"
)
def test_real_perftest_without_a_device(folder: Path) -> None:
    """Its words are those of the remedy."""
    (folder / "bin" / "ib_write_lat").unlink()
    status, _, errors = ended(start(folder, SERVER, *LATENCY))
    assert status == 1
    assert "Unable to find the Infiniband/RoCE device; `ibv_devices` on" in errors


WRONG = {"inf": "sample is inf", "-nan": "sample is nan", "0.00": "sample is 0"}


@pytest.mark.parametrize("fault", WRONG)
def test_result_that_is_no_number_is_refused_despite_exit_status_0(
    folder: Path, fault: str
) -> None:
    for program, reason in {LATENCY: WRONG[fault], BANDWIDTH: f"is {fault},"}.items():
        ranks = [start(folder, rank, *program, fault=fault) for rank in "10"]
        (_, _, _), (status, output, _) = map(ended, ranks)
        assert status == 0
        with pytest.raises(ParseError) as caught:
            if program == LATENCY:
                parse_perftest_sampled(output, "RDMA_Write Latency", 8, 21)
            else:
                title = "RDMA_Write Bidirectional BW"
                parse_perftest_bw(output, title, (65536,), 64)
        assert reason in caught.value.reason


@pytest.mark.parametrize(
    ("text", "memlock", "expected"),
    [
        ("Couldn't allocate MR", 65536, "locked memory is limited to 64 KiB: raise"),
        ("Couldn't allocate MR", -1, ""),
        ("IB device mlx5_9 not found", -1, "`ibv_devices` on the node"),
        (" Port number 1 state is Down", -1, "`ibv_devinfo` on the node shows the por"),
        ("Failed to modify QP 17 to RTR", -1, "set the GID index of the rail in gid_"),
        ("Couldn't create QP", -1, "`ibv_devinfo -v` on the node shows max_qp"),
        ("Couldn't connect to cn02:18515", -1, "the server's host name must resolve"),
        ("Something else", -1, ""),
    ],
)
def test_errors_of_perftest_have_remedies(
    text: str, memlock: int, expected: str
) -> None:
    assert remedy(text, memlock).startswith(expected)
    assert bool(remedy(text, memlock)) == bool(expected)


SAMPLED = (STAND_IN.parents[1] / "perftest" / "made-write-lat-samples.txt").read_text()
BROKEN = {
    "another size": ("\n 8       6", "\n 4       6", "row of 4 bytes, expected 8"),
    "mean is no number": ("1.20 ", "-nan ", "t_avg is -nan, expected"),
    "minimum is zero": (" 1.00 ", " 0.00 ", "t_min is 0.00, expected a positive"),
    "another minimum": ("1, 1.0\n", "1, 1.1\n", "t_min is 1.0 us, but the least samp"),
    "no table": ("\n 8       6", "\n x", "0 of 1 rows"),
}


def test_samples_and_their_table_agree() -> None:
    """A deviation of -nan is not read: perftest's is wrong."""
    samples = parse_perftest_sampled(SAMPLED, "RDMA_Write Latency", 8, 6)
    assert samples == (1.0, 1.2, 1.4, 1.1, 1.3)


@pytest.mark.parametrize("name", BROKEN)
def test_samples_without_their_table_are_refused(name: str) -> None:
    old, new, reason = BROKEN[name]
    assert SAMPLED.count(old) == 1
    with pytest.raises(ParseError) as caught:
        parse_perftest_sampled(SAMPLED.replace(old, new), "RDMA_Write Latency", 8, 6)
    assert reason in caught.value.reason


def test_a_rank_starts_without_the_metadata_of_packages() -> None:
    """Their import takes two thirds of its start, on a slow file system seconds."""
    program = (
        "import sys, seatrial.checks.perftest_pair as pair; "
        "sys.exit('importlib.metadata' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
