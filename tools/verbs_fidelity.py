"""Compare mp_rdma_lat and mp_rdma_bw with perftest, on the lab with RDMA.

    make rdma-lab
    python tools/verbs_fidelity.py [TURNS]

Both programs run in turn between the two machines, in one job, in alternating order.
Shown are the medians over the turns, the median of ours / theirs with its 95 %
interval (order statistics), and as the noise the same interval of a program beside its
own next turn: a ratio is no better known than that. Soft-RoCE says nothing about
performance.
"""

import shlex
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from scipy.stats import quantile_test

from seatrial.parsers.mp_rdma import parse_mp_rdma_bw, parse_mp_rdma_lat
from seatrial.parsers.perftest import parse_perftest_bw, parse_perftest_sampled
from seatrial.system.lab import cluster
from seatrial.system.lab.state import require

TURNS = 15
PREFIX = "/home/seatrial/seatrial"
WARMUP, COUNT = 20, 200
WINDOWS, WINDOW = 20, 16
MARK = "# turn"


@dataclass(frozen=True)
class Comparison:
    """The same operation by both; `read` converts outputs to us, or to us per byte."""

    name: str
    ours: str
    theirs: str
    read_ours: Callable[[str], float]
    read_theirs: Callable[[str], float]


def latency(operation: str, size: int) -> Comparison:
    """Compare the medians of an operation of one size."""
    title = {"write": "RDMA_Write Latency", "read": "RDMA_Read Latency"}[operation]
    count = WARMUP + COUNT + 1  # perftest prints one sample less

    def samples(text: str) -> float:
        timed = parse_perftest_sampled(text, title, size, count)[WARMUP:]
        return statistics.median(timed)

    return Comparison(
        f"{operation} latency, {size} B",
        f"mp_rdma_lat --operation {operation} --sizes {size}:{size} "
        f"--iterations {COUNT} --warmup {WARMUP}",
        f"ib_{operation}_lat -s {size} -n {count} -U",
        lambda text: parse_mp_rdma_lat(text)[0].p50_us or 0.0,
        samples,
    )


def bandwidth(size: int) -> Comparison:
    """Compare the time per byte of writes of one size."""
    count = WINDOWS * WINDOW

    def theirs(text: str) -> float:
        (row,) = parse_perftest_bw(text, "RDMA_Write BW", [size], count)
        return 1 / row.bandwidth_mb_per_s

    return Comparison(
        f"write bandwidth, {size // 1024} KiB",
        f"mp_rdma_bw --operation write --sizes {size}:{size} --window {WINDOW} "
        f"--iterations {WINDOWS} --warmup 1",
        f"ib_write_bw -s {size} -n {count} -t {WINDOW} -Q 1",
        lambda text: 1 / (parse_mp_rdma_bw(text)[0].mb_per_s or 1e-9),
        theirs,
    )


COMPARISONS = (latency("write", 8), latency("read", 8), bandwidth(65536))


def script(turns: int) -> str:
    """Return the script of the job: all steps, each after a line with its name."""
    step = "srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1"
    own = f"{step} --mpi=pmix {PREFIX}/benchmarks/openmpi/bin/"
    pair = f"{step} {PREFIX}/venv/bin/python -I -m seatrial.checks.perftest_pair "
    pair += f"--meet {PREFIX}/results/fidelity.port --limit 60 --"
    rail = "--device rxe0:1 --gid-index 1 --spread-limit 0 --pairs 1 --json"
    over_tcp = "pml=ob1 btl=tcp,self btl_tcp_if_include=host0"
    lines = [f"export OMPI_MCA_{variable}" for variable in over_tcp.split()]
    for turn in range(turns):
        for number, one in enumerate(COMPARISONS):
            both = [
                (f"{number} ours", f"{own}{one.ours} {rail}"),
                (f"{number} theirs", f"{pair} {one.theirs} -F -d rxe0 -i 1 -x 1"),
            ]
            for name, command in both if turn % 2 else reversed(both):
                lines += [f"echo; echo '{MARK} {name}'", f"{command} </dev/null"]
    return "\n".join(lines) + "\n"


def measure(turns: int) -> list[dict[str, list[float]]]:
    """Run the job; return the numbers of both sides for each comparison."""
    config = str(cluster.ssh_config(Path(require().home)))
    job = "salloc --quiet --nodes=2 --time=30 bash -s"
    done = subprocess.run(
        ["ssh", "-F", config, "rhead", shlex.join(["bash", "-lc", job])],
        input=script(turns),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: list[dict[str, list[float]]] = [
        {"ours": [], "theirs": []} for _ in COMPARISONS
    ]
    for part in done.stdout.split(f"{MARK} ")[1:]:
        head, _, text = part.partition("\n")
        number, side = head.split()
        one = COMPARISONS[int(number)]
        read = one.read_ours if side == "ours" else one.read_theirs
        found[int(number)][side].append(read(text.rstrip("\n") + "\n"))
    return found


def interval(ratios: list[float]) -> str:
    """Format the 95 % interval of a median."""
    bounds: Any = quantile_test(ratios, p=0.5).confidence_interval(0.95)
    return f"{bounds.low:.3f} .. {bounds.high:.3f}"


def main(turns: int) -> None:
    """Measure, and print the table."""
    table = Table(
        "",
        "ours",
        "perftest",
        "ours / perftest",
        "95 %",
        "noise of ours",
        "of perftest",
    )
    for one, found in zip(COMPARISONS, measure(turns), strict=True):
        ours, theirs = found["ours"], found["theirs"]
        ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
        noise = [
            interval([a / b for a, b in pairwise(side)]) for side in (ours, theirs)
        ]
        middle = (statistics.median(ours), statistics.median(theirs))
        table.add_row(
            one.name,
            *(f"{value:.4g}" for value in middle),
            f"{statistics.median(ratios):.3f}",
            interval(ratios),
            *noise,
        )
    Console().print(f"{turns} turns; us, or us per byte", table)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else TURNS)
