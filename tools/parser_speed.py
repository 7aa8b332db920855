"""Measure the speed of the parsers on 20 MB, made of captured outputs.

A text of rows is a captured output with its row repeated, each time of the next size
or step; a text of lines is a whole output with lines of others in its middle, as a
launcher or a verbose program writes them. The best of three turns counts, in processor
time, which a busy machine disturbs less than wall time does.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, count, islice
from pathlib import Path
from typing import Any

from rich.table import Table

from seatrial.parsers.balance import parse_balance
from seatrial.parsers.bufreuse import parse_bufreuse
from seatrial.parsers.halo2d import parse_halo2d
from seatrial.parsers.hpcc import parse_hpcc
from seatrial.parsers.hpcc_metrics import METRICS
from seatrial.parsers.imb import parse_imb
from seatrial.parsers.lammps import parse_lammps
from seatrial.parsers.match_queue import parse_match_queue
from seatrial.parsers.mpair import parse_mpair
from seatrial.parsers.npb import parse_npb
from seatrial.parsers.osu import parse_osu
from seatrial.parsers.pairsweep import parse_pairsweep
from seatrial.parsers.perftest import parse_perftest_bw, parse_perftest_lat

DATA = Path(__file__).resolve().parent.parent / "tests" / "data"
BYTES = 20_000_000
TURNS = 3
TARGET = ">= 50 MB/s"
OTHERS = (
    "srun: Step created for StepId=1.0, tasks of cn01 to cn04 wait for a resource\n"
)


@dataclass(frozen=True)
class Case:
    """A text, and its parser."""

    parser: str
    content: str
    text: str
    parse: Callable[[str], object]

    def mb_per_s(self) -> float:
        """Return 10^6 characters per second, the best of all turns."""
        return len(self.text) / min(self._turn() for _ in range(TURNS)) / 1e6

    def _turn(self) -> float:
        started = time.process_time()
        self.parse(self.text)
        return time.process_time() - started


def table() -> Table:
    """Measure every parser."""
    shown = Table("parser", "text", "MB/s", "target", title="20 MB of text")
    for case in cases():
        shown.add_row(case.parser, case.content, f"{case.mb_per_s():.0f}", TARGET)
    return shown


def cases() -> Iterator[Case]:
    """Yield the texts one by one, to save memory."""
    yield from _tables()
    yield from _lammps()
    yield from _pairsweep()
    yield from _others()


def read(name: str) -> str:
    """Read a captured output."""
    return (DATA / name).read_text()


def with_lines(text: str, before: str) -> str:
    """Insert lines of other programs before a line of a text."""
    at = text.index(before)
    return text[:at] + OTHERS * (BYTES // len(OTHERS)) + text[at:]


def with_rows(
    text: str, first: str, end: str, row: Callable[[int], str]
) -> tuple[str, int]:
    """Replace the rows from `first` to `end`; return their number, too.

    '' as the end is that of the text.
    """
    start = text.index(first)
    rows: list[str] = []
    size = 0
    for number in count():
        if size >= BYTES:
            break
        rows.append(row(number))
        size += len(rows[-1])
    below = text[text.index(end, start) :] if end else ""
    return text[:start] + "".join(rows) + below, len(rows)


def _tables() -> Iterator[Case]:
    text, rows = with_rows(
        read("osu/latency-7.4.txt"),
        "1                       0.26",
        "",
        lambda n: f"{n + 1:<10d}{0.26:18.2f}\n",
    )
    yield Case("osu", "rows, latency", text, _osu("osu_latency", range(1, rows + 1)))
    text, rows = with_rows(
        read("osu/mbw_mr-7.4.txt"),
        "1                       5.89",
        "",
        lambda n: f"{n + 1:<10d}{2 * (n + 1):18.2f}{2e6:18.2f}\n",
    )
    yield Case("osu", "rows, mbw_mr", text, _osu("osu_mbw_mr", range(1, rows + 1)))
    text, rows = with_rows(
        read("imb/alltoall-2021.11.txt"),
        "            8         1000",
        "\n\n# All processes",
        lambda n: (
            f"     {n + 1:8d}         1000         1.31         1.62         1.47\n"
        ),
    )
    yield Case("imb", "rows", text, _imb(range(1, rows + 1)))
    text, rows = with_rows(
        read("perftest/connectx3-send-bw.txt"),
        " 2          20000",
        "----",
        lambda n: (
            f" {n + 1:<10d} 20000            {2 * (n + 1) / 1.048576:.2f}"
            f"              {2 * (n + 1) / 1.048576:.2f}           2.000000\n"
        ),
    )
    yield Case("perftest", "rows, bandwidth", text, _perftest_bw(range(1, rows + 1)))
    text, rows = with_rows(
        read("perftest/connectx3-send-lat.txt"),
        " 2       20000",
        "----",
        lambda n: (
            f" {n + 1:<7d} 20000          1.03           9.40         1.09         "
            "      1.12            0.29             1.63                   5.02\n"
        ),
    )
    yield Case("perftest", "rows, latency", text, _perftest_lat(range(1, rows + 1)))


def _osu(benchmark: str, sizes: Sequence[int]) -> Callable[[str], object]:
    return lambda text: parse_osu(text, benchmark, sizes)


def _imb(sizes: Sequence[int]) -> Callable[[str], object]:
    return lambda text: parse_imb(text, "Alltoall", 4, sizes)


def _perftest_bw(sizes: Sequence[int]) -> Callable[[str], object]:
    return lambda text: parse_perftest_bw(text, "Send BW", sizes, 20000)


def _perftest_lat(sizes: Sequence[int]) -> Callable[[str], object]:
    return lambda text: parse_perftest_lat(text, "Send Latency", sizes, 20000)


def _lammps() -> Iterator[Case]:
    one = read("lammps/2025.7-lj-np1-omp2-full.txt")
    row = one[one.index("        20   0.6257938") : one.index("Loop time")]
    yield _lammps_rows("rows, style one", one, row, row[:10], 1, 2)
    multi = read("lammps/2025.7-np4.txt")
    row = multi[multi.index("------------ Step            100") :]
    row = row[: row.index("Loop time")]
    yield _lammps_rows("rows, style multi", multi, row, row[17:32], 4, 1)
    yield Case(
        "lammps",
        "lines of others",
        with_lines(one, "Loop time"),
        lambda text: parse_lammps(text, 1, 32000, (0, 20), 2),
    )


def _lammps_rows(
    content: str, text: str, row: str, step: str, ranks: int, threads: int
) -> Case:
    """Repeat the last row, as in a run of that many times the length."""
    last = int(step)
    text, rows = with_rows(
        text, row, "Loop time", lambda n: row.replace(step, f"{last + n:{len(step)}d}")
    )
    loop = text.index("Loop time")
    before = {"20": [0], "100": [0, 50]}[str(last)]
    steps = [*before, *range(last, last + rows)]
    old = text[loop : text.index("% CPU", loop)]
    _, _, _, seconds, _, procs, *_ = old.split()
    rate = steps[-1] / float(seconds)
    new = (
        f"Loop time of {seconds} on {procs} procs for {steps[-1]} steps with 32000 "
        f"atoms\n\nPerformance: {rate:.3f} timesteps/s\n{old.split()[-1]}"
    )
    return Case(
        "lammps",
        content,
        text.replace(old, new),
        lambda text: parse_lammps(text, ranks, 32000, steps, threads),
    )


def _pairsweep() -> Iterator[Case]:
    lines = [
        json.loads(line)
        for line in read("pairsweep/openmpi-4.1.4-np4.jsonl").splitlines()
    ]
    run, pair, end = lines[0], lines[1], lines[-1]
    number = BYTES // len(json.dumps(pair))
    nodes = (f"cn{node:04d}" for node in range(1000))
    rows: list[dict[str, Any]] = [run | {"pairs": number}]
    for source, destination in islice(combinations(nodes, 2), number):
        rows.append(pair | {"source": source, "destination": destination})
    rows.append(end | {"measured": number, "suspects": 0, "retested": 0})
    text = "".join(json.dumps(row) + "\n" for row in rows)
    yield Case("pairsweep", "rows", text, parse_pairsweep)


def _others() -> Iterator[Case]:
    """Yield whole outputs with lines of other programs in their middle."""
    texts: tuple[tuple[str, str, Callable[[str], object]], ...] = (
        (
            "hpcc/debian-1.5.0-np4.txt",
            "Detailed benchmark results",
            lambda text: parse_hpcc(text, list(METRICS), 4, 1000),
        ),
        (
            "npb/cg-S-np4-timers-3.4.1.txt",
            " CG Benchmark Completed",
            lambda text: parse_npb(text, "CG", "S", 4, timers=True),
        ),
        (
            "osu/latency-7.4.txt",
            "64 ",
            _osu("osu_latency", [1 << k for k in range(9)]),
        ),
        (
            "imb/alltoall-2021.11.txt",
            "           64",
            _imb([1 << k for k in range(3, 17)]),
        ),
        (
            "perftest/connectx3-send-bw.txt",
            " 64 ",
            _perftest_bw([1 << k for k in range(1, 24)]),
        ),
        ("balance/openmpi-4.1.4-off.txt", "{", parse_balance),
        ("bufreuse/openmpi-4.1.4.txt", "{", parse_bufreuse),
        ("halo2d/mpich-4.0.2-np2.txt", "{", parse_halo2d),
        (
            "match_queue/mq_unexp-openmpi-4.1.4.txt",
            "{",
            lambda text: parse_match_queue(text, "mq_unexp"),
        ),
        ("mpair/openmpi-4.1.4-within-off.txt", "{", parse_mpair),
    )
    for name, before, parse in texts:
        text = with_lines(read(name), before)
        yield Case(name.partition("/")[0], "lines of others", text, parse)
